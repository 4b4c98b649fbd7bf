"""One conversation of a call, a text chat or the terminal: begun or loaded, carried on, stored."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial, reduce
from itertools import chain, repeat
from typing import Any, Protocol

from ..engine import actions as act
from ..engine import events as ev
from ..engine.actions import Function, LanguageModel, Record
from ..engine.graph import Graph
from ..engine.serialization import decode, encode
from ..engine.state import State, begin, from_checkpoint
from ..engine.step import outstanding, step
from ..engine.validation.outline import Outline
from ..errors import InvalidInput
from ..llm.configuration import OVERRIDE
from ..llm.streams import Pace
from ..runs import lifecycle
from ..runs.preparation import added
from ..service import Service
from ..store import chats, knowledge, runs, tools
from ..store.base import find, insert, insert_all, set_changed, update
from ..store.chats import ChatSession
from ..store.database import ConcurrentUpdate, after_commit
from ..store.fields import now
from ..store.runs import SPEAKERS, Run, RunEvent, Snapshot, Step
from ..store.workflows import WorkflowVersion
from ..tools import catalog
from ..workflows import versions
from .request_handler import RequestHandler

log = logging.getLogger("voiceapi")

# The result, for the model, of a tool that was running when its process died.
INTERRUPTED = {"status": "error", "error": "The tool was interrupted, and it isn't known whether it took effect."}


# What the log says of a reply that was being spoken when its process died.
LOST = "The process ended while the model was writing, so the rest of the reply is lost."


class Handler(Protocol):
    """Answers the engine's requests; it raises nothing. See `request_handler.RequestHandler`."""

    @property
    def model(self) -> LanguageModel:
        """The model that speaks."""

    def is_local(self, request: act.Request) -> bool: ...
    def answer(self, request: act.Request) -> Generator[ev.Answer, None, None]: ...


@dataclass(frozen=True)
class Progress:
    """What one or more events led to.

    :param steps: the events that the engine was fed, in order: the given one and the answers to its requests.
    :param actions: what the caller's side is to do: speak, listen, hang up.
    :param records: what to keep in the run's log.
    :param finish: set when the conversation ended.
    :param request: the one that is answered next; None when it is the caller's turn, or the conversation is over.
    """

    state: State
    steps: tuple[ev.Event, ...] = ()
    actions: tuple[act.Action, ...] = ()
    records: tuple[act.Record, ...] = ()
    finish: act.Finish | None = None
    request: act.Request | None = None

    def then(self, graph: Graph, event: ev.Event) -> Progress:
        """The progress after one more event."""
        state, actions = step(graph, self.state, event)
        return Progress(
            state,
            (*self.steps, event),
            (*self.actions, *(each for each in actions if not isinstance(each, act.Request | act.Record | act.Finish))),
            (*self.records, *(each for each in actions if isinstance(each, act.Record))),
            next((each for each in actions if isinstance(each, act.Finish)), self.finish),
            next((each for each in actions if isinstance(each, act.Request)), None),
        )


def combine(parts: Iterable[Progress]) -> Progress:
    """The parts that `Conversation.advance` yields, at least one of them, as one progress."""
    return reduce(
        lambda first, second: replace(
            second,
            steps=(*first.steps, *second.steps),
            actions=(*first.actions, *second.actions),
            records=(*first.records, *second.records),
            finish=second.finish or first.finish,
        ),
        parts,
    )


