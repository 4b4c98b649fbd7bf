"""The language model of a conversation: the workflow's, the organization's, the operator's, or the scripted one."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from ..engine.actions import AskModel, Extract, Function, LanguageModel
from ..engine.events import ExtractionFailed, ModelFailed
from ..errors import InvalidInput, NotPossible
from ..http_client import OWNER_OPERATOR
from ..security import decrypt_json
from ..service import Service
from ..store.base import scalar
from ..store.organizations import Organization
from . import configuration, parameters
from .chat_completions import MEANT, ChatCompletions, Failure
from .configuration import OPERATOR, OVERRIDE, SCRIPTED, language_model_of
from .scripted import Scripted
from .spoken_reply import spoken_reply
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
# What a model is asked: to call a function, by a prompt that 2048 tokens can't hold. It is of plain words, each of them
# at least one token, so that the tokens that a server counts show what it left out.
SYSTEM = (
    "You answer the telephone of a workshop. Call the function note with what the caller wants and say nothing else. "
    f"{'Be brief and friendly and ask one question at a time and never talk about any prices. ' * 62}"
)
QUESTION = "Hello, please note that I want a repair of the wheel of my bicycle with a bell and a light and a basket."
WISHES = [
    f"{work} of the {part} of a {thing} with a bell and a light and a basket for the dog"
    for work in ("repair", "cleaning", "painting", "check", "sale")
    for part in ("wheel", "chain", "seat", "frame")
    for thing in ("bicycle", "scooter", "wagon")
]
WISH = {"type": "string", "description": "what the caller wants", "enum": WISHES}
NOTE = Function(
    "note", "Note what the caller wants.", {"type": "object", "properties": {"wish": WISH}, "required": ["wish"]}
)
WORDS, WORDS_OF_FUNCTION = len(f"{SYSTEM} {QUESTION}".split()), len(" ".join(WISHES).split())
# Fewer are no count of a prompt.
FEWEST_TOKENS = 256
SMALL_CONTEXT = (
    "The model's context is too small for an agent: give it 8192 tokens, with OLLAMA_CONTEXT_LENGTH=8192 for Ollama, "
    "-c 8192 for llama-server, --n_ctx 8192 for llama_cpp.server."
)
TEMPLATES = (
    "Choose a model whose chat template has tools, of which `ollama show` lists `tools`; start llama-server with "
    "--jinja, and llama_cpp.server with --chat_format chatml-function-calling."
)
DROPPED = "The model's server leaves functions out of its prompt, so that agents never leave their first node."
REFUSED = "The model's server refuses functions. They are described in its prompt, which small models don't follow."
TALKED = "The model called no function when told to. Agents may never leave their first node: try a larger model."


class Misconfigured:
    """Stands for a model whose configuration can't be used: each request fails with the reason."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def reply(self, ask: AskModel) -> ModelFailed:
        return ModelFailed(ask.at, ask.number, self._reason)

    def extract(self, request: Extract) -> ExtractionFailed:
        return ExtractionFailed(request.at, request.number, self._reason)

    def complete(self, system: str, user: str, functions: Sequence[Function] = ()) -> Completion:
        raise Failure(self._reason, final=True)


def choose(service: Service, organization: int | None, configurations: Mapping[str, Any]) -> LanguageModel:
    """The model that speaks in a workflow with these stored configurations; `organization` is None outside of one."""
    if service.model is not None:
        return service.model
    override = configurations.get(OVERRIDE)
    encrypted = override
    if override is None and organization is not None:
        encrypted = scalar(Organization, "model_configuration", id=organization)
    if encrypted is not None:
        try:
            wanted = decrypt_json(service.vault, encrypted)
            if override is not None:
                language_model_of(wanted)
        except (NotPossible, InvalidInput) as error:
            # Encrypted with another secret, or stored before overrides were checked.
            return Misconfigured(str(error.detail))
        chosen = configuration.effective_services(wanted)["llm"]
        if isinstance(chosen, Mapping):
            return from_configuration(service, chosen, organization)
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


