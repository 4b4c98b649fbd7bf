"""The table by which a process proves that it has the secret that the database was encrypted with.

While the secret is being replaced, it also holds the old and the new one, each encrypted with the other. So whoever has
one of them can decrypt everything, however far the replacement has come.
"""

from __future__ import annotations

from contextlib import suppress

from peewee import CharField, TextField

from ..security import SecretError, Vault
from .base import Record, insert, scalar
from .database import Store, write

CHECK, OLD, NEW = "check", "old", "new"
KNOWN_TEXT = "voiceapi"
# The version of the schema that has this table.
SINCE_VERSION = 5


class SecretCheck(Record):
    """A text encrypted with the secret: a known one as `check`, or the `old` or `new` secret."""

    name = CharField(8, unique=True)
    value = TextField()


def is_needed(store: Store, version: int) -> bool:
    """True if the database, of this version of the schema, holds what only its own secret decrypts."""
    if version < SINCE_VERSION:
        return False
    with store.session():
        return _stored(CHECK) is not None


def prove(store: Store, vault: Vault) -> None:
    """Prove that the vault's secret decrypts what is stored. A database without a check value gets one.

    If the secret is being replaced, the vault is given the other one, too.

    :raises SecretError: when it was encrypted with another secret.
    """
    with store.session():
        if _stored(CHECK) is None:
            with write():
                if _stored(CHECK) is None:
                    insert(SecretCheck, name=CHECK, value=vault.encrypt(KNOWN_TEXT))
        for name in (OLD, NEW):
            other = _decrypted(vault, name)
            if other is not None:
                vault.add(other.encode("latin-1"))
        token = _stored(CHECK)
        if token is None or not vault.made(token):
            raise SecretError(
                f"The secret isn't the one that {store.name} was encrypted with. Restore that one; if it is lost, "
                "docs/operations.md says how to go on without it."
            )


def replacement(vault: Vault) -> bytes | None:
    """The new secret, when the secret is being replaced; None if it isn't.

    :param vault: one that has proved its secret.
    """
    found = _decrypted(vault, NEW)
    return None if found is None else found.encode("latin-1")


def begin(vault: Vault, new: bytes) -> None:
    """Note, within a transaction, that the secret is being replaced by `new`."""
    insert(SecretCheck, name=NEW, value=vault.encrypt(new.decode("latin-1")))
    insert(SecretCheck, name=OLD, value=Vault(new).encrypt(vault.secret.decode("latin-1")))


def finish(vault: Vault) -> None:
    """Note, within a transaction, that everything is encrypted with the vault's secret, which is the new one."""
    SecretCheck.delete().execute()
    insert(SecretCheck, name=CHECK, value=vault.encrypt(KNOWN_TEXT))


def _stored(name: str) -> str | None:
    found: str | None = scalar(SecretCheck, "value", name=name)
    return found


def _decrypted(vault: Vault, name: str) -> str | None:
    token = _stored(name)
    with suppress(SecretError):
        return None if token is None else vault.decrypt(token)
    return None
