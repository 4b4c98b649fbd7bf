"""The tables that a call's conversation is loaded from: the engine's events, and a snapshot of its state."""

from __future__ import annotations

from typing import Any

from peewee import CompositeKey, ForeignKeyField, IntegerField

from .base import Record, select
from .database import execute
from .fields import JSONText
from .runs import Run


class Step(Record):
    """An event that the engine was given, as JSON. Replaying a run's steps in order gives the engine's state."""

    run = ForeignKeyField(Run, on_delete="CASCADE", index=False)
    number = IntegerField()
    event = JSONText()

    class Meta:
        primary_key = CompositeKey("run", "number")


class Snapshot(Record):
    """The engine's state after step `number`, so that a turn needn't replay all steps."""

    run = ForeignKeyField(Run, primary_key=True, on_delete="CASCADE")
    number = IntegerField()
    # The number of the request whose tool is being called. A tool is called once, even if its result is lost.
    calling = IntegerField(null=True)
    state = JSONText()


def of_run(run: int) -> list[Any]:
    """The events that the engine was given in a run, in order."""
    return [step.event for step in select(Step, "WHERE run_id = ? ORDER BY number", run)]


def mark_calling(run: int, number: int, request: int) -> bool:
    """Store that the tool of `request` is being called after step `number`; False if that was stored already."""
    statement = "UPDATE snapshot SET calling = ? WHERE run_id = ? AND number = ? AND calling IS NULL"
    return bool(execute(statement, request, run, number).rowcount)
