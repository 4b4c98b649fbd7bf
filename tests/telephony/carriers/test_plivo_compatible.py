"""Plivo and Vobiz: signatures against vectors and Plivo's own library, documents against those that it builds."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plivo import plivoxml
from plivo.utils import validate_signature
from plivo.utils.signature_v3 import construct_post_url, get_signature_v3, validate_v3_signature

from voiceapi.engine.actions import Action, HangUp, Listen, Pause, Play, Redirect, Say, Transfer
from voiceapi.http_client import Reply
from voiceapi.telephony.carriers.base import Account, VoiceSettings
from voiceapi.telephony.carriers.plivo import Plivo
from voiceapi.telephony.carriers.plivo_compatible import PlivoCompatible
from voiceapi.telephony.carriers.vobiz import Vobiz
from voiceapi.telephony.carriers.webhook import CallbackURLs, Webhook

FORM = {"content-type": "application/x-www-form-urlencoded"}
PAGE = "https://answer.url/a"
BASE = "https://voice.example.org/api/v1/telephony/calls"
URLS = CallbackURLs(BASE, "tok", 4)
NEXT = f"{BASE}/tok/turns/4"
PLAIN = VoiceSettings()
CHOSEN = VoiceSettings("de-DE", "Polly.Vicki", "+12025550199", 1200)


# -- signatures


def carrier(kind: type[PlivoCompatible] = Plivo, token: str = "my_auth_token", send: Any = None) -> PlivoCompatible:
    return kind(Account({"auth_id": "MA1", "auth_token": token}, send))


def webhook(method: str, url: str, fields: Any = (), **headers: str) -> Webhook:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Webhook(method, url, {**FORM, **named}, urlencode(fields).encode())


def v3(method: str, url: str, fields: Any, signature: str, token: str = "my_auth_token") -> bool:
    headers = {"x_plivo_signature_v3": signature, "x_plivo_signature_v3_nonce": "12345"}
    return carrier(token=token).verify(webhook(method, url, fields, **headers))


# Made with Plivo's library for Python; the query of a GET request is all that it says.
VECTORS = [
    (
        "POST",
        PAGE,
        {"CallUUID": "abc", "From": "14155550100", "Speech": "hello there"},
        "UL6+DHXul4YcIJL3FSIkiTTVO4X2/yoY7cQ8QaxdhOo=",
    ),
    (
        "POST",
        f"{PAGE}?run=7&b=2",
        {"CallUUID": "abc", "From": "14155550100"},
        "Fv4yeEapocEAEx0W/1eg6/HD3ck+xL1XcAPqVRjYo/k=",
    ),
    ("POST", f"{PAGE}?run=7", {}, "OLO/GHPUHXJBmWzJ3TLRvTfmFueOrr7ya7VA4ki4ULI="),
    ("GET", f"{PAGE}?run=7&CallUUID=abc", {}, "BrDsngHvpj61/cSYjOxO30JXqj8F+VsQSYtCtUEE2cw="),
]


@pytest.mark.parametrize(("method", "url", "fields", "signature"), VECTORS)
def test_plivos_vectors(method: str, url: str, fields: Any, signature: str) -> None:
    assert validate_v3_signature(method, url, "12345", "my_auth_token", signature, dict(fields))
    assert v3(method, url, fields, signature)
    assert v3(method, url, fields, f"{'A' * 43}=, {signature}")
    assert v3(method, url, fields, signature, "another") is False
    assert v3(method, url.replace("/a", "/b"), fields, signature) is False
    assert v3(method, f"{url}{'&' if '?' in url else '?'}more=1", fields, signature) is False
    assert v3(method, url, {**fields, "To": "1"}, signature) is False
    assert v3(method, url, fields, "") is False
    assert v3(method, url, fields, "ünicode") is False


def test_a_main_account_signs_for_its_subaccounts() -> None:
    method, url, fields, signature = VECTORS[0]
    other = f"{'A' * 43}="
    headers = {"x_plivo_signature_v3": other, "x_plivo_signature_ma_v3": signature}
    assert carrier().verify(webhook(method, url, fields, **headers, x_plivo_signature_v3_nonce="12345"))
    assert not carrier().verify(webhook(method, url, fields, **headers, x_plivo_signature_v3_nonce="12346"))


V2 = "ehV3IKhLysWBxC1sy8INm0qGoQYdYsHwuoKjsX7FsXc="


def test_version_2_counts_only_without_version_3() -> None:
    assert validate_signature("https://answer.url", "12345", V2, "my_auth_token")
    second = {"x_plivo_signature_v2": V2, "x_plivo_signature_v2_nonce": "12345"}
    third = {"x_plivo_signature_v3": VECTORS[0][3], "x_plivo_signature_v3_nonce": "12345"}
    assert carrier().verify(webhook("POST", "https://answer.url", {"CallUUID": "abc"}, **second))
    assert carrier().verify(webhook("POST", "https://answer.url?a=b", **second))
    assert carrier().verify(webhook("POST", "https://answer.url/a", **second)) is False
    assert carrier(token="another").verify(webhook("POST", "https://answer.url", **second)) is False
    assert carrier().verify(webhook("POST", "https://answer.url", **second, **third)) is False
    assert carrier().verify(webhook("POST", "https://answer.url")) is False


@given(
    st.dictionaries(st.text(min_size=1, max_size=8), st.text(max_size=12), max_size=8),
    st.dictionaries(st.text("abcxyz", min_size=1), st.text("abcxyz %20+&=", max_size=8), max_size=4),
)
def test_plivos_own_library_signs_as_we_check(fields: dict[str, str], query: dict[str, str]) -> None:
    url = f"{NEXT}?{urlencode(query)}" if query else NEXT
    fields = {name: value for name, value in fields.items() if (name + value).isprintable()}
    signed = construct_post_url(url, fields).decode()
    assert v3("POST", url, fields, get_signature_v3(b"my_auth_token", signed, "12345").decode())


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "multipart/form-data; boundary=x"])
def test_a_body_that_is_not_a_form_is_refused(kind: str) -> None:
    signature = get_signature_v3(b"my_auth_token", PAGE, "12345").decode()
    headers = {"content-type": kind, "x-plivo-signature-v3": signature, "x-plivo-signature-v3-nonce": "12345"}
    assert carrier().verify(Webhook("POST", PAGE, headers, b"")) is True
    assert carrier().verify(Webhook("POST", PAGE, headers, b'{"Speech": "yes"}')) is False


def test_vobiz_may_sign_the_url_alone() -> None:
    third = get_signature_v3(b"my_auth_token", PAGE, "12345").decode()
    second = get_signature_v3(b"my_auth_token", "https://answer", "url12345").decode()  # the dot is part of the address
    vobiz = carrier(Vobiz)
    for kind in ("", "ma_"):
        headers = {f"x_vobiz_signature_{kind}v3": third, "x_vobiz_signature_v3_nonce": "12345"}
        assert vobiz.verify(webhook("POST", f"{PAGE}?run=7", {"Speech": "whatever"}, **headers))
        assert vobiz.verify(webhook("POST", f"{PAGE}/b", {}, **headers)) is False
    headers = {"x_vobiz_signature_v2": second, "x_vobiz_signature_v2_nonce": "12345"}
    assert vobiz.verify(webhook("POST", "https://answer.url", {}, **headers))
    assert vobiz.verify(webhook("POST", PAGE, {}, x_plivo_signature_v3=third)) is False
    # As Plivo does it is well, too.
    method, url, fields, signature = VECTORS[1]
    assert vobiz.verify(
        webhook(method, url, fields, x_vobiz_signature_v3=signature, x_vobiz_signature_v3_nonce="12345")
    )


def test_a_token_that_is_empty_signs_nothing() -> None:
    signature = get_signature_v3(b"", PAGE, "12345").decode()
    assert v3("POST", PAGE, {}, signature, "") is False


# -- documents


def ours(actions: list[Action], voice: VoiceSettings = PLAIN, kind: type[PlivoCompatible] = Plivo) -> str:
    document = carrier(kind).render(actions, URLS, voice)
    assert document.content_type == "text/xml; charset=utf-8"
    assert document.body.startswith(b'<?xml version="1.0" encoding="UTF-8"?>\n<Response')
    return ET.canonicalize(document.body.decode())


def theirs(response: plivoxml.ResponseElement) -> str:
    # The library knows only numbers of seconds for what may also be left to the carrier.
    kind = 'inputType="dtmf speech"'
    text = response.to_string(pretty=False).replace(kind, f'{kind} speechEndTimeout="auto"')
    return ET.canonicalize(text)


def listening(language: str = "en-US", timeout: int = 15, **more: Any) -> plivoxml.GetInputElement:
    return plivoxml.GetInputElement(
        action=NEXT,
        method="POST",
        input_type="dtmf speech",
        finish_on_key="#",
        digit_end_timeout=3,
        execution_timeout=timeout,
        language=language,
        **more,
    )


def test_hints_and_a_menu_of_keys() -> None:
    """A comma within a phrase would make it two."""
    response = plivoxml.ResponseElement().add(listening(hints="new orders,yes please", num_digits=1))
    response.add_redirect(f"{NEXT}/silence", method="POST")
    assert ours([Listen(10.0, True, ("new orders", "yes, please"), 1)]) == theirs(response)


def test_say_and_listen() -> None:
    spoken = plivoxml.SpeakElement('Yes & <no>, "all right"?', language="en-US")
    response = plivoxml.ResponseElement().add(listening().add(spoken))
    response.add_redirect(f"{NEXT}/silence", method="POST")
    assert ours([Say('Yes & <no>, "all right"?', True), Listen(10.0, True)]) == theirs(response)


@pytest.mark.parametrize(("asked", "told"), [(0.5, 15), (20.5, 21), (200.0, 60)])
def test_speech_that_may_not_be_interrupted_comes_before_listening(asked: float, told: int) -> None:
    response = plivoxml.ResponseElement()
    response.add_speak("Listen well.", language="en-US")
    response.add(listening(timeout=told).add(plivoxml.SpeakElement("Ready?", language="en-US")))
    response.add_redirect(f"{NEXT}/silence", method="POST")
    assert ours([Say("Listen well.", False), Say("Ready?", True), Listen(asked, True)]) == theirs(response)


@pytest.mark.parametrize(
    ("voice", "attributes"),
    [("Polly.Vicki", {"voice": "Polly.Vicki"}), ("MAN", {"voice": "MAN", "language": "de-DE"})],
)
def test_a_chosen_voice_and_language(voice: str, attributes: dict[str, str]) -> None:
    response = plivoxml.ResponseElement()
    response.add(listening("de-DE").add(plivoxml.SpeakElement("Grüß Gott.", **attributes)))
    response.add_redirect(f"{NEXT}/silence", method="POST")
    assert ours([Say("Grüß Gott.", True), Listen(10.0, True)], VoiceSettings("de-DE", voice)) == theirs(response)


def test_pause_goodbye_and_hang_up() -> None:
    response = plivoxml.ResponseElement()
    response.add_wait(length=2)
    response.add_speak("Goodbye.", language="en-US")
    response.add_hangup()
    assert ours([Pause(1.5), Say("Goodbye.", False), HangUp()]) == theirs(response)


@pytest.mark.parametrize(
    ("destination", "dialed"),
    [("+12025550177", "12025550177"), (" +1 (202) 555-0177", "12025550177"), ("sip:Desk@Example.org", None)],
)
def test_a_transfer(destination: str, dialed: str | None) -> None:
    response = plivoxml.ResponseElement()
    dial = plivoxml.DialElement(
        action=f"{NEXT}/transfer", method="POST", timeout=30, time_limit=1200, caller_id="12025550199"
    )
    dial.add_number(dialed) if dialed else dial.add_user("sip:Desk@example.org")
    response.add(dial)
    assert ours([Transfer(3, 0.0, destination, 30.0)], CHOSEN) == theirs(response)


def test_a_filler_and_a_redirect() -> None:
    response = plivoxml.ResponseElement()
    response.add_speak("One moment, please.", language="en-US")
    response.add_redirect(f"{BASE}/tok/turns/3/wait", method="POST")
    assert ours([Say("One moment, please.", False), Redirect(3)]) == theirs(response)


def test_a_recording_is_spoken_and_nothing_ends_the_call() -> None:
    response = plivoxml.ResponseElement()
    response.add_speak("As recorded.", language="en-US")
    assert ours([Play("r1", "As recorded.", False)]) == theirs(response)
    assert ours([]) == theirs(plivoxml.ResponseElement())
    assert ET.canonicalize(carrier().acknowledge().body.decode()) == ours([])


def test_vobiz_listens_under_another_name_and_keeps_the_plus() -> None:
    actions: list[Action] = [Say("Hello.", True), Listen(10.0, True), Transfer(3, 0.0, "+12025550177", 30.0)]
    plivos = ours(actions, CHOSEN)
    assert ours(actions, CHOSEN, Vobiz) == plivos.replace("GetInput", "Gather").replace("1202555", "+1202555")


# -- what became of a call


@pytest.mark.parametrize(
    ("kind", "said", "status", "duration"),
    [
        (Plivo, {"call_state": "answer", "call_duration": "42"}, "completed", 42.0),
        (Plivo, {"call_state": "NO_ANSWER", "call_duration": 0}, "no-answer", 0.0),
        (Plivo, {"call_state": ["odd"]}, None, None),
        (Plivo, {}, None, None),
        (Vobiz, {"data": {"hangup_cause": "MEDIA_TIMEOUT", "billsec": 7}}, "completed", 7.0),
        (Vobiz, {"data": {"hangup_cause": "USER_BUSY", "billsec": 0}}, "busy", 0.0),
        (Vobiz, {"data": {"hangup_cause": "UNALLOCATED_NUMBER", "billsec": 0}}, "failed", 0.0),
        (Vobiz, {"data": []}, None, None),
    ],
)
def test_records(kind: type[PlivoCompatible], said: dict[str, Any], status: str | None, duration: float | None) -> None:
    report = carrier(kind, send=lambda *_, **__: Reply(200, {}, json.dumps(said).encode(), 0.0)).look_up("abc")
    assert (report.call_id, report.status, report.duration) == ("abc", status, duration)


HOSTILE = st.one_of(st.text(), st.text(st.sampled_from("<>&\"'/]!-\x00\x0b\ud800\ufffeé😀 \n.")))


@given(HOSTILE, HOSTILE, HOSTILE)
def test_no_text_makes_markup_or_breaks_the_document(text: str, voice: str, number: str) -> None:
    actions = [Say(text, True), Listen(5.0, True), Transfer(1, 0.0, text, 5.0)]
    root = ET.fromstring(carrier().render(actions, URLS, VoiceSettings(voice, voice, number)).body)
    assert [element.tag for element in root] == ["GetInput", "Redirect", "Dial"]
    assert {element.tag for element in root.iter()} <= {"Response", "GetInput", "Speak", "Redirect", "Dial"} | {
        "Number",
        "User",
    }
