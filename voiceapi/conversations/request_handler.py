"""Answers the engine's requests: by a language model, a tool, a document lookup or a fetch."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from ..engine import actions as act
from ..engine import events as ev
from ..engine.actions import LanguageModel
from ..errors import LimitReached
from ..llm import selection
from ..llm.chat_completions import ChatCompletions
from ..llm.scripted import Scripted
from ..llm.streams import Pace, sentences, whole
from ..organizations.call_quota import reserve_daily_call
from ..service import Service
from ..store.database import write
from ..store.fields import now
from ..store.locks import calls_lock
from ..store.runs import Run
from ..tools import catalog
from ..tools.http_api import fetch
from ..tools.tool import ToolContext
from ..tools.transfer_call import failed


@dataclass(frozen=True)
class RequestHandler:
    """Answers the requests of one conversation. It never raises: a failure is an answer, too.

    :param configurations: the stored configurations of the workflow, which choose the model.
    :param organization: whose tools and credentials are used; None for a conversation outside any.
    :param workflow: the id of the workflow, which a pre-call fetch sends.
    :param run: that of the conversation, as it was when it was loaded; None for one that isn't stored.
    :param pace: how much of a reply is given out while the model still writes; None gives replies out whole.
    """

    service: Service
    configurations: Mapping[str, Any]
    organization: int | None = None
    workflow: int | None = None
    run: Run | None = None
    pace: Pace | None = None

    @cached_property
    def model(self) -> LanguageModel:
        """The model that speaks, chosen when it is first needed: a conversation may end without it."""
        return selection.choose(self.service, self.organization, self.configurations)

    def is_local(self, request: act.Request) -> bool:
        """True if the request is answered within this process: nothing is sent, and there are no side effects."""
        match request:
            case act.AskModel() | act.Extract():
                return bool(request.problem) or isinstance(self.model, Scripted)
            case act.RunTool():
                return catalog.is_local(self.organization, request)
            case act.Transfer():
                return bool(self._no_transfer)
        return False

    def answer(self, request: act.Request) -> Generator[ev.Answer, None, None]:
        """The answer to `request`, at the time at which it came, and before it the parts of a reply.

        Nothing for a transfer by the carrier, whose next webhook has the outcome.
        """
        if self.service.model is not None:  # one of the host's, which doesn't know that others need the connection
            self.service.store.release()
        found: Iterable[ev.Answer]
        match request:
            case act.AskModel(problem=str(problem)) if problem:
                found = [ev.ModelFailed(request.at, request.number, problem)]
            case act.Extract(problem=str(problem)) if problem:
                found = [ev.ExtractionFailed(request.at, request.number, problem)]
            case act.AskModel() if isinstance(self.model, ChatCompletions) and self.pace is not None:
                # Webhooks leave it to the author, because nobody is listened to while a sentence goes ahead.
                goes_ahead = request.first_sentence or self.pace is not sentences
                found = self.model.stream(request, self.pace if goes_ahead else whole)
            case act.AskModel():
                found = [self.model.reply(request)]
            case act.Extract():
                found = [self.model.extract(request)]
            case act.Fetch():
                caller, called = ("", "") if self.run is None else (self.run.caller_number, self.run.called_number)
                call = {"agent_id": self.workflow, "from_number": caller or "", "to_number": called or ""}
                found = [fetch(request, call, self._context)]
            case act.RunTool():
                found = [catalog.run(self.organization, request, self._context)]
            case act.Transfer():
                refusal = failed(self._no_transfer) if self._no_transfer else self._count_transfer()
                settled = partial(ev.TransferSettled, request.at, request.number, answered=False)
                found = [] if refusal is None else [settled(result=refusal)]
            case _:
                raise TypeError(f"{request!r} can't be answered.")
        with closing(found) if isinstance(found, Generator) else nullcontext():
            for answer in found:
                if self.service.metrics is not None and isinstance(answer, ev.ModelFailed | ev.ExtractionFailed):
                    self.service.metrics.model_failed(selection.name_of(self.model))
                yield replace(answer, at=now().timestamp())

    def _count_transfer(self) -> Mapping[str, Any] | None:
        """Count a transfer as a call; its result if the organization has placed all that it may since the tool ran."""
        if self.organization is not None:
            try:
                with write(calls_lock(self.organization)):
                    reserve_daily_call(self.organization)
            except LimitReached as error:
                return failed("call_limit_reached", str(error.detail))
        return None

    @property
    def _no_transfer(self) -> str:
        """Why a transfer isn't possible, one of transfer_call.FAILURES; empty if the carrier can make it."""
        return "textchat_not_supported" if self.run is None or self.run.mode == "textchat" else ""

    @property
    def _context(self) -> ToolContext:
        return catalog.context_for(self.service, self.organization, self._no_transfer, self.run)
