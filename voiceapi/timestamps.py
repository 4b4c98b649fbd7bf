"""Reads and writes times as ISO 8601 text in UTC."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime


def read_time(value: str | float) -> datetime:
    """Read ISO 8601 text, or seconds since 1970. A time without an offset is UTC, a date alone is its midnight.

    :raises ValueError: whose text is the second half of a sentence, such as "input is too short".
    """
    try:
        if isinstance(value, str):
            text = value.strip()
            if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text, re.ASCII):
                day = date.fromisoformat(text)
                return datetime(day.year, day.month, day.day, tzinfo=UTC)
            if len(text) < 10:
                raise ValueError("input is too short")
            moment = datetime.fromisoformat(text)
        else:
            moment = datetime.fromtimestamp(value, UTC)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError, OSError) as error:
        reason = str(error) if str(error).startswith("input") else "input is not a date that exists, as ISO 8601 text"
        raise ValueError(reason) from None
    if not 1 < moment.year < 9999:
        raise ValueError("the year is out of range")
    return moment


def write_time(value: datetime, timespec: str = "auto") -> str:
    """A time as ISO 8601 text in UTC with `Z`; by default with microseconds only when they aren't zero."""
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec=timespec) + "Z"


def retry_after(value: str | None, moment: datetime) -> float | None:
    """The seconds that a Retry-After header asks for, as a number or as an HTTP date; None if it can't be read."""
    if value is None:
        return None
    if re.fullmatch(r"[-+]?[0-9]{1,15}(\.[0-9]{1,15})?", value.strip(), re.ASCII):
        return float(value)
    try:
        return (parsedate_to_datetime(value) - moment).total_seconds()
    except (ValueError, TypeError):  # not a date, or one without a zone
        return None
