import pytest

from voiceapi.engine.compose import cut, last_end, whole


@pytest.mark.parametrize(
    ("text", "longest", "kept"),
    [
        ("One. Two. Three.", 16, "One. Two. Three."),
        ("One. Two. Three.", 15, "One. Two."),
        ("One. Two. Three.", 9, "One. Two."),
        ("One. Two. Three.", 8, "One."),
        ("One and two", 8, "One and"),
        ("Oneandtwo", 3, "One"),
        ("It is 3.50 euros", 9, "It is"),
        ('He said "Yes." Then he left.', 20, 'He said "Yes."'),
        ("一。二！三", 4, "一。二！"),
        ("एक। दो", 4, "एक।"),
        ("One\ntwo", 5, "One"),
        ("One.", 0, ""),
    ],
)
def test_a_text_is_cut_at_a_sentence(text: str, longest: int, kept: str) -> None:
    assert cut(text, longest) == kept
    assert last_end(text, longest) <= longest


@pytest.mark.parametrize(
    ("text", "kept"),
    [("One. Two! Th", "One. Two!"), ("One and", "One and"), ("One.", "One."), ("It is 3.5", "It is 3.5"), ("", "")],
)
def test_whole_sentences(text: str, kept: str) -> None:
    assert whole(text) == kept
