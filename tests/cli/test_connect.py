"""`voiceapi connect`: what it asks for, says, changes and ends with."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click.testing
import pytest
from click.testing import CliRunner, Result
from flask import Flask
from flask.cli import ScriptInfo
from number_apis import ELSEWHERE, NUMBER_APIS, OURS, SECOND, NumberAPI, TelnyxNumbers, TwilioNumbers

from voiceapi.cli.main import group
from voiceapi.http_client import Reply
from voiceapi.organizations import preferences
from voiceapi.service import Service
from voiceapi.store.base import find
from voiceapi.store.runs import Run
from voiceapi.store.telephony import PhoneNumber
from voiceapi.workflows import versions

PUBLIC = "https://voice.example.org"
HEALTH = {"status": "ok", "backend_api_endpoint": PUBLIC}
MINE = "+12025550123"


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"VOICEAPI_PUBLIC_URL": PUBLIC}


class Terminal:
    """Somebody who types commands, and answers what they ask."""

    def __init__(self, app: Flask, monkeypatch: pytest.MonkeyPatch) -> None:
        self.app, self._patch = app, monkeypatch
        self.service: Service = app.extensions["voiceapi"]

    def at(self, api: NumberAPI) -> None:
        """Reach this carrier, and the service itself."""
        health = Reply(200, {}, json.dumps(HEALTH).encode(), 0.0)
        object.__setattr__(self.service, "http", api.client(lambda *_, **__: health))

    def knows(self, api: NumberAPI, **changed: str) -> None:
        """The credentials are in the environment."""
        for name, value in {**api.given(), **changed}.items():
            self._patch.setenv(f"{api.provider}_{name}".upper(), value)

    def types(self, *arguments: str, answers: str | None = None) -> Result:
        """Run a command; without answers there is no terminal to ask at."""
        with pytest.MonkeyPatch.context() as patch:
            is_terminal = answers is not None
            patch.setattr(click.testing._NamedTextIOWrapper, "isatty", lambda self: is_terminal, raising=False)
            info = ScriptInfo(create_app=lambda: self.app)
            return CliRunner().invoke(group, ["connect", *arguments], input=answers, obj=info, prog_name="voiceapi")


@pytest.fixture
def terminal(app: Flask, monkeypatch: pytest.MonkeyPatch, talk: Callable[..., Any]) -> Terminal:
    terminal = Terminal(app, monkeypatch)
    with terminal.service.store.session():
        versions.create(terminal.service.vault, 1, "First call", talk())
        preferences.replace(1, {"max_calls_a_day": 100})
    return terminal


def test_three_answers_and_a_call(terminal: Terminal) -> None:
    """Credentials, the number and a yes; the only agent answers; then it calls."""
    api = TwilioNumbers()
    terminal.at(api)
    answers = [api.credentials["account_sid"], api.credentials["auth_token"], OURS, "y", ""]
    done = terminal.types("twilio", answers="\n".join([*answers, ""]))
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[:3] == ["NUMBER        NAME", f"{OURS}  (202) 555-0188", f"{SECOND}  (202) 555-0177"]
    urls = f"{PUBLIC}/api/v1/telephony/inbound"
    retries = "#rc=5&rp=ct,rt,5xx&rt=7000"
    assert lines[3:8] == [
        "What will change:",
        "  Here: store the configuration 'Twilio', the default for outbound calls.",
        f"  Here: add {OURS}, whose calls agent 1 'First call' answers.",
        f"  At Twilio: send the calls to {OURS} to {urls}/ID{retries}; its calls go to "
        "https://demo.twilio.com/welcome/voice/.",
        f"  At Twilio: send the status of these calls to {urls}/ID/status{retries}.",
    ]
    assert lines[8:] == [
        f"public address {PUBLIC}: good",
        "configuration 2 'Twilio' (twilio), default for outbound calls: good",
        "language model of the service (the scripted model): good",
    ]
    assert api.credentials["auth_token"] not in done.output
    assert api.goes_to(OURS)[0] == f"{urls}/2{retries}"


def test_in_a_script(terminal: Terminal) -> None:
    """All is given; what is missing is an error of usage that names it."""
    api = TwilioNumbers()
    terminal.at(api)
    needed = [
        ([], "CARRIER is missing"),
        (["twilio"], "TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN must be set in the environment"),
        (["twilio"], f"--number is missing; it takes one of the account's numbers, such as {OURS}, {SECOND}."),
        (["twilio", "--number", OURS, "--agent", "Nobody"], "There is no agent 'Nobody'; there are 1 'First call'."),
        (["twilio", "--number", OURS], "--yes is missing, and there is no terminal to ask at."),
    ]
    for at, (arguments, reason) in enumerate(needed):
        if at == 2:
            terminal.knows(api)
        refused = terminal.types(*arguments)
        assert (refused.exit_code, reason in refused.stderr) == (2, True), refused.output
        assert api.writes == []
    with terminal.service.store.session():
        assert find(PhoneNumber, address_normalized=OURS) is None
    said = terminal.types("twilio", "--number", "1 202 555 0188", "--agent", "First call", "--dry-run", "--json")
    assert (said.exit_code, api.writes) == (0, [])
    assert list(json.loads(said.stdout)) == ["number", "workflow_id", "changes", "dry_run"]
    done = terminal.types("twilio", "--number", OURS, "--agent", "1", "--yes", "--json")
    assert done.exit_code == 0, done.output
    shown = json.loads(done.stdout)
    assert len(shown["changes"]) == 4
    kept = ("number", "workflow_id", "dry_run", "telephony_configuration_id", "notes", "workflow_run_id")
    assert {name: shown[name] for name in kept} == {
        "number": OURS,
        "workflow_id": 1,
        "dry_run": False,
        "telephony_configuration_id": 2,
        "notes": [],
        "workflow_run_id": None,
    }
    assert [each["wrong"] for each in shown["findings"]] == [None] * 3
    again = terminal.types("twilio", "--number", OURS)
    assert (again.exit_code, again.stdout.splitlines()[0]) == (0, f"{OURS} is connected already.")
    assert len(api.writes) == 1


def test_wrong_credentials_and_what_doctor_finds(terminal: Terminal) -> None:
    api = TwilioNumbers()
    terminal.at(api)
    terminal.knows(api, auth_token="0" * 32)
    refused = terminal.types("twilio", "--number", OURS, "--yes")
    assert (refused.exit_code, refused.stderr) == (1, "Error: Twilio answered 401: Authenticate (code 20003).\n")
    terminal.knows(api)
    terminal.service.reach_at("https://other.example.org")
    found = terminal.types("twilio", "--number", OURS, "--yes")
    assert found.exit_code == 1
    assert "public address https://other.example.org: Something else than this service answers there." in found.stdout


def test_undone(terminal: Terminal) -> None:
    api = TwilioNumbers()
    terminal.at(api)
    terminal.knows(api)
    before = api.state()
    assert terminal.types("--undo").stderr == "Error: No number is connected.\n"
    for number in (OURS, SECOND):
        assert terminal.types("twilio", "--number", number, "--yes").exit_code == 0
    refused = terminal.types("--undo", "--yes")
    assert (refused.exit_code, OURS in refused.stderr) == (2, True)
    said = terminal.types("--undo", "--number", OURS, "--dry-run")
    assert (said.exit_code, said.stdout) == (
        0,
        "What will be put back:\n"
        f"  At Twilio: calls to {OURS} go to https://demo.twilio.com/welcome/voice/ again.\n"
        f"  Here: {OURS} is removed.\n",
    )
    assert terminal.types("--undo", "--number", OURS).exit_code == 2
    assert terminal.types("--undo", "--number", OURS, "--yes", "--json").exit_code == 0
    chosen = terminal.types("--undo", answers="y\n")
    assert (chosen.exit_code, api.state()) == (0, before)
    assert terminal.types("--undo", "--number", OURS).stderr == "Error: No such number is connected.\n"


def test_undone_after_somebody_changed_it(terminal: Terminal) -> None:
    api = TwilioNumbers()
    terminal.at(api)
    terminal.knows(api)
    terminal.types("twilio", "--number", OURS, "--yes")
    api.point(OURS, ELSEWHERE)
    undone = terminal.types("--undo", "--yes", "--json")
    assert undone.exit_code == 1
    assert json.loads(undone.stdout)["left"] == [
        f"At Twilio, {OURS} was changed since, which stays: its calls go to {ELSEWHERE}."
    ]


@pytest.mark.parametrize("api_class", NUMBER_APIS, ids=[each.provider for each in NUMBER_APIS])
def test_what_each_carrier_needs_from_the_environment(terminal: Terminal, api_class: type[NumberAPI]) -> None:
    """The keys that no API gives are among it; the rest is made or found."""
    api = api_class()
    terminal.at(api)
    terminal.knows(api)
    done = terminal.types(api.provider, "--number", OURS, "--yes")
    assert done.exit_code == 0, done.output
    assert api.goes_to(OURS)[0].startswith(f"{PUBLIC}/api/v1/telephony/inbound/2")


def test_optional_keys_are_asked_for_at_a_terminal(terminal: Terminal) -> None:
    api = TelnyxNumbers()
    terminal.at(api)
    answers = ["KEY01", "acc-1", "", OURS, "y", ""]
    done = terminal.types("telnyx", answers="\n".join([*answers, ""]))
    assert done.exit_code == 1  # without the key
    assert "Without webhook_public_key calls to its numbers are refused" in done.stdout
    for label in ("API key", "Account SID (empty: none)", "Webhook public key (empty: none)"):
        assert f"{label}: " in done.stderr


@pytest.mark.parametrize(
    ("carrier", "page"), [("vobiz", "numbers?search=12025550188"), ("cloudonix", "domains/d.cloudonix.net")]
)
def test_carriers_whose_urls_are_entered_by_hand(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, carrier: str, page: str
) -> None:
    asked = []

    class Desk(NumberAPI):
        def send(self, method: str, url: str, **_: Any) -> Reply:
            asked.append((method, url.rpartition(page)[1]))
            return self.reply(200, {"items": [{"e164": OURS}]})

    terminal.at(Desk())
    given = {"vobiz": {"auth_id": "MA1", "auth_token": "t"}, "cloudonix": {"bearer_token": "k", "domain_id": "d"}}
    for name, value in given[carrier].items():
        monkeypatch.setenv(f"{carrier}_{name}".upper(), value)
    done = terminal.types(carrier, "--number", OURS, "--yes")
    assert asked[0] == ("GET", page)
    assert "Left to do at the carrier:" in done.stdout
    url = f"{PUBLIC}/api/v1/telephony/inbound/2"
    assert url in done.stdout
    assert f"{url}/status" in done.stdout
    assert {method for method, _ in asked} == {"GET"}
    assert terminal.types("--undo", "--yes").exit_code == 0
    with terminal.service.store.session():
        assert find(PhoneNumber, address_normalized=OURS) is None


def test_a_call_to_ones_own_telephone(terminal: Terminal) -> None:
    """It is placed through the number that was connected; the service that runs carries it out."""
    api = TwilioNumbers()
    terminal.at(api)
    terminal.knows(api)
    done = terminal.types("twilio", "--number", OURS, "--yes", "--call", MINE, "--json")
    assert done.exit_code == 0, done.output
    with terminal.service.store.session():
        run = Run.get_by_id(json.loads(done.stdout)["workflow_run_id"])
    assert (run.called_number, run.caller_number, run.workflow_id) == (MINE, OURS, 1)
    assert api.writes[-1].endswith("/Calls.json")
