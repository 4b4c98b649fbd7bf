from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from voiceapi.tools.knowledge.documents import MAX_LENGTH, OVERLAP, spans, split

TEXTS = st.lists(
    st.sampled_from(["\n", "\n\n", "\n## Heading\n", " ", "word ", "Sentence. ", "x" * 400, "é" * 1300, "Ask? "]),
    max_size=300,
).map("".join)


@given(TEXTS)
def test_nothing_is_lost_and_sizes_are_bounded(text: str) -> None:
    found = list(spans(text))
    assert (found[0][0], found[-1][1]) == (0, len(text))
    assert all(0 <= end - start <= MAX_LENGTH for start, end in found)
    assert all(start < after <= end and end - after <= OVERLAP for (start, end), (after, _) in pairwise(found))


@given(TEXTS)
def test_passages_are_slices_in_order(text: str) -> None:
    assert split(text) == [text[start:end] for start, end in spans(text) if text[start:end].strip()]


def test_a_short_text_is_one_passage() -> None:
    assert split("# Hours\n\nWe open at nine.\n") == ["# Hours\n\nWe open at nine.\n"]
    assert split(" \n ") == []


def test_a_heading_is_the_best_border() -> None:
    first, second = "# One\n" + "word. " * 150 + "\n", "# Two\n" + "word. " * 100
    assert split(first + second) == [first, second]


def test_a_sentence_is_cut_before_a_word_is() -> None:
    passages = split("Some words here. " * 100)
    assert [passage[-6:] for passage in passages] == ["here. "] * len(passages)
    assert len(passages) > 1
