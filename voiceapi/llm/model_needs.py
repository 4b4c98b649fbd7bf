"""The parts of a workflow definition that only a language model can carry out, and the scripted model can't."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any

from ..engine.actions import Function
from ..engine.extraction import Variable, variables_of
from ..engine.graph import SPEAKING, Node, data_of, transition_slug
from ..engine.template import as_boolean
from ..engine.validation.finding import Finding
from ..engine.validation.outline import Outline, attached_documents, attached_tools
from ..engine.validation.speech_rules import is_instruction

NO_MODEL = "no language model is configured"
INSTRUCTION = f"This prompt is an instruction to a language model; {NO_MODEL}, so it is spoken as it is written."
SCRIPT = "This text is spoken as it is written, and it is an instruction. Instructions belong into the prompt."
ONLY_GREETING = f"Only a language model can follow this prompt; {NO_MODEL}, so nothing is said after the greeting."
TOOL = f"Only a language model calls this tool; {NO_MODEL}."
DOCUMENTS = f"Only a language model looks up documents; {NO_MODEL}."
REVIEW = f"Only a language model reviews a call; {NO_MODEL}, so that this review is skipped."
ALIKE = f"By its words this edge can't be told from the others of its node; {NO_MODEL}."

# A review takes place unless the first is off, and by the workflow's model unless the second is off.
QA_FIELDS = ("qa_enabled", "qa_use_workflow_llm")

# Words of a condition that say how somebody answers, and not what.
_ABOUT_ANSWERING = re.compile(
    r"\b(?:answer|ask|agreed?|all|any|call|collect|complete|confirm|continue|conversation|detail|done|end|enough|every|"
    r"everything|finish|gave|give|given|go|goal|information|is|named?|need|next|node|number|ok|provide|question|reached|"
    r"ready|reply|replied|required?|respon[ds]e?|said|say|spoke|state|step|stated|task|tell|thing|told|understood|when)\w*"
    r"|\b(?:both|two|three|four|once|has|have|been|was|were|it|that|this|their|they|them|he|she|his|her|the|an?|and|or|"
    r"to|of|in|for|with|at)\b"
)
_COMPARES = re.compile(
    r"\b(?:more|less|fewer|older|younger|higher|lower|greater|larger|smaller|bigger|cheaper|longer|shorter|better|worse|"
    r"earlier|later) than\b|\bat (?:least|most)\b|\b(?:above|below|under|over|between|within|exceeds?) "
    r"(?:\$|€|£)?(?:\d|one\b|two\b|three\b|four\b|five\b|six\b|seven\b|eight\b|nine\b|ten\b|a hundred\b)",
    re.IGNORECASE,
)
_DERIVED = re.compile(
    r"summar|sentiment|\bmood\b|tone of|classif|categor|analy[sz]|\bassess|evaluat|\binfer|translat|paraphras|"
    r"in your own words|yyyy|iso.?8601|lead.?score|intent\b|likelihood|confidence|\bjudge\b",
    re.IGNORECASE,
)
# Of a node with more edges, none is compared with all others: that would take minutes with some thousand.
MOST_COMPARED = 50
# Characters of a node's edges that are remembered, and of how many nodes: at most some megabytes in all. Of a workflow
# with more nodes, none is found again.
LONGEST_REMEMBERED, MOST_REMEMBERED = 4_000, 2048

# Label and condition of an edge.
Texts = tuple[str, str]


def model_needs(outline: Outline, usable_tools: Collection[str] = ()) -> list[Finding]:
    """Return a warning for each part of a definition that only a language model can carry out.

    :param usable_tools: the uuids of tools that the scripted model uses, too.
    """
    edges = _edges_by_source(outline)
    found = [
        finding for id, node in outline.by_id.items() for finding in _node(node, usable_tools, leads_on=id in edges)
    ]
    return found + [finding for id in outline.by_id if id in edges for finding in _edges(edges[id])]


def _node(node: Mapping[str, Any], usable_tools: Collection[str], *, leads_on: bool) -> Iterator[Finding]:
    id, type, data = node["id"], node.get("type"), data_of(node)
    if type == "qa" and all(as_boolean(data.get(field)) is not False for field in QA_FIELDS):
        yield Finding("node", id, None, REVIEW, "review-needs-model")
    if type not in SPEAKING:
        return
    prompt, greeting, script = (data.get(name) for name in ("prompt", "greeting", "scripted_text"))
    if isinstance(script, str) and script.strip():
        if is_instruction(script):
            yield Finding("node", id, "data.scripted_text", SCRIPT, "prompt-needs-model")
    elif isinstance(prompt, str) and is_instruction(prompt):
        if type != "startCall" or not isinstance(greeting, str) or not greeting.strip():
            yield Finding("node", id, "data.prompt", INSTRUCTION, "prompt-needs-model")
        elif not leads_on:
            yield Finding("node", id, "data.prompt", ONLY_GREETING, "prompt-needs-model")
    for index, uuid in enumerate(attached_tools(node)):
        if uuid not in usable_tools:
            yield Finding("node", id, f"data.tool_uuids.{index}", TOOL, "tool-needs-model")
    if attached_documents(node):
        yield Finding("node", id, "data.document_uuids", DOCUMENTS, "documents-need-model")
    listed = data.get("extraction_variables")
    if not isinstance(listed, list):
        return
    variables = [each for each in variables_of(Node(id, str(type), "", data)) if _is_derived(each)]
    names = [each.get("name") if isinstance(each, Mapping) else None for each in listed]
    for variable in variables:
        text = f"{variable.name} isn't something that a caller says; {NO_MODEL}, so it may stay empty or be wrong."
        place = f"data.extraction_variables.{names.index(variable.name)}"
        yield Finding("node", id, place, text, "variable-needs-model")


def _is_derived(variable: Variable) -> bool:
    return _DERIVED.search(f"{variable.name.replace('_', ' ')} {variable.hint}") is not None


# -- edges


def _edges_by_source(outline: Outline) -> dict[str, list[tuple[str, Texts]]]:
    """The id and texts of the edges that leave each node, by its id; malformed ones are skipped."""
    found: dict[str, list[tuple[str, Texts]]] = {}
    for edge in outline.edges:
        match edge:
            case {"id": str(id), "source": str(source), "data": {"label": str(label), "condition": str(condition)}}:
                found.setdefault(source, []).append((id, (label, condition)))
    return found


def _edges(edges: list[tuple[str, Texts]]) -> Iterator[Finding]:
    """Warn of edges that no words of a caller lead to, or the same words as another edge of their node."""
    texts = tuple(each for _, each in edges)
    length = sum(len(label) + len(condition) for label, condition in texts)
    warnings = _warnings(texts) if length <= LONGEST_REMEMBERED else _warnings.__wrapped__(texts)
    for (id, _), warning in zip(edges, warnings, strict=True):
        if warning:
            code = "edges-alike" if warning == ALIKE else "edge-needs-model"
            yield Finding("edge", id, "data.condition", warning, code)


# Most nodes are as they were when a workflow is validated again.
@lru_cache(maxsize=MOST_REMEMBERED)
def _warnings(edges: tuple[Texts, ...]) -> tuple[str, ...]:
    """The warning about each of a node's edges, or ""."""
    functions = tuple(Function(transition_slug(label), condition, label=label) for label, condition in edges)
    return tuple(_warning(function, functions) for function in functions)


