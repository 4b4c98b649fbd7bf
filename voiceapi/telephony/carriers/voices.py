"""Which voices "natural" and "standard" are, by carrier and language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from .base import VoiceSettings


@dataclass(frozen=True, slots=True)
class Voice:
    """One voice for a language, by the names that go into a carrier's forms, its `voices`.

    :param neural, standard: Amazon Polly's names; most neural voices have no standard form.
    :param style: Vonage's number within the language, empty where none is documented.
    """

    neural: str
    standard: str
    style: str = ""


# By language tag, that of most speakers first: a region without an entry is spoken to by the first of its language.
VOICES: Mapping[str, Voice] = {
    "en-US": Voice("Joanna", "Joanna", "2"),
    "en-GB": Voice("Amy", "Amy"),
    "en-AU": Voice("Olivia", "Nicole"),
    "en-IN": Voice("Kajal", "Aditi"),
    "es-ES": Voice("Lucia", "Lucia", "1"),
    "es-MX": Voice("Mia", "Mia"),
    "es-US": Voice("Lupe", "Lupe"),
    "fr-FR": Voice("Lea", "Lea", "1"),
    "fr-CA": Voice("Gabrielle", "Chantal"),
    "de-DE": Voice("Vicki", "Vicki", "1"),
    "it-IT": Voice("Bianca", "Bianca", "0"),
    "pt-BR": Voice("Camila", "Camila", "5"),
    "pt-PT": Voice("Ines", "Ines"),
    "nl-NL": Voice("Laura", "Lotte", "0"),
    "pl-PL": Voice("Ola", "Ewa", "0"),
    "sv-SE": Voice("Elin", "Astrid", "0"),
    "hi-IN": Voice("Kajal", "Aditi", "0"),
    "ja-JP": Voice("Kazuha", "Mizuki", "0"),
    "cmn-CN": Voice("Zhiyu", "Zhiyu", "0"),
}
# The form of Amazon Polly's names at most carriers.
POLLY: Mapping[str, str] = {"natural": "Polly.{0.neural}-Neural", "standard": "Polly.{0.standard}"}


def spoken_by(settings: VoiceSettings, forms: Mapping[str, str]) -> VoiceSettings:
    """How a carrier speaks, with its own name of a voice for "natural" and "standard", and that voice's language.

    Its usual voice speaks where it has no form for the kind, or the table no voice for the language.

    :param forms: the carrier's `voices`.
    """
    kind = (settings.name or "").lower()
    if kind not in POLLY:
        return settings
    tag = _nearest(settings.language)
    name = forms[kind].format(VOICES[tag]) if tag and kind in forms else ""
    return replace(settings, name=name, language=tag) if tag and name else replace(settings, name=None)


def _nearest(language: str) -> str | None:
    wanted = language.lower()
    if wanted == "zh-hk":  # Cantonese
        return None
    primary = wanted.partition("-")[0].replace("zh", "cmn")
    return next(
        (tag for tag in VOICES if tag.lower() == wanted),
        next((tag for tag in VOICES if tag.partition("-")[0] == primary), None),
    )
