"""The table of carriers, and the shape in which the API lists it."""

import json
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from voiceapi.telephony import providers
from voiceapi.telephony.connect import CARRIERS as DIALECTS
from voiceapi.telephony.providers import PROVIDERS, cloudonix_domain, metadata

# name: (display name, connectivity, credentials, account id, needs a caller ID); ! is required, * is sensitive
CARRIERS = {
    "cloudonix": ("Cloudonix", "sip", "bearer_token!* domain_id! application_name", "domain_id", True),
    "jambonz": (
        "jambonz", "sip",
        "api_base_url! account_sid! api_key!* application_sid webhook_secret!* transport amd_enabled",
        "account_sid", True),
    "plivo": ("Plivo", "api", "auth_id!* auth_token!* application_id amd_enabled", "auth_id", True),
    "signalwire": (
        "SignalWire", "api", "project_id!* api_token!* space! signing_key!* amd_enabled", "project_id", True),
    "simulator": ("Simulator", "api", "realtime", None, False),
    "telnyx": (
        "Telnyx", "api",
        "api_key!* connection_id account_sid webhook_public_key transport amd_enabled", "connection_id", True),
    "twilio": ("Twilio", "api", "account_sid!* auth_token!* transport amd_enabled", "account_sid", True),
    "vobiz": ("Vobiz", "api", "auth_id!* auth_token!* application_id amd_enabled", "auth_id", True),
    "vonage": (
        "Vonage", "api",
        "api_key!* api_secret!* application_id! private_key!* signature_secret* amd_enabled", "api_key", True),
}  # fmt: skip

FIELD_KEYS = {
    "name", "label", "type", "required", "sensitive",
    "description", "placeholder", "options", "visible_when", "section",
}  # fmt: skip


def marked(name: str, required: bool, sensitive: bool) -> str:
    return name + "!" * required + "*" * sensitive


def test_the_carriers_and_their_credentials() -> None:
    assert {
        name: (
            provider.display_name,
            provider.connectivity,
            " ".join(marked(field.name, field.required, field.sensitive) for field in provider.fields),
            provider.account_id_field,
            provider.needs_caller_id,
        )
        for name, provider in PROVIDERS.items()
    } == CARRIERS


def test_the_sensitive_names_are_those_to_mask() -> None:
    assert PROVIDERS["vonage"].sensitive == {"api_key", "api_secret", "private_key", "signature_secret"}
    assert PROVIDERS["simulator"].sensitive == set()


def test_every_carrier_has_a_class() -> None:
    assert {*DIALECTS, "simulator"} == {*PROVIDERS}


def test_calls_are_placed_one_a_second_but_simulated_ones_without_limit() -> None:
    assert {name: provider.calls_per_second for name, provider in PROVIDERS.items()} == {
        name: None if name == "simulator" else 1.0 for name in CARRIERS
    }


def test_fields_that_are_left_out_have_these_values() -> None:
    defaults = {(p.name, field.name): field.default for p in PROVIDERS.values() for field in p.fields}

    assert {key: value for key, value in defaults.items() if value is not None} == {
        ("simulator", "realtime"): False,
        ("jambonz", "transport"): "webhooks",
        ("telnyx", "transport"): "webhooks",
        ("twilio", "transport"): "webhooks",
        **{(name, "amd_enabled"): False for name in CARRIERS if name not in ("cloudonix", "simulator")},
    }


def test_metadata_lists_carriers_by_name_with_every_key() -> None:
    listed = metadata()

    assert [entry["provider"] for entry in listed] == sorted(CARRIERS)
    for entry in listed:
        assert set(entry) == {"provider", "display_name", "connectivity", "fields", "docs_url"}
        assert all(set(field) == FIELD_KEYS for field in entry["fields"])
        assert all(field["label"] and field["description"] for field in entry["fields"])
        names = " ".join(marked(field["name"], field["required"], field["sensitive"]) for field in entry["fields"])
        assert names == f"{CARRIERS[entry['provider']][2]} from_numbers"
    assert json.loads(json.dumps(listed)) == listed


def test_a_whole_entry() -> None:
    def field(name: str, label: str, kind: str, description: str) -> dict[str, Any]:
        blank = dict.fromkeys(("placeholder", "options", "visible_when", "section"))
        given = {"name": name, "label": label, "type": kind, "description": description}
        return {**given, "required": False, "sensitive": False, **blank}

    assert metadata()[4] == {
        "provider": "simulator",
        "display_name": "Simulator",
        "connectivity": "api",
        "fields": [
            field(
                "realtime",
                "Real time",
                "boolean",
                "Whether ringing and speech take as long as they would on the telephone.",
            ),
            field(
                "from_numbers",
                "Phone numbers",
                "string-array",
                "Has no effect here: add the numbers to the configuration once it is stored.",
            ),
        ],
        "docs_url": None,
    }


def test_the_table_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        PROVIDERS["ari"] = PROVIDERS["twilio"]  # type: ignore[index]
    with pytest.raises(FrozenInstanceError):
        PROVIDERS["twilio"].docs_url = None  # type: ignore[misc]


def test_options_and_conditions_reach_the_wire() -> None:
    region = providers.CredentialField(
        "region",
        "Region",
        "select",
        options=(providers.Option("eu", "Europe"),),
        visible_when=providers.Condition("hosted", True),
    )
    carrier = providers.Provider("own", "Own", (region,), account_id_field=None, docs_url=None)

    (entry,) = metadata([carrier])

    assert entry["fields"][0]["options"] == [{"value": "eu", "label": "Europe"}]
    assert entry["fields"][0]["visible_when"] == {"field": "hosted", "equals": True}


@pytest.mark.parametrize(
    ("given", "domain"),
    [
        ("Example", "example.cloudonix.net"),
        (" voice.Example.ORG ", "voice.example.org"),
        ("example.cloudonix.net", "example.cloudonix.net"),
        ("", ""),
    ],
)
def test_a_cloudonix_domain_is_completed(given: str, domain: str) -> None:
    assert cloudonix_domain(given) == domain
