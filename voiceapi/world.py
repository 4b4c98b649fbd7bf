"""What a conversation asks of the world, answered: by a language model, by tools, by a fetch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from . import language_models
from .conversation import LanguageModel
from .flow import actions as act
from .flow import events as ev
from .llm.scripted import Scripted
from .service import Service
from .store.fields import now


@dataclass(frozen=True)
class World:
    """Answers the requests of one conversation. It never raises: a failure is an answer, too.

    :param by_phone: a carrier sees to transfers, and tells how they went.
    """

    model: LanguageModel
    by_phone: bool = False

    def is_near(self, request: act.Request) -> bool:
        """Whether the answer comes from within this process: at once, the same each time, and without a trace."""
        return isinstance(request, act.AskModel | act.Extract) and isinstance(self.model, Scripted)

    def answer(self, request: act.Request) -> ev.Answer | None:
        """The answer to `request`, at the time at which it came; None for what a carrier sees to."""
        if self.by_phone and isinstance(request, act.Transfer):
            return None
        return replace(self._answer(request), at=now().timestamp())

    def _answer(self, request: act.Request) -> ev.Answer:
        match request:
            case act.AskModel():
                return self.model.reply(request)
            case act.Extract():
                return self.model.extract(request)
            case act.Fetch():
                error = "This release does not fetch context before a call."
                return ev.Fetched(request.at, request.number, {}, error=error)
            case act.RunTool():
                result = {"error": f"There is no tool {request.name!r} in this release."}
                return ev.ToolReturned(request.at, request.number, result)
            case act.Transfer():
                reason = {"status": "transfer_failed", "reason": "provider_does_not_support_transfer"}
                return ev.TransferSettled(request.at, request.number, answered=False, result=reason)
            case _:
                raise TypeError(f"{request!r} can't be answered.")


def of(
    service: Service, organization: int | None, configurations: Mapping[str, Any], *, by_phone: bool = False
) -> World:
    """The world of a workflow with these configurations, in an organization if there is one; see World."""
    return World(language_models.choose(service, organization, configurations), by_phone)
