"""The tables of what a call's conversation is loaded from: the events that the engine was fed, and where they led."""

from __future__ import annotations

from peewee import CompositeKey, ForeignKeyField, IntegerField

from .base import Record
from .database import execute
from .fields import JSONText
from .runs import Run


class Step(Record):
    """One event that the engine was fed, as stored JSON: the fold over a run's steps is its state."""

    run = ForeignKeyField(Run, on_delete="CASCADE", index=False)
    number = IntegerField()
    event = JSONText()

    class Meta:
        primary_key = CompositeKey("run", "number")


class Snapshot(Record):
    """The engine's state after step `number`, so that a turn needn't fold from the beginning."""

    run = ForeignKeyField(Run, primary_key=True, on_delete="CASCADE")
    number = IntegerField()
    # The number of the request whose tool is being called: it is called once, also when its result is lost.
    calling = IntegerField(null=True)
    state = JSONText()


def mark_calling(run: int, number: int, request: int) -> bool:
    """Note that a run's tool for `request` is being called, as of step `number`; False when that is noted already."""
    statement = "UPDATE snapshot SET calling = ? WHERE run_id = ? AND number = ? AND calling IS NULL"
    return bool(execute(statement, request, run, number).rowcount)
