from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from voiceapi.calls import relays
from voiceapi.errors import NotPossible
from voiceapi.security import Vault
from voiceapi.service import Service
from voiceapi.store.campaigns import Campaign
from voiceapi.store.fields import now
from voiceapi.store.organizations import Organization
from voiceapi.store.telephony import PhoneNumber, TelephonyConfiguration
from voiceapi.store.workflows import Workflow
from voiceapi.telephony import providers
from voiceapi.telephony.configurations import NotConfigured, caller_number, credentials, resolve_outbound

CONFIGS = "/api/v1/organizations/telephony-configs"
NOT_FOUND = {"detail": "Telephony configuration not found"}
TWILIO = {"provider": "twilio", "account_sid": "AC0123456789abcdef", "auth_token": "secret-token-9876"}
SIMULATOR = {"provider": "simulator"}


def put_up(client: FlaskClient, name: str = "Main", config: Any = None, **more: Any) -> dict[str, Any]:
    answer = client.post(CONFIGS, json={"name": name, "config": config or TWILIO, **more})
    assert answer.status_code == 200, answer.text
    return dict(answer.get_json())


def listed(client: FlaskClient) -> dict[str, dict[str, Any]]:
    return {found["name"]: found for found in client.get(CONFIGS).get_json()["configurations"]}


def test_the_carriers_and_what_they_take(client: FlaskClient) -> None:
    answer = client.get("/api/v1/organizations/telephony-providers/metadata")
    assert (answer.status_code, answer.get_json()) == (200, {"providers": providers.metadata()})
    names = [found["provider"] for found in answer.get_json()["providers"]]
    assert names == sorted(providers.PROVIDERS)
    assert "ari" not in names


def test_a_new_organization_has_the_simulator_as_its_default(client: FlaskClient) -> None:
    (simulator,) = client.get(CONFIGS).get_json()["configurations"]
    assert simulator == {
        "id": 1,
        "name": "Simulator",
        "provider": "simulator",
        "connectivity": "api",
        "is_default_outbound": True,
        "inactive": False,
        "inactive_since": None,
        "inactive_reason": None,
        "phone_number_count": 1,
        "is_ready_for_outbound": True,
        "outbound_blocked_reason": None,
        "created_at": simulator["created_at"],
        "updated_at": simulator["updated_at"],
    }


def test_the_urls_to_enter_at_the_carrier(client: FlaskClient, service: Service) -> None:
    config = put_up(client)["id"]
    object.__setattr__(service, "settings", replace(service.settings, public_url="https://voice.example.org"))
    inbound = f"https://voice.example.org/api/v1/telephony/inbound/{config}"
    urls = [client.get(f"{CONFIGS}/{each}").get_json()["webhook_urls"] for each in (1, config)]
    # With what has Twilio repeat a request that fails.
    retries = "#rc=5&rp=ct,rt,5xx&rt=7000"
    assert urls == [None, {"inbound": f"{inbound}{retries}", "status": f"{inbound}/status{retries}"}]


def test_a_new_configuration(client: FlaskClient) -> None:
    created = put_up(client)
    reason = (
        "Outbound calls need a number to dial from. "
        "Add at least one number from your Twilio account under Phone numbers below."
    )
    assert created == {
        "id": 2,
        "name": "Main",
        "provider": "twilio",
        "connectivity": "api",
        "is_default_outbound": True,
        "inactive": False,
        "inactive_since": None,
        "inactive_reason": None,
        "credentials": {
            "account_sid": "**************cdef",
            "auth_token": "*************9876",
            "transport": "webhooks",
            "amd_enabled": False,
        },
        "calls_per_second": None,
        "country": None,
        "webhook_urls": None,
        "sip_connectivity": None,
        "setup_checklist": {
            "ready_for_outbound": False,
            "outbound_blocked_reason": reason,
            "steps": [
                {
                    "key": "caller_id",
                    "title": "Add a phone number",
                    "description": "Calls show one of the numbers of your Twilio account.",
                    "complete": False,
                    "blocks_outbound": True,
                }
            ],
            "docs_url": "https://www.twilio.com/docs/voice",
        },
        "supports_trunks": False,
        "trunks": [],
        "created_at": created["created_at"],
        "updated_at": created["updated_at"],
    }
    assert client.get(f"{CONFIGS}/2").get_json() == created
    item = listed(client)["Main"]
    assert (item["is_ready_for_outbound"], item["outbound_blocked_reason"], item["phone_number_count"]) == (
        False,
        reason,
        0,
    )


