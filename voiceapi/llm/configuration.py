"""Use cases of an organization's model configuration: which language and speech models it wants, with their keys."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from itertools import zip_longest
from typing import Any

from ..errors import InvalidInput, NotPossible
from ..security import Vault, decrypt_json, encrypt_json, mask, unmask
from ..store.base import scalar
from ..store.database import write
from ..store.organizations import Organization

# Members of a service that no answer shows in full.
SECRET = ("api_key", "credentials", "aws_access_key", "aws_secret_key")
# The services that the conversation may use.
SERVICES = ("llm", "tts", "stt", "embeddings", "realtime")
# Where the configurations of a workflow keep models of its own.
OVERRIDE = "model_configuration_v2_override"


def stored(vault: Vault, organization: int) -> dict[str, Any] | None:
    """The configuration in clear, None when there is none.

    :raises NotPossible: when it was encrypted with another secret than this service's.
    """
    text = scalar(Organization, "model_configuration", id=organization)
    return None if text is None else decrypt_json(vault, text)


def replace(vault: Vault, organization: int, configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Store the whole configuration; a key that comes back as its own mask keeps its stored value.

    :raises InvalidInput: for a key that is still masked and isn't the mask of a stored one.
    """
    with write():
        try:
            before = stored(vault, organization)
        except NotPossible:  # what can't be read any more may still be entered again
            before = None
        merged: dict[str, Any] = restored(without_nulls(configuration), before)
        refuse_masked(merged)
        Organization.update(model_configuration=encrypt_json(vault, merged)).where(
            Organization.id == organization
        ).execute()
    return merged


def to_be_stored(
    vault: Vault, organization: int, configurations: Mapping[str, Any], before: Mapping[str, Any]
) -> dict[str, Any]:
    """A workflow's configurations with its own models sealed, after the keys that came masked were put back.

    They are those stored `before` or, because a client makes a workflow's own models out of the organization's as it
    was shown them, those of the organization.

    :raises InvalidInput: for a key that is still masked, or an override that can't be chosen from.
    """
    merged: dict[str, Any] = restored(configurations, before)
    if merged.get(OVERRIDE) is None:
        refuse_masked(merged)
        return merged
    for known in (partial(override, vault, before), partial(stored, vault, organization)):
        with suppress(NotPossible):  # what can't be read any more may still be entered again
            merged[OVERRIDE] = restored(merged[OVERRIDE], known())
    refuse_masked(merged)
    check_override(merged[OVERRIDE])
    return {**merged, OVERRIDE: encrypt_json(vault, merged[OVERRIDE])}


def override(vault: Vault, configurations: Mapping[str, Any]) -> dict[str, Any] | None:
    """The workflow's own models in its stored configurations, in clear; None when it has none.

    :raises NotPossible: when they were encrypted with another secret than this service's.
    """
    text = configurations.get(OVERRIDE)
    return None if text is None else decrypt_json(vault, text)


def shown(vault: Vault, configurations: Mapping[str, Any]) -> dict[str, Any]:
    """A workflow's stored configurations as an answer has them: keys masked, models that can't be read null."""
    if OVERRIDE not in configurations:
        return dict(masked(configurations))
    models = None
    with suppress(NotPossible):
        models = override(vault, configurations)
    return dict(masked({**configurations, OVERRIDE: models}))


def check_override(override: Any) -> None:
    """:raises InvalidInput: with a sentence, for models that could not be chosen from."""
    match override:
        case {"mode": "dograh", "dograh": Mapping()}:
            return
        case {"mode": "byok", "byok": {"mode": "pipeline" | "realtime" as mode, **chosen}}:
            services: Any = chosen.get(mode)
            llm = services.get("llm") if isinstance(services, Mapping) else None
            if not isinstance(llm, Mapping) or not isinstance(llm.get("provider"), str):
                raise InvalidInput(
                    f"{OVERRIDE}: byok.{mode} is required when byok.mode is {mode}, with an llm and its provider."
                )
            if llm["provider"] == "dograh":
                raise InvalidInput(f"{OVERRIDE}: BYOK llm cannot use Dograh provider.")
        case _:
            raise InvalidInput(f'{OVERRIDE} must have the mode "dograh" or "byok" and an object of that name.')


def effective(configuration: Mapping[str, Any] | None) -> dict[str, Any]:
    """The services that a configuration names, one by one; None for those that it doesn't.

    The models hosted by Dograh can't be reached from here: in that mode all are None.
    """
    chosen: Mapping[str, Any] = {}
    realtime = False
    if configuration is not None and configuration["mode"] == "byok":
        byok = configuration["byok"]
        realtime = byok["mode"] == "realtime"
        chosen = byok[byok["mode"]]
    return {**{name: chosen.get(name) for name in SERVICES}, "is_realtime": realtime}


def masked(value: Any) -> Any:
    """The value with every secret in it masked, however deep."""
    if isinstance(value, dict):
        return {name: mask(below) if name in SECRET else masked(below) for name, below in value.items()}
    return [masked(below) for below in value] if isinstance(value, list) else value


def restored(value: Any, before: Any) -> Any:
    """The value with each secret that equals the mask of the one stored at the same place put back."""
    if isinstance(value, list):
        places = before[: len(value)] if isinstance(before, list) else []
        return [restored(below, place) for below, place in zip_longest(value, places)]
    if not isinstance(value, dict):
        return value
    known = before if isinstance(before, dict) else {}
    return {
        name: _secret(below, known.get(name)) if name in SECRET else restored(below, known.get(name))
        for name, below in value.items()
    }


def _secret(value: Any, before: Any) -> Any:
    if not isinstance(value, list):
        return unmask(value, before)
    keys = {mask(key): key for key in (before if isinstance(before, list) else [before]) if isinstance(key, str)}
    return [keys.get(key, key) if isinstance(key, str) else key for key in value]


def refuse_masked(value: Any) -> None:
    """:raises InvalidInput: when a secret in it is only a mask."""
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, found in below:
        if name in SECRET:
            for key in found if isinstance(found, list) else [found]:
                if isinstance(key, str) and key.startswith("***"):
                    raise InvalidInput(
                        f"The {name} {key[-8:]!r} is masked and no stored one matches it. Send it in full."
                    )
        else:
            refuse_masked(found)


def without_nulls(value: Any) -> Any:
    """The value without the members of objects that are null."""
    if isinstance(value, dict):
        return {name: without_nulls(below) for name, below in value.items() if below is not None}
    return value
