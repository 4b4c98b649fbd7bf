"""What a conversation needs from outside, as protocols in the engine's own types."""

from typing import Protocol

from .actions import AskModel, Extract
from .events import Answer


class LanguageModel(Protocol):
    """Decides and speaks. It answers each request, also when it fails."""

    def reply(self, ask: AskModel) -> Answer: ...

    def extract(self, request: Extract) -> Answer: ...
