"""Our documents against those that Twilio's own library builds, and against hostile text."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twilio.twiml.voice_response import Connect, Dial, Gather, VoiceResponse

from voiceapi.engine.actions import Action, HangUp, Listen, Pause, Play, Redirect, Say, Transfer
from voiceapi.telephony.carriers.base import Account, VoiceSettings
from voiceapi.telephony.carriers.cloudonix import Cloudonix
from voiceapi.telephony.carriers.signalwire import SignalWire
from voiceapi.telephony.carriers.telnyx import Telnyx
from voiceapi.telephony.carriers.twilio import Twilio
from voiceapi.telephony.carriers.twilio_compatible import TwilioCompatible
from voiceapi.telephony.carriers.webhook import LONGEST, CallbackURLs, pieces

BASE = "https://voice.example.org/api/v1/telephony/calls"
URLS = CallbackURLs(BASE, "tok", 4)
NEXT = f"{BASE}/tok/turns/4"
ACCOUNT = Account({}, send=None)  # type: ignore[arg-type]
PLAIN = VoiceSettings()
CHOSEN = VoiceSettings("de-DE", "Polly.Vicki-Neural", "+12025550199", 1200)


def ours(actions: list[Action], voice: VoiceSettings = PLAIN, carrier: type[TwilioCompatible] = Twilio) -> str:
    document = carrier(ACCOUNT).render(actions, URLS, voice)
    assert document.content_type == "text/xml; charset=utf-8"
    assert document.body.startswith(b'<?xml version="1.0" encoding="UTF-8"?>\n<Response')
    return ET.canonicalize(document.body.decode())


def theirs(response: VoiceResponse) -> str:
    return ET.canonicalize(str(response))


def gather(language: str = "en-US", timeout: int = 10, **more: Any) -> Gather:
    return Gather(
        input="dtmf speech",
        finish_on_key="#",
        action=NEXT,
        method="POST",
        language=language,
        timeout=timeout,
        speech_timeout=1,
        action_on_empty_result=True,
        **more,
    )


def test_hints_and_a_menu_of_keys() -> None:
    """A comma within a phrase would make it two."""
    response = VoiceResponse()
    response.append(gather(hints="new orders,yes please", num_digits=1))
    response.redirect(f"{NEXT}/silence", method="POST")
    assert ours([Listen(10.0, True, ("new orders", "yes, please"), 1)]) == theirs(response)


def test_say_and_listen() -> None:
    response = VoiceResponse()
    listening = gather()
    listening.say('Yes & <no>, "all right"?', language="en-US")
    response.append(listening)
    response.redirect(f"{NEXT}/silence", method="POST")
    assert ours([Say('Yes & <no>, "all right"?', True), Listen(10.0, True)]) == theirs(response)


def test_speech_that_may_not_be_interrupted_comes_before_gather() -> None:
    response = VoiceResponse()
    response.say("Listen well.", language="en-US")
    listening = gather(timeout=8)
    listening.say("Ready?", language="en-US")
    response.append(listening)
    response.redirect(f"{NEXT}/silence", method="POST")
    assert ours([Say("Listen well.", False), Say("Ready?", True), Listen(7.5, True)]) == theirs(response)


def test_order_is_kept_when_the_last_speech_may_not_be_interrupted() -> None:
    response = VoiceResponse()
    response.say("Ready?", language="en-US")
    response.say("Listen well.", language="en-US")
    response.append(gather())
    response.redirect(f"{NEXT}/silence", method="POST")
    assert ours([Say("Ready?", True), Say("Listen well.", False), Listen(10.0, True)]) == theirs(response)


def test_a_chosen_voice_and_language() -> None:
    response = VoiceResponse()
    listening = gather("de-DE")
    listening.say("Grüß Gott.", language="de-DE", voice="Polly.Vicki-Neural")
    response.append(listening)
    response.redirect(f"{NEXT}/silence", method="POST")
    assert ours([Say("Grüß Gott.", True), Listen(10.0, True)], CHOSEN) == theirs(response)


def test_pause_goodbye_and_hang_up() -> None:
    response = VoiceResponse()
    response.pause(length=2)
    response.say("Goodbye.", language="en-US")
    response.hangup()
    assert ours([Pause(1.5), Say("Goodbye.", False), HangUp()]) == theirs(response)


@pytest.mark.parametrize(
    ("destination", "dialed"),
    [
        ("+12025550177", "+12025550177"),
        (" +1 (202) 555-0177", "+12025550177"),
        ("12025550177", "+12025550177"),
        ("sip:desk@Example.org", "sip:desk@example.org"),
        ("SIPS:desk@example.org:5061", "sips:desk@example.org"),
    ],
)
def test_a_transfer(destination: str, dialed: str) -> None:
    response = VoiceResponse()
    response.say("One moment.", language="de-DE", voice="Polly.Vicki-Neural")
    dial = Dial(action=f"{NEXT}/transfer", method="POST", timeout=30, time_limit=1200, caller_id="+12025550199")
    dial.sip(dialed) if dialed.startswith("sip") else dial.number(dialed)
    response.append(dial)
    assert ours([Say("One moment.", False), Transfer(3, 0.0, destination, 30.0)], CHOSEN) == theirs(response)


def test_a_filler_and_a_redirect() -> None:
    response = VoiceResponse()
    response.say("One moment, please.", language="en-US")
    response.redirect(f"{BASE}/tok/turns/3/wait", method="POST")
    assert ours([Say("One moment, please.", False), Redirect(3)]) == theirs(response)


def test_a_recording_is_spoken_and_nothing_ends_the_call() -> None:
    response = VoiceResponse()
    response.say("As recorded.", language="en-US")
    assert ours([Play("r1", "As recorded.", False)]) == theirs(response)
    assert ours([]) == ours([Play("r1", "", False)]) == theirs(VoiceResponse())


def test_what_the_other_carriers_write_differently() -> None:
    def attributes(carrier: type[TwilioCompatible], voice: VoiceSettings) -> tuple[dict[str, str], dict[str, str]]:
        listening = ET.fromstring(ours([Say("Hello.", True), Listen(10.0, True)], voice, carrier))[0]
        common = {"input", "finishOnKey", "action", "method", "language", "timeout"}
        return {name: value for name, value in listening.items() if name not in common}, dict(listening[0].items())

    usual = {"speechTimeout": "1", "actionOnEmptyResult": "true"}
    named = {"language": "de-DE", "voice": "Polly.Vicki-Neural"}
    assert attributes(SignalWire, CHOSEN) == attributes(Twilio, CHOSEN) == (usual, named)
    assert attributes(Cloudonix, CHOSEN) == ({**usual, "speechTimeout": "auto"}, named)
    assert attributes(Telnyx, CHOSEN) == ({"speechTimeout": "2"}, {"voice": "Polly.Vicki-Neural"})
    assert attributes(Telnyx, PLAIN) == ({"speechTimeout": "2"}, {"language": "en-US", "voice": "alice"})
    hinted = [ET.fromstring(ours([Listen(10.0, True, ("yes",))], PLAIN, each))[0] for each in (Telnyx, Cloudonix)]
    assert [listening.get("hints") for listening in hinted] == ["yes", None]


HOSTILE = st.one_of(st.text(), st.text(st.sampled_from("<>&\"'/]!-\x00\x0b\ud800\ufffeé😀 \n.")))


@given(HOSTILE, HOSTILE, HOSTILE)
def test_no_text_makes_markup_or_breaks_the_document(text: str, voice: str, number: str) -> None:
    spoken = VoiceSettings(voice, voice, number)
    actions = [Say(text, True), Listen(5.0, True), Transfer(1, 0.0, text, 5.0)]
    document = Twilio(ACCOUNT).render(actions, URLS, spoken)
    root = ET.fromstring(document.body)
    assert {element.tag for element in root.iter()} <= {
        "Response",
        "Gather",
        "Say",
        "Redirect",
        "Dial",
        "Number",
        "Sip",
    }
    assert len(root) == 3


@given(st.text(max_size=4000), st.integers(1, 60))
def test_pieces_hold_the_whole_text(text: str, longest: int) -> None:
    found = list(pieces(text, longest))
    assert all(0 < len(piece) <= longest for piece in found)
    whole = "".join(next(iter(pieces(text, 10**6)), ""))
    assert "".join("".join(found).split()) == "".join(whole.split())


@pytest.mark.parametrize(
    ("text", "longest", "found"),
    [
        ("", 10, []),
        (" \n ", 10, []),
        ("One. Two. Three.", 16, ["One. Two. Three."]),
        ("One. Two. Three.", 12, ["One. Two.", "Three."]),
        ('He said "go!" Then he went.', 20, ['He said "go!"', "Then he went."]),
        ("no sentence ends here", 12, ["no sentence", "ends here"]),
        ("abcdefghij", 4, ["abcd", "efgh", "ij"]),
        ("a\x00b\x0bc", 9, ["abc"]),
        ("你好。 再见。", 5, ["你好。", "再见。"]),
        ("line one\nline two", 10, ["line one", "line two"]),
    ],
)
def test_pieces_end_where_sentences_do(text: str, longest: int, found: list[str]) -> None:
    assert list(pieces(text, longest)) == found


def test_a_long_reply_is_several_pieces_in_order() -> None:
    sentence = "This is a sentence of which there are many. "
    document = ours([Say(sentence * 100, False)])
    said = [element.text or "" for element in ET.fromstring(document)]
    assert len(said) == 4
    assert all(len(piece) <= LONGEST and piece.endswith("many.") for piece in said)
    assert " ".join(said) == (sentence * 100).strip()


def relayed(
    actions: list[Action],
    voice: VoiceSettings = PLAIN,
    kind: type[TwilioCompatible] = Twilio,
    *,
    interruptible: bool = True,
) -> str:
    carrier = kind(Account({"transport": "relay"}, send=None))  # type: ignore[arg-type]
    assert carrier.wants_relay
    address = "wss://voice.example.org/x"
    document = carrier.render_relay(actions, URLS, voice, address, interruptible=interruptible)
    return ET.canonicalize(document.body.decode())


@pytest.mark.parametrize(
    ("voice", "language", "provider", "name"),
    [
        (PLAIN, "en-US", "Google", None),
        (CHOSEN, "de-DE", "Amazon", "Vicki-Neural"),
        (VoiceSettings("de", "natural"), "de-DE", "Amazon", "Vicki-Neural"),
        (VoiceSettings("de-DE", "Google.de-DE-Neural2-F"), "de-DE", "Google", "de-DE-Neural2-F"),
        (VoiceSettings("en-US", "ElevenLabs.UgBBYS2sOqTuMpoF3BR0"), "en-US", "ElevenLabs", "UgBBYS2sOqTuMpoF3BR0"),
    ],
)
def test_a_relay_and_its_voice(voice: VoiceSettings, language: str, provider: str, name: str | None) -> None:
    response = VoiceResponse()
    response.pause(length=2)
    connect = Connect(action=f"{BASE}/tok/relay", method="POST")
    connect.conversation_relay(
        url="wss://voice.example.org/x",
        welcome_greeting="Hello. A & B?",
        welcome_greeting_interruptible="none",
        interruptible="any",
        dtmf_detection=True,
        language=language,
        tts_provider=provider,
        voice=name,
        events="speaker-events",
        debug="debugging",
    )
    response.append(connect)
    actions: list[Action] = [Pause(2.0), Say("Hello.", False), Say("A & B?", True), Listen(10.0, True)]
    assert relayed(actions, voice) == theirs(response)


def test_a_relay_without_a_greeting() -> None:
    (connect,) = ET.fromstring(relayed([Listen(10.0, True)]))
    assert "welcomeGreeting" not in connect[0].attrib


@pytest.mark.parametrize(
    ("voice", "language", "name"),
    [
        (PLAIN, "en", None),
        (VoiceSettings("pt-BR", "Telnyx.NaturalHD.astra"), "pt", "Telnyx.NaturalHD.astra"),
        (VoiceSettings("de", "natural"), "de", None),
        (CHOSEN, "de", None),
    ],
)
def test_a_relay_of_telnyx_and_its_voice(voice: VoiceSettings, language: str, name: str | None) -> None:
    """It names languages without a region, and voices with their provider."""
    pause, connect = ET.fromstring(relayed([Pause(2.0), Say("A & B?", True), Listen(10.0, True)], voice, Telnyx))
    assert (pause.tag, pause.attrib) == ("Pause", {"length": "2"})
    assert (connect.tag, connect.attrib) == ("Connect", {"action": f"{BASE}/tok/relay", "method": "POST"})
    (relay,) = connect
    assert relay.tag == "ConversationRelay"
    assert relay.attrib == {
        "url": "wss://voice.example.org/x",
        "welcomeGreeting": "A & B?",
        "welcomeGreetingInterruptible": "any",
        "interruptible": "any",
        "dtmfDetection": "true",
        "events": "speaker-events tokens-played",
        "language": language,
        **({"voice": name} if name else {}),
    }


@pytest.mark.parametrize(("kind", "found"), [(Twilio, "any"), (Telnyx, "none")])
def test_a_relay_of_an_agent_that_nobody_may_interrupt(kind: type[TwilioCompatible], found: str) -> None:
    """Each text of Twilio's says it by itself."""
    (connect,) = ET.fromstring(relayed([Listen(10.0, True)], kind=kind, interruptible=False))
    assert connect[0].attrib["interruptible"] == found
