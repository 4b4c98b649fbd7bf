"""Protocols, in the engine's own types, of what a conversation needs from outside."""

from typing import Protocol

from .actions import AskModel, Extract
from .events import Answer


class LanguageModel(Protocol):
    """A language model. It raises nothing: a failure is an answer too (ModelFailed, ExtractionFailed)."""

    def reply(self, ask: AskModel) -> Answer: ...

    def extract(self, request: Extract) -> Answer: ...
