"""The fields and validators of all schemas, with the messages and types of Pydantic."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

from marshmallow import Schema, fields, validate
from marshmallow.exceptions import ValidationError

from ...telephony.numbers import is_country
from ...timestamps import read_time, write_time
from ..errors import Message

if TYPE_CHECKING:
    AnyList: TypeAlias = fields.List[Any]
    AnyField: TypeAlias = fields.Field[Any]
else:  # in marshmallow 3 they take no types
    AnyList, AnyField = fields.List, fields.Field

# They are as lenient: a whole number may be sent as text, as 1.0 or as true; a flag as "yes". Text must be sent as
# text.


REQUIRED = Message("Field required", "missing")
LARGEST = 2**63 - 1
Messages = dict[str, str | list[Any] | dict[Any, Any]]
FLAGS = {
    **dict.fromkeys(("1", "true", "t", "yes", "y", "on"), True),
    **dict.fromkeys(("0", "false", "f", "no", "n", "off"), False),
}
STRING = Message("Input should be a valid string", "string_type")
OBJECT = Message("Input should be a valid dictionary", "dict_type")
MODEL = Message("Input should be a valid dictionary or object to extract fields from", "model_attributes_type")
LIST = Message("Input should be a valid list", "list_type")


def _messages(null: Message, **others: Message) -> Messages:
    return {"required": REQUIRED, "null": null, **others}


class Described:
    """A field whose `description` stands in the API document; shorthand for that member of `metadata`."""

    def __init__(self, *args: Any, description: str | None = None, **kwargs: Any) -> None:
        if description is not None:
            kwargs["metadata"] = {**kwargs.get("metadata", {}), "description": description}
        super().__init__(*args, **kwargs)


class Text(Described, fields.String):
    default_error_messages = _messages(STRING, invalid=STRING)

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        if not isinstance(value, str):
            raise self.make_error("invalid")
        return value


class Country(Text):
    """An ISO 3166 code of two letters, which are stored as capitals."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        code = text.upper()
        if not text.isascii() or not is_country(code):
            raise ValidationError([Message("Value error, use ISO 3166 codes of two letters, such as US or DE")])
        return code


class Integer(Described, fields.Integer):
    """A whole number of at most 64 bits, the largest that a database keeps."""

    default_error_messages = _messages(
        Message("Input should be a valid integer", "int_type"),
        invalid=Message("Input should be a valid integer", "int_type"),
        fraction=Message("Input should be a valid integer, got a number with a fractional part", "int_from_float"),
        text=Message("Input should be a valid integer, unable to parse string as an integer", "int_parsing"),
        size=Message("Unable to parse input string as an integer, exceeded maximum size", "int_parsing_size"),
    )

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> int:
        if isinstance(value, str):
            match = re.fullmatch(r"\s*([+-]?[0-9]+)(\.0*)?\s*", value, re.ASCII)
            if not match:
                raise self.make_error("text")
            if len(match[1].lstrip("+-0")) > 19:
                raise self.make_error("size")
            value = int(match[1])
        elif isinstance(value, float):
            if not value.is_integer():
                raise self.make_error("fraction")
            value = int(value)
        elif not isinstance(value, int):
            raise self.make_error("invalid")
        if abs(value) > LARGEST:
            raise self.make_error("size")
        return int(value)


class Number(Described, fields.Float):
    default_error_messages = _messages(
        Message("Input should be a valid number", "float_type"),
        invalid=Message("Input should be a valid number", "float_type"),
        text=Message("Input should be a valid number, unable to parse string as a number", "float_parsing"),
        special=Message("Input should be a finite number", "finite_number"),
    )

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> float:
        if isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                raise self.make_error("text") from None
        elif not isinstance(value, int | float):
            raise self.make_error("invalid")
        if not math.isfinite(value):
            raise self.make_error("special")
        return float(value)


class Flag(Described, fields.Boolean):
    default_error_messages = _messages(
        Message("Input should be a valid boolean", "bool_type"),
        invalid=Message("Input should be a valid boolean", "bool_type"),
        text=Message("Input should be a valid boolean, unable to interpret input", "bool_parsing"),
    )

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> bool:
        if isinstance(value, bool):
            return value
        if isinstance(value, str | int | float):
            known = FLAGS.get(str(int(value) if value in (0, 1) else value).strip().lower())
            if known is None:
                raise self.make_error("text")
            return known
        raise self.make_error("invalid")


class VersionNumber(Integer):
    """The number of a version, or "draft", which loads as None: the draft, or the released version without one."""

    def __init__(self) -> None:
        super().__init__(
            load_default=None,
            validate=Range(min=1),
            metadata={
                "type": ["integer", "string"],
                "description": 'its number, or "draft", the default: the draft, or the released version without one',
            },
        )

    def deserialize(self, value: Any, attr: str | None = None, data: Any = None, **kwargs: Any) -> Any:
        return super().deserialize(None if value == "draft" else value, attr, data, **kwargs)


class Object(Described, fields.Raw):
    """A JSON object with any properties."""

    default_error_messages = _messages(OBJECT, invalid=OBJECT)

    def __init__(self, **kwargs: Any) -> None:
        metadata = {"type": "object", "additionalProperties": True, **(kwargs.pop("metadata", None) or {})}
        super().__init__(metadata=metadata, **kwargs)

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.make_error("invalid")
        return value


class Model(Described, fields.Nested):
    """An object of a known shape."""

    default_error_messages = _messages(MODEL, type=MODEL)


