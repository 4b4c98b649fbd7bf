"""jambonz: its signature, and our documents and its samples against npm's @jambonz/schema, where Node finds it."""

from __future__ import annotations

import hmac
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from libraries import jambonz_schema, read_as_jambonz
from lines.line import samples
from referencing import Registry, Resource

from voiceapi.engine.actions import Action, HangUp, Listen, Pause, Play, Redirect, Say, Transfer
from voiceapi.http_client import Reply, RequestFailed
from voiceapi.telephony.carriers.base import Account, OutboundCall, VoiceSettings
from voiceapi.telephony.carriers.jambonz import Jambonz
from voiceapi.telephony.carriers.rest import TIMEOUT_SECONDS, CarrierRefused
from voiceapi.telephony.carriers.webhook import CallbackURLs, Webhook

BASE = "https://voice.example.org/api/v1/telephony/calls"
URLS = CallbackURLs(BASE, "tok", 4)
NEXT = f"{BASE}/tok/turns/4"
PLAIN = VoiceSettings()
CHOSEN = VoiceSettings("de-DE", "Vicki", "+12025550199", 1200)


def jambonz(secret: str = "test-webhook-secret", now: float = 1700000000, send: Any = None, **more: str) -> Jambonz:
    own = {"api_base_url": "https://jambonz.example.org/api/v1", "account_sid": "a/1", "webhook_secret": secret}
    return Jambonz(Account({**own, **more}, send, clock=lambda: now))


# -- signatures

BODY = b'{"call_sid":"abc","call_status":"completed"}'
# Computed by the rule of jambonz' own library.
SIGNATURE = "e6b654dcc2f678f806bc80242b3eae38b92b6afdbc43008837ab563cace3ec58"
OTHER = "0" * 64


@pytest.mark.parametrize(
    ("header", "secret", "now", "good"),
    [
        (f"t=1700000000,v1={SIGNATURE}", "test-webhook-secret", 1700000000, True),
        (f" v1={OTHER}, t=1700000000 , v1={SIGNATURE}", "test-webhook-secret", 1700000300, True),
        (f"t=1700000000,v1={SIGNATURE}", "test-webhook-secret", 1699999700, True),
        (f"t=1700000000,v1={SIGNATURE}", "test-webhook-secret", 1700000301, False),
        (f"t=1700000000,v1={SIGNATURE}", "another", 1700000000, False),
        (f"t=1700000001,v1={SIGNATURE}", "test-webhook-secret", 1700000000, False),
        (f"t=1700000000,v1={OTHER}", "test-webhook-secret", 1700000000, False),
        (f"t=1700000000,v0={SIGNATURE}", "test-webhook-secret", 1700000000, False),
        (f"v1={SIGNATURE}", "test-webhook-secret", 1700000000, False),
        ("t=1700000000,v1=ünicode", "test-webhook-secret", 1700000000, False),
        ("t=now,v1=", "test-webhook-secret", 1700000000, False),
        ("", "test-webhook-secret", 1700000000, False),
    ],
)
def test_signatures(header: str, secret: str, now: float, good: bool) -> None:
    asked = Webhook("POST", NEXT, {"jambonz-signature": header}, BODY)
    assert jambonz(secret, now).verify(asked) is good


def test_a_secret_that_is_empty_signs_nothing() -> None:
    signature = hmac.digest(b"", b"1700000000." + BODY, "sha256").hex()
    asked = Webhook("POST", NEXT, {"jambonz-signature": f"t=1700000000,v1={signature}"}, BODY)
    assert jambonz("").verify(asked) is False


# -- requests

CALL = OutboundCall(URLS, "sip:desk@example.org", None, 60, 1200, {})
SPEECH = {"speech_synthesis_vendor": "google", "speech_synthesis_voice": "en-US-Wavenet-C"}


