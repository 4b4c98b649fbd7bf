"""What is written of a case is read as the same case, in YAML and in JSON."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rehearsed import EXAMPLES

from voiceapi.rehearsal import case_file
from voiceapi.rehearsal.case_writing import file_text
from voiceapi.rehearsal.cases import (
    TRANSFER_OUTCOMES,
    Case,
    CaseFetch,
    CaseTurn,
    ExpectedOutcome,
    OwedWebhook,
    PlayedCall,
    PlayedDecision,
    ToolAnswer,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12) | st.sampled_from(
    [
        "yes",
        "no",
        "null",
        "~",
        "1",
        "1e5",
        "0x10",
        "12:30",
        "true",
        "- a",
        "a: b",
        "#",
        "'",
        '"',
        "=",
        "<<",
        "2026-01-01",
        "a\x85b",
    ]
)
NAME = TEXT.filter(lambda text: text.strip() != "").map(str.strip)
VALUE: st.SearchStrategy[Any] = st.recursive(
    TEXT | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False, width=32),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAME, inner, max_size=2),
    max_leaves=4,
)
OBJECT = st.dictionaries(NAME, VALUE, max_size=2)
TEXTS = st.lists(TEXT, max_size=2).map(tuple)
CALL = st.builds(PlayedCall, edge=TEXT) | st.builds(PlayedCall, tool=TEXT, arguments=OBJECT)
DECISION = (
    st.builds(PlayedDecision, says=TEXT, calls=st.lists(CALL, max_size=2).map(tuple))
    | st.builds(PlayedDecision, extracts=OBJECT)
    | st.builds(PlayedDecision, fails=TEXT)
)
EXPECTED: dict[str, Any] = {
    "decisions": st.lists(DECISION, max_size=2).map(tuple),
    "contains": TEXTS,
    "never": TEXTS,
    "matches": st.just(("^a+$",)) | st.just(()),
    "node": st.none() | TEXT,
    "edges": st.none() | TEXTS,
    "transfers_to": st.none() | TEXT,
    "transfer": st.sampled_from(TRANSFER_OUTCOMES),
}
TURN = (
    st.builds(CaseTurn, says=TEXT, after=st.sampled_from([0.0, 1.0, 2.5]), **EXPECTED)
    | st.builds(CaseTurn, keys=st.text("0123456789*#", min_size=1, max_size=3), **EXPECTED)
    | st.builds(CaseTurn, is_silent=st.just(True), **EXPECTED)
    | st.builds(CaseTurn, ends=st.sampled_from(["user_hangup", "voicemail_detected"]), **EXPECTED)
)
CASE = st.builds(
    Case,
    NAME,
    st.lists(TURN, max_size=3).map(tuple),
    st.builds(CaseTurn, **EXPECTED),
    st.just("played"),
    OBJECT,
    st.sampled_from(["outbound", "inbound"]),
    st.integers(0, 10**9).map(lambda seconds: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)),
    st.none() | st.builds(CaseFetch, returns=OBJECT) | st.builds(CaseFetch, fails=TEXT),
    st.lists(
        st.builds(ToolAnswer, TEXT, st.none() | OBJECT, VALUE, optional=st.booleans())
        | st.builds(ToolAnswer, TEXT, st.none() | OBJECT, fails=TEXT),
        max_size=2,
    ).map(tuple),
    st.builds(
        ExpectedOutcome,
        nodes=st.none() | TEXTS,
        edges=st.none() | TEXTS,
        never=TEXTS,
        variables=OBJECT,
        disposition=st.none() | TEXT,
        tags=st.none() | TEXTS,
        webhooks=st.none() | st.lists(st.builds(OwedWebhook, TEXT, st.none() | OBJECT), max_size=2).map(tuple),
    ),
)


@pytest.mark.parametrize("as_json", [False, True])
@given(CASE)
@settings(max_examples=60, deadline=None)
def test_a_case_is_read_as_it_was_written(as_json: bool, case: Case) -> None:
    text = file_text([case], "agent.json", as_json=as_json)
    assert case_file.read_file(text) == case_file.CaseFile((case,), "agent.json")


def test_the_cases_of_the_examples_are_written_and_read() -> None:
    for path in EXAMPLES.glob("*.cases.yaml"):
        cases = case_file.read_file(path.read_text(encoding="utf-8")).cases
        assert case_file.read_file(file_text(cases)).cases == cases


def test_what_is_the_default_is_left_out() -> None:
    case = Case("a", (CaseTurn(says="yes", contains=("Hello",)), CaseTurn(ends="user_hangup")))
    expected = "cases:\n- name: a\n  turns:\n  - caller: 'yes'\n    says:\n    - Hello\n  - hangs_up: true\n"
    assert file_text([case]) == expected
    assert "tools" not in file_text([replace(case, tools=())])
