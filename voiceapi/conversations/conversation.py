"""One conversation of a call, a text chat or the terminal: begun or loaded, carried on, stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from ..engine import events as ev
from ..engine.actions import Record
from ..engine.graph import Graph
from ..engine.state import State, begin, from_checkpoint
from ..errors import InvalidInput
from ..llm.configuration import OVERRIDE
from ..service import Service
from ..store import chats
from ..store.base import find
from ..store.chats import ChatSession
from ..store.fields import now
from ..store.runs import Run
from ..store.steps import Snapshot
from ..store.workflows import WorkflowVersion
from ..tools import offered
from ..workflows import versions
from . import driver, storage
from .chat_functions import functions_of
from .driver import Progress
from .effects import EffectHandler

# The result, for the model, of a tool that was running when its process died.
INTERRUPTED = {"status": "error", "error": "The tool was interrupted, and it isn't known whether it took effect."}


@dataclass
class Conversation:
    """One conversation and its current state.

    :param handler: answers what the engine requests.
    :param steps: how many events led to the state that is stored.
    :param calling: the number of the request whose tool was being called when the state was stored.
    """

    graph: Graph
    handler: EffectHandler
    state: State
    steps: int = 0
    calling: int | None = None

    @classmethod
    def from_definition(
        cls,
        service: Service,
        definition: Mapping[str, Any],
        configurations: Mapping[str, Any],
        context: Mapping[str, Any],
        organization: int | None = None,
        workflow: int | None = None,
    ) -> Conversation:
        """A new conversation by text that belongs to no run.

        :param definition: one without errors (see engine.validation.check).
        :param organization: whose tools and credentials it uses, if any.
        :param workflow: the id of the workflow, when it is a stored one.
        """
        graph = Graph.read(definition)
        handler = EffectHandler.of_workflow(service, organization, configurations, workflow=workflow)
        functions = offered.functions_for(organization, graph)
        return cls(graph, handler, begin(graph, context, configurations, functions=functions, voice=False))

    @classmethod
    def from_run(
        cls, service: Service, run: Run, version: WorkflowVersion | None = None, *, concluding: bool = False
    ) -> Conversation:
        """The conversation of a call: a new one, unless steps of it are stored.

        :param version: that of the run, if the caller has read it.
        :param concluding: it is only going to be ended, so a new one is offered no tools.
        :raises ValueError: when the version of the workflow is gone.
        """
        version = version or find(WorkflowVersion, id=run.version_id)
        if version is None:
            raise ValueError(f"Run {run.id} has no definition to be carried out by.")
        graph = Graph.read(version.definition if run.draft is None else run.draft)
        handler = EffectHandler.of_run(service, run, version.configurations)
        snapshot = find(Snapshot, run=run)
        if snapshot is not None:
            return cls(graph, handler, State.from_json(snapshot.state), snapshot.number, snapshot.calling)
        state = begin(
            graph,
            run.initial_context,
            # Its keys stay out of the stored state.
            {name: value for name, value in version.configurations.items() if name != OVERRIDE},
            functions={} if concluding else offered.functions_for(run.organization_id, graph),
            direction=run.call_type,
            voice=True,
            gathered_context=run.gathered_context,
        )
        return cls(graph, handler, state)

    @classmethod
    def from_chat(cls, service: Service, session: ChatSession, *, concluding: bool = False) -> Conversation:
        """The conversation of a text chat, in the workflow as it is now: a draft may have been edited since.

        Its state counts only the tokens used from here on; the run's total keeps those of discarded turns.

        :param concluding: it is only going to be ended, so it is offered no tools.
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
        return cls(graph, EffectHandler.of_run(service, run, version.configurations), replace(state, usage={}))

    def advance(self, event: ev.Event | None) -> Iterator[Progress]:
        """Feed `event` and the answers that follow from it, until it is the caller's turn or the conversation is over.

        Yields what has come so far before each request that leaves the process, so that it can be stored first, and
        at the end; each time only what is new. A tool that was being called when the process died isn't called again.

        :param event: None continues with the request that the conversation waits for.
        :raises IllegalEvent: when the conversation can't take this event; nothing has changed then.
        """
        if isinstance(event, ev.TransferSettled):  # a carrier doesn't know the number of the request
            event = replace(event, number=self.state.number)
        if event is None and self.calling == self.state.number:
            event = ev.ToolReturned(now().timestamp(), self.state.number, INTERRUPTED)
        for progress in driver.advance(self.handler, self.graph, self.state, event):
            self.state = progress.state
            yield progress

    def conclude(self, reason: str) -> Iterator[Progress]:
        """End the conversation for `reason`, or finish one that is closing already; yields as `advance`."""
        return self.advance(None if self.state.phase == "closing" else ev.CallEnded(now().timestamp(), reason))

    def latency(self, began_at: datetime, answered_at: datetime) -> Record:
        """The record for the run's log of how long the caller waited for the answer to a turn."""
        seconds = max(0.0, round((answered_at - began_at).total_seconds(), 3))
        node, at = self.graph.node(self.state.node_id), answered_at.timestamp()
        return Record("rtf-latency-measured", {"latency_seconds": seconds}, at, self.state.turn, node.id, node.name)

    def store(self, run: Run, progress: Progress, calling: int | None = None) -> None:
        """Store a call's progress, and set the columns of `run`; the caller saves `run` in the same transaction.

        :param calling: the number of the request whose tool is called next; no other worker calls it then.
        :raises ConcurrentUpdate: when another worker has carried the conversation on.
        """
        storage.store_steps(run, progress, self.steps, calling)
        self.steps += len(progress.steps)
