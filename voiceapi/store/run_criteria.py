"""What the runs of a list are filtered by."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .base import marks
from .counts import LONGEST_KEY
from .database import bound_path, either
from .runs import Run

CHANNELS = {
    "telephony": (
        *("ari", "plivo", "twilio", "signalwire", "vonage", "vobiz", "cloudonix", "telnyx", "jambonz", "simulator"),
        *("stasis", "VOICE"),
    ),
    "web": ("webrtc", "smallwebrtc"),
    "chat": ("textchat", "CHAT"),
}


@dataclass(frozen=True, slots=True)
class Criteria:
    """What all runs of a list have in common.

    :param since: created then or later, and `until`: created then or earlier; in microseconds since 1970.
    :param conditions: in SQL, with `?` for each of `values`, which are in their stored form.
    :param columns: those that the conditions are about.
    """

    since: int | None = None
    until: int | None = None
    conditions: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()
    columns: frozenset[str] = frozenset()

    def __and__(self, other: Criteria) -> Criteria:
        since = [bound for bound in (self.since, other.since) if bound is not None]
        until = [bound for bound in (self.until, other.until) if bound is not None]
        return Criteria(
            max(since, default=None),
            min(until, default=None),
            self.conditions + other.conditions,
            self.values + other.values,
            self.columns | other.columns,
        )

    def sql(self) -> tuple[str, tuple[Any, ...]]:
        """All of it as SQL, each condition with an AND before it, and its values."""
        bounds = (("created_at >= ?", self.since), ("created_at <= ?", self.until))
        given = [(text, bound) for text, bound in bounds if bound is not None]
        conditions = (*(text for text, _ in given), *self.conditions)
        return "".join(f" AND {text}" for text in conditions), (*(bound for _, bound in given), *self.values)


ALL = Criteria()


def _about(column: str, condition: str, *values: Any) -> Criteria:
    return Criteria(conditions=(condition,), values=values, columns=frozenset((column,)))


def created_through(first: datetime | None, last: datetime | None) -> Criteria:
    """Created at `first` or later and at `last` or earlier."""
    return Criteria(Run.created_at.db_value(first), Run.created_at.db_value(last))


def duration_between(low: float | None, high: float | None) -> Criteria:
    """With a duration in this range, bounds included."""
    criteria = _about("duration", "duration IS NOT NULL")
    if low is not None:
        criteria &= _about("duration", "duration >= ?", low)
    if high is not None:
        criteria &= _about("duration", "duration <= ?", high)
    return criteria


def tokens_between(low: float | None, high: float | None) -> Criteria:
    """With a token cost in this range. The cost of every run is zero: all match, or none does."""
    fits = (low is None or low <= 0) and (high is None or high >= 0)
    return ALL if fits else Criteria(conditions=("1 = 0",))


def disposition_in(codes: list[str]) -> Criteria:
    """With one of these dispositions; any if there are none."""
    long = [code for code in codes if len(code) > LONGEST_KEY]
    if long and bound_path() is None:  # lists go by what an index holds of a disposition, reports by the whole
        codes = [*codes, *(code[:LONGEST_KEY] for code in long)]
    return _one_of("disposition", codes) if codes else ALL


def completed(yes: bool) -> Criteria:
    """Completed, or not."""
    return _about("state", "state = 'completed'" if yes else "state != 'completed'")


def column_is(name: str, value: Any) -> Criteria:
    """With this value in a column."""
    return _about(name, f"{name} = ?", value)


def column_holds(name: str, text: str) -> Criteria:
    """With this text in a column's, in either case."""
    pattern = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    # In SQLite's `lower`, and by code points, only the letters from A to Z have two cases.
    lower = either("lower(?)", 'lower(? COLLATE "C")')
    return _about(name, f"lower({name}) LIKE {lower} ESCAPE '\\'", f"%{pattern}%")


def channel_is(channel: str) -> Criteria:
    """With a mode of this channel, a key of CHANNELS."""
    return _one_of("mode", CHANNELS[channel])


def tagged(tags: list[str]) -> Criteria:
    """With all of these call tags."""
    if not tags:
        return ALL
    if bound_path() is None:
        return _about("gathered_context", "tags @> ?::TEXT[]", [tag[:LONGEST_KEY] for tag in tags])
    carried = "SELECT count(DISTINCT value) FROM json_each(gathered_context, '$.call_tags')"
    return _about("gathered_context", f"({carried} WHERE value IN ({marks(tags)})) = ?", *tags, len(set(tags)))


def _one_of(column: str, values: tuple[str, ...] | list[str]) -> Criteria:
    return _about(column, f"{column} IN ({marks(values)})", *values)
