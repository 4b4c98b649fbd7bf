"""Rules on template variables: whether something supplies each one, and whether what is extracted is sent."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ..compose import wants_fetch
from ..extraction import RESERVED, variables_of
from ..graph import SPEAKING, Node, data_of, is_supplied
from ..template import as_boolean, is_built_in, placeholders, values
from .finding import Finding
from .outline import Outline
from .paths import Paths, missing_on_some_path

# What the service itself puts into the context of a call, beside what `is_supplied` knows.
_OF_A_CALL = {
    *("agent_identifier", "agent_identifier_type", "agent_uuid", "api_key_created_by", "api_key_id", "called_number"),
    *("direction", "from_phone_number_id", "phone_number", "runtime_configuration", "telephony_configuration_id"),
    *("trigger_mode", "workflow_uuid"),
}
# What it puts into what is gathered.
_GATHERED = {*RESERVED, "conversation_id", "telephony_configuration_id", "telephony_configuration_name"}
_GATHERED_CONTEXT, _INITIAL_CONTEXT, _EXTRACTED = "gathered_context", "initial_context", "extracted_variables"
# The variables of a webhook; what is within one isn't known here, but for what the agent gathered.
_OF_A_WEBHOOK = {
    *("annotations", "bot_recording_url", "call_time", "campaign_id", "cost_info", "extra", "gathered_context"),
    *("initial_context", "recording_url", "transcript_url", "user_recording_url", "workflow_id", "workflow_name"),
    *("workflow_run_id", "workflow_run_name"),
}
_WITHOUT_BODY = ("GET", "DELETE")
# The payload of a new webhook, as the catalogue of node types has it. Nobody chose its variables.
_DEFAULT_PAYLOAD = {
    "call_id": "{{workflow_run_id}}",
    "first_name": "{{initial_context.first_name}}",
    "rsvp": "{{gathered_context.rsvp}}",
    "duration": "{{cost_info.call_duration_seconds}}",
    "recording_url": "{{recording_url}}",
    "user_recording_url": "{{user_recording_url}}",
    "bot_recording_url": "{{bot_recording_url}}",
    "transcript_url": "{{transcript_url}}",
}
_SOME_TIME = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Sources:
    """What supplies variables and uses them, beside the graph.

    :param declared: names that each call brings along: template variables of the workflow, columns of contact lists.
    :param used_by_tools: names that the tools' templates hold; None when tools are attached that aren't known.
    """

    declared: Collection[str] = ()
    used_by_tools: Collection[str] | None = ()


@dataclass(frozen=True, slots=True)
class _Use:
    """A placeholder, where it stands, and the node with whose context it is rendered."""

    kind: Any
    id: str
    field: str
    node: str
    path: str
    is_required: bool  # without a default
    when_left: bool = False  # rendered when that node is left, else when it is entered
    in_call: bool = False  # in the arguments of that node's call, which know what was gathered by its names alone

    def gathered(self, in_calls: Collection[str], saved: Collection[str]) -> str | None:
        """The variable that it takes from what the agent gathered; None if it takes none."""
        root = self.path.split(".")[0]
        is_named = root in saved or (self.in_call and root in in_calls)
        return root if is_named else _gathered_name(self.path)


def _gathered_name(path: str) -> str | None:
    root, *rest = path.split(".")
    if root != _GATHERED_CONTEXT or not rest or rest == [_EXTRACTED]:
        return None
    return rest[1] if rest[0] == _EXTRACTED else rest[0]


def variable_findings(outline: Outline, paths: Paths, sources: Sources) -> list[Finding]:
    """Return what is wrong with the variables of a definition."""
    extracted = {id: _extracted_at(id, node) for id, node in outline.by_id.items() if id in paths.reachable}
    everywhere = {name for names in extracted.values() for name in names}
    saved = {id: call.save_as for id, call in outline.calls.items() if call.save_as and id in paths.reachable}
    declared = {*sources.declared}
    results = {*saved.values()} - declared
    in_calls = (everywhere | _GATHERED) - declared
    uses = [(use, use.gathered(in_calls, results)) for use in _uses(outline, paths, extracted)]
    required = [(use, name) for use, name in uses if use.is_required]
    wanted = {name: None for _, name in required if name and name not in _GATHERED}
    given = {id: {*names, saved.get(id, "")} for id, names in extracted.items()}
    lacking = missing_on_some_path(paths, list(wanted), given, saved)
    bits = {name: 1 << place for place, name in enumerate(wanted)}
    fetches = any(_fetches(node) for node in outline.by_id.values())
    found: dict[object, Finding] = {}
    for use, name in required:
        if name in bits:
            is_set = name == saved.get(use.node) and not use.in_call
            is_set = is_set or (use.when_left and name in extracted[use.node])
            if bits[name] & lacking.get(use.node, 0) and not is_set:
                where = "isn't extracted on every path to here" if name in everywhere else "is extracted nowhere"
                where = "isn't kept by a call on every path to here" if name in results else where
                text = f"{name} {where}, so {{{{{use.path}}}}} may be empty. {_advice(use.path)}"
                found.setdefault((use.kind, use.id, use.field, use.path), _unsupplied(use, text))
        elif name is None:
            for key, finding in _without_source(use, declared, everywhere, fetches=fetches):
                found.setdefault(key, finding)
    found_in_order = list(found.values())
    webhooks = [node for node in outline.by_id.values() if node.get("type") == "webhook" and _is_on(node)]
    found_in_order += [finding for node in webhooks for finding in _webhook(node, everywhere | results)]
    if sources.used_by_tools is not None:
        prompted = {name for _, name in uses if name}
        found_in_order += _left_out(outline, extracted, webhooks, prompted, sources.used_by_tools)
    return found_in_order


def _extracted_at(id: str, node: Mapping[str, Any]) -> dict[str, None]:
    """The names that a node extracts, in their order."""
    if node.get("type") not in SPEAKING:
        return {}
    listed = data_of(node).get("extraction_variables")
    usable = Node(id, "", "", data_of(node)) if isinstance(listed, list) else None
    return {variable.name: None for variable in variables_of(usable)} if usable else {}


def _uses(outline: Outline, paths: Paths, extracted: Mapping[str, Collection[str]]) -> Iterator[_Use]:
    """Yield the uses in what a conversation can get to, in the order of the definition."""
    reached = [node for id, node in outline.by_id.items() if id in paths.reachable and node.get("type") in SPEAKING]
    shared = next((node for node in outline.by_id.values() if node.get("type") == "globalNode"), None)
    if shared is not None and (general := _distinct(data_of(shared).get("prompt"))):
        for node in reached:
            if as_boolean(data_of(node).get("add_global_prompt")) is not False:
                yield from (_Use("node", shared["id"], "data.prompt", node["id"], *each) for each in general)
    for node in reached:
        id, data = node["id"], data_of(node)
        texts = [(f"data.{name}", data.get(name)) for name in ("prompt", "scripted_text")]
        if node["type"] == "startCall":
            texts.insert(0, ("data.greeting", data.get("greeting")))
        if extracted[id]:
            texts.append(("data.extraction_prompt", data.get("extraction_prompt")))
            hints = (each.get("prompt") if isinstance(each, Mapping) else None for each in data["extraction_variables"])
            texts += [(f"data.extraction_variables.{index}.prompt", hint) for index, hint in enumerate(hints)]
        yield from (_Use("node", id, place, id, *each) for place, text in texts for each in _distinct(text))
        if call := outline.calls.get(id):
            for place, text in _texts_in(call.arguments, "data.call.arguments"):
                yield from (_Use("node", id, place, id, *each, in_call=True) for each in _distinct(text))
    for edge in outline.edges:
        match edge:
            case {"id": str(id), "source": str(source), "target": str()} if source in extracted:
                for each in _distinct(data_of(edge).get("transition_speech")):
                    yield _Use("edge", id, "data.transition_speech", source, *each, when_left=True)


def _distinct(text: object) -> Collection[tuple[str, bool]]:
    """The paths of a text's placeholders, and whether they are without a default, each once."""
    if not isinstance(text, str) or "{{" not in text:
        return ()
    return dict.fromkeys((each.path, each.default is None) for each in placeholders(text))


