from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from voiceapi.store.telephony import PhoneNumber
from voiceapi.store.workflows import Workflow

CONFIGS = "/api/v1/organizations/telephony-configs"
NO_CONFIGURATION = {"detail": "Telephony configuration not found"}
NO_NUMBER = {"detail": "Phone number not found"}
NO_WORKFLOW = {"detail": "Workflow not found"}
NO_TRUNK = {"detail": "Trunk not found on this telephony configuration"}
SYNCED = {"ok": True, "message": None}
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z")


def configuration(client: FlaskClient, name: str = "Main", account: str = "ACone") -> int:
    config = {"provider": "twilio", "account_sid": account, "auth_token": "t0ken"}
    answer = client.post(CONFIGS, json={"name": name, "config": config})
    assert answer.status_code == 200
    return int(answer.get_json()["id"])


def numbers(config: int) -> str:
    return f"{CONFIGS}/{config}/phone-numbers"


def added(client: FlaskClient, config: int, address: str = "+12025550123", **more: Any) -> dict[str, Any]:
    answer = client.post(numbers(config), json={"address": address, **more})
    assert answer.status_code == 200, answer.text
    return dict(answer.get_json())


def listed(client: FlaskClient, config: int) -> list[dict[str, Any]]:
    return list(client.get(numbers(config)).get_json()["phone_numbers"])


@pytest.fixture
def config(client: FlaskClient) -> int:
    return configuration(client)


@pytest.fixture
def workflow(app: Flask) -> int:
    with app.extensions["voiceapi"].store.session():
        return int(Workflow.create(organization=1, workflow_uuid="w-1", name="Reception").id)


def test_a_new_number(client: FlaskClient, config: int) -> None:
    number = added(client, config, "(202) 555-0123", country_code="US", label="Front desk", extra_metadata={"a": [1]})
    assert number == {
        "id": 2,
        "telephony_configuration_id": config,
        "address": "(202) 555-0123",
        "address_normalized": "+12025550123",
        "address_type": "pstn",
        "country_code": "US",
        "label": "Front desk",
        "inbound_workflow_id": None,
        "inbound_workflow_name": None,
        "telephony_trunk_id": None,
        "is_active": True,
        "is_default_caller_id": False,
        "extra_metadata": {"a": [1]},
        "created_at": number["created_at"],
        "updated_at": number["updated_at"],
        "provider_sync": None,
    }
    assert INSTANT.fullmatch(number["created_at"])
    assert client.get(f"{numbers(config)}/{number['id']}").get_json() == number
    assert listed(client, config) == [number]


@pytest.mark.parametrize(
    ("given", "normalized", "kind"),
    [
        ({"address": "+1 202-555-0123"}, "+12025550123", "pstn"),
        ({"address": "030 1234567", "country_code": "DE"}, "+49301234567", "pstn"),
        ({"address": "SIP:Desk@PBX.Example.org:5060"}, "sip:Desk@pbx.example.org", "sip_uri"),
        ({"address": "Desk-7"}, "desk-7", "sip_extension"),
    ],
)
def test_what_an_address_becomes(
    client: FlaskClient, config: int, given: dict[str, Any], normalized: str, kind: str
) -> None:
    number = added(client, config, **given)
    assert (number["address"], number["address_normalized"], number["address_type"]) == (
        given["address"],
        normalized,
        kind,
    )


def test_the_workflow_that_answers(client: FlaskClient, config: int, workflow: int) -> None:
    number = added(client, config, inbound_workflow_id=workflow)
    assert (number["inbound_workflow_id"], number["inbound_workflow_name"], number["provider_sync"]) == (
        workflow,
        None,
        SYNCED,
    )
    assert listed(client, config) == [{**number, "inbound_workflow_name": "Reception", "provider_sync": None}]
    url = f"{numbers(config)}/{number['id']}"

    def put(**body: Any) -> Any:
        answer = client.put(url, json=body)
        assert answer.status_code == 200
        assert answer.get_json()["provider_sync"] == SYNCED
        return answer.get_json()["inbound_workflow_id"]

    assert put(inbound_workflow_id=None) == workflow
    assert put(clear_inbound_workflow=True, inbound_workflow_id=workflow) == workflow
    assert put(clear_inbound_workflow=True) is None
    assert put(clear_trunk=True) is None
    assert put(inbound_workflow_id=workflow) == workflow