def test_an_active_number_makes_it_ready(client: FlaskClient) -> None:
    config = put_up(client)["id"]
    numbers = f"{CONFIGS}/{config}/phone-numbers"
    number = client.post(numbers, json={"address": "+12025550123"}).get_json()["id"]
    assert listed(client)["Main"] == {
        **listed(client)["Main"],
        "phone_number_count": 1,
        "is_ready_for_outbound": True,
        "outbound_blocked_reason": None,
    }
    checklist = client.get(f"{CONFIGS}/{config}").get_json()["setup_checklist"]
    assert (checklist["ready_for_outbound"], checklist["outbound_blocked_reason"]) == (True, None)
    assert checklist["steps"][0]["complete"] is True
    client.put(f"{numbers}/{number}", json={"is_active": False})
    assert listed(client)["Main"]["phone_number_count"] == 0
    assert listed(client)["Main"]["is_ready_for_outbound"] is False


@pytest.mark.parametrize("name", sorted({*providers.PROVIDERS} - {"simulator"}))
def test_each_carriers_secrets_are_shown_masked(client: FlaskClient, name: str) -> None:
    carrier = providers.PROVIDERS[name]
    fields = {field.name: f"{field.name}-value" for field in carrier.fields if field.required}
    config = put_up(client, config={"provider": name, **fields})["id"]
    detail = client.get(f"{CONFIGS}/{config}").get_json()
    assert {key for key, value in detail["credentials"].items() if value and str(value).startswith("*")} == {
        field.name for field in carrier.fields if field.sensitive and field.required
    }


def test_the_simulator_needs_no_number_and_no_set_up(client: FlaskClient) -> None:
    created = put_up(client, "Second", SIMULATOR)
    assert (created["credentials"], created["setup_checklist"]) == ({"realtime": False}, None)
    assert listed(client)["Second"]["is_ready_for_outbound"] is True


def test_secrets_are_not_stored_in_clear(client: FlaskClient, stored: Callable[[], bytes]) -> None:
    put_up(client)
    written = stored()
    assert b"Main" in written
    assert TWILIO["auth_token"].encode() not in written


def test_a_domain_is_completed(client: FlaskClient) -> None:
    config = {"provider": "cloudonix", "bearer_token": "XI-0123", "domain_id": " Acme "}
    assert put_up(client, config=config)["credentials"] == {
        "bearer_token": "***0123",
        "domain_id": "acme.cloudonix.net",
        "application_name": None,
    }


def test_a_secret_sent_back_masked_stays(app: Flask, client: FlaskClient) -> None:
    created = put_up(client)
    again = {"provider": "twilio", **created["credentials"], "amd_enabled": True}
    answer = client.put(f"{CONFIGS}/{created['id']}", json={"config": again})
    assert (answer.status_code, answer.get_json()["credentials"]) == (
        200,
        {**created["credentials"], "amd_enabled": True},
    )
    assert opened(app, created["id"]) == {
        "account_sid": TWILIO["account_sid"],
        "auth_token": TWILIO["auth_token"],
        "transport": "webhooks",
        "amd_enabled": True,
    }


def test_credentials_are_replaced_whole(app: Flask, client: FlaskClient) -> None:
    config = put_up(client, config={**TWILIO, "amd_enabled": True})["id"]
    other = {"provider": "twilio", "account_sid": "*****************cdef", "auth_token": "new-token-1234"}
    answer = client.put(f"{CONFIGS}/{config}", json={"config": other})
    # One star too many: not the mask of what was stored.
    assert answer.status_code == 422
    assert [each["loc"] for each in answer.get_json()["detail"]] == [["body", "config", "twilio", "account_sid"]]
    assert opened(app, config)["amd_enabled"] is True
    other["account_sid"] = "AC-other"
    assert client.put(f"{CONFIGS}/{config}", json={"config": other}).status_code == 200
    left_out = {"transport": "webhooks", "amd_enabled": False}
    assert opened(app, config) == {"account_sid": "AC-other", "auth_token": "new-token-1234", **left_out}