def from_configuration(service: Service, chosen: Mapping[str, Any], organization: int | None = None) -> LanguageModel:
    """The model of an `llm` service in a model configuration: provider, model, api_key, base_url and parameters.

    The provider SCRIPTED is the scripted model, whatever else is set. What a service on the operator's server leaves
    out, its model and its key, is the operator's.

    :param organization: whose key is sent, if it isn't the operator's; without it no connection is kept.
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
    owner = OWNER_OPERATOR if operators and key is None else organization
    if operators:
        url, model, key = settings.llm_url, model or settings.llm_model, key or settings.llm_key
    if not isinstance(url, str):
        known = ", ".join(BASE_URLS)
        advice = " or VOICEAPI_LLM_URL" if provider.lower() == OPERATOR else ""
        return Misconfigured(f"The model provider {provider!r} needs a base_url{advice}; known without one: {known}.")
    streams = parameters.streams(chosen)
    limit, most_tokens = parameters.length(chosen) or ("max_tokens", settings.llm_max_tokens)
    return ChatCompletions(
        # A model may be sent the same messages twice.
        partial(service.http.send, owner=owner, repeatable=True),
        url,
        model,
        key,
        settings.llm_timeout,
        trusted=operators,
        provider=provider,
        max_tokens=most_tokens,
        length_parameter=limit,
        parameters=parameters.of_body(chosen),
        headers=parameters.of_headers(chosen),
        refused=service.refused_parameters(owner, url, model),
        open=partial(service.http.stream, owner=owner, repeatable=True),
        streams=settings.llm_stream if streams is None else streams,
    )


def runtime_configuration(model: LanguageModel) -> dict[str, Any]:
    """What a run's initial context says about its model; nothing about the scripted one."""
    if not isinstance(model, ChatCompletions):
        return {}
    return {"runtime_configuration": {"llm_provider": model.provider, "llm_model": model.model}}


class ProbeFailed(Exception):
    """The model can't be used; the text is one sentence, without its key."""


def describe(model: LanguageModel) -> str:
    """Which model it is, without secrets."""
    if isinstance(model, ChatCompletions):
        parts = urlsplit(model.url)
        server = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        return f"{model.provider}, {model.model or 'the default model'} at {server}"
    if isinstance(model, Scripted):
        return "the scripted model"
    return "not usable" if isinstance(model, Misconfigured) else "the host app's own model"


def is_asked(model: LanguageModel) -> bool:
    """True if it is on a server, which a question may show to be out of order."""
    return isinstance(model, ChatCompletions | Misconfigured)


def ask(model: LanguageModel, clock: Callable[[], float] = time.monotonic) -> tuple[float, str]:
    """Ask the model to call a function, and without functions if its server refuses them.

    Returns the seconds until its answer, and what it lacks although it can speak, in sentences; empty if nothing.

    :raises ProbeFailed: when there is no answer that a conversation could use, or its server cuts its prompts.
    """
    started = clock()
    if not isinstance(model, ChatCompletions | Misconfigured):
        return 0.0, ""
    refused = False
    try:
        try:
            completion = model.complete(SYSTEM, QUESTION, [NOTE])
        except Failure as failure:
            if not failure.tools:
                raise
            refused = True
            completion = model.complete(SYSTEM, QUESTION)
    except Failure as failure:
        too_long = str(failure).startswith(MEANT["too long"])
        raise ProbeFailed(f"{failure} {SMALL_CONTEXT}" if too_long else str(failure)) from None
    seconds = clock() - started
    called = completion.calls or spoken_reply(completion, {NOTE.name: NOTE.name}).calls
    if not called and not completion.text:
        raise ProbeFailed("The model answered without words.")
    tokens = completion.usage.get("prompt_tokens", 0)
    expected = WORDS if refused else WORDS + WORDS_OF_FUNCTION
    if FEWEST_TOKENS <= tokens < expected:
        # A tokenizer makes hardly more than four tokens of three plain words.
        dropped = not called and WORDS <= tokens < WORDS + WORDS_OF_FUNCTION / 2
        raise ProbeFailed(f"{DROPPED} {TEMPLATES}" if dropped else SMALL_CONTEXT)
    return seconds, f"{REFUSED} {TEMPLATES}" if refused else "" if called else TALKED
