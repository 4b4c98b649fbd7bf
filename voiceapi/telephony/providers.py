"""The table of telephone carriers: their credentials, how they connect, and what they need.

The names of carriers and fields are part of the API: clients send them in configurations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any, Literal

Connectivity = Literal["api", "sip"]
FieldType = Literal["text", "password", "textarea", "string-array", "number", "boolean", "select", "readonly"]


@dataclass(frozen=True, slots=True)
class Option:
    """One choice of a select field."""

    value: str
    label: str


@dataclass(frozen=True, slots=True)
class Condition:
    """Shows a field only while another field has this value."""

    field: str
    equals: Any


@dataclass(frozen=True, slots=True)
class CredentialField:
    """One credential of a carrier, as a form shows it. A sensitive one is shown masked only."""

    name: str
    label: str
    type: FieldType = "text"
    required: bool = False
    sensitive: bool = False
    description: str | None = None
    placeholder: str | None = None
    options: tuple[Option, ...] = ()
    visible_when: Condition | None = None
    section: str | None = None
    default: Any = None


@dataclass(frozen=True, slots=True)
class Provider:
    """A carrier.

    :param account_id_field: the credential that identifies an account at the carrier.
    :param optional_signature_key: the credential that verifies the carrier's webhooks, where it may be left out.
    :param found: the credentials that nobody has to enter to connect a number, because connecting makes or finds them.
    :param calls_per_second: how fast calls may be placed unless the configuration sets its own pace; None: no limit.
    """

    name: str
    display_name: str
    fields: tuple[CredentialField, ...]
    account_id_field: str | None
    docs_url: str | None
    connectivity: Connectivity = "api"
    optional_signature_key: str | None = None
    found: frozenset[str] = frozenset()
    needs_caller_id: bool = True
    dials_sip: bool = False
    calls_per_second: float | None = 1.0

    @property
    def asked(self) -> tuple[CredentialField, ...]:
        """The credentials that somebody enters to connect a number."""
        return tuple(
            each for each in self.fields if each.name not in self.found and each.type not in ("boolean", "select")
        )

    @property
    def sensitive(self) -> frozenset[str]:
        """The names of the credentials to mask."""
        return frozenset(field.name for field in self.fields if field.sensitive)


def _secret(name: str, label: str, description: str, *, required: bool = True) -> CredentialField:
    return CredentialField(name, label, "password", required=required, sensitive=True, description=description)


def _required(name: str, label: str, description: str, placeholder: str | None = None) -> CredentialField:
    return CredentialField(name, label, required=True, description=description, placeholder=placeholder)


def _optional(name: str, label: str, description: str, placeholder: str | None = None) -> CredentialField:
    return CredentialField(name, label, description=description, placeholder=placeholder)


# A field of each carrier that can detect answering machines.
_DETECTION = CredentialField(
    "amd_enabled",
    "Detect voicemail",
    "boolean",
    description="Asks the carrier to tell people from answering machines, which may cost extra.",
    default=False,
)


# A field of each carrier that has a text relay.
_TRANSPORT = CredentialField(
    "transport",
    "Transport",
    "select",
    description="webhooks, or relay: speech comes and goes as text over a websocket: quicker, and it may cost extra.",
    options=(Option("webhooks", "Webhooks"), Option("relay", "Text relay")),
    default="webhooks",
)


_CARRIERS = (
    Provider(
        name="cloudonix",
        display_name="Cloudonix",
        connectivity="sip",
        fields=(
            _secret("bearer_token", "Bearer token", "API key of the domain, from the Cloudonix cockpit."),
            _required(
                "domain_id",
                "Domain",
                "Your Cloudonix domain. A name without a dot is completed with .cloudonix.net.",
                "example.cloudonix.net",
            ),
            _optional("application_name", "Application", "Voice application of the domain that answers its numbers."),
        ),
        found=frozenset(("application_name",)),
        account_id_field="domain_id",
        docs_url="https://developers.cloudonix.com",
    ),
    Provider(
        name="jambonz",
        display_name="jambonz",
        connectivity="sip",
        fields=(
            _required(
                "api_base_url",
                "API address",
                "Where the REST API of your jambonz system is reached, with its version.",
                "https://jambonz.example.org/api/v1",
            ),
            _required("account_sid", "Account SID", "The account's identifier, from the jambonz portal."),
            _secret("api_key", "API key", "An API key of the account."),
            _optional("application_sid", "Application SID", "Application that answers the account's numbers."),
            _secret("webhook_secret", "Webhook secret", "Signs the webhooks that jambonz sends."),
            _TRANSPORT,
            _DETECTION,
        ),
        found=frozenset(("application_sid", "webhook_secret")),
        account_id_field="account_sid",
        docs_url="https://docs.jambonz.org",
        dials_sip=True,
    ),
    Provider(
        name="plivo",
        display_name="Plivo",
        fields=(
            _secret("auth_id", "Auth ID", "The account's Auth ID, from the overview of the Plivo console."),
            _secret("auth_token", "Auth token", "The account's Auth Token, shown beside the Auth ID."),
            _optional("application_id", "Application ID", "Plivo application that answers the account's numbers."),
            _DETECTION,
        ),
        found=frozenset(("application_id",)),
        account_id_field="auth_id",
        docs_url="https://www.plivo.com/docs/voice/",
        dials_sip=True,
    ),
    Provider(
        name="signalwire",
        display_name="SignalWire",
        fields=(
            _secret("project_id", "Project ID", "The project's identifier, from the API page of the dashboard."),
            _secret("api_token", "API token", "A token of the project with the right to use voice."),
            _required("space", "Space", "The first part of your SignalWire address.", "example"),
            _secret("signing_key", "Signing key", "Signs the webhooks that SignalWire sends; it begins with PSK."),
            _DETECTION,
        ),
        account_id_field="project_id",
        docs_url="https://developer.signalwire.com",
        dials_sip=True,
    ),
    Provider(
        name="simulator",
        display_name="Simulator",
        fields=(
            CredentialField(
                "realtime",
                "Real time",
                "boolean",
                description="Whether ringing and speech take as long as they would on the telephone.",
                default=False,
            ),
        ),
        account_id_field=None,
        docs_url=None,
        needs_caller_id=False,
        dials_sip=True,
        calls_per_second=None,
    ),
    Provider(
        name="telnyx",
        display_name="Telnyx",
        fields=(
            _secret("api_key", "API key", "A V2 API key from the Telnyx portal."),
            _optional("connection_id", "Connection ID", "TeXML application that places and answers the calls."),
            _optional(
                "account_sid",
                "Account SID",
                "ID of the account. Without it calls go through an endpoint that Telnyx has deprecated.",
            ),
            _optional(
                "webhook_public_key", "Webhook public key", "Checks the signatures of the webhooks that Telnyx sends."
            ),
            _TRANSPORT,
            _DETECTION,
        ),
        found=frozenset(("connection_id",)),
        account_id_field="connection_id",
        optional_signature_key="webhook_public_key",
        docs_url="https://developers.telnyx.com",
        dials_sip=True,
    ),
    Provider(
        name="twilio",
        display_name="Twilio",
        fields=(
            _secret(
                "account_sid", "Account SID", "The account's identifier, from the Twilio console; it begins with AC."
            ),
            _secret("auth_token", "Auth token", "The account's primary token. It also checks Twilio's signatures."),
            _TRANSPORT,
            _DETECTION,
        ),
        account_id_field="account_sid",
        docs_url="https://www.twilio.com/docs/voice",
        dials_sip=True,
    ),
    Provider(
        name="vobiz",
        display_name="Vobiz",
        fields=(
            _secret("auth_id", "Auth ID", "The account's Auth ID, from the Vobiz console."),
            _secret("auth_token", "Auth token", "The account's Auth Token."),
            _optional("application_id", "Application ID", "Vobiz application that answers the account's numbers."),
            _DETECTION,
        ),
        found=frozenset(("application_id",)),
        account_id_field="auth_id",
        docs_url="https://docs.vobiz.ai",
    ),
    Provider(
        name="vonage",
        display_name="Vonage",
        fields=(
            _secret("api_key", "API key", "The account's API key, from the Vonage dashboard."),
            _secret("api_secret", "API secret", "The account's API secret."),
            _required("application_id", "Application ID", "Vonage application with the voice capability."),
            CredentialField(
                "private_key",
                "Private key",
                "textarea",
                required=True,
                sensitive=True,
                description="The application's private key in PEM form.",
                placeholder="-----BEGIN PRIVATE KEY-----",
            ),
            _secret(
                "signature_secret",
                "Signature secret",
                "Checks the signatures of the webhooks that Vonage sends.",
                required=False,
            ),
            _DETECTION,
        ),
        found=frozenset(("application_id", "private_key")),
        account_id_field="api_key",
        optional_signature_key="signature_secret",
        docs_url="https://developer.vonage.com/en/voice/voice-api/overview",
    ),
)

PROVIDERS: Mapping[str, Provider] = MappingProxyType({provider.name: provider for provider in _CARRIERS})

# Numbers are stored with the endpoints of phone numbers, but published clients look for this field, too.
_FROM_NUMBERS = CredentialField(
    "from_numbers",
    "Phone numbers",
    "string-array",
    description="Has no effect here: add the numbers to the configuration once it is stored.",
)


def metadata(carriers: Iterable[Provider] = _CARRIERS) -> list[dict[str, Any]]:
    """The carriers as the API lists them, sorted by name; a key without a value is None."""
    return [
        {
            "provider": provider.name,
            "display_name": provider.display_name,
            "connectivity": provider.connectivity,
            "fields": [_form_field(field) for field in (*provider.fields, _FROM_NUMBERS)],
            "docs_url": provider.docs_url,
        }
        for provider in sorted(carriers, key=lambda provider: provider.name)
    ]


def _form_field(field: CredentialField) -> dict[str, Any]:
    shown = asdict(field)
    del shown["default"]
    return {**shown, "options": list(shown["options"]) or None}


def cloudonix_domain(text: str) -> str:
    """The full name of a Cloudonix domain: lower case, completed with .cloudonix.net when it has no dot."""
    domain = text.strip().lower()
    return domain if "." in domain or not domain else f"{domain}.cloudonix.net"