def _warning(function: Function, functions: tuple[Function, ...]) -> str:
    if _COMPARES.search(function.description):
        return f"Only a language model can compare what this condition compares; {NO_MODEL}."
    if not _can_be_said(function):
        return f"No words of a caller lead to this edge, only a language model's judgement; {NO_MODEL}."
    if len(functions) <= MOST_COMPARED and not _is_told_apart(function, functions):
        return ALIKE
    return ""


def _can_be_said(function: Function) -> bool:
    """True if label or condition holds a word of an answer, beside those on how somebody answers."""
    from .understanding.edge_choice import best_edge
    from .understanding.matching import has_content

    text = f"{function.label or ''} {function.description}"
    plain = has_content(_ABOUT_ANSWERING.sub(" ", text.casefold()))
    return plain or best_edge("yes", (function,)) is not None or best_edge("no", (function,)) is not None


def _is_told_apart(function: Function, functions: tuple[Function, ...]) -> bool:
    """True if a caller who says what the edge itself says gets to it and to no other."""
    from .understanding.edge_choice import best_edge, leads_to_itself

    if len(functions) == 1 and leads_to_itself(function):
        return True
    said = (function.label or "", function.description, f"{function.label or ''}. {function.description}")
    return any(best_edge(text, functions) is function for text in said)