def test_a_change_keeps_what_it_does_not_name(client: FlaskClient, config: int) -> None:
    number = added(client, config, label="Front desk", country_code="US", extra_metadata={"a": 1})
    url = f"{numbers(config)}/{number['id']}"
    nothing = client.put(url, json={"label": None, "is_active": None, "country_code": None, "extra_metadata": None})
    assert nothing.get_json() == {
        **number,
        "updated_at": nothing.get_json()["updated_at"],
        "provider_sync": SYNCED,
    }
    changed = client.put(
        url, json={"label": "Back", "is_active": False, "country_code": "CA", "extra_metadata": {}}
    ).get_json()
    assert changed == {
        **number,
        "label": "Back",
        "is_active": False,
        "country_code": "CA",
        "extra_metadata": {},
        "updated_at": changed["updated_at"],
        "provider_sync": SYNCED,
    }
    assert number["updated_at"] < nothing.get_json()["updated_at"] < changed["updated_at"]


def test_an_address_is_not_changed(client: FlaskClient, config: int) -> None:
    number = added(client, config)
    answer = client.put(f"{numbers(config)}/{number['id']}", json={"address": "+12025550124"})
    assert answer.get_json()["address"] == "+12025550123"
    assert answer.headers["Warning"] == '199 voiceapi "fields not known here and passed over: address"'


def test_removing_a_number_leaves_no_default(client: FlaskClient, config: int) -> None:
    first = added(client, config, is_default_caller_id=True)
    added(client, config, "+12025550124")
    answer = client.delete(f"{numbers(config)}/{first['id']}")
    assert (answer.status_code, answer.get_json()) == (
        200,
        {"message": "Phone number deleted", "provider_sync": SYNCED},
    )
    assert [(number["address"], number["is_default_caller_id"]) for number in listed(client, config)] == [
        ("+12025550124", False)
    ]


def test_set_default_caller(client: FlaskClient, config: int) -> None:
    first, second = added(client, config, is_default_caller_id=True), added(client, config, "+12025550124")
    assert first["is_default_caller_id"] is True
    url = f"{numbers(config)}/{second['id']}/set-default-caller"
    before = second["updated_at"]
    for _ in range(2):
        answer = client.post(url)
        assert (answer.status_code, answer.get_json()) == (
            200,
            {**second, "is_default_caller_id": True, "updated_at": answer.get_json()["updated_at"]},
        )
        assert answer.get_json()["updated_at"] > before
        before = answer.get_json()["updated_at"]
        assert [number["is_default_caller_id"] for number in listed(client, config)] == [False, True]


def test_an_inactive_number_may_be_the_default_and_stays_it(client: FlaskClient, config: int) -> None:
    number = added(client, config, is_active=False)
    url = f"{numbers(config)}/{number['id']}"
    made = client.post(f"{url}/set-default-caller").get_json()
    assert (made["is_active"], made["is_default_caller_id"]) == (False, True)
    for active in (True, False):
        changed = client.put(url, json={"is_active": active}).get_json()
        assert (changed["is_active"], changed["is_default_caller_id"]) == (active, True)


def test_a_new_default_takes_the_place_of_the_old_one(client: FlaskClient, config: int) -> None:
    added(client, config, is_default_caller_id=True)
    added(client, config, "+12025550124", is_default_caller_id=True)
    assert [number["is_default_caller_id"] for number in listed(client, config)] == [False, True]


