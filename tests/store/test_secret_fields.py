"""Secrets in JSON values: what is shown without being decoded is what it would be if it were."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapi.security import TOKEN_START, Vault
from voiceapi.store.secret_fields import (
    MODEL_KEYS,
    NODE_KEYS,
    NODE_URLS,
    Find,
    in_configurations,
    in_definition,
    in_tool,
    kept,
    masked,
    masked_text,
    merged,
)
from voiceapi.strict_json import decode, encode

VAULT = Vault(b"a secret of at least 32 characters")
# The mark is what must never be shown; the end of a key is.
SECRETS = st.integers(0, 9999).map("s3cr3t-{:04}".format)
URLS = st.sampled_from(
    [
        *(
            "https://me:{}@example.com/x",
            "HTTP://me:{}@example.com",
            " https://{}@example.com?a=1",
            "a+b://:{}@[::1]:80",
        ),
        *("https://{{{{user}}}}:{}@example.com", "https://me:a@{}@example.com/#é"),
    ]
)
HARMLESS = st.sampled_from(
    [None, True, 1.5, "", "é", "gAAAA", "https://example.com/", "https://me:{{password}}@example.com"]
)
HEADERS = st.dictionaries(st.sampled_from(["Authorization", "authorization", " X-Key", ""]), SECRETS | HARMLESS)
LISTED = st.lists(st.fixed_dictionaries({}, optional={"key": HARMLESS | st.just("X"), "value": SECRETS | HARMLESS}))
SECRET_URLS = st.builds(str.format, URLS, SECRETS) | HARMLESS
DATA: dict[str, st.SearchStrategy[Any]] = {
    "prompt": HARMLESS,
    "custom_headers": HEADERS | LISTED | HARMLESS,
    **dict.fromkeys(NODE_KEYS, SECRETS | HARMLESS),
    **dict.fromkeys(NODE_URLS, SECRET_URLS),
}
IDS = st.sampled_from(["a", "b", 1, None])
NODES = st.fixed_dictionaries({"id": IDS, "data": st.fixed_dictionaries({}, optional=DATA) | HARMLESS})
DEFINITIONS = st.fixed_dictionaries({"nodes": st.lists(NODES | HARMLESS, max_size=3) | HARMLESS})
REQUEST = {"url": SECRET_URLS, "headers": HEADERS | LISTED | HARMLESS}
RESOLVER = st.fixed_dictionaries({}, optional=REQUEST) | HARMLESS
TOOLS = st.fixed_dictionaries({"config": st.fixed_dictionaries({}, optional={**REQUEST, "resolver": RESOLVER})})
# Every text in a key is a secret, at any depth; every other is one only as the password of a URL.
NAMES = st.sampled_from(["a", "é", ""])
IN_KEYS = st.recursive(SECRETS, lambda below: st.lists(below) | st.dictionaries(NAMES, below), max_leaves=3)
CONFIGURATIONS = st.recursive(
    st.dictionaries(NAMES, SECRET_URLS),
    lambda below: (
        st.dictionaries(NAMES, below | st.lists(below)) | st.dictionaries(st.sampled_from(MODEL_KEYS), IN_KEYS)
    ),
    max_leaves=5,
)
KINDS = [(in_definition, DEFINITIONS), (in_tool, TOOLS), (in_configurations, CONFIGURATIONS)]


@pytest.mark.parametrize(("find", "values"), KINDS, ids=["definition", "tool", "configurations"])
def test_what_is_shown_undecoded_holds_no_secret(find: Find, values: st.SearchStrategy[Any]) -> None:
    """However a value came in, each of its secrets is stored as a token, which is how a text with one is known."""

    @given(values)
    def check(value: Any) -> None:
        stored = encode(merged(VAULT, value, find)).decode()
        shown = encode(masked_text(VAULT, stored, find)).decode()

        assert "s3cr3t" not in stored
        assert "s3cr3t" not in shown
        assert TOKEN_START not in shown.replace('"gAAAA"', "")
        assert decode(shown) == masked(VAULT, decode(stored), find)
        if list(find(value)):
            assert TOKEN_START in stored
        else:
            assert shown == stored == encode(value).decode()

    check()


@given(DEFINITIONS, DEFINITIONS)
def test_what_a_change_took_away_is_found_by_its_masks(before: Any, after: Any) -> None:
    before, after = merged(VAULT, before, in_definition), merged(VAULT, after, in_definition)
    removed = kept(before, after)
    assert b"s3cr3t" not in encode(removed)
    masks = masked(VAULT, before, in_definition)
    # Masks of headers are all alike: that of `after` goes before, as long as it is there.
    again = merged(VAULT, masks, in_definition, [after, *removed])
    assert masked(VAULT, again, in_definition) == masks
    assert merged(VAULT, masks, in_definition, [{}, *kept(before, {})]) == before


def test_of_many_removed_secrets_the_newest_are_kept() -> None:
    found: list[Any] = []
    for number in range(50):
        headers = {f"X-{at}": f"s3cr3t-{number}" for at in range(60)}
        stored = merged(VAULT, {"nodes": [{"id": number, "data": {"custom_headers": headers}}]}, in_definition)
        found = kept(stored, {}, found)
    ids = [each["nodes"][0]["id"] for each in found]
    assert ids == list(range(49, 49 - len(ids), -1))
    assert 1 < len(ids) < 50
    assert len(encode(found)) <= 210_000
