"""The kinds of node that a workflow may have."""

from __future__ import annotations

from typing import Any

from ..errors import RecordNotFound
from ..workflows import node_types
from .blueprint import Blueprint
from .schemas.node_types import NodeSpecSchema, NodeTypesSchema

blueprint = Blueprint("node_types", __name__)


@blueprint.get("/node-types")
@blueprint.response(200, NodeTypesSchema)
def list_node_types() -> dict[str, Any]:
    """List the node types with their properties, for editors and for programs that write workflows."""
    return {"spec_version": node_types.SPEC_VERSION, "node_types": node_types.node_types()}


@blueprint.get("/node-types/<name>")
@blueprint.response(200, NodeSpecSchema)
def get_node_type(name: str) -> dict[str, Any]:
    """Show one node type."""
    spec = node_types.by_name().get(name)
    if spec is None:
        raise RecordNotFound(f"Unknown node type: {name!r}")
    return spec
