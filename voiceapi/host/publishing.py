"""Agents that a host's app brings along."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import InvalidInput
from ..organizations import api_keys
from ..service import Service
from ..store.base import update
from ..store.database import write
from ..store.workflows import Workflow, named
from ..strict_json import canonical, parse, storable
from ..workflows import versions
from .errors import AgentNotFound


def publish(
    service: Service, source: Mapping[str, Any] | str | Path, name: str | None, organization: str | None
) -> int:
    """See `VoiceAPI.publish`."""
    from ..moving import bundle  # an app that publishes nothing needs none of it

    organization = api_keys.DEFAULT_ORGANIZATION if organization is None else organization
    if not organization or organization != storable(organization):
        raise ValueError(f"{organization!r} isn't the name of an organization.")
    found, stem = (source, "") if isinstance(source, Mapping) else (_file(Path(source)), Path(source).stem)
    if not (name := name or stem):
        raise ValueError("An agent without a file needs a name.")
    if not isinstance(found, Mapping):
        raise InvalidInput("It holds no object of JSON, so it is no workflow.")
    digest = hashlib.sha256(canonical(found)).hexdigest()
    read = bundle.read(dict(found), name)
    if len(read.workflows) != 1:
        raise InvalidInput("It holds several workflows; export one of them.")
    agent = read.workflows[0].versions[-1]
    owner = api_keys.get_or_create_organization(service, organization)
    # Processes that start at the same time do this one after the other.
    with write():
        several = named(owner.id, name)
        if len(several) > 1:
            raise AgentNotFound(f"Several agents are named {name!r}; rename all but one.")
        known = next(iter(several), None)
        if known is not None and known.published_from == digest:
            return int(known.id)
        workflow = known or versions.create(service.vault, owner.id, name, agent.workflow_json)[0]
        configurations, variables = agent.workflow_configurations, agent.template_context_variables
        if known or configurations or variables:
            versions.save(service.vault, owner.id, workflow.id, None, agent.workflow_json, configurations, variables)
            versions.publish(owner.id, workflow.id)
        else:
            versions.load_graph(workflow, versions.published(workflow))
        workflow.published_from = digest
        update(workflow, Workflow.published_from)
        return int(workflow.id)


def _file(path: Path) -> Any:
    """What a JSON file holds.

    :raises OSError: when it can't be read.
    :raises InvalidInput: when it isn't JSON in UTF-8.
    """
    try:
        return parse(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} isn't UTF-8.") from None
