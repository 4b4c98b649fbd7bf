"""Warnings about the language and the voice of a workflow: what no carrier's speech is known to take."""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from ..phrases import DEFAULT_LANGUAGE, phrases
from .finding import Finding

# The languages and their regions that the recognisers and voices behind the carriers know: those of Google, Amazon and
# Microsoft, and what Vonage lists. Without regions the language stands alone.
_LANGUAGES = """
    af-ZA am-ET ar-001,AE,BH,DZ,EG,IL,IQ,JO,KW,LB,LY,MA,MR,OM,PS,QA,SA,SY,TD,TN,XA,YE arb as-IN ast-ES az-AZ be-BY
    bg-BG bn-BD,IN bs-BA ca-ES ceb-PH ckb-IQ cmn-CN,HK,TW cs-CZ cy-GB da-DK de-AT,CH,DE el-GR
    en-AB,AU,CA,GB,GH,HK,IE,IN,KE,NG,NZ,PH,PK,SG,TZ,UK,US,WL,ZA
    es-419,AR,BO,CL,CO,CR,CU,DO,EC,ES,GQ,GT,HN,MX,NI,PA,PE,PR,PY,SV,US,UY,VE et-EE eu-ES fa-IR fi-FI fil-PH
    fr-BE,CA,CH,FR ga-IE gl-ES gu-IN ha-NG he-IL hi-IN hr-HR hu-HU hy-AM id-ID ig-NG is-IS it-CH,IT iu-CA iw-IL
    ja-JP jv-ID ka-GE kam-KE kea-CV kk-KZ km-KH kn-IN ko-KR ky-KG lb-LU lg-UG ln-CD lo-LA lt-LT luo-KE lv-LV mi-NZ
    mk-MK ml-IN mn-MN mr-IN ms-MY mt-MT my-MM nb-NO ne-NP nl-BE,NL nn-NO no-NO nso-ZA ny-MW oc-FR om-ET or-IN
    pa-IN,PK pl-PL ps-AF pt-BR,PT ro-RO ru-RU rw-RW sd-IN si-LK sk-SK sl-SI sn-ZW so-SO sq-AL sr-RS ss-ZA st-ZA
    su-ID sv-FI,SE sw-KE,TZ ta-IN,LK,MY,SG te-IN tg-TJ th-TH tl-PH tn-ZA tr-TR ts-ZA uk-UA ur-IN,PK uz-UZ ve-ZA
    vi-VN wo-SN wuu-CN xh-ZA yo-NG yue-CN,HK zh-CN,HK,SG,TW zu-ZA"""
LANGUAGES: Mapping[str, list[str]] = {
    primary: [region for region in regions.split(",") if region]
    for primary, _, regions in (each.partition("-") for each in _LANGUAGES.split())
}
_TAG = re.compile(r"[a-z]{2,3}(-[a-z]{4})?(-(?P<region>[a-z]{2}|\d{3}))?(-[a-z0-9]{2,8})*", re.IGNORECASE)


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# The voices of Amazon Polly (2026), which most carriers offer as Polly.Name and jambonz by their bare names.
POLLY = _names(
    """Aditi Adriano Ambre Amy Andres Aria Arlet Arthur Astrid Ayanda Beatrice Bianca Brian Burcu Camila Carla Carmen
    Celine Chantal Conchita Cristiano Daniel Danielle Dora Elin Emma Enrique Ewa Filiz Florian Gabrielle Geraint
    Giorgio Gregory Gwyneth Hala Hannah Hans Hiujin Ida Ines Isabelle Ivy Jacek Jan Jasmine Jihye Jitka Joanna Joey
    Justin Kajal Karl Kazuha Kendra Kevin Kimberly Laura Lea Lennart Liam Lisa Liv Lorenzo Lotte Lucia Lupe Mads
    Maja Marlene Mathieu Matthew Maxim Mia Miguel Mizuki Naja Niamh Nicole Ola Olivia Patrick Pedro Penelope Raveena
    Remi Ricardo Ruben Russell Ruth Sabrina Salli Seoyeon Sergio Sofie Stephen Suvi Takumi Tatyana Thiago Tiffany
    Tomoko Vicki Vitoria Zayd Zeina Zhiyu"""
)
# The carriers' own voices, and those of OpenAI, which jambonz takes by their bare names.
OTHERS = _names(
    """man woman alice male female default alloy ash ballad cedar coral echo fable marin nova onyx sage shimmer verse"""
)
# What stands before the name of a vendor's voice, as in Google.de-DE-Neural2-B or Google:de-DE-Wavenet-A.
VENDORS = _names(
    """amazon aws aws-neural azure cartesia cosyvoice deepgram elevenlabs fishaudio gcloud google google-beta hume ibm
    inworld microsoft minimax murf nuance nvidia openai playht polly resemble rime rimelabs telnyx verbio whisper
    xai"""
)
_ENGINES = r"standard|neural|generative|long-?form"
_POLLY_NAME = re.compile(
    rf"(?:({_ENGINES})[.:])?([^.:-]+)(?:[-:]({_ENGINES}))?([:-][a-z]{{2,3}}-[a-z]{{2,3}}(-\w+)?)?", re.I
)
# A voice that begins with its language, a number in its language (Vonage), a model of Deepgram, an id.
_NAMED_BY_ITSELF = re.compile(
    r"[a-z]{2,3}-[a-z]{2,4}-\S+|\d{1,3}( premium)?|aura-\S+|[a-z0-9]{20,}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    re.IGNORECASE,
)
# The language that a voice names, as Google.de-DE-Neural2-B, Google:de-DE-Wavenet-A and de-DE-KatjaNeural do.
_VOICE_LANGUAGE = re.compile(r"(?:\w+[.:])?([a-z]{2,3})-([A-Z]{2,3})-\S", re.IGNORECASE)
# Primary tags of the same language.
_SAME = {"cmn": "zh", "iw": "he", "nb": "no", "nn": "no", "tl": "fil", "arb": "ar"}