def test_a_password_in_a_carriers_url_is_hidden(app: Flask, client: FlaskClient) -> None:
    url = "https://ann:s3cr3t-sbc@jambonz.example/api/v1"
    config = {
        "provider": "jambonz",
        "account_sid": "a",
        "api_key": "k" * 9,
        "webhook_secret": "w" * 9,
        "api_base_url": url,
    }
    made = put_up(client, config=config)
    shown = made["credentials"]["api_base_url"]
    assert shown == "https://ann:********@jambonz.example/api/v1"
    path = f"{CONFIGS}/{made['id']}"
    assert client.put(path, json={"config": {**config, "api_base_url": shown}}).status_code == 200
    assert opened(app, made["id"])["api_base_url"] == url
    elsewhere = shown.replace("jambonz.example", "elsewhere.example")
    assert client.put(path, json={"config": {**config, "api_base_url": elsewhere}}).status_code == 422


def opened(app: Flask, config_id: int) -> dict[str, Any]:
    service = app.extensions["voiceapi"]
    with service.store.session():
        return credentials(service.vault, TelephonyConfiguration.get_by_id(config_id))


def test_the_pace_is_kept_until_it_is_changed(client: FlaskClient) -> None:
    config = put_up(client, config={**TWILIO, "calls_per_second": 2.5})["id"]

    def pace(body: dict[str, Any]) -> Any:
        return client.put(f"{CONFIGS}/{config}", json=body).get_json()["calls_per_second"]

    assert pace({"name": "Renamed"}) == 2.5
    assert pace({"config": TWILIO}) == 2.5
    assert pace({"config": {**TWILIO, "calls_per_second": 5}}) == 5
    assert pace({"config": {**TWILIO, "calls_per_second": None}}) is None


def test_the_country_is_kept_until_it_is_changed(client: FlaskClient) -> None:
    config = put_up(client, config={**TWILIO, "country": "us"})["id"]

    def country(body: dict[str, Any]) -> Any:
        return client.put(f"{CONFIGS}/{config}", json=body).get_json()["country"]

    assert client.get(f"{CONFIGS}/{config}").get_json()["country"] == "US"
    assert country({"config": TWILIO}) == "US"
    assert country({"config": {**TWILIO, "country": "DE"}}) == "DE"
    assert country({"config": {**TWILIO, "country": None}}) is None
    for wrong in ("XX", "USA", "", 1):
        answer = client.put(f"{CONFIGS}/{config}", json={"config": {**TWILIO, "country": wrong}})
        [found] = answer.get_json()["detail"]
        assert (answer.status_code, found["loc"]) == (422, ["body", "config", "twilio", "country"])


def test_without_a_country_that_of_the_default_caller_number_counts(client: FlaskClient) -> None:
    """Of the numbers that calls may show, all must have one country, if none is the default."""
    numbers = f"{CONFIGS}/{put_up(client)['id']}/phone-numbers"
    listing = "/api/v1/do-not-call"

    def listed_as(text: str) -> str | None:
        if client.post(listing, json={"phone_numbers": [text]}).status_code == 422:
            return None
        [entry] = client.get(listing).get_json()["phone_numbers"]
        client.delete(f"{listing}/{entry['phone_number']}")
        return str(entry["phone_number"])

    assert listed_as("2025550123") is None
    client.post(numbers, json={"address": "+12025550190", "country_code": "us"})
    assert listed_as("2025550123") == "+12025550123"
    other = client.post(numbers, json={"address": "+4930901821", "country_code": "DE"}).get_json()["id"]
    assert listed_as("2025550123") is None
    client.post(f"{numbers}/{other}/set-default-caller")
    assert listed_as("030 901820") == "+4930901820"
    client.put(f"{numbers}/{other}", json={"country_code": "ZZ"})
    assert listed_as("030 901820") is None