def _without_source(
    use: _Use, declared: Collection[str], extracted: Collection[str], *, fetches: bool
) -> Iterator[tuple[object, Finding]]:
    """Yield the finding about a variable that isn't a gathered one and that nothing supplies.

    Before it stands what of several such findings only the first shows.
    """
    name = use.path.removeprefix(f"{_INITIAL_CONTEXT}.").split(".")[0]
    if name in (_GATHERED_CONTEXT, _INITIAL_CONTEXT) or name in declared or name in _OF_A_CALL:
        return
    place = (use.kind, use.id, use.field, use.path)
    if is_built_in(name):
        if not any(value is not None for _, value in values(f"{{{{{use.path}}}}}", {}, now=_SOME_TIME)):
            yield place, _unsupplied(use, f"{use.path} names a time zone that doesn't exist, so it is empty.")
    elif fetches or is_supplied(name):
        return
    elif name in extracted:
        text = f"{name} is extracted, so it is {{{{{_GATHERED_CONTEXT}.{name}}}}} here; {{{{{use.path}}}}} is empty."
        yield place, _unsupplied(use, text)
    else:
        text = (
            f"Nothing says where {name} comes from: it is not among the workflow's template_context_variables, and "
            f"nothing is fetched before the call. {_advice(use.path)}"
        )
        yield name, Finding(use.kind, use.id, use.field, text, "undeclared-variable")


