"""All rules that a workflow definition has to keep before it may be published."""

from collections.abc import Container, Mapping

from .field_types import Catalogue
from .finding import Finding
from .graph_rules import Tool, graph_findings, taken_path_findings, tool_name_findings, trigger_path_findings
from .node_rules import schema_findings
from .outline import Outline


def check(
    outline: Outline,
    catalogue: Catalogue,
    tools: Mapping[str, Tool] | None = None,
    taken_paths: Container[str] = (),
) -> list[Finding]:
    """Return every rule that a definition breaks; an empty list means that it may be published.

    The shape of the graph is only checked when nodes and edges have the right members.

    :param catalogue: the types of node by name.
    :param tools: the organization's tools by uuid.
    :param taken_paths: the trigger paths of other workflows.
    """
    schema = schema_findings(outline, catalogue)
    return [
        *schema,
        *([] if schema else graph_findings(outline, catalogue)),
        *trigger_path_findings(outline),
        *tool_name_findings(outline, tools or {}),
        *taken_path_findings(outline, taken_paths),
    ]