def test_configurations_of_different_countries_leave_national_numbers_unread(client: FlaskClient) -> None:
    listing = "/api/v1/do-not-call"
    put_up(client, config={**TWILIO, "country": "US"})
    # The simulator, which names no country, changes nothing.
    assert client.post(listing, json={"phone_numbers": ["2025550123"]}).get_json()["added"] == 1
    put_up(client, "Other", config={**TWILIO, "country": "DE"})
    [refused] = client.post(listing, json={"phone_numbers": ["2025550124"]}).get_json()["detail"]
    advice = "Write it with + and its country code, such as +12025550123."
    assert refused["msg"] == f"Value error, The number may be one of DE or US. {advice}"
    assert client.post(listing, json={"phone_numbers": ["001 202 555 0124"]}).get_json()["added"] == 1
    assert client.delete(f"{listing}/2025550123").status_code == 404


def test_a_change_of_name_leaves_the_rest(client: FlaskClient) -> None:
    created = put_up(client)
    changed = client.put(f"{CONFIGS}/{created['id']}", json={"name": "Other"}).get_json()
    assert changed == {**created, "name": "Other", "updated_at": changed["updated_at"]}
    assert changed["updated_at"] > created["updated_at"]
    same = client.put(f"{CONFIGS}/{created['id']}", json={"name": "Other"})
    assert (same.status_code, same.get_json()["name"]) == (200, "Other")
    assert client.put(f"{CONFIGS}/{created['id']}", json={}).get_json()["name"] == "Other"


def test_a_name_is_taken_once_in_an_organization(client: FlaskClient, stranger: FlaskClient) -> None:
    put_up(client, "Main")
    second = put_up(client, "Second", SIMULATOR)["id"]
    taken = {
        "detail": "A telephony configuration named 'Main' already exists in this organization. Pick a different name."
    }
    answer = client.post(CONFIGS, json={"name": "Main", "config": TWILIO})
    assert (answer.status_code, answer.get_json()) == (409, taken)
    answer = client.put(f"{CONFIGS}/{second}", json={"name": "Main"})
    assert (answer.status_code, answer.get_json()) == (409, taken)
    assert put_up(stranger, "Main")["name"] == "Main"


def test_the_carrier_stays(client: FlaskClient) -> None:
    config = put_up(client)["id"]
    answer = client.put(f"{CONFIGS}/{config}", json={"config": SIMULATOR})
    assert (answer.status_code, answer.get_json()) == (
        400,
        {"detail": "Provider cannot be changed; create a new configuration instead."},
    )


def test_there_is_one_default_at_most(client: FlaskClient) -> None:
    first = put_up(client, "First", is_default_outbound=True)
    assert first["is_default_outbound"] is True
    second = put_up(client, "Second")["id"]
    assert defaults(client) == ["First"]
    for _ in range(2):
        answer = client.post(f"{CONFIGS}/{second}/set-default-outbound")
        assert (answer.status_code, answer.get_json()["is_default_outbound"]) == (200, True)
        assert defaults(client) == ["Second"]
    client.delete(f"{CONFIGS}/{second}")
    assert defaults(client) == []


# Configurations that are stored one after the other, as the name, provider and request of each, and the default then.
@pytest.mark.parametrize(
    ("stored", "default"),
    [
        ([("A", "twilio", {})], "A"),
        ([("A", "twilio", {"is_default_outbound": None})], "A"),
        ([("A", "twilio", {"is_default_outbound": False})], "Simulator"),
        ([("A", "twilio", {"is_default_outbound": True})], "A"),
        ([("A", "simulator", {})], "Simulator"),
        ([("A", "simulator", {"is_default_outbound": True}), ("B", "twilio", {})], "B"),
        ([("A", "twilio", {}), ("B", "plivo", {})], "A"),
        ([("A", "twilio", {}), ("B", "plivo", {"is_default_outbound": True})], "B"),
        ([("A", "twilio", {"is_default_outbound": False}), ("B", "plivo", {})], "Simulator"),
    ],
)
def test_the_first_configuration_of_a_real_carrier_becomes_the_default(
    client: FlaskClient, stranger: FlaskClient, stored: list[tuple[str, str, dict[str, Any]]], default: str
) -> None:
    put_up(stranger, "Theirs")
    configs = {
        "twilio": TWILIO,
        "simulator": SIMULATOR,
        "plivo": {"provider": "plivo", "auth_id": "M", "auth_token": "t"},
    }
    for name, provider, more in stored:
        made = put_up(client, name, configs[provider], **more)
    assert made["is_default_outbound"] is (default == made["name"])
    assert defaults(client) == [default]


