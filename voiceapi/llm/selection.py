"""Which language model carries a conversation: the workflow's own, the organization's, the operator's, or none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..engine.actions import AskModel, Extract
from ..engine.events import ExtractionFailed, ModelFailed
from ..engine.ports import LanguageModel
from ..errors import Invalid, NotPossible
from ..service import Service
from . import configuration
from .chat_completions import ChatCompletions, Failure
from .configuration import check_override
from .scripted import Scripted
from .wire import Completion

# Base URLs of the providers that speak OpenAI's chat completions; any other needs a base_url.
BASE_URLS = {
    "openai": "https://api.openai.com/v1",
    "openrouter": "https://openrouter.ai/api/v1",
    "groq": "https://api.groq.com/openai/v1",
    "google": "https://generativelanguage.googleapis.com/v1beta/openai",
    "deepseek": "https://api.deepseek.com/v1",
    "mistral": "https://api.mistral.ai/v1",
    "together": "https://api.together.xyz/v1",
    "cerebras": "https://api.cerebras.ai/v1",
    "xai": "https://api.x.ai/v1",
}
# Under what name tokens of VOICEAPI_LLM_URL are counted.
OPERATORS = "openai-compatible"


class Unusable:
    """A model that is configured in a way that can't be used: each request is answered with the reason."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def reply(self, ask: AskModel) -> ModelFailed:
        return ModelFailed(ask.at, ask.number, self._reason)

    def extract(self, request: Extract) -> ExtractionFailed:
        return ExtractionFailed(request.at, request.number, self._reason)

    def complete(self, system: str, user: str) -> Completion:
        raise Failure(self._reason, final=True)


def choose(service: Service, organization: int | None, configurations: Mapping[str, Any]) -> LanguageModel:
    """The model for a workflow with these configurations, in an organization if there is one."""
    if service.model is not None:
        return service.model
    try:
        wanted = configuration.override(service.vault, configurations)
        if wanted is not None:
            check_override(wanted)
        elif organization is not None:
            wanted = configuration.stored(service.vault, organization)
    except (NotPossible, Invalid) as error:  # encrypted with another secret, or stored before it was checked
        return Unusable(str(error.detail))
    chosen = configuration.effective(wanted)["llm"]
    settings = service.settings
    if isinstance(chosen, Mapping):
        return configured(service, chosen)
    if settings.llm_url is None:
        return Scripted()
    return ChatCompletions(
        service.http.send,
        settings.llm_url,
        settings.llm_model,
        settings.llm_key,
        settings.llm_timeout,
        trusted=True,
        provider=OPERATORS,
    )


def configured(service: Service, chosen: Mapping[str, Any]) -> LanguageModel:
    """The model of a service as a model configuration names it: provider, model, api_key and base_url."""
    provider = str(chosen.get("provider") or "openai")
    url = chosen.get("base_url") or BASE_URLS.get(provider.lower())
    if not isinstance(url, str):
        return Unusable(f"The model provider {provider!r} needs a base_url; known without one: {', '.join(BASE_URLS)}.")
    keys = chosen.get("api_key")
    key = next((each for each in (keys if isinstance(keys, list) else [keys]) if isinstance(each, str) and each), None)
    model = chosen.get("model")
    return ChatCompletions(
        service.http.send,
        url,
        model if isinstance(model, str) and model else None,
        key,
        service.settings.llm_timeout,
        provider=provider,
    )


def runtime_configuration(model: LanguageModel) -> dict[str, Any]:
    """What a run's initial context says about its model; nothing for one without a name."""
    if not isinstance(model, ChatCompletions):
        return {}
    return {"runtime_configuration": {"llm_provider": model.provider, "llm_model": model.model}}
