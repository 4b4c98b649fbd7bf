"""The language model of a conversation: the workflow's, the organization's, the operator's, or the scripted one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..engine.actions import AskModel, Extract
from ..engine.events import ExtractionFailed, ModelFailed
from ..engine.ports import LanguageModel
from ..errors import InvalidInput, NotPossible
from ..service import Service
from . import configuration
from .chat_completions import ChatCompletions, Failure
from .configuration import OPERATOR, SCRIPTED, check_override
from .scripted import Scripted
from .wire import Completion

# Providers with an API like OpenAI's chat completions; others need a base_url in the configuration.
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


class Misconfigured:
    """Stands for a model whose configuration can't be used: each request fails with the reason."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def reply(self, ask: AskModel) -> ModelFailed:
        return ModelFailed(ask.at, ask.number, self._reason)

    def extract(self, request: Extract) -> ExtractionFailed:
        return ExtractionFailed(request.at, request.number, self._reason)

    def complete(self, system: str, user: str) -> Completion:
        raise Failure(self._reason, final=True)


def choose(service: Service, organization: int | None, configurations: Mapping[str, Any]) -> LanguageModel:
    """The model that speaks in a workflow with these stored configurations; `organization` is None outside of one."""
    if service.model is not None:
        return service.model
    try:
        wanted = configuration.decrypt_override(service.vault, configurations)
        if wanted is not None:
            check_override(wanted)
        elif organization is not None:
            wanted = configuration.load(service.vault, organization)
    except (NotPossible, InvalidInput) as error:
        # Encrypted with another secret, or stored before overrides were checked.
        return Misconfigured(str(error.detail))
    chosen = configuration.effective_services(wanted)["llm"]
    if isinstance(chosen, Mapping):
        return from_configuration(service, chosen)
    return Scripted() if service.settings.llm_url is None else from_configuration(service, {"provider": OPERATOR})


def is_scripted(model: LanguageModel) -> bool:
    """True for the scripted model, which speaks when no language model is configured."""
    return isinstance(model, Scripted)


def name_of(model: LanguageModel) -> str:
    """The name by which metrics distinguish a model: the one that its server is asked for."""
    if isinstance(model, ChatCompletions):
        return model.model or "default"
    return "scripted" if is_scripted(model) else "unusable" if isinstance(model, Misconfigured) else "other"


def has_own(service: Service, organization: int) -> bool:
    """True if an organization has configured a language model; a configuration that can't be decrypted counts, too."""
    try:
        wanted = configuration.load(service.vault, organization)
    except NotPossible:
        return True
    return isinstance(configuration.effective_services(wanted)["llm"], Mapping)


def from_configuration(service: Service, chosen: Mapping[str, Any]) -> LanguageModel:
    """The model of an `llm` service in a model configuration: provider, model, api_key, base_url and max_tokens.

    The provider SCRIPTED is the scripted model, whatever else is set. What a service on the operator's server leaves
    out, its model and its key, is the operator's.
    """
    settings = service.settings
    provider = str(chosen.get("provider") or "openai")
    if provider.lower() == SCRIPTED:
        return Scripted()
    keys = chosen.get("api_key")
    key = next((each for each in (keys if isinstance(keys, list) else [keys]) if isinstance(each, str) and each), None)
    named = chosen.get("model")
    model = named if isinstance(named, str) and named else None
    url = chosen.get("base_url") or BASE_URLS.get(provider.lower())
    operators = configuration.is_operators(settings, chosen)
    if operators:
        url, model, key = settings.llm_url, model or settings.llm_model, key or settings.llm_key
    if not isinstance(url, str):
        known = ", ".join(BASE_URLS)
        advice = " or VOICEAPI_LLM_URL" if provider.lower() == OPERATOR else ""
        return Misconfigured(f"The model provider {provider!r} needs a base_url{advice}; known without one: {known}.")
    return ChatCompletions(
        service.http.send,
        url,
        model,
        key,
        settings.llm_timeout,
        trusted=operators,
        provider=provider,
        max_tokens=configuration.max_tokens(chosen) or settings.llm_max_tokens,
        refused=service.refused_parameters.setdefault((url, model), set()),
    )


def runtime_configuration(model: LanguageModel) -> dict[str, Any]:
    """What a run's initial context says about its model; nothing about the scripted one."""
    if not isinstance(model, ChatCompletions):
        return {}
    return {"runtime_configuration": {"llm_provider": model.provider, "llm_model": model.model}}