def test_it_becomes_the_default_of_an_organization_that_has_none(client: FlaskClient) -> None:
    client.delete(f"{CONFIGS}/1")
    assert defaults(client) == []
    put_up(client)
    assert defaults(client) == ["Main"]
    client.delete(f"{CONFIGS}/{listed(client)['Main']['id']}")
    put_up(client, "Again")
    assert defaults(client) == ["Again"]


def defaults(client: FlaskClient) -> list[str]:
    return [name for name, found in listed(client).items() if found["is_default_outbound"]]


@pytest.mark.usefixtures("db")
def test_a_configuration_set_aside_is_used_again(client: FlaskClient) -> None:
    created = put_up(client)
    TelephonyConfiguration.update(inactive=True, inactive_since=now(), inactive_reason="unpaid").where(
        TelephonyConfiguration.id == created["id"]
    ).execute()
    aside = client.get(f"{CONFIGS}/{created['id']}").get_json()
    assert (aside["inactive"], aside["inactive_reason"], aside["inactive_since"][-1]) == (True, "unpaid", "Z")
    answer = client.post(f"{CONFIGS}/{created['id']}/reactivate")
    assert (answer.status_code, answer.get_json()) == (
        200,
        {**created, "updated_at": answer.get_json()["updated_at"]},
    )


def test_deleting_takes_the_numbers_along(client: FlaskClient) -> None:
    config = put_up(client)["id"]
    client.post(f"{CONFIGS}/{config}/phone-numbers", json={"address": "+12025550123"})
    answer = client.delete(f"{CONFIGS}/{config}")
    assert (answer.status_code, answer.get_json()) == (200, {"message": "Telephony configuration deleted"})
    assert list(listed(client)) == ["Simulator"]
    other = put_up(client)["id"]
    assert client.post(f"{CONFIGS}/{other}/phone-numbers", json={"address": "+12025550123"}).status_code == 200


@pytest.mark.usefixtures("db")
def test_a_configuration_of_a_campaign_stays(client: FlaskClient) -> None:
    config = put_up(client)["id"]
    workflow = Workflow.create(organization=1, workflow_uuid="w", name="w")
    Campaign.create(
        organization=1,
        workflow=workflow,
        telephony_configuration=config,
        name="c",
        source_type="csv",
        source_id="s",
        retry_config={},
        circuit_breaker={},
    )
    answer = client.delete(f"{CONFIGS}/{config}")
    assert (answer.status_code, answer.get_json()) == (
        409,
        {"detail": f"Telephony configuration {config} is referenced by one or more campaigns and cannot be deleted."},
    )
    assert "Main" in listed(client)


def test_moving_to_another_account_may_not_make_a_second_route(client: FlaskClient, stranger: FlaskClient) -> None:
    def numbered(of: FlaskClient, name: str, account: str) -> int:
        config = put_up(of, name, {**TWILIO, "account_sid": account})["id"]
        assert of.post(f"{CONFIGS}/{config}/phone-numbers", json={"address": "+12025550123"}).status_code == 200
        return int(config)

    numbered(client, "Ours", "ACone")
    theirs = numbered(stranger, "Theirs", "ACtwo")
    moved = stranger.put(f"{CONFIGS}/{theirs}", json={"config": {**TWILIO, "account_sid": "ACone"}})
    assert (moved.status_code, moved.get_json()) == (
        409,
        {
            "detail": "Phone number +12025550123 is already registered under another organization using the same "
            "provider account. Inbound calls cannot be uniquely routed when the same number is configured against "
            "the same provider account in more than one place."
        },
    )
    kept = stranger.put(f"{CONFIGS}/{theirs}", json={"config": {**TWILIO, "account_sid": "ACtwo"}})
    assert kept.status_code == 200


