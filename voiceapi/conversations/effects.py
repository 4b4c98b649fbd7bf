"""Answers the engine's requests: by a language model, a tool, a document lookup or a fetch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..engine import actions as act
from ..engine import events as ev
from ..engine.ports import LanguageModel
from ..errors import LimitReached
from ..llm import selection
from ..llm.scripted import Scripted
from ..organizations.call_quota import count_call
from ..service import Service
from ..store.database import write
from ..store.fields import now
from ..store.locks import calls_lock
from ..store.runs import Run
from ..tools import offered
from ..tools.pre_call_fetch import fetch
from ..tools.tool import ToolContext
from ..tools.transfer_call import failed


@dataclass(frozen=True)
class EffectHandler:
    """Answers the requests of one conversation. It never raises: a failure is an answer, too.

    :param organization: whose tools and credentials are used; None for a conversation outside any.
    :param workflow: the id of the workflow, which a pre-call fetch sends.
    :param caller: the number of the calling side, empty for a chat; `called` is that of the called side.
    :param no_transfer: why a transfer isn't possible, one of transfer_call.FAILURES; empty if the carrier can make it.
    """

    model: LanguageModel
    service: Service
    organization: int | None = None
    workflow: int | None = None
    caller: str = ""
    called: str = ""
    no_transfer: str = "textchat_not_supported"

    @classmethod
    def of_workflow(
        cls, service: Service, organization: int | None, configurations: Mapping[str, Any], workflow: int | None = None
    ) -> EffectHandler:
        """For a conversation by text that belongs to no run, with the configurations of its workflow."""
        return cls(selection.choose(service, organization, configurations), service, organization, workflow)

    @classmethod
    def of_run(cls, service: Service, run: Run, configurations: Mapping[str, Any]) -> EffectHandler:
        """For the conversation of `run`, with the configurations of its version."""
        return cls(
            selection.choose(service, run.organization_id, configurations),
            service,
            run.organization_id,
            workflow=run.workflow_id,
            caller=run.caller_number or "",
            called=run.called_number or "",
            no_transfer="textchat_not_supported" if run.mode == "textchat" else "",
        )

    def is_local(self, request: act.Request) -> bool:
        """True if the request is answered within this process: nothing is sent, and there are no side effects."""
        match request:
            case act.AskModel() | act.Extract():
                return bool(request.problem) or isinstance(self.model, Scripted)
            case act.RunTool():
                return offered.is_local(self.organization, request)
            case act.Transfer():
                return bool(self.no_transfer)
        return False

    def answer(self, request: act.Request) -> ev.Answer | None:
        """The answer to `request`, at the time at which it came.

        None for a transfer by the carrier, whose next webhook has the outcome.
        """
        if self.model is self.service.model:  # one of the host's, which doesn't know that others need the connection
            self.service.store.release()
        answer = self._answer(request)
        if self.service.metrics is not None and isinstance(answer, ev.ModelFailed | ev.ExtractionFailed):
            self.service.metrics.model_failed(selection.name_of(self.model))
        return None if answer is None else replace(answer, at=now().timestamp())

    def _answer(self, request: act.Request) -> ev.Answer | None:
        match request:
            case act.AskModel(problem=str(problem)) if problem:
                return ev.ModelFailed(request.at, request.number, problem)
            case act.Extract(problem=str(problem)) if problem:
                return ev.ExtractionFailed(request.at, request.number, problem)
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
                return self._counted(request)
            case _:
                raise TypeError(f"{request!r} can't be answered.")

    def _counted(self, request: act.Transfer) -> ev.Answer | None:
        """Count a transfer as a call; an answer if the organization has placed all that it may since the tool ran."""
        if self.organization is not None:
            try:
                with write(calls_lock(self.organization)):
                    count_call(self.organization)
            except LimitReached as error:
                result = failed("call_limit_reached", str(error.detail))
                return ev.TransferSettled(request.at, request.number, answered=False, result=result)
        return None

    @property
    def _context(self) -> ToolContext:
        return offered.context_for(self.service, self.organization, self.no_transfer)
