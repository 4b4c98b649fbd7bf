"""Converts values as people, editors and models write them ("yes" is a boolean), and cleans data to be stored."""

import math
import re

_BOOLEANS = {
    **dict.fromkeys(("true", "yes", "on", "t", "y", "1"), True),
    **dict.fromkeys(("false", "no", "off", "f", "n", "0"), False),
}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


def as_boolean(value: object) -> bool | None:
    """Return the boolean that `value` is or spells: true, 1, "yes", "on", "t" and their opposites; else None."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return bool(value) if value in (0, 1) else None
    return _BOOLEANS.get(value.lower()) if isinstance(value, str) else None


def as_number(value: object) -> int | float | None:
    """Return the finite number that `value` is or spells in digits, whole where it was written whole; else None."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str):
        text = value.strip()
        if len(text) > 100 or not _NUMBER.fullmatch(text):
            return None
        value = int(text) if text.lstrip("+-").isdigit() else float(text)
    try:
        return value if math.isfinite(value) else None
    except OverflowError:  # an integer beyond the range of a float
        return None


def as_integer(value: object) -> int | None:
    """Return the whole number that `value` is or spells; None for a fraction and for anything else."""
    number = as_number(value)
    return int(number) if number is not None and number == int(number) else None