def test_defaults_of_two_configurations_do_not_meet(client: FlaskClient, config: int) -> None:
    other = configuration(client, "Other", "ACtwo")
    added(client, config, is_default_caller_id=True)
    added(client, other, "+12025550124", is_default_caller_id=True)
    assert [number["is_default_caller_id"] for of in (config, other) for number in listed(client, of)] == [True, True]


def test_eight_clients_at_once(app: Flask, client: FlaskClient, config: int) -> None:
    ids = [added(client, config, f"+1202555012{index}")["id"] for index in range(2)]
    key = client.environ_base["HTTP_X_API_KEY"]

    def alternate(worker: int) -> set[int]:
        own = app.test_client()
        urls = [f"{numbers(config)}/{number}/set-default-caller" for number in ids]
        return {own.post(urls[(worker + turn) % 2], headers={"X-API-Key": key}).status_code for turn in range(12)}

    with ThreadPoolExecutor(8) as pool:
        assert set().union(*pool.map(alternate, range(8))) == {200}
    assert sum(number["is_default_caller_id"] for number in listed(client, config)) == 1


def test_a_number_leads_to_one_place(client: FlaskClient, stranger: FlaskClient, config: int) -> None:
    more = (
        "Inbound calls cannot be uniquely routed when the same number is configured against the same provider "
        "account in more than one place."
    )
    added(client, config)
    same = configuration(client, "Same account")
    theirs = configuration(stranger, "Theirs")
    named = f"Phone number +12025550123 is already registered under telephony configuration 'Main'. {more}"
    foreign = (
        "Phone number +12025550123 is already registered under another organization using the same provider account. "
        + more
    )
    for who, where, detail in ((client, config, named), (client, same, named), (stranger, theirs, foreign)):
        answer = who.post(numbers(where), json={"address": "+1 (202) 555-0123"})
        assert (answer.status_code, answer.get_json()) == (409, {"detail": detail})


def test_an_address_is_the_organizations_once(client: FlaskClient, stranger: FlaskClient, config: int) -> None:
    added(client, config)
    other = configuration(client, "Other account", "ACtwo")
    answer = client.post(numbers(other), json={"address": "+12025550123"})
    assert (answer.status_code, answer.get_json()) == (
        409,
        {"detail": "A phone number with this address already exists in the org."},
    )
    added(stranger, configuration(stranger, "Third account", "ACthree"))


@pytest.mark.usefixtures("db")
def test_a_number_that_is_refused_changes_nothing(client: FlaskClient, config: int) -> None:
    first = added(client, config, is_default_caller_id=True)
    answer = client.post(numbers(config), json={"address": "+12025550123", "is_default_caller_id": True})
    assert answer.status_code == 409
    assert listed(client, config) == [first]
    assert PhoneNumber.select().count() == 2


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        ({"address": "1", "inbound_workflow_id": 99, "telephony_trunk_id": 1}, NO_WORKFLOW),
        ({"address": "1", "telephony_trunk_id": 1}, NO_TRUNK),
    ],
)
def test_what_a_number_refers_to_exists(
    client: FlaskClient, config: int, body: dict[str, Any], answer: dict[str, str]
) -> None:
    number = added(client, config)
    created = client.post(numbers(config), json=body)
    changed = client.put(f"{numbers(config)}/{number['id']}", json={**body, "label": "lost"})
    for found in (created, changed):
        assert (found.status_code, found.get_json()) == (404, answer)
    assert listed(client, config) == [number]


def test_a_workflow_of_others_answers_no_calls(client: FlaskClient, stranger: FlaskClient, workflow: int) -> None:
    theirs = configuration(stranger, "Theirs")
    answer = stranger.post(numbers(theirs), json={"address": "+12025550125", "inbound_workflow_id": workflow})
    assert (answer.status_code, answer.get_json()) == (404, NO_WORKFLOW)


ROUTES = [
    ("get", "", None),
    ("post", "", {"address": "+12025550177"}),
    ("get", "/{number}", None),
    ("put", "/{number}", {"label": "x"}),
    ("delete", "/{number}", None),
    ("post", "/{number}/set-default-caller", None),
]
OF_A_NUMBER = ROUTES[2:]


