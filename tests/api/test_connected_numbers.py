"""Connecting numbers by the API, as the console does."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient
from number_apis import MESSAGES, OURS, SECOND, TelnyxNumbers, TwilioNumbers

from voiceapi.organizations import api_keys
from voiceapi.service import Service
from voiceapi.store.telephony import TelephonyConfiguration

URL = "/api/v1/organizations/connected-numbers"
PUBLIC = "https://voice.example.org"


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"VOICEAPI_PUBLIC_URL": PUBLIC}


@pytest.fixture
def twilio(service: Service) -> TwilioNumbers:
    api = TwilioNumbers()
    object.__setattr__(service, "http", api.client())
    return api


def body(twilio: TwilioNumbers, agent: int, **more: Any) -> dict[str, Any]:
    return {"provider": "twilio", "credentials": twilio.given(), "number": OURS, "workflow_id": agent, **more}


def test_listed_connected_and_undone(client: FlaskClient, twilio: TwilioNumbers, workflow: Callable[..., Any]) -> None:
    agent = workflow()["id"]
    before = twilio.state()
    account = {"provider": "twilio", "credentials": twilio.given()}
    assert client.post(f"{URL}/available", json=account).get_json() == {
        "telephony_configuration_id": None,
        "numbers": [
            {"number": OURS, "label": "(202) 555-0188", "obstacle": ""},
            {"number": SECOND, "label": "(202) 555-0177", "obstacle": ""},
            {"number": MESSAGES, "label": "(202) 555-0166", "obstacle": "it takes messages only"},
        ],
    }
    planned = client.post(URL, json=body(twilio, agent, dry_run=True)).get_json()
    assert (len(planned["changes"]), planned["telephony_configuration_id"], twilio.writes) == (4, None, [])
    done = client.post(URL, json=body(twilio, agent, name="Front desk")).get_json()
    assert done == {
        "changes": [planned["changes"][0].replace("'Twilio'", "'Front desk'"), *planned["changes"][1:]],
        "notes": [],
        "telephony_configuration_id": 2,
        "phone_number_id": 2,
    }
    assert twilio.goes_to(OURS)[0].startswith(f"{PUBLIC}/api/v1/telephony/inbound/2#")
    listed = client.get(URL).get_json()
    assert listed["connected_numbers"] == [{"telephony_configuration_id": 2, "number": OURS}]
    assert listed["problem"] is None
    carriers = {each["provider"]: each for each in listed["carriers"]}
    assert carriers["vonage"]["credentials"] == ["api_key", "api_secret", "signature_secret"]
    assert [name for name, each in carriers.items() if not each["sets_urls"]] == ["cloudonix", "vobiz"]
    # Stored by then, so nothing has to be entered again.
    again = client.post(URL, json=body(twilio, agent, credentials={})).get_json()
    assert (again["changes"], again["telephony_configuration_id"]) == ([], 2)
    which = {"telephony_configuration_id": 2, "number": OURS}
    asked = client.post(f"{URL}/undo", json={**which, "dry_run": True}).get_json()
    assert twilio.goes_to(OURS)[0].startswith(PUBLIC)
    assert client.post(f"{URL}/undo", json=which).get_json() == asked
    assert (twilio.state(), asked["left"]) == (before, [])
    assert client.get(URL).get_json()["connected_numbers"] == []


def test_what_is_refused(client: FlaskClient, twilio: TwilioNumbers, workflow: Callable[..., Any]) -> None:
    agent = workflow()["id"]

    def refused(**changed: Any) -> tuple[int, Any]:
        answer = client.post(URL, json=body(twilio, agent, **changed))
        detail = answer.get_json()["detail"]
        return answer.status_code, detail if isinstance(detail, str) else [each["loc"] for each in detail]

    assert refused(provider="simulator") == (422, [["body", "provider"]])
    assert refused(credentials={}) == (
        422,
        [["body", "credentials", "account_sid"], ["body", "credentials", "auth_token"]],
    )
    assert refused(credentials={"password": "x"}) == (422, [["body", "credentials", "password"]])
    assert refused(credentials={"account_sid": 1, "auth_token": "x"}) == (422, [["body", "credentials", "account_sid"]])
    assert refused(credentials={**twilio.given(), "auth_token": "x" * 32}) == (
        400,
        "Twilio answered 401: Authenticate (code 20003).",
    )
    assert refused(number="+12025550100")[0] == 400
    assert refused(workflow_id=99) == (404, "Workflow not found")
    assert refused(telephony_configuration_id=99) == (404, "Telephony configuration not found")
    assert refused(telephony_configuration_id=1)[0] == 400
    client.put(f"/api/v1/workflow/{agent}/status", json={"status": "archived"})
    assert refused() == (400, "The agent 'Agent' is archived.")
    answer = client.post(f"{URL}/undo", json={"telephony_configuration_id": 1, "number": OURS})
    assert (answer.status_code, "isn't connected" in answer.get_json()["detail"]) == (400, True)
    assert twilio.writes == []


def test_a_number_of_another_configuration(
    client: FlaskClient, twilio: TwilioNumbers, workflow: Callable[..., Any]
) -> None:
    agent = workflow()["id"]
    client.post("/api/v1/organizations/telephony-configs/1/phone-numbers", json={"address": OURS})
    answer = client.post(URL, json=body(twilio, agent))
    assert (answer.status_code, answer.get_json()["detail"]) == (
        409,
        f"{OURS} is in configuration 1 'Simulator' (simulator) already. Remove it there, or connect it with that "
        "configuration.",
    )


def test_other_organizations_connections_are_not_seen(
    client: FlaskClient, bare: FlaskClient, twilio: TwilioNumbers, service: Service, workflow: Callable[..., Any]
) -> None:
    client.post(URL, json=body(twilio, workflow()["id"]))
    with service.store.session():
        owner = api_keys.get_or_create_organization(service, "other")
        key = {"X-API-Key": api_keys.create(owner.id, "test")[1]}
    assert bare.get(URL, headers=key).get_json()["connected_numbers"] == []
    undo = bare.post(f"{URL}/undo", json={"telephony_configuration_id": 2, "number": OURS}, headers=key)
    assert undo.status_code == 404
    # The same account may be connected by both, but a number has one route.
    made = bare.post(
        "/api/v1/workflow/create/definition", json={"name": "X", "workflow_definition": {}}, headers=key
    ).get_json()
    assert bare.post(URL, json=body(twilio, made["id"]), headers=key).status_code == 422  # no agent that can be run


def test_telnyx_applications_that_other_numbers_have(
    client: FlaskClient, service: Service, workflow: Callable[..., Any]
) -> None:
    """Webhooks that name another application than the configuration's are refused, so it isn't replaced for one number.

    What only the portal can do is said: the profile of outbound calls, and the end of forwarding.
    """
    api = TelnyxNumbers()
    object.__setattr__(service, "http", api.client())
    agent = workflow()["id"]
    config = {"provider": "telnyx", **api.given(), "connection_id": "77"}
    made = client.post("/api/v1/organizations/telephony-configs", json={"name": "Main", "config": config}).get_json()
    numbers = f"/api/v1/organizations/telephony-configs/{made['id']}/phone-numbers"
    client.post(numbers, json={"address": SECOND})
    wanted = {"provider": "telnyx", "credentials": api.given(), "number": OURS, "workflow_id": agent}
    refused = client.post(URL, json=wanted)
    assert refused.status_code == 400
    assert "has other numbers, whose calls come through application 77" in refused.get_json()["detail"]
    client.delete(f"{numbers}/2")
    api.profiles = ["a", "b"]
    api.forwarding = {"call_forwarding_enabled": True, "forwarding_type": "always", "forwards_to": "+12025550111"}
    done = client.post(URL, json=wanted).get_json()
    assert "Here: place calls through that application in place of 77." in done["changes"]
    assert done["notes"] == [
        f"Telnyx forwards all calls to {OURS} to +12025550111: switch call forwarding off in the portal.",
        "TeXML application 101 has no outbound voice profile, without which Telnyx places no calls: give it one in the "
        "portal.",
    ]
    with service.store.session():
        stored = TelephonyConfiguration.get_by_id(made["id"])
        assert stored.account_id == "101"


def test_a_campaign_keeps_the_configuration(
    client: FlaskClient, twilio: TwilioNumbers, workflow: Callable[..., Any]
) -> None:
    agent = workflow()["id"]
    connected = client.post(URL, json=body(twilio, agent)).get_json()["telephony_configuration_id"]
    listed = {"file": (io.BytesIO(b"phone_number\n+12025550123\n"), "x.csv")}
    form = {"name": "x", "workflow_id": str(agent), "telephony_configuration_id": str(connected), **listed}
    assert client.post("/api/v1/campaign/create/csv", data=form).status_code == 200
    which = {"telephony_configuration_id": connected, "number": OURS}
    asked = client.post(f"{URL}/undo", json={**which, "dry_run": True}).get_json()
    undone = client.post(f"{URL}/undo", json=which).get_json()
    assert asked == undone
    assert undone["left"] == [
        "Here: Telephony configuration 2 is referenced by one or more campaigns and cannot be deleted."
    ]