def test_a_new_call_has_the_applications_speech_settings() -> None:
    asked, seconds = [], []

    def send(method: str, url: str, **options: Any) -> Reply:
        asked.append((method, url, options["json"]))
        seconds.append(options["timeout"])
        application = {**SPEECH, "speech_recognizer_vendor": None, "call_hook": {"url": "https://elsewhere"}}
        return Reply(200, {}, json.dumps(application if method == "GET" else {"sid": "abc"}).encode(), 0.0)

    assert jambonz(send=send, application_sid="b").place_call(CALL) == "abc"
    look, place = asked
    assert look == ("GET", "https://jambonz.example.org/api/v1/Applications/b", None)
    assert place[:2] == ("POST", "https://jambonz.example.org/api/v1/Accounts/a%2F1/Calls")
    assert place[2] == {
        "to": {"type": "sip", "sipUri": "sip:desk@example.org"},
        "from": "",
        "call_hook": {"url": NEXT},
        "call_status_hook": {"url": f"{BASE}/tok/status"},
        "timeout": 60,
        "timeLimit": 1200,
        **SPEECH,
    }
    assert sum(seconds) <= TIMEOUT_SECONDS


def test_an_application_that_cannot_be_read_places_no_call() -> None:
    asked = []

    def send(method: str, url: str, **options: Any) -> Reply:
        asked.append(method)
        raise RequestFailed("timeout", "jambonz.example.org did not answer within 10 seconds.", sent=True)

    with pytest.raises(CarrierRefused, match="did not answer"):
        jambonz(send=send, application_sid="b").place_call(CALL)
    assert asked == ["GET"]


# -- documents


def ours(actions: list[Action], voice: VoiceSettings = PLAIN) -> list[dict[str, Any]]:
    document = jambonz().render(actions, URLS, voice)
    assert document.content_type == "application/json"
    verbs: list[dict[str, Any]] = json.loads(document.body)
    return verbs


def speech(text: str, language: str = "en-US", **voice: str) -> dict[str, Any]:
    return {"text": text, "synthesizer": {"vendor": "default", "language": language, **voice}}


def say(text: str) -> dict[str, Any]:
    return {"verb": "say", **speech(text)}


def gather(timeout: int, prompt: dict[str, Any] | None, language: str = "en-US", **recognizer: Any) -> dict[str, Any]:
    return {
        "verb": "gather",
        "input": ["digits", "speech"],
        "finishOnKey": "#",
        "minDigits": 1,
        "interDigitTimeout": 3,
        "actionHook": NEXT,
        "timeout": timeout,
        "recognizer": {"vendor": "default", "language": language, **recognizer},
        **({} if prompt is None else {"bargein": True, "dtmfBargein": True, "say": prompt}),
    }


def dial(target: dict[str, str], **more: Any) -> dict[str, Any]:
    return {"verb": "dial", "target": [target], "timeout": 30, "actionHook": f"{NEXT}/transfer", **more}


LONG = "This is a sentence of which there are many. " * 40

DOCUMENTS: list[tuple[list[Action], VoiceSettings, list[dict[str, Any]]]] = [
    (
        [Say("Hello.", True), Say("Is now a good time?", True), Listen(10.0, True)],
        PLAIN,
        [gather(10, speech("Hello. Is now a good time?"))],
    ),
    (
        [Say("Listen well.", False), Say("Ready?", True), Listen(7.5, True)],
        PLAIN,
        [say("Listen well."), gather(8, speech("Ready?"))],
    ),
    (
        [Say("Ready?", True), Say("Listen well.", False), Listen(0.2, True)],
        PLAIN,
        [say("Ready? Listen well."), gather(1, None)],
    ),
    (
        [Say("Grüß Gott.", True), Listen(10.0, True)],
        CHOSEN,
        [gather(10, speech("Grüß Gott.", "de-DE", voice="Vicki"), "de-DE")],
    ),
    (
        [Listen(10.0, True, ("new orders", "yes, please"), 1)],
        PLAIN,
        [{**gather(10, None, hints=["new orders", "yes, please"]), "numDigits": 1}],
    ),
    ([Listen(10.0, True, end_of_speech="quick")], PLAIN, [gather(10, None, fastRecognitionTimeout=0.8)]),
    ([Listen(10.0, True, end_of_speech="patient")], PLAIN, [gather(10, None, asrTimeout=3.0)]),
    (
        [Pause(1.5), Say("Goodbye.", False), HangUp()],
        PLAIN,
        [{"verb": "pause", "length": 1.5}, say("Goodbye."), {"verb": "hangup"}],
    ),
    ([Play("r1", "As recorded.", False)], PLAIN, [say("As recorded.")]),
    (
        [Say("One moment, please.", False), Redirect(3)],
        PLAIN,
        [say("One moment, please."), {"verb": "redirect", "actionHook": f"{BASE}/tok/turns/3/wait"}],
    ),
    (
        [Transfer(3, 0.0, " +1 (202) 555-0177", 30.0)],
        CHOSEN,
        [dial({"type": "phone", "number": "+12025550177"}, callerId="+12025550199", timeLimit=1200)],
    ),
    (
        [Transfer(3, 0.0, "sip:desk@Example.org", 29.5)],
        PLAIN,
        [dial({"type": "sip", "sipUri": "sip:desk@example.org"})],
    ),
    ([Say("<speak>Hi <break/></speak>", False)], PLAIN, [say("speakHi break//speak")]),
    (
        [Say(LONG, True), Listen(10.0, True)],
        PLAIN,
        [say(LONG[: 44 * 31].strip()), gather(10, speech(LONG[44 * 31 :].strip()))],
    ),
    ([], PLAIN, []),
]