def speech_findings(configurations: Mapping[str, Any]) -> list[Finding]:
    """Return warnings about `language` and `voice` of a workflow's configurations; what isn't text is skipped."""
    checks = (("language", _language, "language-without-voice"), ("voice", _voice, "unknown-voice"))
    return [
        Finding("workflow", None, f"workflow_configurations.{name}", message, code)
        for name, check, code in checks
        if isinstance(value := configurations.get(name), str) and value.strip()
        for message in check(value.strip())
    ]


def voice_findings(configurations: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what doesn't fit together: the language, a voice that names another one, and the service's sentences."""
    language = configurations.get("language")
    primary = _primary(language) if isinstance(language, str) and language.strip() else DEFAULT_LANGUAGE
    voice = configurations.get("voice")
    named = _VOICE_LANGUAGE.match(voice.strip()) if isinstance(voice, str) else None
    if named is not None and named[1].lower() in LANGUAGES and _SAME.get(named[1].lower(), named[1].lower()) != primary:
        spoken = f"the language is {language}" if primary != DEFAULT_LANGUAGE else "the language is en-US"
        text = f'The voice "{_cut(str(voice))}" speaks {named[1]}-{named[2]}, and {spoken}.'
        yield Finding("workflow", None, "workflow_configurations.voice", text, "voice-of-another-language")
    english = phrases({}) == phrases({"language": language})
    if primary in LANGUAGES and primary != DEFAULT_LANGUAGE and english and not configurations.get("phrases"):
        text = (
            f"What the service says by itself, such as that it didn't understand, is in English: it has no "
            f'sentences in "{_cut(str(language))}". workflow_configurations.phrases replaces them.'
        )
        yield Finding("workflow", None, "workflow_configurations.language", text, "language-without-phrases")


def _primary(tag: str) -> str:
    primary = tag.strip().split("-")[0].lower()
    return _SAME.get(primary, primary)


def _language(tag: str) -> Iterator[str]:
    found = _TAG.fullmatch(tag)
    if found is None:
        yield f'The language "{_cut(tag)}" is not a language tag such as "de-DE".'
        return
    primary, region = tag.split("-")[0].lower(), (found["region"] or "").upper()
    if primary not in LANGUAGES:
        yield f'No carrier is known to speak and to recognise the language "{_cut(tag)}".'
        return
    regions = LANGUAGES[primary]
    if regions and not region:
        yield f'The language "{_cut(tag)}" names no region, which most carriers need: {_tags(primary, regions)}.'
    elif regions and region not in regions:
        yield f'No carrier is known to take the language "{_cut(tag)}"; known are {_tags(primary, regions)}.'


def _tags(primary: str, regions: list[str]) -> str:
    return ", ".join(f'"{primary}-{region}"' for region in regions)


def _voice(name: str) -> Iterator[str]:
    if name.lower() in OTHERS or name in POLLY or _NAMED_BY_ITSELF.fullmatch(name):
        return
    vendor, _, rest = name.partition(":") if ":" in name.split(".")[0] else name.partition(".")
    if vendor.lower() in ("aws", "amazon", "polly", "aws-neural") and rest:
        rest = rest.removeprefix("Polly.").removeprefix("polly.")
        found = _POLLY_NAME.fullmatch(rest)
        if found is None or _ascii(found[2]).capitalize() not in POLLY:
            yield f'Amazon Polly is not known to have a voice "{_cut(rest)}".{_suggestion(found[2] if found else rest)}'
    elif vendor.lower() not in VENDORS or not rest:
        yield f'No carrier is known to have a voice "{_cut(name)}".{"" if rest else _suggestion(name)}'


def _ascii(name: str) -> str:
    """The name without accents, as Polly has it: Lea is the voice that its pages call Léa."""
    return unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()


def _suggestion(name: str) -> str:
    close = get_close_matches(_ascii(name[:40]).capitalize(), POLLY, n=1, cutoff=0.75)
    return f' Is it "Polly.{close[0]}"?' if close else ""


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}..."