class Items(Described, AnyList):
    default_error_messages = _messages(LIST, invalid=LIST)

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> list[Any]:
        if not isinstance(value, list):
            raise self.make_error("invalid")
        return super()._deserialize(value, attr, data, **kwargs)


class Time(Described, fields.DateTime):
    """An instant: ISO 8601 text, a bare date (its midnight) or seconds since 1970 in; UTC text with `Z` out."""

    default_error_messages = _messages(
        Message("Input should be a valid datetime", "datetime_type"),
        invalid=Message("Input should be a valid datetime", "datetime_type"),
        text=Message("Input should be a valid datetime or date, {reason}", "datetime_from_date_parsing"),
    )

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> datetime:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise self.make_error("invalid")
        try:
            return read_time(value)
        except ValueError as error:
            raise self.make_error("text", reason=str(error)) from None

    def _serialize(self, value: datetime | None, attr: Any, obj: Any, **kwargs: Any) -> str | None:
        return None if value is None else write_time(value)


class EndTime(Time):
    """The end of a range: a bare date means the whole of that day."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> datetime:
        moment = super()._deserialize(value, attr, data, **kwargs)
        bare = isinstance(value, str) and len(value.strip()) == 10
        return moment + timedelta(days=1, microseconds=-1) if bare else moment


class Length(validate.Length):
    """At least `min` and at most `max` characters, or items of a list."""

    def __call__(self, value: Any) -> Any:
        if self.min is not None and len(value) < self.min:
            raise ValidationError(self._message(value, "at least", self.min, "short"))
        if self.max is not None and len(value) > self.max:
            raise ValidationError(self._message(value, "at most", self.max, "long"))
        return value

    def _message(self, value: Any, words: str, bound: int, kind: str) -> Message:
        if isinstance(value, str):
            return Message(
                f"String should have {words} {bound} {'character' if bound == 1 else 'characters'}",
                f"string_too_{kind}",
            )
        noun = "item" if bound == 1 else "items"
        return Message(f"List should have {words} {bound} {noun} after validation, not {len(value)}", f"too_{kind}")


class Range(validate.Range):
    """Bounds of a number: `min` (exclusive when asked) and `max`."""

    def __call__(self, value: Any) -> Any:
        if self.max is not None and value > self.max:
            raise ValidationError(
                Message(f"Input should be less than or equal to {_plain(self.max)}", "less_than_equal")
            )
        if self.min is not None and self.min_inclusive and value < self.min:
            words = f"Input should be greater than or equal to {_plain(self.min)}"
            raise ValidationError(Message(words, "greater_than_equal"))
        if self.min is not None and not self.min_inclusive and value <= self.min:
            raise ValidationError(Message(f"Input should be greater than {_plain(self.min)}", "greater_than"))
        return value


def _plain(number: Any) -> Any:
    return int(number) if float(number).is_integer() else number


class Pattern(validate.Regexp):
    def __call__(self, value: Any) -> Any:
        # `$` alone would let a line break at the end pass.
        if not self.regex.fullmatch(value):
            raise ValidationError(self._format_error(value))
        return value

    def _format_error(self, value: str | bytes) -> Message:
        return Message(f"String should match pattern '{self.regex.pattern!s}'", "string_pattern_mismatch")


class Choice(validate.OneOf):
    """One of a few values; `kind` is the type of the error, `enum` or `literal_error`."""

    def __init__(self, choices: Sequence[str | int], kind: str = "enum") -> None:
        super().__init__(choices)
        self.kind = kind

    def _format_error(self, value: Any) -> str:
        *others, last = [repr(choice) for choice in self.choices]
        listed = f"{', '.join(others)} or {last}" if others else last
        return Message(f"Input should be {listed}", self.kind)


class TaggedObject(Described, AnyField):
    """An object whose member `tag` says which schema it follows; the tag's value is part of an error's loc.

    The API document describes it by these schemas, which then declare the tag as a field, or else by its `oneOf`.
    """

    default_error_messages = _messages(MODEL, invalid=MODEL)

    def __init__(self, tag: str, schemas: Mapping[str, type[Schema]], **kwargs: Any) -> None:
        metadata = {"type": "object", "additionalProperties": True, **(kwargs.pop("metadata", None) or {})}
        super().__init__(metadata=metadata, **kwargs)
        self.tag = tag
        self.schemas = schemas

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> Any:
        if not isinstance(value, dict):
            raise self.make_error("invalid")
        if self.tag not in value:
            text = f"Unable to extract tag using discriminator '{self.tag}'"
            raise ValidationError([Message(text, "union_tag_not_found")])
        found = value[self.tag]
        if not isinstance(found, str) or found not in self.schemas:
            expected = ", ".join(repr(name) for name in self.schemas)
            shown = found if isinstance(found, str) else type(found).__name__
            text = f"Input tag '{shown}' found using '{self.tag}' does not match any of the expected tags: {expected}"
            raise ValidationError([Message(text, "union_tag_invalid")])
        try:
            schema = self.schemas[found]()
            rest = value if self.tag in schema.fields else {k: v for k, v in value.items() if k != self.tag}
            return {self.tag: found, **schema.load(rest)}
        except ValidationError as error:
            raise ValidationError({found: error.messages}) from None

    def _serialize(self, value: Any, attr: Any, obj: Any, **kwargs: Any) -> Any:
        return value
