"""What a conversation asks of the world, answered: by a language model, by tools, by a fetch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..engine import actions as act
from ..engine import events as ev
from ..engine.ports import LanguageModel
from ..llm import selection
from ..llm.scripted import Scripted
from ..service import Service
from ..store.fields import now
from ..store.runs import Run
from ..tools import offered
from ..tools.pre_call_fetch import fetch
from ..tools.tool import ToolContext
from ..tools.transfer_call import failed


@dataclass(frozen=True)
class World:
    """Answers the requests of one conversation. It never raises: a failure is an answer, too.

    :param organization: whose tools and credentials are used; None for a conversation outside any.
    :param workflow: the id of the workflow, for its own server.
    :param caller: the number that calls, empty for a chat; `called` the one that is called.
    :param no_transfer: why nobody can be put through to anybody; empty where the carrier sees to it.
    """

    model: LanguageModel
    service: Service
    organization: int | None = None
    workflow: int | None = None
    caller: str = ""
    called: str = ""
    no_transfer: str = "textchat_not_supported"

    def is_local(self, request: act.Request) -> bool:
        """Whether the answer comes from within this process: at once, the same each time, and without a trace."""
        match request:
            case act.AskModel() | act.Extract():
                return isinstance(self.model, Scripted)
            case act.RunTool():
                return offered.is_local(self.organization, request)
            case act.Transfer():
                return bool(self.no_transfer)
        return False

    def answer(self, request: act.Request) -> ev.Answer | None:
        """The answer to `request`, at the time at which it came.

        None when it comes by itself: a transfer is the carrier's, whose next webhook tells how it went.
        """
        answer = self._answer(request)
        return None if answer is None else replace(answer, at=now().timestamp())

    def _answer(self, request: act.Request) -> ev.Answer | None:
        match request:
            case act.AskModel():
                return self.model.reply(request)
            case act.Extract():
                return self.model.extract(request)
            case act.Fetch():
                call = {"agent_id": self.workflow, "from_number": self.caller, "to_number": self.called}
                return fetch(request, call, self._context)
            case act.RunTool():
                return offered.run(self.organization, request, self._context)
            case act.Transfer() if self.no_transfer:
                result = failed(self.no_transfer)
                return ev.TransferSettled(request.at, request.number, answered=False, result=result)
            case act.Transfer():
                return None
            case _:
                raise TypeError(f"{request!r} can't be answered.")

    @property
    def _context(self) -> ToolContext:
        return offered.context_for(self.service, self.organization, self.no_transfer)


functions = offered.functions_for


def of(service: Service, organization: int | None, configurations: Mapping[str, Any], **about: Any) -> World:
    """The world of a workflow with these configurations, in an organization if there is one.

    :param about: what else is known, by the names of World's members.
    """
    return World(selection.choose(service, organization, configurations), service, organization, **about)


def of_run(service: Service, run: Run, configurations: Mapping[str, Any]) -> World:
    """The world of a run whose version has these configurations."""
    chat = run.mode == "textchat"
    return of(
        service,
        run.organization_id,
        configurations,
        workflow=run.workflow_id,
        caller=run.caller_number or "",
        called=run.called_number or "",
        no_transfer="textchat_not_supported" if chat else "",
    )
