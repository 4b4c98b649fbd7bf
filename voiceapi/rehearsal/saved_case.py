"""Makes a conversation case of a run: what the caller did, what a language model decided, and what came of it.

It passes on the version that the run was held with. Of the initial context only what the agent's texts use is kept, and
fictional numbers stand for those of the call's two sides wherever they are, but for those that the agent's own texts
hold. What was said is kept as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from math import floor
from typing import Any

from ..engine import actions as act
from ..engine import events as ev
from ..engine.compose import arguments_of
from ..engine.graph import PROMPTED, objects
from ..engine.state import State, tags_of
from ..engine.template import placeholders
from ..engine.validation.outline import Outline
from ..errors import NotPossible
from ..runs.preparation import RESERVED
from ..service import Service
from ..store import secret_fields
from ..store.runs import Run
from ..tools import catalog
from ..tools.tool import RunnableTool
from ..tools.transfer_call import TransferCall
from . import recording as recordings
from .case_file import MOST_TURNS
from .case_writing import case_data
from .cases import Case, CaseFetch, CaseTurn, ExpectedOutcome, PlayedCall, PlayedDecision, ToolAnswer, TransferOutcome
from .recording import Asked, Exchange, Recording

# The numbers that stand for those of the call's two sides, in a range that nobody is given.
FICTIONAL = ("+12025550160", "+12025550161", "+12025550162")
# Those for SIP addresses, in a domain that nobody can have.
FICTIONAL_SIP = ("sip:160@voice.invalid", "sip:161@voice.invalid", "sip:162@voice.invalid")
LONGEST_NAME, LONGEST_WAIT = 200, 86_400.0
_KEYS = re.compile("[0-9*#]{1,64}")
# Members of a start node's data that are rendered for the fetch before the call, which a case doesn't make.
_FETCH = "pre_call_fetch"
# Why a call ended that took too long.
OVERTIME = "call_duration_exceeded"
# A variable that takes the place of the greeting.
_GREETING = "greeting_override"
LONGER = f"The run has more than {MOST_TURNS} turns, the most that a case may have."
NOT_BEGUN = "The call ended before the conversation began, so there is nothing to expect of the agent."
FETCHING = "The call ended while context was fetched, which a case can't say."


def case_of(service: Service, run: Run, until_turn: int | None = None) -> dict[str, Any]:
    """The case of a run, as far as it has come or until the end of a turn, as a case file has it.

    Call it in a session; it only reads.

    :param until_turn: as the run's log numbers its turns, 0 is the opening.
    :raises NotPossible: with a sentence, when there is nothing to make a case of, or it can't be told as a case.
    """
    recording = recordings.of_run(service, run)
    if until_turn is None or until_turn >= recording.final.turn:
        return case_of_recording(recording)
    exchanges = tuple(each for each in recording.exchanges if each.after.turn <= until_turn)
    case = case_of_recording(replace(recording, exchanges=exchanges))
    return {**case, "name": f"{case['name'][: LONGEST_NAME - 20]}, until turn {until_turn}"}


def file_of(service: Service, run: Run) -> dict[str, Any]:
    """A file with the case of a run, and with the tools that its agent attaches, but for their secrets.

    :raises NotPossible: as `case_of`.
    """
    recording = recordings.of_run(service, run)
    tools = tools_of(recording)
    return {**({"tools": tools} if tools else {}), "cases": [case_of_recording(recording)]}


def case_of_recording(recording: Recording) -> dict[str, Any]:
    """The case of a recorded run, as `case_of`."""
    run = recording.run
    attached = catalog.attached(run.organization_id, Outline.of(recording.definition))
    tools = catalog.ready(attached)
    case = _Saving(recording, tools).case()
    configs = [tool.config for tool in tools.values()]
    own = "\n".join(_texts([recording.definition, recording.version.configurations, configs]))
    found: dict[str, Any] = _with_fictional_numbers(run, case_data(case), own)
    return found


def tools_of(recording: Recording) -> list[dict[str, Any]]:
    """The tools that the definition of a run attaches, as a case file has them, without their secrets."""
    return [
        {
            "tool_uuid": tool.tool_uuid,
            "name": tool.name,
            "description": tool.description,
            "definition": secret_fields.emptied(tool.definition, secret_fields.in_tool, lambda _: True)[0],
        }
        for tool in catalog.attached(recording.run.organization_id, Outline.of(recording.definition))
        if tool.status == "active"
    ]


class _Saving:
    """Makes the case of one recording.

    :param tools: those that can be run now, by uuid.
    """

    def __init__(self, recording: Recording, tools: Mapping[str, RunnableTool]) -> None:
        self._recording = recording
        self._graph = recording.graph
        self._tools = tools
        self._at = recording.exchanges[0].event.at
        self._answers: list[ToolAnswer] = []
        self._fetched: CaseFetch | None = None

    def case(self) -> Case:
        first, *rest = self._recording.exchanges
        if not isinstance(first.event, ev.Started):
            raise NotPossible(NOT_BEGUN)
        opening = self._expected(CaseTurn(), first)
        turns = [opening]
        before = first
        for exchange in rest:
            if isinstance(exchange.event, ev.SpeechCut):  # in a case nobody interrupts
                continue
            turn = self._turn(exchange)
            if _is_unanswered(before):  # the call ended, which is said with the question that wasn't answered
                turns[-1] = replace(turns[-1], decisions=(*turns[-1].decisions, *turn.decisions))
            else:
                turns.append(turn)
            before = exchange
        opening, *turns = turns
        if len(turns) > MOST_TURNS:
            raise NotPossible(LONGER)
        run, setup = self._recording.run, self._recording.state.setup
        fetched = {} if self._fetched is None else self._fetched.returns
        used = self._used_variables()
        context = {
            name: value
            for name, value in setup.initial_context.items()
            if name in used and name not in fetched and name not in RESERVED
        }
        return Case(
            f"{run.name[: LONGEST_NAME - 30]} (run {run.id})",
            tuple(turns),
            opening,
            "scripted" if self._is_scripted else "played",
            context,
            (setup.direction or "outbound") if setup.voice else "chat",
            datetime.fromtimestamp(first.event.at, UTC),
            self._fetched and replace(self._fetched, returns={k: v for k, v in fetched.items() if k in used}),
            tuple(self._answers),
            self._outcome(),
        )

    @property
    def _is_scripted(self) -> bool:
        return self._recording.speaker == "scripted"

    # -- turns

    def _turn(self, exchange: Exchange) -> CaseTurn:
        event, at = exchange.event, exchange.event.at
        times = [asked.answer.at for asked in exchange.asked if asked.answer is not None]
        if exchange.after.reason == OVERTIME:  # not before the call's time was up
            at = max([at, *times]) + 0.1
        # In tenths, and never beyond the time at which it was, so that no limit of time is passed.
        after = min(max(floor((at - self._at) * 10) / 10, 0.0), LONGEST_WAIT)
        self._at += after
        match event:
            case ev.CallerSaid(text=text, keyed=True) if _KEYS.fullmatch(text):
                turn = CaseTurn(keys=text, after=after)
            case ev.CallerSaid(text=text) if text.strip():
                turn = CaseTurn(says=text, after=after)
            case ev.CallEnded(reason=reason):
                return self._expected(CaseTurn(ends=reason, after=after), exchange)
            case _:
                turn = CaseTurn(is_silent=True, after=after)
        return self._expected(turn, exchange)

    def _expected(self, turn: CaseTurn, exchange: Exchange) -> CaseTurn:
        """The turn with what a model decided, and what is expected of the agent."""
        decisions: list[PlayedDecision] = []
        for asked in exchange.asked:
            if _is_late(exchange) and not isinstance(asked.request, act.Extract):
                continue
            match asked.request:
                case act.AskModel() | act.Extract() if not self._is_scripted and not asked.request.problem:
                    decisions += self._decision(exchange, asked)
                case act.RunTool():
                    self._note_tool(exchange, asked, asked.request)
                case act.Fetch():
                    self._note_fetch(asked)
                case act.Transfer():
                    turn = replace(turn, transfers_to=asked.request.destination, transfer=_outcome(asked))
        spoken = () if _is_late(exchange) else exchange.records
        texts = [str(record.payload["text"]) for record in spoken if record.type == "rtf-bot-text"]
        decided = {decision.says.strip() for decision in decisions}
        node = None if isinstance(exchange.event, ev.CallEnded) else self._name(exchange.after.node_id)
        return replace(
            turn,
            decisions=tuple(decisions),
            contains=tuple(text for text in texts if text.strip() not in decided),
            node=node,
        )

    def _decision(self, exchange: Exchange, asked: Asked) -> Iterator[PlayedDecision]:
        said = "".join(part.text for part in asked.parts).strip()
        match asked.answer:
            case None if exchange.after.phase != "closing":
                yield PlayedDecision(said, call_ends=self._end_after(exchange))
            case ev.ModelFailed(error=error):
                yield PlayedDecision(fails=error)
            case ev.VariablesExtracted(values=values) if values:
                yield PlayedDecision(extracts=values)
            case ev.ModelReplied(text=text, calls=calls) if isinstance(asked.request, act.AskModel):
                ask = asked.request
                words = text.strip() if text.strip().startswith(said) else said
                yield PlayedDecision(words, tuple(self._call(ask, call) for call in calls))

    def _call(self, ask: act.AskModel, call: ev.ToolCall) -> PlayedCall:
        edge = self._graph.edge_called(ask.node_id, call.name)
        arguments = _arguments(call)
        if edge is not None:
            labels = [each.label for each in self._graph.edges_from(ask.node_id)]
            is_clear = labels.count(edge.label) == 1 and edge.label
            return PlayedCall(edge=edge.label if is_clear else edge.id, arguments=arguments)
        is_unknown = all(call.name != each.name for each in ask.functions)
        return PlayedCall(tool=call.name, arguments=arguments, unknown=is_unknown)

    def _end_after(self, exchange: Exchange) -> str:
        """Why the call ended while `exchange` waited for an answer; a hang-up if it hasn't ended yet."""
        following = self._recording.exchanges[self._recording.exchanges.index(exchange) + 1 :]
        end = following[0].event if following else None
        return end.reason if isinstance(end, ev.CallEnded) else "user_hangup"

    # -- what else was answered

    def _note_tool(self, exchange: Exchange, asked: Asked, request: act.RunTool) -> None:
        arguments = dict(request.arguments) or None
        answer = asked.answer
        if not isinstance(answer, ev.ToolReturned):
            ends = self._end_after(exchange)
            self._answers.append(ToolAnswer(request.name, arguments, call_ends=ends))
            return
        tool = self._tools.get(request.tool_uuid or "")
        refused = isinstance(tool, TransferCall) and not answer.transfer_to
        if tool is not None and tool.is_local and not refused:
            return  # it is run with the case
        if answer.transfer_to:
            says = {"says": answer.speech} if answer.speech else {}
            returned: Any = {"transfer_to": answer.transfer_to, **says}
            self._answers.append(ToolAnswer(request.name, arguments, returned))
        elif isinstance(answer.result, dict) and answer.result.keys() == {"status", "error"}:
            self._answers.append(ToolAnswer(request.name, arguments, fails=str(answer.result["error"])))
        else:
            self._answers.append(ToolAnswer(request.name, arguments, answer.result))

    def _note_fetch(self, asked: Asked) -> None:
        if not isinstance(asked.answer, ev.Fetched):
            raise NotPossible(FETCHING)
        self._fetched = CaseFetch(asked.answer.context, asked.answer.error or None)

    # -- the whole conversation

    def _outcome(self) -> ExpectedOutcome:
        final = self._recording.final
        taken = [
            record.payload["edge_id"]
            for exchange in self._recording.exchanges
            for record in exchange.records
            if record.type == "rtf-node-transition" and record.payload["edge_id"] is not None
        ]
        labels = {edge.id: edge.label or edge.id for edge in self._graph.ways}
        gathered = final.gathered_context
        variables = gathered.get("extracted_variables")
        outcome = ExpectedOutcome(edges=tuple(labels[id] for id in taken), variables=dict(variables or {}))
        if final.phase != "ended":
            return outcome
        disposition = gathered.get("call_disposition")
        tags = tags_of(gathered)
        is_plain = {*tags} <= {disposition, "user_speech"}
        return replace(
            outcome,
            disposition=disposition if isinstance(disposition, str) else None,
            tags=None if is_plain else tuple(tags),
        )

    def _name(self, id: str) -> str:
        """The name of a node; its id if several have that name."""
        name = self._graph.node(id).name
        return name if sum(node.name == name for node in self._graph.nodes.values()) == 1 else id

    def _used_variables(self) -> set[str]:
        """The members of the initial context that prompts, speech and the tools that are run with a case use."""
        nodes = [node for node in objects(self._recording.definition, "nodes") if node.get("type") in PROMPTED]
        data = [
            {name: value for name, value in node["data"].items() if not name.startswith(_FETCH)}
            for node in nodes
            if isinstance(node.get("data"), dict)
        ]
        tools = [tool.config for tool in self._tools.values() if tool.is_local]
        offered = (each.speech for node in self._recording.state.setup.functions.values() for each in node)
        context = self._recording.state.setup.initial_context
        greeting = context.get(_GREETING)
        texts = [
            *_texts([greeting, data, list(objects(self._recording.definition, "edges"))]),
            *_texts(tools),
            *offered,
        ]
        paths = {place.path for text in texts for place in placeholders(text)}
        # What a transfer is mapped by is a path without braces.
        paths |= {text for text in _texts(tools) if re.fullmatch(r"[\w.]+", text)}
        names = {name for path in paths for name in path.removeprefix("initial_context.").split(".")[:1]}
        return {*context} if "initial_context" in names else {*names, _GREETING}