def item(loc: list[str], msg: str, type: str) -> dict[str, Any]:
    return {"loc": ["body", *loc], "msg": msg, "type": type}


TAGS = "'cloudonix', 'jambonz', 'plivo', 'signalwire', 'simulator', 'telnyx', 'twilio', 'vobiz', 'vonage'"


@pytest.mark.parametrize(
    ("body", "items"),
    [
        ({}, [item(["name"], "Field required", "missing"), item(["config"], "Field required", "missing")]),
        (
            {"name": "", "config": SIMULATOR},
            [item(["name"], "String should have at least 1 character", "string_too_short")],
        ),
        (
            {"name": "n" * 65, "config": SIMULATOR},
            [item(["name"], "String should have at most 64 characters", "string_too_long")],
        ),
        (
            {"name": "n", "config": {"provider": "ari", "app_name": "a"}},
            [
                item(
                    ["config"],
                    f"Input tag 'ari' found using 'provider' does not match any of the expected tags: {TAGS}",
                    "union_tag_invalid",
                )
            ],
        ),
        (
            {"name": "n", "config": {"auth_token": "t"}},
            [item(["config"], "Unable to extract tag using discriminator 'provider'", "union_tag_not_found")],
        ),
        (
            {"name": "n", "config": "twilio"},
            [
                item(
                    ["config"],
                    "Input should be a valid dictionary or object to extract fields from",
                    "model_attributes_type",
                )
            ],
        ),
        (
            {"name": "n", "config": {"provider": "twilio", "account_sid": 5, "amd_enabled": "perhaps"}},
            [
                item(["config", "twilio", "account_sid"], "Input should be a valid string", "string_type"),
                item(["config", "twilio", "auth_token"], "Field required", "missing"),
                item(
                    ["config", "twilio", "amd_enabled"],
                    "Input should be a valid boolean, unable to interpret input",
                    "bool_parsing",
                ),
            ],
        ),
        (
            {"name": "n", "config": {**TWILIO, "auth_token": ""}},
            [item(["config", "twilio", "auth_token"], "String should have at least 1 character", "string_too_short")],
        ),
        (
            {"name": "n", "config": {**TWILIO, "transport": "pigeon"}},
            [item(["config", "twilio", "transport"], "Input should be 'webhooks' or 'relay'", "enum")],
        ),
        (
            {"name": "n", "config": {**TWILIO, "calls_per_second": 0}},
            [
                item(
                    ["config", "twilio", "calls_per_second"],
                    "Input should be greater than or equal to 0.001",
                    "greater_than_equal",
                )
            ],
        ),
    ],
)
def test_what_is_refused(client: FlaskClient, body: dict[str, Any], items: list[dict[str, Any]]) -> None:
    answer = client.post(CONFIGS, json=body)
    found = answer.get_json()["detail"]
    assert answer.status_code == 422
    assert sorted(found, key=str) == sorted(items, key=str)
    assert list(listed(client)) == ["Simulator"]


def test_unknown_fields_are_named_and_from_numbers_is_one(client: FlaskClient) -> None:
    config = {**TWILIO, "from_numbers": ["+12025550123"]}
    answer = client.post(CONFIGS, json={"name": "n", "colour": "red", "config": config})
    assert answer.status_code == 200
    assert answer.headers["Warning"] == '199 voiceapi "fields not known here and passed over: colour, from_numbers"'
    assert answer.get_json()["credentials"].keys() == {"account_sid", "auth_token", "transport", "amd_enabled"}


ROUTES = [
    ("get", "{id}", None),
    ("put", "{id}", {"name": "n"}),
    ("delete", "{id}", None),
    ("post", "{id}/set-default-outbound", None),
    ("post", "{id}/reactivate", None),
]


