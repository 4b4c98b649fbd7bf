import json
import time
import tracemalloc
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from voiceapi.engine.template import KIB64, MIB, MINUTES, Bound, TextTooLong, render, render_value

NOW = datetime(2025, 3, 31, 22, 30, 5, tzinfo=UTC)
CONTEXT = {
    "a": "x",
    "n": 5,
    "f": 2.0,
    "t": True,
    "no": False,
    "zero": 0,
    "empty": "",
    "null": None,
    "d": {"b": {"c": "deep"}, "list": [1, 2]},
    "l": [1, "é"],
    "brace": "{{a}}",
    "path": "C:\\new",
    "current_time": "mine",
}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{a}}", "x"),
        ("<{{ a }}>", "<x>"),
        ("{{n}} {{f}} {{t}} {{no}}", "5 2.0 True False"),
        ("{{d.b}}", '{"c": "deep"}'),
        ("{{l}}", '[1, "é"]'),
        ("{{gone}}|{{null}}", "|"),
        ("{{d.b.c}}", "deep"),
        ("{{d.list.0}}", ""),
        ("{{a.b}}", ""),
        ("{{gone | text with spaces}}", "text with spaces"),
        ("{{null|y}}{{empty|z}}", "yz"),
        ("{{zero | y}} {{no | y}}", "0 False"),
        ("{{gone | fallback:Bob}}", "Bob"),
        ("{{gone | fallback: Bob }}", "Bob"),
        ("{{my_name | fallback}}", "My_Name"),
        ("{{gone | x: y}}", "x"),
        ("{{a b}}", "{{a b}}"),
        ("{{}}", "{{}}"),
        ("{{a|}}", "{{a|}}"),
        ("{{a", "{{a"),
        ("{a}", "{a}"),
        ("{{a} {{a}}", "{{a} x"),
        ("one\\ntwo", "one\ntwo"),
        ("{{path}}", "C:\\new"),
        ("{{brace}}", "{{a}}"),
        ("{{initial_context.a}} {{initial_context.d.b.c}}", "x deep"),
        ("{{current_time}}", "2025-03-31 22:30:05 UTC"),
        ("{{current_weekday}}", "Monday"),
        ("{{current_time_Europe/Berlin}}", "2025-04-01 00:30:05 CEST"),
        ("{{current_weekday}} in {{current_weekday_Europe/Berlin}}", "Tuesday in Tuesday"),
        ("{{current_time_Nowhere/At_All}}", ""),
        ("{{current_time_America | no zone}}", "no zone"),
        ("{{current_time_../../etc/passwd}}", ""),
    ],
)
def test_rendering(template: str, expected: str) -> None:
    assert render(template, CONTEXT, now=NOW) == expected


def test_the_time_of_a_prompt_is_to_the_minute() -> None:
    template = "{{current_time}}, {{current_time_Asia/Tokyo}}, {{current_weekday}}"
    assert render(template, {}, now=NOW, clock=MINUTES) == "2025-04-01 07:30 JST, 2025-04-01 07:30 JST, Tuesday"


def test_an_explicit_initial_context_wins_over_the_flat_one() -> None:
    context = {"a": "flat", "b": "flat", "initial_context": {"a": "explicit"}}
    assert render("{{initial_context.a}} {{initial_context.b}}", context, now=NOW) == "explicit flat"


def test_missing_variables_are_recorded_unless_they_have_a_default() -> None:
    missing: set[str] = set()
    render("{{a}} {{gone}} {{d.gone}} {{other | default}} {{empty}}", CONTEXT, now=NOW, missing=missing)
    assert missing == {"gone", "d.gone"}


def test_objects_and_lists_are_rendered_with_their_keys() -> None:
    value = {"{{a}}": ["{{n}}", 7, None, {"k": "{{gone}}"}], "flag": True}
    missing: set[str] = set()
    rendered = render_value(value, CONTEXT, now=NOW, missing=missing)
    assert rendered == {"x": ["5", 7, None, {"k": ""}], "flag": True}
    assert missing == {"gone"}


@given(st.text())
def test_a_text_without_placeholders_stays_as_it_is(text: str) -> None:
    plain = text.replace("{{", "").replace("\\n", "")
    assert render(plain, CONTEXT, now=NOW) == plain


