"""Encrypts what is stored: once what earlier releases kept in clear, and all of it again under a new secret."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from peewee import TextField

from ..security import SecretError, Vault
from ..strict_json import decode, encode
from .base import Record, insert, scalar
from .database import Store, execute, write
from .fields import ShortText
from .secret_fields import Find, encrypt_url, encrypted, in_configurations, in_definition, in_tool

# Rows that are encrypted again in one transaction; other writers wait for it.
BATCH = 100
# The columns of JSON in which version 4 stored secrets in clear.
CLEAR_UNTIL_5: tuple[tuple[str, str, Find], ...] = (
    ("workflow_version", "definition", in_definition),
    ("workflow_version", "configurations", in_configurations),
    ("run", "draft", in_definition),
    ("tool", "definition", in_tool),
)


def encrypt_clear(database: Any, vault: Vault) -> None:
    """Encrypt the secrets in all rows of a file of version 4, within the migration's transaction."""
    present = set(database.get_tables())  # those that a file of version 1 lacks are created after the last step
    for table, column, find in CLEAR_UNTIL_5:
        if table in present:
            _change(database, table, column, partial(_encrypt_json, vault, find))
    if "delivery" in present:
        _change(database, "delivery", "url", partial(encrypt_url, vault))


def _encrypt_json(vault: Vault, find: Find, text: str) -> str:
    value = decode(text)
    changed = encrypted(vault, value, find)
    return text if changed is value else encode(changed).decode()


def _change(database: Any, table: str, column: str, change: Callable[[str], str]) -> None:
    rows = database.execute_sql(f'SELECT id FROM "{table}" WHERE {column} IS NOT NULL').fetchall()
    for (id,) in rows:
        text = database.execute_sql(f'SELECT {column} FROM "{table}" WHERE id = ?', (id,)).fetchone()[0]
        changed = change(text)
        if changed != text:
            database.execute_sql(f'UPDATE "{table}" SET {column} = ? WHERE id = ?', (changed, id))


def encrypt_again(vault: Vault, tables: Sequence[type[Record]]) -> int:
    """Encrypt every token in these tables with the vault's present secret; returns how many rows were changed.

    Each batch is a transaction, so other writers wait only for a batch, and after a kill the rest can be done.
    """
    return sum(_table_again(vault, table) for table in tables)


def _table_again(vault: Vault, table: type[Record]) -> int:
    """Go through the rows that hold tokens, in the order of their keys; they are looked for outside transactions."""
    meta: Any = table._meta
    keys = [f'"{field.column_name}"' for field in meta.get_primary_keys()]
    texts = [f'"{each.column_name}"' for each in meta.sorted_fields if isinstance(each, TextField | ShortText)]
    if not texts:
        return 0
    key, marks = ", ".join(keys), ", ".join("?" * len(keys))
    holding = " OR ".join(f"{text} LIKE '%gAAAA%'" for text in texts)
    changes = ", ".join(f"{text} = ?" for text in texts)
    changed = 0
    found: list[Sequence[Any]] = []
    while True:
        after = f" AND ({key}) > ({marks})" if found else ""
        chosen = f'SELECT {key} FROM "{meta.table_name}" WHERE ({holding}){after} ORDER BY {key} LIMIT {BATCH}'
        found = execute(chosen, *(found[-1] if found else ())).fetchall()
        if not found:
            return changed
        with write():
            for row in found:
                old = execute(f'SELECT {", ".join(texts)} FROM "{meta.table_name}" WHERE ({key}) = ({marks})', *row)
                for values in old.fetchall():  # none if the row was deleted meanwhile
                    new = [None if text is None else vault.rotate(text) for text in values]
                    if new != list(values):
                        execute(f'UPDATE "{meta.table_name}" SET {changes} WHERE ({key}) = ({marks})', *new, *row)
                        changed += 1


CHECK, OLD, NEW = "check", "old", "new"
KNOWN_TEXT = "voiceapi"
# The version of the schema that has this table.
SINCE_VERSION = 5


class SecretCheck(Record):
    """A text encrypted with the secret: a known one as `check`, or the `old` or `new` secret."""

    name = ShortText(8, unique=True)
    value = TextField()


def needs_secret(store: Store, version: int) -> bool:
    """True if the database, of this version of the schema, holds what only its own secret decrypts."""
    if version < SINCE_VERSION:
        return False
    with store.session():
        return _stored(CHECK) is not None


def prove_secret(store: Store, vault: Vault) -> None:
    """Prove that the vault's secret decrypts what is stored. A database without a check value gets one.

    If the secret is being replaced, the vault gets both.

    :raises SecretError: when it was encrypted with another secret.
    """
    with store.session():
        if _stored(CHECK) is None:
            with write():
                if _stored(CHECK) is None:
                    insert(SecretCheck, name=CHECK, value=vault.encrypt(KNOWN_TEXT))
        found = check_values()
        if CHECK not in found or not agrees(found, vault):
            raise SecretError(
                f"The secret isn't the one that {store.name} was encrypted with. Restore that one; if it is lost, "
                "docs/operations.md says how to go on without it."
            )


def check_values() -> dict[str, str]:
    """What the table of the bound database holds, by name."""
    return {each.name: each.value for each in SecretCheck.select()}


def agrees(values: Mapping[str, str], vault: Vault) -> bool:
    """True unless these values of a database prove that it was encrypted with another secret than the vault's.

    If the secret is being replaced, the vault gets both.
    """
    for name in (OLD, NEW):
        with suppress(KeyError, SecretError):
            vault.add(vault.decrypt(values[name]).encode("latin-1"))
    return CHECK not in values or vault.made(values[CHECK])


def new_secret(vault: Vault) -> bytes | None:
    """The new secret, when the secret is being replaced; None if it isn't.

    :param vault: one that has proved its secret.
    """
    found = _decrypted(vault, NEW)
    return None if found is None else found.encode("latin-1")


def begin_rotation(vault: Vault, new: bytes) -> None:
    """Note, within a transaction, that the secret is being replaced by `new`."""
    insert(SecretCheck, name=NEW, value=vault.encrypt(new.decode("latin-1")))
    insert(SecretCheck, name=OLD, value=Vault(new).encrypt(vault.secret.decode("latin-1")))


def finish_rotation(vault: Vault) -> None:
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
