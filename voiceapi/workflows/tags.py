"""A workflow's tag: a text that differs after any change, so that nobody overwrites what another editor has saved."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

from ..errors import Outdated
from ..store.base import json_text
from ..store.workflows import Workflow, WorkflowVersion
from ..strict_json import Fragment, encode

PARTS = (WorkflowVersion.definition, WorkflowVersion.configurations, WorkflowVersion.template_context_variables)
# Whether a tag is one of those that an editor expects; None when any is.
Expected = Callable[[str], bool] | None


def tag_of(workflow: Workflow, version: WorkflowVersion) -> str:
    """The tag of a workflow whose current version is `version`, made of what is stored; runs don't change it."""
    state = [
        *(workflow.id, workflow.name, workflow.status, version.id, version.version_number, version.status),
        *(Fragment(json_text(version, field)) for field in PARTS),
    ]
    return sha256(encode(state)).hexdigest()[:32]


def require(expected: Expected, workflow: Workflow, version: WorkflowVersion) -> None:
    """Check that an editor has read the workflow as it is; call it in the transaction that changes the workflow.

    :raises Outdated: when it was changed since.
    """
    if expected is not None and not expected(tag_of(workflow, version)):
        raise Outdated(
            "The workflow was changed since it was read: read it again, and send the change with the new ETag."
        )