@given(st.text(alphabet="{}|: ab.\\n", max_size=60), st.text())
def test_any_template_renders(template: str, value: str) -> None:
    assert isinstance(render(template, {"a": value, "b": {"a": value}}, now=NOW), str)


@given(st.text())
def test_a_value_is_spoken_as_it_is(value: str) -> None:
    assert render("<{{v}}>", {"v": value}, now=NOW) == f"<{value}>"


@settings(max_examples=40)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text("ab"),
        lambda v: st.lists(v) | st.dictionaries(st.text("ab"), v),
        max_leaves=20,
    )
)
def test_a_value_without_placeholders_is_rendered_to_itself(value: object) -> None:
    assert render_value(value, CONTEXT, now=NOW) == json.loads(json.dumps(value))


@pytest.mark.parametrize("hostile", ["{", "{{a|", "{{a ", "{{a|:", "{{ ", "{{a|b:", "}"])
@pytest.mark.parametrize("end", ["", "}", "}}", " b}}", ":}}"])
def test_a_hostile_template_takes_no_time(hostile: str, end: str) -> None:
    began = time.process_time()
    render(hostile * 20_000 + end, CONTEXT, now=NOW)
    assert time.process_time() - began < 30


@seed(3)
@given(st.text(alphabet="{}|: ab.\\nä\U0001f600", max_size=40), st.text() | st.lists(st.text()), st.integers(0, 99))
def test_a_text_has_at_most_as_many_bytes_as_its_bound(template: str, value: object, limit: int) -> None:
    context = {"a": value, "b": {"a": value}}
    whole = render(template, context, now=NOW)
    if len(whole.encode()) <= limit:
        assert render(template, context, Bound(limit), now=NOW) == whole
    else:
        with pytest.raises(TextTooLong):
            render(template, context, Bound(limit), now=NOW)


@settings(max_examples=50)
@seed(3)
@given(st.dictionaries(st.text("{}ab"), st.lists(st.text("{}ab"))), st.text(), st.integers(0, 100))
def test_all_texts_of_an_object_share_one_bound(template: dict[str, list[str]], value: str, limit: int) -> None:
    context = {"a": value, "b": [value]}
    texts = [*template, *(text for below in template.values() for text in below)]
    total = sum(len(render(text, context, now=NOW).encode()) for text in texts)
    if total <= limit:
        assert render_value(template, context, Bound(limit), now=NOW) == render_value(template, context, now=NOW)
    else:
        with pytest.raises(TextTooLong):
            render_value(template, context, Bound(limit), now=NOW)


@pytest.mark.parametrize(("limit", "shown"), [(KIB64, "64 KiB"), (MIB, "1 MiB")])
def test_the_error_names_what_is_too_large_and_the_bound(limit: int, shown: str) -> None:
    assert len(render("{{v}}", {"v": "x" * limit}, Bound(limit), now=NOW)) == limit
    with pytest.raises(TextTooLong, match=f"^The URL is larger than {shown} with its variables filled in.$"):
        render("{{v}}.", {"v": "x" * limit}, Bound(limit, "The URL"), now=NOW)


LARGE = {"text": "x" * MIB, "object": {"k": ["é" * 1000] * 500}, "small": "", "list": list(range(1000))}


@pytest.mark.long
@pytest.mark.parametrize(
    "placeholder",
    [
        *("{{text}}", "{{object}}", "{{list}}", "{{small}}", "{{missing}}", "{{missing | default}}"),
        *("{{current_time}}", "{{current_time_Europe/Berlin}}", "{{current_time_No/Where}}"),
    ],
)
def test_a_megabyte_of_placeholders_takes_little_memory_and_time(placeholder: str) -> None:
    """Whatever their values are: a large one isn't copied, nor dumped as JSON, again and again."""
    template = placeholder * (MIB // len(placeholder))
    tracemalloc.start()
    began = time.process_time()
    with suppress(TextTooLong):
        render(template, LARGE, Bound(MIB), now=NOW)
    taken, (_, peak) = time.process_time() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 24 * MIB
    assert taken < 120  # a hundredth of it without the tracing


def test_zones_that_do_not_exist_are_not_searched_for_again_and_again() -> None:
    template = "".join(f"{{{{current_time_No/Where{number}}}}}" for number in range(20_000))
    began = time.process_time()
    render(template, {}, now=NOW)
    assert time.process_time() - began < 30