def _is_unanswered(exchange: Exchange) -> bool:
    return bool(exchange.asked) and exchange.asked[-1].answer is None


def _is_late(exchange: Exchange) -> bool:
    """True if the longest time of a call was over when an answer came."""
    state: State = exchange.after
    is_ended = isinstance(exchange.event, ev.CallEnded)
    return state.reason == OVERTIME and not is_ended and bool(exchange.asked)


def _outcome(asked: Asked) -> TransferOutcome:
    settled = asked.answer
    if not isinstance(settled, ev.TransferSettled):
        return "caller_hangs_up"  # or the call ended otherwise, which is the same to the agent
    if settled.answered:
        return "answered"
    if settled.caller_hung_up:
        return "caller_hangs_up"
    result = settled.result if isinstance(settled.result, dict) else {}
    if result.get("reason") == "timeout":
        return "no_answer"
    # Carriers call a line busy whose callee declines.
    return "busy" if any(word in str(result.get("message")) for word in ("busy", "declined")) else "failed"


def _arguments(call: ev.ToolCall) -> Mapping[str, Any] | str:
    found = arguments_of(call)
    return call.arguments if found is None else found


def _texts(value: Any) -> Iterator[str]:
    """All texts in JSON data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)


def _with_fictional_numbers(run: Run, data: Any, own: str) -> Any:
    """JSON data in which fictional numbers stand for those of the run, also where they are written without a plus.

    SIP addresses are replaced where they stand whole.

    :param own: the agent's texts. A number in them is no secret, and is said again when the case is run.
    """
    context = run.initial_context
    given = map(str, (run.called_number, run.caller_number, context.get("phone_number")))
    known = dict.fromkeys(each.removeprefix("+") for each in given if _NUMBER.fullmatch(each))
    private = [each for each in known if not _written([each]).search(own)]
    if not private:
        return data
    numbers = (each.removeprefix("+") for each in FICTIONAL)
    addresses = iter(FICTIONAL_SIP)
    fictional = {each: next(numbers if each.isdigit() else addresses) for each in private}
    return _replaced(data, _written(private), fictional)


_NUMBER = re.compile(r"\+?[0-9]{7,}|(?i:sips?):\S+")


def _written(numbers: Iterable[str]) -> re.Pattern[str]:
    return re.compile(rf"(?<!\d)(?:{'|'.join(map(re.escape, numbers))})(?!\d)")


def _replaced(data: Any, pattern: re.Pattern[str], by: Mapping[str, str]) -> Any:
    if isinstance(data, str):
        return pattern.sub(lambda found: by[found[0]], data)
    if isinstance(data, int) and str(data) in by:
        return int(by[str(data)])
    if isinstance(data, dict):
        return {name: _replaced(value, pattern, by) for name, value in data.items()}
    return [_replaced(each, pattern, by) for each in data] if isinstance(data, list) else data
