"""The webhooks that a rehearsed conversation would owe, rendered and never sent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ..engine.graph import data_of
from ..engine.state import State
from ..engine.template import TextTooLong
from ..postcall import outbox, processing, rendering
from ..timestamps import write_time


def owed(definition: Mapping[str, Any], state: State, moment: datetime) -> dict[str, Any]:
    """The bodies of the webhooks that the ended conversation owes, by the id of their node; null for one without.

    What only a stored run has, such as its id and its transcript, is null in them.
    """
    context = {
        **dict.fromkeys(processing.VARIABLES),
        "call_time": write_time(moment),
        "initial_context": state.setup.initial_context,
        "gathered_context": state.gathered_context,
        "cost_info": {},
        "annotations": {},
        "extra": {},
    }
    bodies: dict[str, Any] = {}
    for node in outbox.webhooks(definition):
        try:
            body = rendering.render_request(data_of(node), context, moment).body
        except TextTooLong as error:
            bodies[node["id"]] = {"error": str(error)}
        else:
            bodies[node["id"]] = None if body is None else json.loads(body)
    return bodies
