"""An organization's model configuration, and the one by which a workflow overrides it: services and their keys."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from itertools import zip_longest
from typing import Any
from urllib.parse import urlsplit

from ..config import Settings
from ..errors import InvalidInput, NotPossible
from ..masking import (
    has_hidden_password,
    is_masked,
    mask,
    mask_headers,
    mask_password,
    unmask,
    unmask_headers,
    unmask_password,
)
from ..security import Vault, decrypt_json, encrypt_json
from ..store import organizations, secret_fields, tags
from ..store.base import scalar, update
from ..store.database import write
from ..store.organizations import Organization
from ..store.secret_fields import EXTRA_HEADERS
from ..strict_json import decode
from . import parameters

# Members of a service that answers show masked.
SECRET_MEMBERS = secret_fields.MODEL_KEYS
# The services that a configuration can name.
SERVICES = ("llm", "tts", "stt", "embeddings", "realtime")
# The providers of an llm service that are the scripted model, and the operator's server VOICEAPI_LLM_URL.
SCRIPTED, OPERATOR = "scripted", "openai-compatible"
# The member of a workflow's configurations that overrides the organization's model configuration.
OVERRIDE = "model_configuration_v2_override"


def load(vault: Vault, organization: int) -> dict[str, Any] | None:
    """The organization's configuration, decrypted; None when there is none.

    :raises NotPossible: when it was encrypted with another secret than this service's.
    """
    return decrypted(vault, scalar(Organization, "model_configuration", id=organization))


def decrypted(vault: Vault, text: str | None) -> dict[str, Any] | None:
    """The configuration in this column of an organization; raises as `load`."""
    return None if text is None else decrypt_json(vault, text)


def unset(settings: Settings) -> dict[str, Any]:
    """What speaks for an organization without a configuration, as a configuration that it may change and put.

    It has neither the operator's key nor a user name or password of VOICEAPI_LLM_URL.
    """
    llm = {"provider": SCRIPTED, "model": SCRIPTED}
    if settings.llm_url is not None:
        llm = {"provider": OPERATOR, "model": settings.llm_model or "", "base_url": _without_user(settings.llm_url)}
    # What hears and speaks is the carrier's.
    speech = {"provider": "carrier", "model": "default"}
    pipeline = {"llm": {name: value for name, value in llm.items() if value}, "tts": speech, "stt": speech}
    return {"version": 2, "mode": "byok", "byok": {"mode": "pipeline", "pipeline": pipeline}}


def is_operators(settings: Settings, llm: Mapping[str, Any]) -> bool:
    """True if an llm service is on the operator's server: it names its URL, or OPERATOR and no URL.

    URLs that differ in more than slashes at the end aren't the same. A request to such a service goes to
    VOICEAPI_LLM_URL itself, so the operator's key never reaches another address.
    """
    if settings.llm_url is None:
        return False
    url = llm.get("base_url")
    if not url:
        return str(llm.get("provider")).lower() == OPERATOR
    return isinstance(url, str) and url.rstrip("/") in (settings.llm_url, _without_user(settings.llm_url))


def _without_user(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def replace(
    vault: Vault, organization: int, configuration: Mapping[str, Any], expected: tags.Expected = None
) -> Organization:
    """Store a whole configuration; a secret equal to the mask of the stored one keeps its value.

    :param expected: whether the tag of the configuration is one that the editor expects; None when any is.
    :raises Outdated: when the tag isn't expected.
    :raises InvalidInput: for a secret that is masked otherwise.
    """
    with write():
        record = organizations.get(organization)
        tags.MODELS.require(expected, record)
        try:
            before = decrypted(vault, record.model_configuration)
        except NotPossible:  # secrets that can't be decrypted any more may be entered again
            before = None
        merged: dict[str, Any] = unmask_secrets(without_nulls(configuration), before)
        refuse_masked(merged)
        record.model_configuration = encrypt_json(vault, merged)
        update(record, Organization.model_configuration)
    return record


def encrypt_override(
    vault: Vault, organization: int, configurations: Mapping[str, Any], before: Mapping[str, Any]
) -> dict[str, Any]:
    """A workflow's configurations as they are stored: masked secrets restored, the override encrypted as a whole.

    Masks are compared with the secrets stored `before`, and with those of the organization, since clients copy its
    masked configuration into a workflow's override.

    :raises InvalidInput: for a secret that is masked otherwise, or an override of another shape.
    """
    given, stored = ({name: each[name] for name in each if name != OVERRIDE} for each in (configurations, before))
    merged: dict[str, Any] = secret_fields.merged(
        vault, given, secret_fields.in_configurations, [stored], ("workflow_configurations",)
    )
    if OVERRIDE not in configurations:
        return merged
    merged = {name: merged.get(name, configurations[name]) for name in configurations}
    if merged[OVERRIDE] is None:
        return merged
    for known in (partial(decrypt_override, vault, before), partial(load, vault, organization)):
        with suppress(NotPossible):  # secrets that can't be decrypted any more may be entered again
            merged[OVERRIDE] = unmask_secrets(merged[OVERRIDE], known())
    refuse_masked(merged[OVERRIDE])
    check_override(merged[OVERRIDE])
    return {**merged, OVERRIDE: encrypt_json(vault, merged[OVERRIDE])}


def decrypt_override(vault: Vault, configurations: Mapping[str, Any]) -> dict[str, Any] | None:
    """The override in a workflow's stored configurations, decrypted; None when there is none.

    :raises NotPossible: when it was encrypted with another secret than this service's.
    """
    text = configurations.get(OVERRIDE)
    return None if text is None else decrypt_json(vault, text)


def mask_override(vault: Vault, text: str) -> Any:
    """A workflow's stored configurations for an answer: secrets masked, an override that can't be decrypted null."""
    if OVERRIDE not in text:
        return secret_fields.masked_text(vault, text, secret_fields.in_configurations)
    configurations = decode(text)
    rest = {name: value for name, value in configurations.items() if name != OVERRIDE}
    masked = secret_fields.masked(vault, rest, secret_fields.in_configurations)
    models = None
    with suppress(NotPossible):
        models = mask_secrets(decrypt_override(vault, configurations))
    return {name: masked.get(name, models) for name in configurations}


def check_override(override: Any) -> None:
    """Refuse an override that has another shape than `language_model_of` reads, or a parameter that can't be sent.

    :raises InvalidInput: with a sentence.
    """
    wrong = parameters.unfit(language_model_of(override))
    if wrong:
        place = f"{OVERRIDE}: byok.{override['byok']['mode']}.llm"
        raise InvalidInput(" ".join(f"{place}.{name} must be {allowed}." for name, allowed in wrong.items()))


def language_model_of(override: Any) -> Mapping[str, Any]:
    """The llm service of an override: `{"mode": "dograh", ...}`, which has none, or a `byok` object with a provider.

    :raises InvalidInput: with a sentence, for another shape.
    """
    match override:
        case {"mode": "dograh", "dograh": Mapping()}:
            return {}
        case {"mode": "byok", "byok": {"mode": "pipeline" | "realtime" as mode, **chosen}}:
            services: Any = chosen.get(mode)
            llm = services.get("llm") if isinstance(services, Mapping) else None
            if not isinstance(llm, Mapping) or not isinstance(llm.get("provider"), str):
                raise InvalidInput(
                    f"{OVERRIDE}: byok.{mode} is required when byok.mode is {mode}, with an llm and its provider."
                )
            if llm["provider"] == "dograh":
                raise InvalidInput(f"{OVERRIDE}: BYOK llm cannot use Dograh provider.")
            return llm
    raise InvalidInput(f'{OVERRIDE} must have the mode "dograh" or "byok" and an object of that name.')


def effective_services(configuration: Mapping[str, Any] | None) -> dict[str, Any]:
    """Each of SERVICES as a configuration names it, else None, and `is_realtime`.

    In the mode "dograh" all are None, because the models that Dograh hosts can't be reached from this service.
    """
    chosen: Mapping[str, Any] = {}
    realtime = False
    if configuration is not None and configuration["mode"] == "byok":
        byok = configuration["byok"]
        realtime = byok["mode"] == "realtime"
        chosen = byok[byok["mode"]]
    return {**{name: chosen.get(name) for name in SERVICES}, "is_realtime": realtime}


def mask_secrets(value: Any) -> Any:
    """The value with all secrets in it masked, at any depth."""
    if isinstance(value, dict):
        return {name: _masked(name, below) for name, below in value.items()}
    if isinstance(value, list):
        return [mask_secrets(below) for below in value]
    return mask_password(value) if isinstance(value, str) else value


def _masked(name: str, value: Any) -> Any:
    if name == EXTRA_HEADERS and isinstance(value, dict):
        return mask_headers(value)
    return mask(value) if name in SECRET_MEMBERS else mask_secrets(value)


def unmask_secrets(value: Any, before: Any) -> Any:
    """The value with each secret that is the mask of the one at the same place in `before` replaced by that one.

    A service that has another provider or base_url than before gets none: its secrets would reach another server.
    """
    if isinstance(value, list):
        places = before[: len(value)] if isinstance(before, list) else []
        return [unmask_secrets(below, place) for below, place in zip_longest(value, places)]
    if isinstance(value, str) and isinstance(before, str):
        return unmask_password(value, before) or value
    if not isinstance(value, dict):
        return value
    known = before if isinstance(before, dict) and _same_server(value, before) else {}
    return {name: _unmasked(name, below, known.get(name)) for name, below in value.items()}


def _same_server(value: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    now, then = ((each.get("provider") or None, each.get("base_url") or None) for each in (value, before))
    return tuple(unmask_secrets(new, old) for new, old in zip(now, then, strict=True)) == then


def _unmasked(name: str, value: Any, before: Any) -> Any:
    if name == EXTRA_HEADERS and isinstance(value, dict):
        return unmask_headers(value, before if isinstance(before, dict) else {})
    return (_unmask_secret if name in SECRET_MEMBERS else unmask_secrets)(value, before)


def _unmask_secret(value: Any, before: Any) -> Any:
    if not isinstance(value, list):
        return unmask(value, before)
    keys = {mask(key): key for key in (before if isinstance(before, list) else [before]) if isinstance(key, str)}
    return [keys.get(key, key) if isinstance(key, str) else key for key in value]


def refuse_masked(value: Any) -> None:
    """Refuse a value in which a secret is only a mask.

    :raises InvalidInput: with a sentence.
    """
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, found in below:
        if name in SECRET_MEMBERS:
            for key in found if isinstance(found, list) else [found]:
                if isinstance(key, str) and is_masked(key):
                    raise InvalidInput(
                        f"The {name} {key[-8:]!r} is masked and no stored one matches it. Send it in full."
                    )
        elif name == EXTRA_HEADERS and isinstance(found, dict):
            hidden = [header for header, text in found.items() if isinstance(text, str) and is_masked(text)]
            if hidden:
                raise InvalidInput(f"The header {hidden[0]!r} is masked and no stored one matches it. Send it in full.")
        elif isinstance(found, str) and has_hidden_password(found):
            raise InvalidInput(f"The password in the {name} is masked and no stored one matches it. Send it in full.")
        else:
            refuse_masked(found)


def without_nulls(value: Any) -> Any:
    """The value without members that are null, at any depth of objects."""
    if isinstance(value, dict):
        return {name: without_nulls(below) for name, below in value.items() if below is not None}
    return value