class Speeches:
    """What the agent says in one or more turns, as far as it has come: `texts` has one for each speech."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._whole: list[str] = []

    def more(self, progress: Progress) -> list[tuple[str, bool]]:
        """The further words that a progress brings, each with whether another speech begins with them."""
        self._whole += [str(each.payload["text"]) for each in progress.records if each.type == "rtf-bot-text"]
        before, self.texts = self.texts, [*self._whole, *([progress.state.said] if progress.state.said else [])]
        lengths = map(len, chain(before, repeat("")))
        found = [(text[said:], said == 0) for text, said in zip(self.texts, lengths, strict=False)]
        return [(text, begins) for text, begins in found if text]


@dataclass
class Conversation:
    """One conversation and its current state.

    :param handler: answers what the engine requests.
    :param steps: how many events led to the state that is stored.
    :param calling: the number of the request whose tool was being called when the state was stored.
    :param first_word_at: when the model's first word of the turn came, in seconds since 1970; 0 when it isn't known.
    :param reported: the seconds of what the carrier has reported of its own latency before the turn, by their names.
    """

    graph: Graph
    handler: Handler
    state: State
    steps: int = 0
    calling: int | None = None
    first_word_at: float = 0.0
    reported: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of_definition(
        cls,
        service: Service,
        definition: Mapping[str, Any],
        configurations: Mapping[str, Any],
        context: Mapping[str, Any],
        organization: int | None = None,
        workflow: int | None = None,
        pace: Pace | None = None,
    ) -> Conversation:
        """A new conversation by text that belongs to no run.

        :param definition: one without errors (see `engine.validation.graph_rules.check`).
        :param organization: whose tools and credentials it uses, if any.
        :param workflow: the id of the workflow, when it is a stored one.
        :param pace: see RequestHandler.
        """
        graph = Graph.read(definition)
        handler = RequestHandler(service, configurations, organization, workflow, pace=pace)
        functions = catalog.functions_for(organization, graph)
        return cls(graph, handler, begin(graph, context, configurations, functions=functions, voice=False))

    @classmethod
    def of_run(
        cls,
        service: Service,
        run: Run,
        version: WorkflowVersion | None = None,
        *,
        keys_need_hash: bool = False,
        concluding: bool = False,
        pace: Pace | None = None,
    ) -> Conversation:
        """The conversation of a call: a new one, unless steps of it are stored.

        :param version: that of the run, if the caller has read it.
        :param keys_need_hash: see engine.state.Setup; a stored conversation knows it.
        :param concluding: it is only going to be ended, so a new one is offered no tools.
        :param pace: see RequestHandler.
        :raises ValueError: when the version of the workflow is gone.
        """
        version = version or find(WorkflowVersion, id=run.version_id)
        if version is None:
            raise ValueError(f"Run {run.id} has no definition to be carried out by.")
        checked = versions.definitions.read(version).graph if run.draft is None else None
        # A call may go on by a draft, and by a definition that an earlier release found no fault with.
        graph = checked or Graph.read(version.definition if run.draft is None else run.draft)
        handler = RequestHandler(service, version.configurations, run.organization_id, run.workflow_id, run, pace)
        snapshot = find(Snapshot, run=run)
        if snapshot is not None:
            return cls(graph, handler, State.from_json(snapshot.state), snapshot.number, snapshot.calling)
        state = begin(
            graph,
            run.initial_context,
            # Its keys stay out of the stored state.
            {name: value for name, value in version.configurations.items() if name != OVERRIDE},
            functions={} if concluding else catalog.functions_for(run.organization_id, graph),
            direction=run.call_type,
            voice=True,
            campaign=run.campaign_id is not None,
            keys_need_hash=keys_need_hash,
            gathered_context=lifecycle.confirmed(run),
        )
        return cls(graph, handler, state)

    @classmethod
    def of_chat(
        cls, service: Service, session: ChatSession, *, concluding: bool = False, pace: Pace | None = None
    ) -> Conversation:
        """The conversation of a text chat, in the workflow as it is now: a draft may have been edited since.

        Its state counts only the tokens used from here on; the run's total keeps those of discarded turns.

        :param concluding: it is only going to be ended, so it is offered no tools.
        :param pace: see RequestHandler.
        :raises InvalidInput: with a sentence, when the definition can't be carried out, or not from here.
        """
        run = session.run
        version = run.version
        if version is None:
            raise InvalidInput("The version of the workflow that this chat began with is gone.")
        graph = versions.load_graph(run.workflow, version)
        functions = {} if concluding else functions_of(session, version.definition, graph)
        checkpoint = chats.base(session)
        try:
            state = from_checkpoint(graph, checkpoint, run.initial_context, version.configurations, functions=functions)
        except ValueError as error:
            raise InvalidInput(f"The workflow was changed, and the chat can't go on from here: {error}") from None
        handler = RequestHandler(service, version.configurations, run.organization_id, run.workflow_id, run, pace)
        return cls(graph, handler, replace(state, usage={}))

    def repeated(self, steps: Iterable[ev.Event]) -> Progress:
        """Feed events that were stored, and take a tool that was being called then for interrupted.

        :raises IllegalEvent: when the conversation goes another way by now.
        """
        progress = Progress(self.state)
        for event in steps:
            progress = progress.then(self.graph, event)
        self.state = progress.state
        self.calling = progress.request.number if isinstance(progress.request, act.RunTool) else None
        return progress

    def advance(self, event: ev.Event | None) -> Generator[Progress, None, None]:
        """Feed `event` and the answers that follow from it, until it is the caller's turn or the conversation is over.

        Yields what has come so far before each request that leaves the process and with each part of a reply, so that
        it can be stored first, and at the end; each time only what is new. When the process died, a tool that was being
        called isn't called again, and a reply of which parts were given out isn't asked for again.

        :param event: None continues with the request that the conversation waits for.
        :raises IllegalEvent: when the conversation can't take this event; nothing has changed then.
        """
        if isinstance(event, ev.TransferSettled):  # a carrier doesn't know the number of the request
            event = replace(event, number=self.state.number)
        if event is None and self.calling == self.state.number:
            event = ev.ToolReturned(now().timestamp(), self.state.number, INTERRUPTED)
        if event is None and self.state.said:
            event = ev.ModelReplied(now().timestamp(), self.state.number, self.state.said, notes=(LOST,))
        if event is None:
            awaited = outstanding(self.graph, self.state, now().timestamp())
            progress = Progress(self.state, request=awaited if isinstance(awaited, act.Request) else None)
        else:
            progress = Progress(self.state).then(self.graph, event)
        while (request := progress.request) is not None:
            if not self.handler.is_local(request):
                self.state = progress.state
                yield progress
                progress = Progress(progress.state, request=request)
            answer = None
            with closing(self.handler.answer(request)) as answers:
                for answer in answers:
                    if isinstance(answer, ev.ModelAnswer) and answer.first_seconds:
                        self.first_word_at = self.first_word_at or answer.at - answer.seconds + answer.first_seconds
                    progress = progress.then(self.graph, answer)
                    if not (isinstance(answer, ev.ModelSpoke) and progress.state.said):
                        break
                    self.state = progress.state
                    yield replace(progress, request=request)
                    progress = Progress(progress.state)
            if answer is None:
                progress = replace(progress, actions=(*progress.actions, request), request=None)
        self.state = progress.state
        yield progress

    def conclude(self, reason: str) -> Generator[Progress, None, None]:
        """End the conversation for `reason`, or finish one that is closing already; yields as `advance`."""
        return self.advance(None if self.state.phase == "closing" else ev.CallEnded(now().timestamp(), reason))

    def latency(self, began_at: datetime, answered_at: datetime, ahead_at: datetime | None = None) -> Record:
        """The record for the run's log of how long the caller waited for the answer to a turn.

        :param ahead_at: when the first sentence was given out, if it went ahead.
        """
        node, began, at = self.graph.node(self.state.node_id), began_at.timestamp(), answered_at.timestamp()
        times = {
            "latency_seconds": at if ahead_at is None else ahead_at.timestamp(),
            **({"first_word_seconds": self.first_word_at} if self.first_word_at else {}),
            **({} if ahead_at is None else {"last_sentence_seconds": at}),
        }
        payload = {name: max(0.0, round(time - began, 3)) for name, time in times.items()} | dict(self.reported)
        return Record("rtf-latency-measured", payload, at, self.state.turn, node.id, node.name)

    def store(self, run: Run, progress: Progress, calling: int | None = None) -> None:
        """Store a progress: its log and, of a call, its steps and its state. Set the columns of `run`.

        The caller saves `run` in the same transaction.

        :param calling: the number of the request whose tool is called next; no other worker calls it then.
        :raises ConcurrentUpdate: when another worker has carried the call's conversation on, or calls this tool.
        """
        state = progress.state
        gathered, usage = state.gathered_context, state.usage
        if run.mode == "textchat":
            usage = added(run.llm_usage, usage)
        elif progress.steps:
            gathered = {**run.gathered_context, **gathered}
            events = enumerate(progress.steps, self.steps)
            insert_all(Step, ({"run": run.id, "number": number, "event": event.to_json()} for number, event in events))
            latest = {"number": self.steps + len(progress.steps), "calling": calling, "state": state.to_json()}
            if self.steps == 0:
                insert(Snapshot, run=run.id, **latest)
            else:
                update(Snapshot(run=run.id, **latest))
            self.steps += len(progress.steps)
        elif calling is None or runs.mark_calling(run.id, self.steps, calling):
            return
        else:
            raise ConcurrentUpdate("Another worker calls this tool.")
        append_log(run, progress.records)
        # Most turns change few of these.
        set_changed(
            run,
            initial_context=state.setup.initial_context,
            gathered_context=gathered,
            llm_usage=usage,
            disposition=gathered.get("mapped_call_disposition"),
            annotations={**run.annotations, **({"missing_variables": list(state.missing)} if state.missing else {})},
            has_transcript=run.has_transcript or any(record.type in SPEAKERS for record in progress.records),
        )


def append_log(run: Run, records: Sequence[Record]) -> None:
    """Append to the log of a run, at the times that the records have.

    Each failure of the language model is also a warning in the service's own log, after the commit.
    """
    insert_all(
        RunEvent,
        (
            {
                "run": run.id,
                "turn": record.turn,
                "type": record.type,
                "payload": record.payload,
                "node_id": record.node_id or None,
                "node_name": record.node_name or None,
                "at": datetime.fromtimestamp(record.at, UTC),
            }
            for record in records
        ),
    )
    for record in records:
        if record.type == "rtf-pipeline-error" and record.payload.get("processor") == "llm":
            ends = ", which ends the call" if record.payload["fatal"] else ""
            failure = "The language model failed in run %s%s: %s"
            fields = {"event": "model_failed", "run": run.id}
            after_commit(partial(log.warning, failure, run.id, ends, record.payload["error"], extra=fields))


@dataclass(frozen=True)
class StoredFunctions:
    """The functions offered at each node, by node id, and a digest of what they were computed from."""

    source: str
    functions: Mapping[str, tuple[Function, ...]]


def functions_of(
    session: ChatSession, definition: Mapping[str, Any], graph: Graph
) -> Mapping[str, tuple[Function, ...]]:
    """The functions that the model is offered at each node of a chat's workflow besides its edges, by node id.

    They are computed when the chat begins. Since it follows the current workflow, they are computed again when
    the definition, or any tool or document of the organization, has changed.
    """
    outline = Outline.of(definition)
    if not outline.tools and not outline.documents:
        return {}
    organization = session.run.organization_id
    changes = [tools.latest_change(organization), knowledge.latest_change(organization)]
    source = hashlib.sha256(json.dumps([definition, *changes], sort_keys=True).encode()).hexdigest()
    if session.functions is not None and session.functions["source"] == source:
        return decode(StoredFunctions, session.functions).functions
    functions = catalog.functions_for(organization, graph)
    chats.store_functions(session, encode(StoredFunctions(source, functions)))
    return functions
