"""Telephony configurations of the organization, and the carriers that there are."""

from __future__ import annotations

from typing import Any

from ..store.telephony import TelephonyConfiguration
from ..telephony import configurations as configs
from ..telephony import providers
from ..telephony.inbound_urls import InboundURLs
from .auth import organization, service
from .blueprint import Blueprint
from .schemas.base import DoneSchema
from .schemas.telephony_configs import (
    CarrierListSchema,
    ConfigurationChangeSchema,
    ConfigurationDetailSchema,
    ConfigurationListSchema,
    NewConfigurationSchema,
)

blueprint = Blueprint("telephony_configs", __name__)


@blueprint.get("/organizations/telephony-providers/metadata")
@blueprint.response(200, CarrierListSchema)
def list_carriers() -> dict[str, Any]:
    """List the telephony carriers with the credentials that each takes."""
    return {"providers": providers.metadata()}


@blueprint.get("/organizations/telephony-configs")
@blueprint.response(200, ConfigurationListSchema)
def list_configurations() -> dict[str, Any]:
    """List the telephony configurations of the organization."""
    return {"configurations": [item_answer(*listed) for listed in configs.listed(organization())]}


@blueprint.post("/organizations/telephony-configs")
@blueprint.alt_response(409)
@blueprint.arguments(NewConfigurationSchema)
@blueprint.response(200, ConfigurationDetailSchema)
def create_configuration(body: dict[str, Any]) -> dict[str, Any]:
    """Store an account at a carrier. Its secrets are encrypted, and shown masked from then on."""
    return detail_answer(
        configs.create(
            service().vault,
            organization(),
            body["name"],
            body["config"],
            is_default_outbound=body["is_default_outbound"],
        )
    )


@blueprint.get("/organizations/telephony-configs/<config_id>")
@blueprint.alt_response(400)
@blueprint.response(200, ConfigurationDetailSchema)
def get_configuration(config_id: int) -> dict[str, Any]:
    """Show a telephony configuration, its secrets masked."""
    return detail_answer(configs.get(organization(), config_id))


@blueprint.put("/organizations/telephony-configs/<config_id>")
@blueprint.alt_response(409)
@blueprint.arguments(ConfigurationChangeSchema)
@blueprint.response(200, ConfigurationDetailSchema)
def update_configuration(body: dict[str, Any], config_id: int) -> dict[str, Any]:
    """Rename a telephony configuration or replace its credentials; a secret sent back masked stays as it is."""
    return detail_answer(configs.update(service().vault, organization(), config_id, body["name"], body["config"]))


@blueprint.delete("/organizations/telephony-configs/<config_id>")
@blueprint.alt_response(409)
@blueprint.response(200, DoneSchema)
def delete_configuration(config_id: int) -> dict[str, Any]:
    """Remove a telephony configuration with its numbers, unless a campaign calls through it."""
    configs.delete(organization(), config_id)
    return {"message": "Telephony configuration deleted"}


@blueprint.post("/organizations/telephony-configs/<config_id>/set-default-outbound")
@blueprint.alt_response(400)
@blueprint.response(200, ConfigurationDetailSchema)
def set_default_outbound(config_id: int) -> dict[str, Any]:
    """Make it the configuration of calls that name none."""
    return detail_answer(configs.set_default_outbound(organization(), config_id))


@blueprint.post("/organizations/telephony-configs/<config_id>/reactivate")
@blueprint.alt_response(400)
@blueprint.response(200, ConfigurationDetailSchema)
def reactivate_configuration(config_id: int) -> dict[str, Any]:
    """Use a telephony configuration again that was set aside."""
    return detail_answer(configs.reactivate(organization(), config_id))


def shared_answer(configuration: TelephonyConfiguration) -> dict[str, Any]:
    """The members that the list and the detail of a configuration share."""
    return {
        "id": configuration.id,
        "name": configuration.name,
        "provider": configuration.provider,
        "connectivity": configs.provider(configuration).connectivity,
        "is_default_outbound": configuration.is_default_outbound,
        "inactive": configuration.inactive,
        "inactive_since": configuration.inactive_since,
        "inactive_reason": configuration.inactive_reason,
        "created_at": configuration.created_at,
        "updated_at": configuration.updated_at,
    }


def item_answer(configuration: TelephonyConfiguration, active_numbers: int) -> dict[str, Any]:
    ready, reason = configs.readiness(configuration, active_numbers)
    return {
        **shared_answer(configuration),
        "phone_number_count": active_numbers,
        "is_ready_for_outbound": ready,
        "outbound_blocked_reason": reason,
    }


def detail_answer(configuration: TelephonyConfiguration) -> dict[str, Any]:
    return {
        **shared_answer(configuration),
        "credentials": configs.masked_credentials(service().vault, configuration),
        "calls_per_second": configuration.calls_per_second,
        "webhook_urls": webhook_urls(configuration),
        "sip_connectivity": None,
        "setup_checklist": setup_checklist(configuration),
        "supports_trunks": False,
        "trunks": [],
    }


def webhook_urls(configuration: TelephonyConfiguration) -> dict[str, Any] | None:
    """The URLs to enter at the carrier; None for the simulator, and while none would lead here."""
    if configuration.provider == "simulator" or service().settings.public_url is None:
        return None
    urls = InboundURLs(f"{service().base_url}/api/v1/telephony/inbound", configuration.id)
    return {"inbound": urls.answer, "status": urls.status}


def setup_checklist(configuration: TelephonyConfiguration) -> dict[str, Any] | None:
    """What is left to do before calls can go out; None for a carrier that needs nothing."""
    carrier = configs.provider(configuration)
    if not carrier.needs_caller_id:
        return None
    numbers = configs.active_numbers(configuration)
    ready, reason = configs.readiness(configuration, numbers)
    step = {
        "key": "caller_id",
        "title": "Add a phone number",
        "description": f"Calls show one of the numbers of your {carrier.display_name} account.",
        "complete": numbers > 0,
        "blocks_outbound": True,
    }
    return {
        "ready_for_outbound": ready,
        "outbound_blocked_reason": reason,
        "steps": [step],
        "docs_url": carrier.docs_url,
    }
