"""Numbers of carriers' accounts that are connected with agents: which there are, and how that is done and undone."""

from __future__ import annotations

from typing import Any

from ..calls import number_setup
from ..calls.number_setup import Account
from ..errors import NotPossible
from ..telephony.carriers.number_settings import ConnectableCarrier
from ..telephony.connect import CARRIERS
from ..telephony.providers import PROVIDERS
from .auth import organization, service
from .blueprint import Blueprint
from .schemas import fields
from .schemas.base import BodySchema, ResponseSchema

PATH = "/organizations/connected-numbers"
GIVEN = {"description": "the account's credentials by name; what is stored already may be left out"}
blueprint = Blueprint("connected_numbers", __name__)


# -- schemas


class AccountSchema(BodySchema):
    provider = fields.Text(required=True, validate=fields.Choice(sorted(CARRIERS)))
    credentials = fields.Object(load_default=dict, metadata=GIVEN)
    telephony_configuration_id = fields.Integer(load_default=None)


class NumberToConnectSchema(AccountSchema):
    number = fields.Text(required=True, validate=fields.Length(1, 255), description="with + and country code")
    workflow_id = fields.Integer(required=True, description="the agent that answers its calls")
    name = fields.Text(load_default=None, validate=fields.Length(1, 64), description="of a new configuration")
    dry_run = fields.Flag(load_default=False, description="only say what would change")


class NumberToUndoSchema(BodySchema):
    telephony_configuration_id = fields.Integer(required=True)
    number = fields.Text(required=True, validate=fields.Length(1, 255))
    dry_run = fields.Flag(load_default=False, description="only say what would be put back")


class ConnectableSchema(ResponseSchema):
    provider = fields.Text(required=True)
    credentials = fields.Items(fields.Text(), required=True, description="those that somebody enters")
    sets_urls = fields.Flag(required=True, description="false: what to enter at the carrier is said")


class ConnectedNumberSchema(ResponseSchema):
    telephony_configuration_id = fields.Integer(required=True)
    number = fields.Text(required=True)


class ConnectedNumberListSchema(ResponseSchema):
    connected_numbers = fields.Items(fields.Model(ConnectedNumberSchema), required=True)
    carriers = fields.Items(fields.Model(ConnectableSchema), required=True)
    problem = fields.Text(required=True, allow_none=True, description="why no number can be connected now")


class AccountNumberSchema(ResponseSchema):
    number = fields.Text(required=True)
    label = fields.Text(required=True)
    obstacle = fields.Text(required=True, description="why it can't be connected; empty if it can")


class AccountNumberListSchema(ResponseSchema):
    telephony_configuration_id = fields.Integer(required=True, allow_none=True)
    numbers = fields.Items(
        fields.Model(AccountNumberSchema),
        required=True,
        allow_none=True,
        description="null where the carrier's API doesn't list them",
    )


class ConnectedSchema(ResponseSchema):
    changes = fields.Items(fields.Text(), required=True)
    notes = fields.Items(fields.Text(), required=True, description="what is left to do at the carrier")
    telephony_configuration_id = fields.Integer(required=True, allow_none=True)
    phone_number_id = fields.Integer(required=True, allow_none=True)


class UndoneSchema(ResponseSchema):
    restored = fields.Items(fields.Text(), required=True)
    left = fields.Items(fields.Text(), required=True, description="what was changed since, and stays")


@blueprint.get(PATH)
@blueprint.alt_response(400)
@blueprint.response(200, ConnectedNumberListSchema)
def list_connected() -> dict[str, Any]:
    """List the connected numbers, and what connecting one at each carrier needs."""
    known = number_setup.connected(service(), organization())
    return {
        "connected_numbers": [{"telephony_configuration_id": each.id, "number": number} for each, number in known],
        "carriers": [
            {
                "provider": name,
                "credentials": [each.name for each in PROVIDERS[name].asked],
                "sets_urls": isinstance(carrier, type) and issubclass(carrier, ConnectableCarrier),
            }
            for name, carrier in sorted(CARRIERS.items())
        ],
        "problem": _problem(),
    }


def _problem() -> str | None:
    try:
        number_setup.require_https(service(), "a carrier")
    except NotPossible as error:
        return str(error.detail)
    return None


@blueprint.post(f"{PATH}/available")
@blueprint.alt_response(400)
@blueprint.alt_response(503)
@blueprint.arguments(AccountSchema)
@blueprint.response(200, AccountNumberListSchema)
def list_available(body: dict[str, Any]) -> dict[str, Any]:
    """List the numbers of an account at a carrier, which checks its credentials."""
    account = _account(body)
    numbers = number_setup.account_numbers(service(), account)
    known = account.configuration
    return {
        "telephony_configuration_id": None if known is None else known.id,
        "numbers": None
        if numbers is None
        else [{"number": each.number, "label": each.label, "obstacle": each.obstacle} for each in numbers],
    }


@blueprint.post(PATH)
@blueprint.alt_response(400)
@blueprint.alt_response(409)
@blueprint.alt_response(503)
@blueprint.arguments(NumberToConnectSchema)
@blueprint.response(200, ConnectedSchema)
def connect_number(body: dict[str, Any]) -> dict[str, Any]:
    """Connect a number of an account with an agent, here and at the carrier; or only say what that changes."""
    account = _account(body, body["number"])
    plan = number_setup.plan(service(), account, body["number"], body["workflow_id"], body["name"])
    answer: dict[str, Any] = {
        "changes": plan.changes,
        "notes": [],
        "telephony_configuration_id": None,
        "phone_number_id": None,
    }
    if body["dry_run"]:
        return answer
    done = number_setup.carry_out(service(), plan)
    ids = {"telephony_configuration_id": done.configuration.id, "phone_number_id": done.number.id}
    return {**answer, **ids, "notes": done.notes}


@blueprint.post(f"{PATH}/undo")
@blueprint.alt_response(400)
@blueprint.alt_response(503)
@blueprint.arguments(NumberToUndoSchema)
@blueprint.response(200, UndoneSchema)
def undo_connection(body: dict[str, Any]) -> dict[str, Any]:
    """Put back what stood before a number was first connected; what was changed since stays, and is named."""
    config_id, number = body["telephony_configuration_id"], body["number"]
    undone = number_setup.undo(service(), organization(), config_id, number, dry_run=body["dry_run"])
    return {"restored": undone.restored, "left": undone.left}


def _account(body: dict[str, Any], number: str | None = None) -> Account:
    given, known = body["credentials"], body["telephony_configuration_id"]
    return number_setup.open_account(service(), organization(), body["provider"], given, known, number)
