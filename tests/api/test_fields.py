"""Every kind of validation error, through a small schema of each kind of field."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from flask import Flask
from marshmallow import Schema, ValidationError

from voiceapi.api.errors import items
from voiceapi.api.schemas.base import BodySchema, ResponseSchema
from voiceapi.api.schemas.fields import (
    Choice,
    Flag,
    Integer,
    Items,
    Length,
    Model,
    Number,
    Object,
    Pattern,
    Range,
    TaggedObject,
    Text,
    Time,
)


class Inner(BodySchema):
    name = Text(required=True)


class Twilio(BodySchema):
    auth_token = Text(required=True, validate=Length(min=1))


class Telnyx(BodySchema):
    api_key = Text(required=True)


class Everything(BodySchema):
    required = Text(required=True)
    text = Text(allow_none=False)
    optional = Text(load_default="unset", allow_none=True)
    short = Text(validate=Length(min=1))
    pair = Text(validate=Length(min=2, max=3))
    csv = Text(validate=Pattern("^csv$"))
    number = Integer()
    limited = Integer(validate=Range(min=1, max=100))
    positive = Number(validate=Range(min=0, min_inclusive=False))
    half = Number(validate=Range(max=0.5))
    amount = Number()
    flag = Flag()
    object = Object()
    model = Model(Inner)
    texts = Items(Text(), validate=Length(min=1, max=2))
    models = Items(Model(Inner))
    one = Text(validate=Choice(("a",)))
    two = Text(validate=Choice(("inbound", "outbound"), "literal_error"))
    three = Text(validate=Choice(("a", "b", "c")))
    tagged = TaggedObject("provider", {"twilio": Twilio, "telnyx": Telnyx})
    time = Time()


@pytest.fixture(scope="module")
def load() -> Iterator[Callable[..., Any]]:
    """Loads members of Everything; returns what was loaded, or the faults as (loc, msg, type)."""
    schema = Everything()

    def loaded(schema: Schema = schema, **members: Any) -> Any:
        try:
            return schema.load({"required": "x", **members})
        except ValidationError as error:
            return [(fault["loc"], fault["msg"], fault["type"]) for fault in items(error.messages, ("body",))]

    with Flask("test").test_request_context():
        yield loaded


STRING = ("Input should be a valid string", "string_type")
INT = ("Input should be a valid integer", "int_type")
INT_TEXT = ("Input should be a valid integer, unable to parse string as an integer", "int_parsing")
INT_SIZE = ("Unable to parse input string as an integer, exceeded maximum size", "int_parsing_size")
FLOAT = ("Input should be a valid number", "float_type")
FLOAT_TEXT = ("Input should be a valid number, unable to parse string as a number", "float_parsing")
FINITE = ("Input should be a finite number", "finite_number")
BOOL = ("Input should be a valid boolean", "bool_type")
BOOL_TEXT = ("Input should be a valid boolean, unable to interpret input", "bool_parsing")
DICT = ("Input should be a valid dictionary", "dict_type")
MODEL = ("Input should be a valid dictionary or object to extract fields from", "model_attributes_type")
LIST = ("Input should be a valid list", "list_type")
TIME = ("Input should be a valid datetime", "datetime_type")
NO_DATE = "input is not a date that exists, as ISO 8601 text"


def no_time(reason: str) -> tuple[str, str]:
    return f"Input should be a valid datetime or date, {reason}", "datetime_from_date_parsing"


TAGS = "'twilio', 'telnyx'"


def no_tag(tag: str) -> tuple[str, str]:
    return (
        f"Input tag '{tag}' found using 'provider' does not match any of the expected tags: {TAGS}",
        "union_tag_invalid",
    )


@pytest.mark.parametrize(
    ("name", "value", "loc", "fault"),
    [
        *(("text", value, [], STRING) for value in (1, 1.5, True, None, [], {})),
        ("optional", 3, [], STRING),
        ("required", None, [], STRING),
        ("short", "", [], ("String should have at least 1 character", "string_too_short")),
        ("pair", "a", [], ("String should have at least 2 characters", "string_too_short")),
        ("pair", "abcd", [], ("String should have at most 3 characters", "string_too_long")),
        ("csv", "xlsx", [], ("String should match pattern '^csv$'", "string_pattern_mismatch")),
        ("csv", "csv\n", [], ("String should match pattern '^csv$'", "string_pattern_mismatch")),
        *(("number", value, [], INT) for value in (None, [], {})),
        *(("number", value, [], INT_TEXT) for value in ("abc", "", " ", "1.5", "1e3", "0x1", "1_0", "١", "+-1", "1 2")),
        ("number", 1.5, [], ("Input should be a valid integer, got a number with a fractional part", "int_from_float")),
        *(("number", value, [], INT_SIZE) for value in (2**63, -(2**63), 1e300, str(2**63), "9" * 5000)),
        ("limited", 0, [], ("Input should be greater than or equal to 1", "greater_than_equal")),
        ("limited", "101", [], ("Input should be less than or equal to 100", "less_than_equal")),
        ("positive", 0, [], ("Input should be greater than 0", "greater_than")),
        ("half", 0.6, [], ("Input should be less than or equal to 0.5", "less_than_equal")),
        *(("amount", value, [], FLOAT_TEXT) for value in ("abc", "", "1,5")),
        *(("amount", value, [], FLOAT) for value in (None, [], {})),
        *(("amount", value, [], FINITE) for value in ("nan", "inf", "-Infinity", "1e999")),
        *(("flag", value, [], BOOL_TEXT) for value in ("perhaps", "", 2, -1, 0.5, "10")),
        *(("flag", value, [], BOOL) for value in (None, [], {})),
        *(("object", value, [], DICT) for value in (None, [], "x", 1)),
        *(("model", value, [], MODEL) for value in (None, [], "x", 1)),
        ("model", {}, ["name"], ("Field required", "missing")),
        ("model", {"name": 1}, ["name"], STRING),
        *(("texts", value, [], LIST) for value in (None, {}, "x", 1)),
        ("texts", [], [], ("List should have at least 1 item after validation, not 0", "too_short")),
        ("texts", ["a", "b", "c"], [], ("List should have at most 2 items after validation, not 3", "too_long")),
        ("texts", ["a", 1], [1], STRING),
        ("models", [{"name": "x"}, {}], [1, "name"], ("Field required", "missing")),
        ("models", [3], [0], MODEL),
        ("one", "b", [], ("Input should be 'a'", "enum")),
        ("two", "up", [], ("Input should be 'inbound' or 'outbound'", "literal_error")),
        ("three", "", [], ("Input should be 'a', 'b' or 'c'", "enum")),
        ("three", 1, [], STRING),
        ("tagged", [], [], MODEL),
        ("tagged", {}, [], ("Unable to extract tag using discriminator 'provider'", "union_tag_not_found")),
        ("tagged", {"provider": "ari"}, [], no_tag("ari")),
        ("tagged", {"provider": None}, [], no_tag("NoneType")),
        ("tagged", {"provider": ["twilio"]}, [], no_tag("list")),
        ("tagged", {"provider": "twilio"}, ["twilio", "auth_token"], ("Field required", "missing")),
        (
            "tagged",
            {"provider": "twilio", "auth_token": ""},
            ["twilio", "auth_token"],
            ("String should have at least 1 character", "string_too_short"),
        ),
        *(("time", value, [], TIME) for value in (None, [], {}, True)),
        *(("time", value, [], no_time("input is too short")) for value in ("", "2026", "2026-1-1")),
        *(
            ("time", value, [], no_time(NO_DATE))
            for value in ("2026-02-30", "yesterday at noon", "2026-01-01T25:00", 1e30)
        ),
        *(
            ("time", value, [], no_time("the year is out of range"))
            for value in ("9999-12-31T00:00", "0001-01-01T00:00")
        ),
    ],
)
def test_a_faulty_value(
    load: Callable[..., Any], name: str, value: Any, loc: list[Any], fault: tuple[str, str]
) -> None:
    assert load(**{name: value}) == [(["body", name, *loc], *fault)]


@pytest.mark.parametrize(
    ("name", "value", "loaded"),
    [
        ("text", "", ""),
        ("optional", None, None),
        ("short", "x", "x"),
        ("csv", "csv", "csv"),
        *(("number", value, 12) for value in (12, 12.0, "12", "12.0", "+12", " 12 ", "12.", "0012")),
        *(("number", value, 1) for value in (True, "1")),
        ("number", -1, -1),
        ("number", 2**63 - 1, 2**63 - 1),
        ("number", str(-(2**63) + 1), -(2**63) + 1),
        ("limited", 1, 1),
        ("limited", 100, 100),
        ("positive", 1e-9, 1e-9),
        ("half", 0.5, 0.5),
        *(("amount", value, 1.5) for value in (1.5, "1.5", " 1.5 ", "15e-1")),
        ("amount", 2, 2.0),
        *(("flag", value, True) for value in (True, 1, 1.0, "1", "yes", "On", "T", "TRUE", "y")),
        *(("flag", value, False) for value in (False, 0, "0", "no", "oFF", "f", "False", "n")),
        ("object", {"a": [None]}, {"a": [None]}),
        ("model", {"name": "x", "other": 1}, {"name": "x"}),
        ("texts", ["a", ""], ["a", ""]),
        ("models", [], []),
        ("two", "inbound", "inbound"),
        ("tagged", {"provider": "telnyx", "api_key": "k", "x": 1}, {"provider": "telnyx", "api_key": "k"}),
        ("time", "2026-03-01", datetime(2026, 3, 1, tzinfo=UTC)),
        ("time", "2026-03-01T12:00:00", datetime(2026, 3, 1, 12, tzinfo=UTC)),
        ("time", "2026-03-01 12:00:00.5Z", datetime(2026, 3, 1, 12, 0, 0, 500_000, tzinfo=UTC)),
        ("time", "2026-03-01T12:00:00+02:00", datetime(2026, 3, 1, 10, tzinfo=UTC)),
        ("time", 1_700_000_000, datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        ("time", 0.5, datetime(1970, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC)),
    ],
)
def test_a_value_that_is_accepted(load: Callable[..., Any], name: str, value: Any, loaded: Any) -> None:
    result = load(**{name: value})
    assert result == {"required": "x", "optional": "unset", name: loaded}
    assert type(result[name]) is type(loaded)


def test_a_missing_member(load: Callable[..., Any]) -> None:
    class Two(BodySchema):
        first = Text(required=True)
        second = Integer(required=True)

    missing = ("Field required", "missing")
    assert load(Two()) == [(["body", "first"], *missing), (["body", "second"], *missing)]


def test_errors_come_in_the_order_of_the_fields(load: Callable[..., Any]) -> None:
    faults = load(time=[], flag=[], text=1, required=None)
    assert [loc for loc, _, _ in faults] == [["body", "required"], ["body", "text"], ["body", "flag"], ["body", "time"]]


@pytest.mark.parametrize(
    ("moment", "written"),
    [
        (datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC), "2024-01-02T03:04:05Z"),
        (datetime(2024, 1, 2, 3, 4, 5, 678_900, tzinfo=UTC), "2024-01-02T03:04:05.678900Z"),
        (datetime.fromisoformat("2024-01-02T03:04:05+02:00"), "2024-01-02T01:04:05Z"),
        (None, None),
    ],
)
def test_a_time_on_its_way_out(moment: datetime | None, written: str | None) -> None:
    class At(ResponseSchema):
        at = Time(allow_none=True)

    assert At().dump({"at": moment}) == {"at": written}
