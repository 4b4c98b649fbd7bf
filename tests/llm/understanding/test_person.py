from voiceapi.llm.understanding.person import offers_person, wants_person


def test_a_request_among_other_words() -> None:
    assert wants_person("Yes. Well, can I talk to somebody there?")
    assert not wants_person("Yes. I talked to my wife.")


def test_an_edge_for_a_person() -> None:
    assert offers_person("Operator", "")
    assert offers_person("Desk", "They want to speak to a person.")
    assert not offers_person("Yes", "The person wants to come.")
