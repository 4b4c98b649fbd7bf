"""A conversation without a call and without a database: the engine, a model, and whoever types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..engine.actions import Function, Play, Record, Say
from ..engine.events import CallEnded, CallerSaid, CallerSilent, Event, Started
from ..engine.graph import Graph
from ..engine.state import begin
from ..store.fields import now
from .driver import World, at_rest


class Rehearsal:
    """One conversation, from `start` until it is `over`.

    :param definition: one that a check found nothing wrong with.
    :param functions: the tools offered at each node, by node id.
    """

    def __init__(
        self,
        world: World,
        definition: Mapping[str, Any],
        configurations: Mapping[str, Any],
        context: Mapping[str, Any],
        functions: Mapping[str, tuple[Function, ...]] | None = None,
    ) -> None:
        self._world = world
        self._graph = Graph.read(definition)
        self._state = begin(self._graph, context, configurations, functions=functions, voice=False)
        self.transcript: list[dict[str, str]] = []

    @property
    def over(self) -> bool:
        return self._state.phase == "ended"

    def start(self) -> list[str]:
        """Let the agent open; what it says."""
        return self._feed(Started(now().timestamp()))

    def hear(self, words: str) -> list[str]:
        """Say `words` to the agent, or nothing; what it answers."""
        at = now().timestamp()
        return self._feed(CallerSaid(at, words) if words.strip() else CallerSilent(at))

    def hang_up(self) -> None:
        self._feed(CallEnded(now().timestamp(), "user_hangup"))

    def outcome(self) -> dict[str, Any]:
        """The disposition, the nodes visited and the variables extracted."""
        gathered = self._state.gathered_context
        return {
            "disposition": gathered.get("call_disposition"),
            "nodes_visited": gathered.get("nodes_visited", []),
            "gathered": gathered.get("extracted_variables", {}),
        }

    def _feed(self, event: Event) -> list[str]:
        progress = at_rest(self._world, self._graph, self._state, event)
        self._state = progress.state
        roles = {"rtf-user-transcription": "user", "rtf-bot-text": "assistant"}
        self.transcript += [
            {"role": roles[record.type], "text": str(record.payload["text"])}
            for record in progress.records
            if isinstance(record, Record) and record.type in roles
        ]
        return [action.text for action in progress.actions if isinstance(action, Say | Play)]