def _unsupplied(use: _Use, text: str) -> Finding:
    return Finding(use.kind, use.id, use.field, text, "unsupplied-variable")


def _advice(path: str) -> str:
    return f"A default helps, such as {{{{{path} | there}}}}."


def _fetches(node: Mapping[str, Any]) -> bool:
    start = Node("", "startCall", "", data_of(node))
    return node.get("type") == "startCall" and any(wants_fetch(start, way) for way in ("inbound", "outbound"))


def _is_on(webhook: Mapping[str, Any]) -> bool:
    return as_boolean(data_of(webhook).get("enabled")) is not False


# -- webhooks


def _webhook_texts(node: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the texts of a webhook that are rendered, each with its field."""
    data = data_of(node)
    yield from _texts_in(data.get("endpoint_url"), "data.endpoint_url")
    yield from _texts_in(data.get("custom_headers"), "data.custom_headers")
    if str(data.get("http_method") or "POST").upper() not in _WITHOUT_BODY:
        yield from _texts_in(data.get("payload_template"), "data.payload_template")


def _texts_in(value: object, place: str) -> Iterator[tuple[str, str]]:
    """Yield the texts in a JSON value, keys of objects included, that hold a placeholder."""
    ahead = [(value, place)]
    while ahead:
        each, where = ahead.pop()
        if isinstance(each, str) and "{{" in each:
            yield where, each
        elif isinstance(each, Mapping):
            ahead += [(key, where) for key in each]
            ahead += [(below, f"{where}.{key}") for key, below in each.items()]
        elif isinstance(each, list):
            ahead += [(below, f"{where}.{index}") for index, below in enumerate(each)]


def _webhook(node: Mapping[str, Any], extracted: Collection[str]) -> Iterator[Finding]:
    """Yield a finding for each variable that no run has: a webhook is rendered from the run's own names."""
    if data_of(node).get("payload_template") == _DEFAULT_PAYLOAD:
        node = {**node, "data": {**data_of(node), "payload_template": None}}
    for place, text in _webhook_texts(node):
        for path, is_required in _distinct(text):
            root, name = path.split(".")[0], _gathered_name(path)
            if not is_required:
                continue
            if root not in _OF_A_WEBHOOK and not is_built_in(path):
                known = _GATHERED_CONTEXT if root in extracted else _INITIAL_CONTEXT
                message = f"{{{{{path}}}}} is empty in a webhook, which knows it as {{{{{known}.{path}}}}}."
            elif name is not None and name not in extracted and name not in _GATHERED and name != "call_disposition":
                message = f"{name} is extracted nowhere, so {{{{{path}}}}} is always empty."
            else:
                continue
            yield Finding("node", node["id"], place, message, "unsupplied-variable")


def _left_out(
    outline: Outline,
    extracted: Mapping[str, Collection[str]],
    webhooks: Collection[Mapping[str, Any]],
    prompted: Collection[str],
    used_by_tools: Collection[str],
) -> Iterator[Finding]:
    """Yield a finding for each variable that nothing uses, while webhooks send others that are extracted."""
    sent: set[str | None] = set()
    for node in webhooks:
        for _, text in _webhook_texts(node):
            paths = [each.path for each in placeholders(text)]
            if any(path.split(".")[0] == _GATHERED_CONTEXT and _gathered_name(path) is None for path in paths):
                return  # everything is sent
            sent.update(map(_gathered_name, paths))
    if not any(name in sent for names in extracted.values() for name in names):
        return
    # The service itself sends the disposition, and makes tags of the variables that are named so.
    used = {*sent, *prompted, *used_by_tools, *_GATHERED, "call_disposition"}
    for id, names in extracted.items():
        left = [name for name in names if name not in used and not name.startswith("tag_")]
        used.update(left)
        listed = data_of(outline.by_id[id])["extraction_variables"] if left else ()
        places = {each.get("name"): index for index, each in reversed([*enumerate(listed)]) if isinstance(each, dict)}
        for name in left:
            text = f"{name} is kept with the run, but no webhook sends it, though other variables are sent."
            yield Finding("node", id, f"data.extraction_variables.{places[name]}", text, "variable-left-out")
