"""Webhooks that can't be answered while the database is locked or full: the carrier is told to ask again.

The request that a redirect leads to lacks what the caller said, and another process may receive it. So its URL carries
that along, encrypted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, get_args

from ..engine.actions import Action, HangUp, Pause, Redirect, Say
from ..engine.phrases import phrases
from ..errors import NotPossible
from ..security import decrypt_json, encrypt_json
from ..service import Service
from ..store.fields import now
from ..telephony.carriers.base import Carrier, VoiceSettings, WebhookDocument
from ..telephony.carriers.events import CallerInput, Inbound, Speech
from ..telephony.carriers.webhook import CallbackURLs, Webhook

# How many seconds a webhook waits for the database; the strictest carriers wait five seconds for its answer.
WAIT_SECONDS = 3.0
# The pause before the carrier asks again, and how long it is told to: then the caller is told that it doesn't work.
PAUSE_SECONDS = 1.0
LONGEST_SECONDS = 90.0
# Characters of what the caller said. A URL has to stay below 4,094 bytes, the limit of some servers.
LONGEST_TEXT = 1000
FIELD = "again"
INPUTS: Mapping[str, type[CallerInput]] = {kind.__name__: kind for kind in get_args(CallerInput)}


@dataclass(frozen=True, slots=True)
class RepeatedWebhook:
    """What the first webhook reported, carried along in the URL of its repetitions.

    :param since: when the carrier was first told to ask again, in seconds since 1970.
    :param caller_input: what the caller did before a turn; None if nothing asks for a document.
    :param machine: the carrier has reported an answering machine.
    :param call: an inbound call that isn't stored yet.
    :param conversation: the carrier's id of all legs of that call.
    """

    since: float
    caller_input: CallerInput | None = None
    machine: bool = False
    call: Inbound | None = None
    conversation: str | None = None


def read(service: Service, webhook: Webhook) -> RepeatedWebhook | None:
    """What the URL of a repeated webhook carries along; None for one that isn't repeated."""
    token = dict(webhook.query).get(FIELD)
    if token is None:
        return None
    try:
        found = decrypt_json(service.vault, token)
    except (NotPossible, UnicodeError):
        return None
    if found["url"] != webhook.url.partition("?")[0]:
        return None
    given, call = found["given"], found["call"]
    return RepeatedWebhook(
        found["since"],
        None if given is None else INPUTS[found["kind"]](**given),
        found["machine"],
        None if call is None else Inbound(**call),
        found["conversation"],
    )


def ask_again(
    service: Service,
    carrier: Carrier,
    url: str,
    repeated: RepeatedWebhook,
    configurations: Mapping[str, Any],
    voice: VoiceSettings,
) -> WebhookDocument:
    """The document that has the carrier ask `url` again after a moment; one that hangs up when that took too long.

    :param url: without a query.
    :param configurations: those of the workflow, or empty.
    """
    spoken = phrases(configurations)
    if now().timestamp() - repeated.since > LONGEST_SECONDS:
        actions: list[Action] = [Say(spoken["service_error"], False), HangUp()]
    else:
        actions = [Say(spoken["wait"], False), Pause(PAUSE_SECONDS), Redirect(0)]
    urls = CallbackURLs(url, "", repeated=_url(service, url, repeated), retries=carrier.retries)
    return carrier.render(actions, urls, voice)


def _url(service: Service, url: str, repeated: RepeatedWebhook) -> str:
    given, call = repeated.caller_input, repeated.call
    if isinstance(given, Speech):
        given = Speech(given.text[:LONGEST_TEXT])
    token = encrypt_json(
        service.vault,
        {
            "url": url,
            "since": repeated.since,
            "kind": type(given).__name__,
            "given": None if given is None else asdict(given),
            "machine": repeated.machine,
            "call": None if call is None else asdict(call),
            "conversation": repeated.conversation,
        },
    )
    return f"{url}?{FIELD}={token}"
