"""A number is read alike wherever somebody writes one to be called: six doors, one table of spellings."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from flask.testing import FlaskClient

from voiceapi.background.pausing_jobs import PausingJobs
from voiceapi.campaigns import do_not_call
from voiceapi.campaigns.dialer import list_import
from voiceapi.engine.actions import RunTool
from voiceapi.errors import InvalidInput
from voiceapi.service import Service
from voiceapi.store.database import write
from voiceapi.store.runs import Run
from voiceapi.tools import catalog

API = "/api/v1"
SIMULATOR = f"{API}/organizations/telephony-configs/1"

US, ROME, BERLIN, LONDON = "+12025550123", "+390612345678", "+4930901820", "+442079460018"
# What a text means while the configuration names no country, the US, and Germany; None is refused.
SPELLINGS: Mapping[str, tuple[str | None, str | None, str | None]] = {
    # with + or 00 and the country code
    US: (US, US, US),
    "+1 202 555 0123": (US, US, US),
    "+1 (202) 555-0123": (US, US, US),
    "(+1) 202.555.0123": (US, US, US),
    "+1/202/5550123": (US, US, US),
    " +12025550123\n": (US, US, US),
    "\r\n+1 202 555 0123\t": (US, US, US),
    "\u202a+1\xa0202\xa0555\xa00123\u202c": (US, US, US),
    "001 202 555 0123": (US, US, US),
    "0012025550123": (US, US, US),
    "+49 (0)30 901820": (BERLIN, BERLIN, BERLIN),
    "0049 30 901820": (BERLIN, BERLIN, BERLIN),
    "+39 06 1234 5678": (ROME, ROME, ROME),
    "+44 (0)20 7946 0018": (LONDON, LONDON, LONDON),
    # national numbers
    "2025550123": (None, US, "+492025550123"),
    "202-555-0123": (None, US, "+492025550123"),
    "(202) 555-0123": (None, US, "+492025550123"),
    "202.555.0123": (None, US, "+492025550123"),
    " 202 555 0123\n": (None, US, "+492025550123"),
    "12025550123": (None, US, "+4912025550123"),
    "1-202-555-0123": (None, US, "+4912025550123"),
    "030 901820": (None, None, BERLIN),
    "030/90-18-20": (None, None, BERLIN),
    # local numbers, and those of other countries behind the same code
    "5551234": (None, None, "+495551234"),
    "+1 555 1234": (None, None, None),
    "242-555-0123": (None, None, "+492425550123"),
    "911": (None, None, None),
    # digits that may begin with a country code, or are dialed abroad
    "4930901820": (None, "+14930901820", None),
    "4915112345678": (None, None, None),
    "011 44 20 7946 0018": (None, None, None),
    "00 202 555": (None, None, None),
    # further text
    "+12025550123;phone-context=+44": (None, None, None),
    "2025550123;ext=5": (None, None, None),
    "202 555 0123 ext. 5": (None, None, None),
    "tel:+12025550123": (None, None, None),
    "1-800-FLOWERS": (None, None, None),
    "+1202555\n0123": (None, None, None),
    "٢٠٢٥٥٥٠١٢٣": (None, None, None),
    "++12025550123": (None, None, None),
    "SIP:desk@PBX.example.org:5060": ("sip:desk@pbx.example.org",) * 3,
}
COUNTRIES = (None, "US", "DE")


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"VOICEAPI_CONCURRENT_CALLS": 1000}


@pytest.fixture(autouse=True)
def silent_phones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PausingJobs, "start", lambda *_args, **_options: None)


@pytest.fixture
def doors(
    client: FlaskClient, workflow: Callable[..., Any], service: Service, db: None
) -> Callable[[str], Mapping[str, dict[str, str | None]]]:
    """What each door makes of each spelling while the simulator's configuration names a country."""
    made = workflow(path="line")
    config = {"destination": "{{desk}}", "messageType": "none"}
    human = {"name": "Human", "definition": {"type": "transfer_call", "config": config}}
    tool = client.post(f"{API}/tools/", json=human).get_json()["tool_uuid"]

    def call(url: str, **body: Any) -> str | None:
        answer = client.post(f"{API}{url}", json=body)
        if answer.status_code == 200:
            run = Run.get_by_id(answer.get_json()["workflow_run_id"])
            context = run.initial_context
            assert (context["phone_number"], context["called_number"]) == (run.called_number,) * 2
            return str(run.called_number)
        assert (answer.status_code, answer.get_json()["detail"][0]["loc"]) == (422, ["body", "phone_number"])
        return None

    def transfer(text: str) -> str | None:
        asked = RunTool(0.0, 1, "1", "c", "human", tool, {}, {"desk": text})
        returned = catalog.run(1, asked, catalog.context_for(service, 1, run=Run(telephony_configuration_id=1)))
        if returned.result is not None:
            assert returned.result["reason"] == "invalid_destination"
        return returned.transfer_to or None

    def list_and_remove(text: str) -> str | None:
        url = f"{API}/do-not-call"
        answer = client.post(url, json={"phone_numbers": [text]})
        if answer.status_code == 422:
            assert answer.get_json()["detail"][0]["loc"] == ["body", "phone_numbers", 0]
            return None
        assert answer.get_json() == {"added": 1, "already_listed": 0}
        [number] = [entry["phone_number"] for entry in client.get(url).get_json()["phone_numbers"]]
        assert client.delete(f"{url}/{number}").status_code == 200
        return str(number)

    def forgotten(text: str) -> str | None:
        try:
            return do_not_call.read(text, 1)
        except InvalidInput:
            return None

    def campaign() -> dict[str, str | None]:
        written = io.StringIO()
        csv.writer(written).writerows([["phone_number"], *([text] for text in SPELLINGS)])
        wanted = {
            "name": "C", "workflow_id": made["id"], "file": (io.BytesIO(written.getvalue().encode()), "c.csv"),
        }  # fmt: skip
        answer = client.post(f"{API}/campaign/create/csv", data=wanted)
        assert answer.status_code == 200, answer.text
        id = answer.get_json()["id"]
        client.post(f"{API}/campaign/{id}/start")
        with write():
            list_import.take(id)
        list_import.read_list(service, id)
        listed = client.get(f"{API}/campaign/{id}/contacts", query_string={"limit": 100}).get_json()["contacts"]
        contacts = sorted(listed, key=lambda contact: contact["row"])
        # What is written in another way in an earlier row is skipped, too, but it was read.
        numbers = {contact["phone_number"] for contact in contacts if contact["state"] != "skipped"}
        read = [number if (number := contact["phone_number"]) in numbers else None for contact in contacts]
        return dict(zip(SPELLINGS, read, strict=True))

    def ask(country: str | None) -> Mapping[str, dict[str, str | None]]:
        body = {"config": {"provider": "simulator", "country": country}}
        assert client.put(SIMULATOR, json=body).get_json()["country"] == country
        one_by_one: Mapping[str, Callable[[str], str | None]] = {
            "trigger": lambda text: call("/public/agent/line", phone_number=text),
            "initiate-call": lambda text: call("/telephony/initiate-call", workflow_id=made["id"], phone_number=text),
            "transfer": transfer,
            "do-not-call": list_and_remove,
            "forget": forgotten,
        }
        return {
            **{door: {text: read(text) for text in SPELLINGS} for door, read in one_by_one.items()},
            "campaign": campaign(),
        }

    return ask


def test_every_door_reads_a_number_alike(doors: Callable[[str | None], Mapping[str, dict[str, str | None]]]) -> None:
    assert len(SPELLINGS) == 40
    for place, country in enumerate(COUNTRIES):
        expected = {text: meanings[place] for text, meanings in SPELLINGS.items()}
        found = doors(country)
        assert len(found) == 6
        for door, read in found.items():
            assert read == expected, (country, door)