@pytest.mark.parametrize(("method", "path", "body"), ROUTES)
def test_configurations_of_others_and_missing_ones_are_404(
    client: FlaskClient, stranger: FlaskClient, config: int, method: str, path: str, body: Any
) -> None:
    number = added(client, config)
    for missing in (config, 999_999, 2**62):
        url = numbers(missing) + path.format(number=number["id"])
        answer = stranger.open(url, method=method, json=body)
        assert (answer.status_code, answer.get_json()) == (404, NO_CONFIGURATION)
    assert listed(client, config) == [number]


@pytest.mark.parametrize(("method", "path", "body"), OF_A_NUMBER)
def test_numbers_elsewhere_and_missing_ones_are_404(
    client: FlaskClient, config: int, method: str, path: str, body: Any
) -> None:
    number = added(client, config)
    other = configuration(client, "Other", "ACtwo")
    for where, missing in ((other, number["id"]), (config, 999_999), (config, 2**62), (config, -1)):
        answer = client.open(numbers(where) + path.format(number=missing), method=method, json=body)
        assert (answer.status_code, answer.get_json()) == (404, NO_NUMBER)
    assert listed(client, config) == [number]


@pytest.mark.parametrize(("method", "path", "body"), ROUTES)
def test_without_a_key(bare: FlaskClient, method: str, path: str, body: Any) -> None:
    answer = bare.open(numbers(1) + path.format(number="abc"), method=method, json=body)
    assert (answer.status_code, answer.get_json()) == (401, {"detail": "Authorization header required"})


@pytest.mark.parametrize(("method", "path", "body"), OF_A_NUMBER)
def test_both_ids_are_whole_numbers(client: FlaskClient, method: str, path: str, body: Any) -> None:
    answer = client.open(f"{CONFIGS}/abc/phone-numbers{path.format(number='x')}", method=method, json=body)
    refused = [
        {
            "loc": ["path", name],
            "msg": "Input should be a valid integer, unable to parse string as an integer",
            "type": "int_parsing",
        }
        for name in ("config_id", "phone_number_id")
    ]
    assert answer.status_code == 422
    assert sorted(answer.get_json()["detail"], key=str) == refused


def item(loc: list[str], msg: str, type: str) -> dict[str, Any]:
    return {"loc": ["body", *loc], "msg": msg, "type": type}


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ({}, item(["address"], "Field required", "missing")),
        ({"address": ""}, item(["address"], "String should have at least 1 character", "string_too_short")),
        (
            {"address": "1" * 256},
            item(["address"], "String should have at most 255 characters", "string_too_long"),
        ),
        (
            {"address": "+1", "country_code": "USA"},
            item(["country_code"], "String should have at most 2 characters", "string_too_long"),
        ),
        (
            {"address": "+1", "country_code": "U"},
            item(["country_code"], "String should have at least 2 characters", "string_too_short"),
        ),
        (
            {"address": "+1", "label": "l" * 65},
            item(["label"], "String should have at most 64 characters", "string_too_long"),
        ),
        (
            {"address": "+1", "extra_metadata": []},
            item(["extra_metadata"], "Input should be a valid dictionary", "dict_type"),
        ),
        (
            {"address": "+1", "extra_metadata": None},
            item(["extra_metadata"], "Input should be a valid dictionary", "dict_type"),
        ),
        (
            {"address": "(202) 555-0123"},
            item(
                [],
                "Value error, PSTN addresses without a leading '+' need a country_code (ISO-2, e.g. 'US' or 'IN') "
                "to say which country they belong to",
                "value_error",
            ),
        ),
    ],
)
def test_what_is_refused(client: FlaskClient, config: int, body: dict[str, Any], found: dict[str, Any]) -> None:
    answer = client.post(numbers(config), json=body)
    assert (answer.status_code, answer.get_json()) == (422, {"detail": [found]})
    assert listed(client, config) == []
