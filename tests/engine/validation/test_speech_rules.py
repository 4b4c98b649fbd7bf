"""Which languages and voices are warned of. What carriers document must pass."""

from __future__ import annotations

from typing import Any

import pytest

from voiceapi.engine.validation.speech_rules import speech_findings


def warned(**configurations: Any) -> list[str]:
    found = speech_findings(configurations)
    assert all((each.kind, each.id) == ("workflow", None) for each in found)
    return [f"{each.field}: {each.message}" for each in found]


# One of each kind of the carriers' documents: Twilio, SignalWire, Telnyx, Plivo, Vobiz, Cloudonix, Vonage, jambonz.
TAKEN = """man woman alice WOMAN MAN Polly.Joanna Polly.Joanna-Neural Polly.Joanna-Generative Polly.Lucia-longform
    Polly.Léa Polly.Celine polly.amy Google.de-DE-Neural2-B Google.en-US-Chirp3-HD-Aoede Google.en-GB-Standard-A
    gcloud.en-US-Neural2-A GCLOUD.EN-US-NEURAL2-A amazon.Emma:en-GB amazon.Emma:standard:en-GB
    amazon.Kendra:neural:en-US elevenlabs.rachel rime.luna:arcana openai.alloy deepgram.aura-asteria-en
    cartesia.a0e99841-438c-4a64-b679-ae501e7d6091 azure.en-US-JennyNeural AWS.Polly.Joanna-Neural
    aws.Polly.Generative.Lucia Azure.en-US-AvaMultilingualNeural ElevenLabs.eleven_multilingual_v2.21m00Tcm4TlvDq8ikWAM
    Telnyx.KokoroTTS.af Telnyx.NaturalHD.astra Minimax.speech-2.8-turbo.Narrator Resemble.Turbo.x Rime.ArcanaV3.astra
    Inworld.Max.Hades AWS:Joanna AWS-Neural:Joanna Google:en-US-Neural2-C 0 3 12 Joanna Vicki de-DE-Wavenet-A
    en-US-JennyNeural aura-2-thalia-en 21m00Tcm4TlvDq8ikWAM a0e99841-438c-4a64-b679-ae501e7d6091 alloy"""


@pytest.mark.parametrize("voice", [*TAKEN.split(), "3 premium", " Polly.Vicki ", "", "  ", None, 7])
def test_a_voice_that_a_carrier_takes_passes(voice: Any) -> None:
    assert warned(voice=voice) == []


@pytest.mark.parametrize(
    ("voice", "message"),
    [
        ("Joana", 'No carrier is known to have a voice "Joana". Is it "Polly.Joanna"?'),
        ("Polly.Joana", 'Amazon Polly is not known to have a voice "Joana". Is it "Polly.Joanna"?'),
        ("Polly.Vicky-Neural", 'Amazon Polly is not known to have a voice "Vicky-Neural". Is it "Polly.Vicki"?'),
        ("Poly.Joanna", 'No carrier is known to have a voice "Poly.Joanna".'),
        ("Google", 'No carrier is known to have a voice "Google".'),
        ("a nice lady", 'No carrier is known to have a voice "a nice lady".'),
        ("x y" * 30, f'No carrier is known to have a voice "{("x y" * 30)[:60]}...".'),
    ],
)
def test_a_voice_that_no_carrier_knows(voice: str, message: str) -> None:
    assert warned(voice=voice) == [f"workflow_configurations.voice: {message}"]


SPOKEN = """en-US en-GB en-us EN-AU en-GB-WLS en-IN de-DE de-AT de-CH fr-FR fr-CA es-ES es-MX es-US es-419 it-IT pt-BR
    pt-PT nl-NL nl-BE pl-PL sv-SE da-DK nb-NO fi-FI is-IS hi-IN bn-IN ta-IN te-IN mr-IN gu-IN kn-IN ml-IN pa-Guru-IN
    ur-PK ja-JP ko-KR zh-CN zh-TW zh-HK cmn-CN cmn-Hans-CN yue-CN yue-Hant-HK arb ar-SA ar-AE ar-XA he-IL tr-TR ru-RU
    uk-UA cs-CZ sk-SK hu-HU ro-RO bg-BG el-GR hr-HR sl-SI sr-RS lt-LT lv-LV et-EE ca-ES eu-ES gl-ES cy-GB ga-IE id-ID
    ms-MY vi-VN th-TH fil-PH sw-KE am-ET af-ZA zu-ZA"""


@pytest.mark.parametrize("language", [*SPOKEN.split(), " de-DE ", "", None, 7])
def test_a_language_that_a_carrier_takes_passes(language: Any) -> None:
    assert warned(language=language) == []


@pytest.mark.parametrize(
    ("language", "message"),
    [
        ("german", 'The language "german" is not a language tag such as "de-DE".'),
        ("de_DE", 'The language "de_DE" is not a language tag such as "de-DE".'),
        ("xx-XX", 'No carrier is known to speak and to recognise the language "xx-XX".'),
        ("tlh-AQ", 'No carrier is known to speak and to recognise the language "tlh-AQ".'),
        (
            "de-US",
            'No carrier is known to take the language "de-US"; known are "de-AT", "de-CH", "de-DE".',
        ),
        ("ja", 'The language "ja" names no region, which most carriers need: "ja-JP".'),
    ],
)
def test_a_language_that_no_carrier_knows(language: str, message: str) -> None:
    assert warned(language=language) == [f"workflow_configurations.language: {message}"]


def test_both_are_warned_of_at_once() -> None:
    assert len(warned(language="german", voice="Joana")) == 2