@pytest.mark.parametrize(("actions", "voice", "verbs"), DOCUMENTS)
def test_documents(actions: list[Action], voice: VoiceSettings, verbs: list[dict[str, Any]]) -> None:
    assert ours(actions, voice) == verbs


@given(st.one_of(st.text(), st.text(st.sampled_from("<>&\"'/ speak\x00\x0b\ud800\ufffeé😀\n."))))
def test_no_text_is_markup_or_breaks_the_document(text: str) -> None:
    for verb in ours([Say(text, True), Listen(5.0, True), Say(text, False)]):
        assert not set("<>\x00\x0b\ud800\ufffe") & set(verb.get("text") or verb.get("say", {}).get("text", ""))


# -- what jambonz itself says of them


def test_documents_match_the_schema() -> None:
    wrong = [[{"verb": "gather", "input": ["voice"]}], [{"verb": "sayy", "text": "Hello."}]]
    documents = [verbs for _, _, verbs in DOCUMENTS if verbs]
    assert read_as_jambonz([*documents, *wrong]) == [True] * len(documents) + [False, False]


@pytest.fixture(scope="module")
def registry() -> Registry[Any]:
    texts = [json.loads(file.read_text(encoding="utf-8")) for file in jambonz_schema().glob("*/*.schema.json")]
    return Registry().with_resources((text["$id"], Resource.from_contents(text)) for text in texts)


def test_a_new_call_matches_the_schema(registry: Registry[Any]) -> None:
    asked: list[dict[str, Any]] = []

    def send(method: str, url: str, **options: Any) -> Reply:
        asked.append(options["json"])
        return Reply(201, {}, b'{"sid": "abc"}', 0.0)

    jambonz(send=send, amd_enabled="true").place_call(replace(CALL, from_number="+12025550199"))
    validator = Draft202012Validator({"$ref": "https://jambonz.org/schema/verbs/rest:dial"}, registry=registry)
    assert asked[0]["amd"] == {"actionHook": f"{BASE}/tok/machine"}
    assert [error.message for error in validator.iter_errors(asked[0])] == []
    assert list(validator.iter_errors({**asked[0], "amd": {"url": NEXT}}))


def test_samples_match_the_schema(registry: Registry[Any]) -> None:
    sent: dict[str, dict[str, Any]] = {
        "session-new": {**samples("jambonz", "inbound"), "answered": samples("jambonz", "turns")["answered"]},
        "call-status": {
            **{n: s for n, s in samples("jambonz", "statuses").items() if n != "unknown"},
            "other_leg": samples("jambonz", "legs")["other_leg"],
        },
        "amd": {n: s for n, s in samples("jambonz", "turns").items() if n in ("machine", "human")},
        "dial": {n: s for n, s in samples("jambonz", "turns").items() if n.startswith("transfer")},
        "gather": {
            n: s
            for n, s in samples("jambonz", "turns").items()
            if "reason" in s["fields"] and n not in ("machine", "human")
        },
    }
    for kind, found in sent.items():
        validator = Draft202012Validator({"$ref": f"https://jambonz.org/schema/callbacks/{kind}"}, registry=registry)
        assert found
        for name, sample in found.items():
            assert [error.message for error in validator.iter_errors(sample["fields"])] == [], (kind, name)
