"""One warning when a workflow that needs a language model is called without one."""

from __future__ import annotations

import logging

from ..engine.ports import LanguageModel
from ..engine.validation.outline import Outline
from ..llm import selection
from ..llm.model_needs import model_needs
from ..service import Service
from ..store.workflows import Workflow, WorkflowVersion
from ..tools import offered

log = logging.getLogger("voiceapi")

# How many places the line names.
NAMED = 5


def warn_without_model(
    service: Service, workflow: Workflow, version: WorkflowVersion, model: LanguageModel
) -> list[str]:
    """Log and return what of a version the scripted model can't carry out, if that one speaks.

    It is once in the life of this process, for a draft, which may be edited between two calls, once for each list of
    such parts; else nothing is logged and the list is empty.
    """
    if not selection.is_scripted(model) or (version.status != "draft" and version.id in service.noticed):
        return []
    outline = Outline.of(version.definition)
    usable = offered.usable_without_model(offered.attached(workflow.organization_id, outline))
    places = [" ".join(filter(None, (each.kind, each.id, each.field))) for each in model_needs(outline, usable)]
    key = (version.id, *places) if version.status == "draft" else version.id
    first = object()
    # Of two calls at once, one finds its own object.
    if service.noticed.setdefault(key, first) is not first or not places:
        return []
    more = f" and {len(places) - NAMED} more" if len(places) > NAMED else ""
    log.warning(
        "Workflow %s %r, version %s, needs a language model, and none is configured: %s%s. "
        "POST /api/v1/workflow/%s/validate says why.",
        workflow.id,
        workflow.name,
        version.version_number,
        ", ".join(map(repr, places[:NAMED])),
        more,
        workflow.id,
    )
    return places
