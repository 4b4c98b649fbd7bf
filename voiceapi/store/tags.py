"""Tags of what people edit: texts that differ after any change, so that nobody overwrites what another has saved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from ..errors import Outdated
from ..strict_json import Fragment, encode
from .base import Record, json_text
from .campaigns import Campaign
from .fields import JSONText
from .organizations import Credential, Organization
from .telephony import PhoneNumber, TelephonyConfiguration
from .tools import Tool
from .workflows import ConversationCase, Workflow, WorkflowVersion

# Whether a tag is one of those that an editor expects; None when any is.
Expected = Callable[[str], bool] | None


@dataclass(frozen=True)
class Edited:
    """A kind of thing that people edit.

    :param name: what errors call it.
    :param fields: those that requests change as a whole, and that an editor could overwrite. Counters, states and times
        aren't among them: they change while somebody edits. Secrets are in a tag as they are encrypted, so that nobody
        can try secrets out on the tag.
    """

    name: str
    fields: tuple[Any, ...]

    def tag(self, *records: Record) -> str:
        """The tag of one such thing, made of what is stored.

        :param records: one of each table that the fields are of. Compute their tag before a JSON value is used: that of
            an earlier release may be stored in another spelling than it is decoded and encoded again.
        """
        of_table = {type(record): record for record in records}
        state = [*(record.id for record in records), *(_value(of_table[field.model], field) for field in self.fields)]
        return sha256(encode(state)).hexdigest()[:32]

    def require(self, expected: Expected, *records: Record) -> None:
        """Check that an editor has read the thing as it is; call it in the transaction that changes the thing.

        :raises Outdated: when it was changed since.
        """
        if expected is not None and not expected(self.tag(*records)):
            raise Outdated(
                f"The {self.name} was changed since it was read: read it again, and send the change with the new ETag."
            )


def _value(record: Record, field: Any) -> Any:
    value = record.__data__.get(field.name)  # a new record lacks what wasn't set
    if isinstance(field, JSONText) and value is not None:
        return Fragment(json_text(record, field))
    return field.db_value(value)


_VERSION = WorkflowVersion
WORKFLOW = Edited(
    "workflow",
    (
        *(Workflow.name, Workflow.status, _VERSION.version_number, _VERSION.status),
        *(_VERSION.definition, _VERSION.configurations, _VERSION.template_context_variables),
    ),
)
CASE = Edited("case", (ConversationCase.name, ConversationCase.enabled, ConversationCase.content))
TOOL = Edited("tool", (Tool.name, Tool.description, Tool.icon, Tool.icon_color, Tool.definition, Tool.status))
CREDENTIAL = Edited(
    "credential", (Credential.name, Credential.description, Credential.credential_type, Credential.data)
)
PREFERENCES = Edited("set of preferences", (Organization.preferences,))
MODELS = Edited("model configuration", (Organization.model_configuration,))
CONFIGURATION = Edited(
    "telephony configuration",
    (
        *(TelephonyConfiguration.name, TelephonyConfiguration.credentials),
        *(TelephonyConfiguration.calls_per_second, TelephonyConfiguration.country),
    ),
)
PHONE_NUMBER = Edited(
    "phone number",
    (
        *(PhoneNumber.label, PhoneNumber.country_code, PhoneNumber.inbound_workflow),
        *(PhoneNumber.is_active, PhoneNumber.extra_metadata),
    ),
)
CAMPAIGN = Edited(
    "campaign",
    (
        *(Campaign.name, Campaign.retry_config, Campaign.max_concurrency, Campaign.schedule_config),
        *(Campaign.circuit_breaker, Campaign.calling_hours, Campaign.max_attempts_per_day),
    ),
)