@pytest.mark.parametrize(("method", "path", "body"), ROUTES)
def test_configurations_of_others_and_missing_ones_are_404(
    client: FlaskClient, stranger: FlaskClient, method: str, path: str, body: Any
) -> None:
    theirs = put_up(client)
    for config_id in (theirs["id"], 999_999, 2**62, -1):
        answer = stranger.open(f"{CONFIGS}/{path.format(id=config_id)}", method=method, json=body)
        assert (answer.status_code, answer.get_json()) == (404, NOT_FOUND)
    assert client.get(f"{CONFIGS}/{theirs['id']}").get_json() == theirs


@pytest.mark.parametrize(
    ("method", "path"),
    [("get", ""), ("post", ""), *((method, f"/{path.format(id='abc')}") for method, path, _ in ROUTES)],
)
def test_without_a_key(bare: FlaskClient, method: str, path: str) -> None:
    answer = bare.open(CONFIGS + path, method=method)
    assert (answer.status_code, answer.get_json()) == (401, {"detail": "Authorization header required"})


@pytest.mark.parametrize(("method", "path", "body"), ROUTES)
def test_an_id_is_a_whole_number(client: FlaskClient, method: str, path: str, body: Any) -> None:
    answer = client.open(f"{CONFIGS}/{path.format(id='abc')}", method=method, json=body)
    refused = {
        "loc": ["path", "config_id"],
        "msg": "Input should be a valid integer, unable to parse string as an integer",
        "type": "int_parsing",
    }
    assert (answer.status_code, answer.get_json()) == (422, {"detail": [refused]})


def test_credentials_of_a_lost_secret_can_be_entered_again(app: Flask, client: FlaskClient) -> None:
    config = put_up(client)["id"]
    service = app.extensions["voiceapi"]
    with service.store.session():
        lost = Vault(b"another secret of another machine").encrypt("{}")
        TelephonyConfiguration.update(credentials=lost).where(TelephonyConfiguration.id == config).execute()
    answer = client.get(f"{CONFIGS}/{config}")
    assert (answer.status_code, answer.get_json()) == (
        400,
        {
            "detail": "A stored credential can't be decrypted, because it was encrypted with another secret. "
            "Restore that secret, or enter the credentials again."
        },
    )
    assert client.get(CONFIGS).status_code == 200
    assert client.put(f"{CONFIGS}/{config}", json={"config": TWILIO}).status_code == 200
    assert opened(app, config)["auth_token"] == TWILIO["auth_token"]


