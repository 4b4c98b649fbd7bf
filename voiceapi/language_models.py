"""Which language model carries a conversation: the workflow's own, the organization's, the operator's, or none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import model_configuration
from .conversation import LanguageModel
from .errors import Invalid, Refused
from .flow.actions import AskModel, Extract
from .flow.events import ExtractionFailed, ModelFailed
from .llm.chat_completions import ChatCompletions
from .llm.scripted import Scripted
from .sealed import seal, unseal
from .secrets import Vault
from .service import Service

OVERRIDE = "model_configuration_v2_override"

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


def choose(service: Service, organization: int | None, configurations: Mapping[str, Any]) -> LanguageModel:
    """The model for a workflow with these configurations, in an organization if there is one."""
    if service.model is not None:
        return service.model
    try:
        wanted = _override(service.vault, configurations) or (
            None if organization is None else model_configuration.stored(service.vault, organization)
        )
    except Refused as error:  # encrypted with another secret
        return Unusable(str(error.detail))
    chosen = model_configuration.effective(wanted)["llm"]
    settings = service.settings
    if isinstance(chosen, Mapping):
        return _configured(service, chosen)
    if settings.llm_url is None:
        return Scripted()
    return ChatCompletions(
        service.outward.send,
        settings.llm_url,
        settings.llm_model,
        settings.llm_key,
        settings.llm_timeout,
        trusted=True,
        provider=OPERATORS,
    )


def _configured(service: Service, chosen: Mapping[str, Any]) -> LanguageModel:
    provider = str(chosen.get("provider") or "openai")
    url = chosen.get("base_url") or BASE_URLS.get(provider.lower())
    if not isinstance(url, str):
        return Unusable(f"The model provider {provider!r} needs a base_url; known without one: {', '.join(BASE_URLS)}.")
    keys = chosen.get("api_key")
    key = next((each for each in (keys if isinstance(keys, list) else [keys]) if isinstance(each, str) and each), None)
    model = chosen.get("model")
    return ChatCompletions(
        service.outward.send,
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


# -- a workflow's own choice, kept sealed among its configurations


def keep_override(vault: Vault, configurations: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """The configurations to store: a key that comes back as its own mask keeps its stored value.

    :raises Invalid: with a sentence, for an override that is no configuration, or a masked key that isn't stored.
    """
    override = configurations.get(OVERRIDE)
    if override is None:
        return dict(configurations)
    known: Any
    try:
        known = _override(vault, before)
    except Refused:  # what can't be read any more may still be entered again
        known = None
    merged = model_configuration.restored(model_configuration.without_nulls(override), known)
    _check(merged)
    model_configuration.refuse_masked(merged)
    return {**configurations, OVERRIDE: seal(vault, merged)}


def show_override(vault: Vault, configurations: Mapping[str, Any]) -> dict[str, Any]:
    """The configurations for an answer, the override's keys masked; one that can't be read any more is left out."""
    shown = {name: value for name, value in configurations.items() if name != OVERRIDE}
    try:
        override = _override(vault, configurations)
    except Refused:
        return shown
    return shown if override is None else {**shown, OVERRIDE: model_configuration.masked(override)}


def _override(vault: Vault, configurations: Mapping[str, Any]) -> dict[str, Any] | None:
    sealed = configurations.get(OVERRIDE)
    return unseal(vault, sealed) if isinstance(sealed, str) else None


def _check(override: Any) -> None:
    """:raises Invalid: with a sentence, for what could not be chosen from (the contract's I.6)."""
    match override:
        case {"mode": "dograh", "dograh": Mapping()}:
            return
        case {"mode": "byok", "byok": {"mode": "pipeline" | "realtime" as mode, **chosen}}:
            services: Any = chosen.get(mode)
            llm = services.get("llm") if isinstance(services, Mapping) else None
            if not isinstance(llm, Mapping) or not isinstance(llm.get("provider"), str):
                raise Invalid(
                    f"{OVERRIDE}: byok.{mode} is required when byok.mode is {mode}, with an llm and its provider."
                )
            if llm["provider"] == "dograh":
                raise Invalid(f"{OVERRIDE}: BYOK llm cannot use Dograh provider.")
        case _:
            raise Invalid(f'{OVERRIDE} must have the mode "dograh" or "byok" and an object of that name.')
