"""Encrypts what is stored: once what earlier releases kept in clear, and all of it again under a new secret."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from peewee import CharField, TextField

from ..security import Vault
from .base import Record
from .database import execute, write
from .fields import COMPACT
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
    value = json.loads(text)
    changed = encrypted(vault, value, find)
    return text if changed is value else COMPACT.encode(changed)


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
    """Go through the rows that hold tokens, in the order of their keys."""
    meta: Any = table._meta
    keys = [f'"{field.column_name}"' for field in meta.get_primary_keys()]
    texts = [f'"{each.column_name}"' for each in meta.sorted_fields if isinstance(each, TextField | CharField)]
    if not texts:
        return 0
    key, marks = ", ".join(keys), ", ".join("?" * len(keys))
    holding = " OR ".join(f"{text} LIKE '%gAAAA%'" for text in texts)
    chosen = f'SELECT {key}, {", ".join(texts)} FROM "{meta.table_name}" WHERE ({holding})'
    if execute(f"{chosen} LIMIT 1").fetchone() is None:
        return 0  # without keeping writers waiting
    changes = ", ".join(f"{text} = ?" for text in texts)
    last: Sequence[Any] = ()
    changed = 0
    while True:
        after = f" AND ({key}) > ({marks})" if last else ""
        with write():
            rows = execute(f"{chosen}{after} ORDER BY {key} LIMIT {BATCH}", *last).fetchall()
            for row in rows:
                last, old = row[: len(keys)], row[len(keys) :]
                new = [None if text is None else vault.rotate(text) for text in old]
                if new != list(old):
                    execute(f'UPDATE "{meta.table_name}" SET {changes} WHERE ({key}) = ({marks})', *new, *last)
                    changed += 1
        if len(rows) < BATCH:
            return changed
