"""All rules that a workflow definition has to keep before it may be published."""

from collections.abc import Container, Mapping
from typing import Any

from .field_types import Catalogue
from .finding import Finding
from .graph_rules import Tool, graph_findings, taken_path_findings, tool_name_findings, trigger_path_findings
from .node_rules import schema_findings


def check(
    definition: Any,
    catalogue: Catalogue,
    tools: Mapping[str, Tool] | None = None,
    taken_paths: Container[str] = (),
) -> list[Finding]:
    """Return every rule that `definition`, any JSON value, breaks; an empty list means that it may be published.

    The shape of the graph is only checked when nodes and edges have the right members.

    :param catalogue: the node specs by type.
    :param tools: the organization's tools by uuid.
    :param taken_paths: the trigger paths of other workflows.
    """
    schema = schema_findings(definition, catalogue)
    return [
        *schema,
        *([] if schema else graph_findings(definition, catalogue)),
        *trigger_path_findings(definition),
        *tool_name_findings(definition, tools or {}),
        *taken_path_findings(definition, taken_paths),
    ]
