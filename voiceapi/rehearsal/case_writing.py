"""Writes conversation cases as files have them, so that `case_file` reads the same cases from them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from ..timestamps import write_time
from .cases import BEGINNING, Case, CaseFetch, CaseTurn, ExpectedOutcome, PlayedCall, PlayedDecision, ToolAnswer


def file_text(
    cases: Iterable[Case], workflow: str | None = None, *, tools: Sequence[Any] = (), as_json: bool = False
) -> str:
    """The text of a file with these cases.

    :param workflow: the file of the workflow, as it is written there; None for the file of the same name.
    :param tools: those that the definition attaches, as the API takes them.
    """
    written = [case_data(case) for case in cases]
    return text_of({**_given(workflow=workflow, tools=list(tools)), "cases": written}, as_json=as_json)


def text_of(data: Mapping[str, Any], *, as_json: bool = False) -> str:
    """The text of a file with this data."""
    if as_json:
        return json.dumps(data, ensure_ascii=False, indent=2) + "\n"
    return yaml.dump(dict(data), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


def case_data(case: Case) -> dict[str, Any]:
    """A case as a file has it in its list `cases`, without what is the default."""
    return {
        "name": case.name,
        **_given(
            model=case.model if case.model != "scripted" else None,
            at=write_time(case.at) if case.at != BEGINNING else None,
            direction=case.direction if case.direction != "outbound" else None,
            context=dict(case.context),
            fetch=None if case.fetch is None else _fetched(case.fetch),
            tools=[_tool(answer) for answer in case.tools],
            opening=_expected(case.opening),
        ),
        "turns": [_turn(turn) for turn in case.turns],
        **_given(expect=_outcome(case.expect)),
    }


def _given(**members: Any) -> dict[str, Any]:
    """The members that aren't empty."""
    return {name: value for name, value in members.items() if value not in (None, [], {}, ())}


def _turn(turn: CaseTurn) -> dict[str, Any]:
    does: dict[str, Any] = {"ends": turn.ends}
    if turn.says is not None:
        does = {"caller": turn.says}
    elif turn.keys is not None:
        does = {"keys": turn.keys}
    elif turn.is_silent:
        does = {"silence": True}
    elif turn.ends == "user_hangup":
        does = {"hangs_up": True}
    return {**does, **({} if turn.after == 1.0 else {"after": turn.after}), **_expected(turn)}


def _expected(turn: CaseTurn) -> dict[str, Any]:
    edges = {} if turn.edges is None else {"edges": list(turn.edges)}
    found = _given(
        model=[_decision(each) for each in turn.decisions],
        says=list(turn.contains),
        matches=list(turn.matches),
        never=list(turn.never),
        node=turn.node,
        transfers_to=turn.transfers_to,
        transfer=turn.transfer if turn.transfer != "answered" else None,
    )
    return {**found, **edges}


def _decision(decision: PlayedDecision) -> dict[str, Any]:
    if decision.extracts is not None:
        return {"extract": dict(decision.extracts)}
    if decision.fails is not None:
        return {"fails": decision.fails}
    if decision.call_ends is not None:
        return {**_given(say=decision.says), "call_ends": decision.call_ends}
    says = {"say": decision.says} if decision.says or not decision.calls else {}
    if len(decision.calls) == 1:
        return {**says, **_call(decision.calls[0])}
    return {**says, **_given(calls=[_call(call) for call in decision.calls])}


def _call(call: PlayedCall) -> dict[str, Any]:
    function = {"edge": call.edge} if call.edge is not None else {"call": call.tool}
    arguments = call.arguments if isinstance(call.arguments, str) else dict(call.arguments)
    return {**function, **_given(**{"with": arguments}), **({"unknown": True} if call.unknown else {})}


def _tool(answer: ToolAnswer) -> dict[str, Any]:
    result = {"returns": answer.returns}
    if answer.fails is not None or answer.call_ends is not None:
        result = {"fails": answer.fails} if answer.call_ends is None else {"call_ends": answer.call_ends}
    arguments = {} if answer.arguments is None else {"with": dict(answer.arguments)}
    return {"tool": answer.tool, **arguments, **result, **({"optional": True} if answer.optional else {})}


def _fetched(fetched: CaseFetch) -> dict[str, Any]:
    return {"returns": dict(fetched.returns)} if fetched.fails is None else {"fails": fetched.fails}


def _outcome(expect: ExpectedOutcome) -> dict[str, Any]:
    lists: Mapping[str, tuple[str, ...] | None] = {"nodes": expect.nodes, "edges": expect.edges, "tags": expect.tags}
    webhooks = [
        {"node": each.node, **({} if each.body is None else {"body": dict(each.body)})}
        for each in expect.webhooks or ()
    ]
    return {
        **{name: list(texts) for name, texts in lists.items() if texts is not None},
        **_given(never=list(expect.never), variables=dict(expect.variables), disposition=expect.disposition),
        **({} if expect.webhooks is None else {"webhooks": webhooks}),
    }


# Unquoted, a reader might take such a text for a number or another scalar.
_AMBIGUOUS = re.compile(r"[-+.~\d]|(?:true|false|null)$", re.IGNORECASE)


def _quoted_if_ambiguous(dumper: Any, text: str) -> yaml.ScalarNode:
    node: yaml.ScalarNode = dumper.represent_str(text)
    # The library takes NEL for a line break, which only double quotes keep.
    node.style = '"' if _AMBIGUOUS.match(text) or "\x85" in text else node.style
    return node


class _Dumper(yaml.SafeDumper):
    """Writes YAML without anchors, and with quotes around what could be read as something else than text."""

    yaml_representers = {**yaml.SafeDumper.yaml_representers, str: _quoted_if_ambiguous}

    def ignore_aliases(self, data: Any) -> bool:
        return True
