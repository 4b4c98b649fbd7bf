"""The voices "natural" and "standard": the documents have names that the carriers' own libraries know."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args, get_type_hints
from xml.etree import ElementTree as ET

import pytest
from libraries import read_as_jambonz, read_as_plivo, read_as_twilio, read_as_vonage
from telnyx.types.calls.action_speak_params import ActionSpeakParams

from voiceapi.engine.actions import Action, Listen, Say
from voiceapi.engine.phrases import PHRASES
from voiceapi.engine.validation.speech_rules import CHOSEN, POLLY, speech_findings, voice_findings
from voiceapi.http_client import HTTPClient
from voiceapi.telephony.carriers.base import Account, VoiceSettings
from voiceapi.telephony.carriers.voices import VOICES
from voiceapi.telephony.carriers.webhook import CallbackURLs
from voiceapi.telephony.connect import CARRIERS

URLS = CallbackURLs("https://voice.example.org/api/v1/telephony/calls", "tok", 4)
ACTIONS: list[Action] = [Say("One moment.", False), Say("Well?", True), Listen(10.0, True)]
TWILIO = json.loads((Path(__file__).parents[2] / "data" / "twilio_voices.json").read_text(encoding="utf-8"))
XML = ("cloudonix", "plivo", "signalwire", "telnyx", "twilio", "vobiz")


def document(carrier: str, language: str, voice: str | None) -> bytes:
    settings = VoiceSettings(language, voice)
    return CARRIERS[carrier](Account({}, HTTPClient().send)).render(ACTIONS, URLS, settings).body


def said(carrier: str, language: str, voice: str | None) -> dict[str, Any]:
    """With which voice and language a carrier speaks, the same for both texts of a document."""
    found = document(carrier, language, voice)
    if carrier in XML:
        spoken = [dict(each.items()) for each in ET.fromstring(found).iter() if each.tag in ("Say", "Speak")]
    elif carrier == "vonage":
        spoken = [
            {name: each[name] for name in ("language", "style", "premium") if name in each}
            for each in json.loads(found)
            if each["action"] == "talk"
        ]
    else:
        first, second = json.loads(found)
        spoken = [first["synthesizer"], second["say"]["synthesizer"]]
    assert len(spoken) == 2
    assert spoken[0] == spoken[1]
    return spoken[0]


def test_every_language_of_the_service_has_voices() -> None:
    assert {tag.partition("-")[0].replace("cmn", "zh") for tag in VOICES} == set(PHRASES)
    assert {each for voice in VOICES.values() for each in (voice.neural, voice.standard)} <= POLLY
    assert {kind for carrier in CARRIERS.values() for kind in carrier.voices} == CHOSEN


@pytest.mark.parametrize("kind", sorted(CHOSEN))
def test_the_carriers_libraries_know_the_voices(kind: str) -> None:
    known_to_telnyx = get_args(get_type_hints(ActionSpeakParams)["language"])
    for tag in VOICES:
        for carrier in ("twilio", "signalwire"):
            voice = said(carrier, tag, kind)
            assert (voice["voice"] in TWILIO["voices"], voice["language"]) == (True, tag)
        at_telnyx = said("telnyx", tag, kind)
        assert at_telnyx.get("language", tag) in known_to_telnyx
        assert at_telnyx["voice"] in (TWILIO["voices"] if kind == "natural" else ("alice",))
        for carrier in ("plivo", "vobiz"):
            assert said(carrier, tag, kind) == {"voice": f"Polly.{VOICES[tag].standard}"}
            assert f"Polly.{VOICES[tag].standard}" in TWILIO["voices"]
        read_as_twilio(document("twilio", tag, kind))
        read_as_plivo(document("plivo", tag, kind))
        read_as_vonage(document("vonage", tag, kind))
    assert set(VOICES) <= set(TWILIO["languages"])


def test_jambonz_leaves_the_voice_to_the_application() -> None:
    assert said("jambonz", "de-DE", "natural") == {"vendor": "default", "language": "de-DE"}
    assert read_as_jambonz([json.loads(document("jambonz", "de-DE", "natural"))]) == [True]


@pytest.mark.parametrize(
    ("carrier", "language", "voice", "expected"),
    [
        ("twilio", "de-DE", "natural", {"language": "de-DE", "voice": "Polly.Vicki-Neural"}),
        ("twilio", "de-AT", "Natural", {"language": "de-DE", "voice": "Polly.Vicki-Neural"}),
        ("twilio", "en", "natural", {"language": "en-US", "voice": "Polly.Joanna-Neural"}),
        ("twilio", "en-gb", "standard", {"language": "en-GB", "voice": "Polly.Amy"}),
        ("twilio", "zh-CN", "natural", {"language": "cmn-CN", "voice": "Polly.Zhiyu-Neural"}),
        ("twilio", "zh-HK", "natural", {"language": "zh-HK"}),
        ("twilio", "tr-TR", "natural", {"language": "tr-TR"}),
        ("twilio", "de-DE", None, {"language": "de-DE"}),
        ("twilio", "de-DE", "Polly.Hans", {"language": "de-DE", "voice": "Polly.Hans"}),
        ("cloudonix", "nl-NL", "natural", {"language": "nl-NL", "voice": "AWS-Neural:Laura"}),
        ("cloudonix", "nl-NL", "standard", {"language": "nl-NL", "voice": "AWS:Lotte"}),
        ("telnyx", "nl-NL", "natural", {"voice": "Polly.Laura-Neural"}),
        ("telnyx", "nl-NL", "standard", {"language": "nl-NL", "voice": "alice"}),
        ("vobiz", "tr-TR", "natural", {"language": "tr-TR"}),
        ("vonage", "fr-FR", "natural", {"language": "fr-FR", "style": 1}),
        ("vonage", "fr-CA", "natural", {"language": "fr-CA"}),
    ],
)
def test_who_speaks(carrier: str, language: str, voice: str | None, expected: dict[str, str]) -> None:
    assert said(carrier, language, voice) == expected


def test_the_caller_is_heard_in_the_language_of_the_workflow() -> None:
    gather = ET.fromstring(document("twilio", "de-AT", "natural")).find("Gather")
    assert gather is not None
    assert gather.get("language") == "de-AT"


@pytest.mark.parametrize("language", [None, "de-DE", "zh-TW", "hi-IN"])
def test_no_warning_of_them_in_the_languages_of_the_service(language: str | None) -> None:
    for kind in CHOSEN:
        configurations = {"voice": kind, "language": language}
        assert [*speech_findings(configurations), *voice_findings(configurations)] == []


def test_a_warning_where_the_language_has_none() -> None:
    configurations = {"voice": "natural", "language": "tr-TR", "phrases": {"wait": "Bir dakika."}}
    (found,) = voice_findings(configurations)
    assert (found.code, found.message) == (
        "unknown-voice",
        'No "natural" voice is known for "tr-TR", so the carrier\'s usual one speaks. '
        "Set the carrier's own name of a voice.",
    )
