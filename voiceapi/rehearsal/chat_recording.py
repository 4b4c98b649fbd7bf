"""The recording of a text chat. Its events aren't stored as such; its messages and its log tell what they were."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from ..conversations.chat_functions import StoredFunctions
from ..engine import actions as act
from ..engine import events as ev
from ..engine.disposition import tags_of
from ..engine.graph import GraphError
from ..engine.serialization import decode
from ..engine.state import begin
from ..engine.step import IllegalEvent
from ..errors import NotPossible
from ..store import chats, runs
from ..store.base import find
from ..store.chats import ChatSession, ChatTurn
from ..store.runs import Event, Run
from .recording import NO_STEPS, NOTHING_YET, Recording, Speaker, Tape, definition_of, is_scripted, version_of

EDITED = (
    "The chat can't be followed through the version that it ended with: the workflow was edited while it went on, or "
    "this release carries it out in another way."
)
# How a value is noted that doesn't fit its variable, see engine.extraction.convert.
_UNFIT = re.compile(r"(.+) should be a (?:number|boolean), but (.*) was found\.", re.DOTALL)
# The entries of the log that show what was answered; others are measurements.
_FOLLOWED = {
    *("rtf-user-transcription", "rtf-bot-text", "rtf-node-transition", "rtf-function-call-start"),
    *("rtf-function-call-end", "rtf-variables-extracted", "rtf-pipeline-error"),
}
ANSWERED = "model_answered"
IDLE = "user_idle_max_duration_exceeded"


def of_chat(run: Run) -> Recording:
    """The recording of a text chat, without what was discarded by a rewind.

    :raises NotPossible: with a sentence, when it can't be read, or not be followed through the version.
    """
    version, graph = version_of(run)
    session = find(ChatSession, run=run)
    turns = [] if session is None else [turn for turn in chats.turns(session) if turn.status == "completed"]
    if session is None or not turns:
        raise NotPossible(NO_STEPS if run.is_completed else NOTHING_YET)
    try:
        stored = None if session.functions is None else decode(StoredFunctions, session.functions)
        functions = {} if stored is None else stored.functions
        state = begin(graph, run.initial_context, version.configurations, functions=functions, voice=False)
        evidence = _Evidence(Tape(graph, state), turns[-1].checkpoint, runs.events(run))
        for turn in turns:
            evidence.follow(turn)
        evidence.end(run)
    except (IllegalEvent, GraphError, ValueError, KeyError, TypeError, IndexError):
        raise NotPossible(EDITED) from None
    exchanges = evidence.tape.whole()
    answers = [asked.answer for exchange in exchanges for asked in exchange.asked]
    speaker: Speaker = "scripted" if _names_scripted(turns) and all(map(is_scripted, answers)) else "recorded"
    return Recording(run, version, definition_of(run, version), graph, speaker, state, exchanges)


def _names_scripted(turns: Sequence[ChatTurn]) -> bool:
    """True if only the scripted model is named in the events of the turns, in each that a model may have answered."""
    named = [{event["payload"].get("model") for event in turn.events if event["type"] == ANSWERED} for turn in turns]
    return all(
        models <= {"scripted"} and (models or not turn.user_text) for turn, models in zip(turns, named, strict=True)
    )


class _Evidence:
    """Finds the answers that were given in a chat, by its messages and its log, while the chat is followed.

    The engine adds to the messages and to the log by itself, so what it has added so far is where the rest begins.

    :param last: the checkpoint after the last turn.
    :param log: the run's.
    """

    def __init__(self, tape: Tape, last: Any, log: Sequence[Event]) -> None:
        self.tape = tape
        self._messages = last["messages"]
        self._tool_state = last["tool_state"]
        self._gathered = last["gathered_context"]
        self._node_id = last["current_node_id"]
        self._log = [entry for entry in log if entry.type in _FOLLOWED]
        self._recorded = 0

    def follow(self, turn: ChatTurn) -> None:
        """Feed what the caller did in a turn, and the answers that followed."""
        if self.tape.state.phase == "new":
            self._feed(ev.Started(self._at(turn.created_at)))
        if turn.user_text is not None and self.tape.state.phase != "ended":
            self._feed(ev.CallerSaid(self._at(turn.created_at), turn.user_text))

    def end(self, run: Run) -> None:
        """Feed the end of the chat, if it has ended and didn't do so by itself.

        :raises ValueError: when the chat went another way than the conversation that was followed.
        """
        state = self.tape.state
        if list(state.messages) != self._messages or state.node_id != self._node_id:
            raise ValueError("It went another way.")
        if run.is_completed and state.phase != "ended":
            is_idle = run.gathered_context.get("call_disposition") == IDLE
            self._feed(ev.CallEnded(self._at(run.ended_at or run.created_at), IDLE if is_idle else "user_hangup"))
        if self._recorded != len(self._log):
            raise ValueError("It went another way.")

    def _feed(self, event: ev.Event) -> None:
        progress = self.tape.feed(event)
        while True:
            self._compare(progress.records)
            if self.tape.request is None:
                break
            progress = self.tape.feed(self._answer(self.tape.request))

    def _compare(self, records: Sequence[act.Record]) -> None:
        for record in records:
            if record.type not in _FOLLOWED:
                continue
            entry = self._log[self._recorded]
            if (entry.type, entry.node_id) != (record.type, record.node_id):
                raise ValueError("It went another way.")
            self._recorded += 1

    def _at(self, otherwise: datetime) -> float:
        """The time of the next entry of the log, in seconds since 1970."""
        found: datetime = self._log[self._recorded].at if self._recorded < len(self._log) else otherwise
        return found.timestamp()

    def _answer(self, request: act.Request) -> ev.Answer:
        rest = list(self._log[self._recorded :])
        at = rest[0].at.timestamp() if rest else request.at
        number = request.number
        match request:
            case act.AskModel() | act.Extract():
                if isinstance(request, act.Extract):
                    return _extraction(at, number, rest)
                return self._reply(request, at, rest)
            case act.RunTool():
                spoken = rest[0].payload["text"] if rest and rest[0].type == "rtf-bot-text" else ""
                result = json.loads(self._next_message()["content"])
                ends = self._is_last_message and "end_call_tool" in tags_of(self._gathered)
                return ev.ToolReturned(at, number, result, speech=spoken, end_reason=self._reason if ends else "")
            case act.Fetch():
                return ev.Fetched(at, number, {}, error=_error(rest, "pre_call_fetch"))
        raise ValueError("A chat is never transferred.")

    @property
    def _place(self) -> int:
        return len(self.tape.state.messages)

    @property
    def _is_last_message(self) -> bool:
        return self._place == len(self._messages) - 1

    @property
    def _reason(self) -> str:
        """Why the conversation had ended after the last turn; empty if it went on."""
        reason: str = self._tool_state.get("reason", "") if self._tool_state.get("phase") == "ended" else ""
        return reason

    def _next_message(self) -> Any:
        return self._messages[self._place]

    def _reply(self, ask: act.AskModel, at: float, rest: Sequence[Event]) -> ev.Answer:
        message: Any = self._next_message() if self._place < len(self._messages) else {"role": "user"}
        if message["role"] != "assistant":
            return ev.ModelFailed(at, ask.number, _error(rest, "llm"))
        calls = tuple(
            ev.ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"])
            for call in message.get("tool_calls", ())
        )
        ends, tag = "", ""
        node = self.tape.graph.node(ask.node_id)
        if self._is_last_message and not calls and not node.ends_call and ask.occasion != "goodbye":
            ends, before = self._reason, tags_of(self.tape.state.gathered_context)
            disposition = self._gathered.get("call_disposition")
            added = [each for each in tags_of(self._gathered) if each not in before and each != disposition]
            tag = added[0] if ends and added else ""
        return ev.ModelReplied(at, ask.number, message["content"], calls, end_reason=ends, end_tag=tag)


def _extraction(at: float, number: int, rest: Sequence[Event]) -> ev.Answer:
    values: dict[str, Any] = {}
    for entry in rest:
        if entry.type == "rtf-variables-extracted":
            return ev.VariablesExtracted(at, number, {**values, **entry.payload["variables"]})
        if entry.type != "rtf-pipeline-error" or entry.payload["processor"] != "extraction":
            break
        unfit = _UNFIT.fullmatch(entry.payload["error"])
        if unfit is None:
            return ev.ExtractionFailed(at, number, entry.payload["error"])
        values[unfit[1]] = json.loads(unfit[2])
    return ev.VariablesExtracted(at, number, values)


def _error(rest: Sequence[Event], processor: str) -> str:
    """The error at the beginning of the rest of a log, if it is of this processor."""
    if rest and rest[0].type == "rtf-pipeline-error" and rest[0].payload["processor"] == processor:
        return str(rest[0].payload["error"])
    return ""