@pytest.mark.usefixtures("db")
class TestResolving:
    """Which configuration and which number a call goes out with."""

    @pytest.fixture
    def empty(self) -> Organization:
        organization: Organization = Organization.create(name="empty")
        return organization

    def configuration(self, organization: Organization, name: str, numbers: int = 1, **columns: Any) -> Any:
        values = {"provider": "twilio", "credentials": "", **columns}
        made = TelephonyConfiguration.create(organization=organization, name=name, **values)
        for index in range(numbers):
            address = f"+1202555{made.id:02}{index:02}"
            PhoneNumber.create(
                organization=organization,
                telephony_configuration=made,
                address=address,
                address_normalized=address,
                address_type="pstn",
            )
        return made

    def test_nothing_to_call_through(self, empty: Organization) -> None:
        with pytest.raises(NotConfigured) as none:
            resolve_outbound(empty.id, None)
        assert none.value.given is False
        with pytest.raises(NotConfigured) as other:
            resolve_outbound(empty.id, 1)
        assert other.value.given is True

    def test_the_default_comes_first_then_the_oldest(self, empty: Organization) -> None:
        first = self.configuration(empty, "first")
        second = self.configuration(empty, "second", is_default_outbound=True)
        assert resolve_outbound(empty.id, None) == second
        TelephonyConfiguration.update(is_default_outbound=False).where(
            TelephonyConfiguration.organization == empty
        ).execute()
        assert resolve_outbound(empty.id, None) == first

    def test_one_that_is_not_ready_is_skipped_unless_asked_for(self, empty: Organization) -> None:
        bare = self.configuration(empty, "bare", numbers=0, is_default_outbound=True)
        ready = self.configuration(empty, "ready")
        assert resolve_outbound(empty.id, None) == ready
        with pytest.raises(NotPossible) as refused:
            resolve_outbound(empty.id, bare.id)
        assert refused.value.detail == (
            "'bare' is not ready for outbound calls. Outbound calls need a number to dial from. "
            "Add at least one number from your Twilio account under Phone numbers below."
        )

    def test_the_simulator_takes_no_call_of_a_real_carrier(self, empty: Organization) -> None:
        simulated = self.configuration(empty, "simulated", provider="simulator")
        assert resolve_outbound(empty.id, None) == simulated
        real = self.configuration(empty, "real", numbers=0)
        with pytest.raises(NotPossible, match=r"^'real' is not ready for outbound calls\. "):
            resolve_outbound(empty.id, None)
        assert resolve_outbound(empty.id, simulated.id) == simulated
        ready = self.configuration(empty, "ready")
        assert resolve_outbound(empty.id, None) == ready
        TelephonyConfiguration.update(is_default_outbound=True).where(
            TelephonyConfiguration.id == simulated.id
        ).execute()
        assert resolve_outbound(empty.id, None) == simulated
        assert real.id < ready.id

    def test_when_none_is_ready_the_first_says_why(self, empty: Organization) -> None:
        self.configuration(empty, "later", numbers=0)
        self.configuration(empty, "default", numbers=0, is_default_outbound=True)
        with pytest.raises(NotPossible, match=r"^'default' is not ready for outbound calls\. "):
            resolve_outbound(empty.id, None)

    def test_one_set_aside_counts_as_missing(self, empty: Organization) -> None:
        aside = self.configuration(empty, "aside", inactive=True)
        for config_id in (None, aside.id):
            with pytest.raises(NotConfigured):
                resolve_outbound(empty.id, config_id)

    def test_the_number_asked_for(self, empty: Organization) -> None:
        ours, other = self.configuration(empty, "ours", 2), self.configuration(empty, "other")
        first, second = ours.phone_numbers.order_by(PhoneNumber.id)
        assert caller_number(ours, second.id) == second
        PhoneNumber.update(is_active=False).where(PhoneNumber.id == first.id).execute()
        for refused in (first.id, other.phone_numbers.get().id, 999_999):
            with pytest.raises(NotPossible, match=r"^from_phone_number_not_found$"):
                caller_number(ours, refused)

    def test_the_default_number_else_any_active_one(self, empty: Organization) -> None:
        ours = self.configuration(empty, "ours", 3)
        first, second, third = ours.phone_numbers.order_by(PhoneNumber.id)
        offered: list[list[int]] = []

        def last(numbers: Any) -> Any:
            offered.append([number.id for number in numbers])
            return numbers[-1]

        def change(number: PhoneNumber, **columns: Any) -> None:
            PhoneNumber.update(**columns).where(PhoneNumber.id == number.id).execute()

        assert caller_number(ours, None, last) == third
        change(second, is_default_caller_id=True)
        assert caller_number(ours, None, last) == second
        change(second, is_active=False)
        assert caller_number(ours, None, last) == third
        assert offered == [[first.id, second.id, third.id], [second.id], [first.id, third.id]]
        assert caller_number(ours, None) in (first, third)

    def test_no_number_at_all(self, empty: Organization) -> None:
        simulator = self.configuration(empty, "simulator", 0, provider="simulator")
        assert resolve_outbound(empty.id, None) == simulator
        assert caller_number(simulator, None) is None


def test_a_checklist_says_whether_calls_go_over_a_relay(client: FlaskClient, service: Service) -> None:
    created = put_up(client, config={**TWILIO, "transport": "relay"})
    step = created["setup_checklist"]["steps"][1]
    assert (step["key"], step["complete"], step["blocks_outbound"]) == ("relay", False, False)
    assert step["description"] == f"Calls go by webhooks until then. {relays.NO_RELAY}"
    service.open_relay()
    service.reach_at("https://voice.example.org")
    shown = client.get(f"{CONFIGS}/{created['id']}").get_json()
    assert shown["setup_checklist"]["steps"][1]["complete"] is True
