"""The table by which a process proves that it has the secret that the database was encrypted with.

While the secret is being replaced, it also holds the old and the new one, each encrypted with the other. So whoever has
one of them can decrypt everything, however far the replacement has come.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from peewee import TextField

from ..security import SecretError, Vault
from .base import Record, insert, scalar
from .database import Store, write
from .fields import ShortText

CHECK, OLD, NEW = "check", "old", "new"
KNOWN_TEXT = "voiceapi"
# The version of the schema that has this table.
SINCE_VERSION = 5


class SecretCheck(Record):
    """A text encrypted with the secret: a known one as `check`, or the `old` or `new` secret."""

    name = ShortText(8, unique=True)
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
        found = values()
        if CHECK not in found or not agrees(found, vault):
            raise SecretError(
                f"The secret isn't the one that {store.name} was encrypted with. Restore that one; if it is lost, "
                "docs/operations.md says how to go on without it."
            )


def values() -> dict[str, str]:
    """What the table of the bound database holds, by name."""
    return {each.name: each.value for each in SecretCheck.select()}


def agrees(values: Mapping[str, str], vault: Vault) -> bool:
    """True unless these values of a database prove that it was encrypted with another secret than the vault's.

    If the secret is being replaced, the vault is given the other one, too.
    """
    for name in (OLD, NEW):
        with suppress(KeyError, SecretError):
            vault.add(vault.decrypt(values[name]).encode("latin-1"))
    return CHECK not in values or vault.made(values[CHECK])


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
