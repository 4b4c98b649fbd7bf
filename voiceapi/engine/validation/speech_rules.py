"""Warnings about what a workflow speaks and asks: its language, its voice, its texts and its prompts."""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from ..graph import SPEAKING, data_of
from ..phrases import DEFAULT_LANGUAGE, PHRASES, phrases
from ..step import LONGEST_SPEECH
from ..template import MIB, as_boolean, placeholders, size
from .finding import Finding
from .outline import Outline

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
_MARKUP = re.compile(r"<[^<>]*>")
_WORD = re.compile(r"\w+")
# Characters of a prompt that are read; up to which length the answer is remembered, and of how many prompts.
LONGEST, LONGEST_REMEMBERED, MOST_REMEMBERED = 20_000, 4_000, 2048
# A template variable, which the patterns below call x.
_PLACEHOLDER = re.compile(r"\{\{[^{}]*\}\}")
_SENTENCE = re.compile(r"[.!?:;\n]+|\s[-–—]\s|,?\s(?:and|then|but)\s(?=[a-z]+ (?:the|them|him|her|whether|if)\b)")
_LIST_MARK = re.compile(r"^[\s>*#\-–•\d.)]+")

_PERSON = (
    r"(?:caller|callee|user|customer|client|guest|patient|prospect|lead|person|contact|candidate|recipient|participant|"
    r"applicant|member|visitor|buyer|tenant|student|parent|driver|subscriber|respondent|interviewee)s?\b"
)
# Whom a model is told about, and whom a speaker would call you.
_THIRD = rf"(?:(?:the|each|every|your|any) {_PERSON}|x\b|them\b|him\b|her\b|their\b|his\b)"
_ADJECTIVE = (
    r"(?:friendly|polite|helpful|professional|concise|brief|warm|calm|patient|empathetic|courteous|"
    r"cheerful|natural|conversational|respectful|kind|clear|short|honest|upbeat|formal|casual|persuasive|direct)"
)
# How a sentence begins that tells a model who it is and what to do.
_BEGINNINGS = (
    # Its part.
    r"you(?: are|'re| will be) (?:a|an)(?! (?:valued|lucky|new|registered|loyal|long|great|winner|member|vip|star))\b",
    r"you(?: are|'re) (?:the )?(?:voice|virtual|ai|phone|automated|digital)\b",
    r"you(?: are|'re) [a-z]+,? (?:a|an|the|from|at|who|whose)(?= [a-z -]*(?:agent|assistant|receptionist|bot|"
    r"representative|advisor|adviser|secretary|operator|interviewer|caller|team|salesperson|expert|specialist|ai))\b",
    rf"you(?: are|'re) {_ADJECTIVE}",
    r"you (?:work|act|speak|talk|answer|handle|call|take|help|assist|represent|respond) "
    r"(?:at|for|as|to|on|in|only|calls|the|people|customers|callers|x|incoming|phone|orders|bookings)\b",
    r"your (?:task|goal|job|role|objective|purpose|mission|duty|persona|personality|tone|responses?|replies|answers) "
    r"(?:is|are|should|must)\b",
    r"(?:act|behave|respond|reply|speak|talk|answer|write|pose) (?:as|like|in|only|with|using|politely|briefly|slowly|"
    r"clearly|naturally|plainly|within)\b(?! (?:yes|no|me|your)\b)",
    r"(?:pretend|role-?play|assume the role|stay in character|imagine you)\b",
    r"as an? (?:ai|virtual|voice|phone|helpful|friendly|professional)\b",
    # What it does to the other, who is spoken of in the third person.
    rf"(?:(?:please|now|first|next|finally|then|briefly|politely|kindly|warmly|always|gently|also|simply|just) )*"
    rf"(?:ask|tell|greet|thank|inform|remind|offer|help|assist|persuade|convince|invite|encourage|congratulate|wish|"
    rf"reassure|let|give|guide|lead|walk|qualify|notify|welcome|interview|route|transfer|connect|call|address|"
    rf"interrupt|advise|warn|direct|call|get|confirm with|verify with|check with|apologi[sz]e to|explain to|"
    rf"say goodbye to|say hello to|wait for|listen to|speak to|talk to) {_THIRD}",
    rf"(?:repeat|confirm|verify|collect|gather|record|note|take|check|summari[sz]e|clarify|validate|get|find out|"
    rf"read back|spell|answer|address|acknowledge|obtain|request|ask for) "
    r"(?:the |their |his |her |any |all |a |an |each )*(?:[a-z]+ ){0,3}?(?:and|from|with|of|to) "
    rf"(?:{_THIRD}|say|close|end|thank|wish|ask|offer|whether)",
    r"ask (?:whether|if|how|what|when|which|who|why|where|about|for|politely|briefly|again|one|a|an|the|any|open)\b"
    r"(?! (?:me|us|for me)\b)",
    r"greet(?! you)\b",
    r"say (?:that|goodbye|good-bye|something|a (?:short|brief|friendly|polite|warm)|one or|no more|nothing)\b",
    r"(?:politely|briefly|warmly|kindly|gently) (?:ask|tell|greet|thank|say|explain|end|close|decline|inform|introduce|"
    r"confirm|offer|remind|apologi[sz]e)\b",
    r"(?:find out|figure out|determine|ascertain|identify|elicit|gather|inquire|enquire|paraphrase|probe|conduct) "
    r"(?!your\b|yourself\b)[a-z]+",
    r"(?:collect|qualify|summari[sz]e|acknowledge|obtain|verify) (?:the|their|his|her|any|all|what)\b",
    r"introduce (?:yourself|the|x)\b",
    r"(?:explain|confirm|check|verify|mention|make clear|point out|stress|emphasi[sz]e) (?:that|whether|if)\b"
    r"(?! (?:you|your)\b)",
    r"thank (?!you\b|god\b|goodness\b)[a-z]+",
    r"apologi[sz]e\b",
    r"(?:end|close|conclude|finish|wrap up|terminate) (?:the|this) (?:call|conversation|chat)\b",
    r"(?:hang up|wrap up|close politely|agree on a|offer (?:two|three|other|another|a few|alternative)|"
    r"book the|reserve (?:it|the)|schedule (?:the|a)|repeat (?:the|back|their))\b(?!.*\b(?:you|your|me)\b)",
    # Rules.
    r"(?:do not|don't|never|always|only|avoid|no) "
    r"(?:ask|asking|say|mention|use|using|promise|offer|interrupt|argue|repeat|make up|"
    r"discuss|reveal|talk about|speak|invent|disclose|provide|confirm|answer|be|volunteer|guess|quote|emoji)"
    r"\b(?!.*\b(?:your|me|us)\b)",
    r"(?:make sure|ensure|be sure|try|remember) (?:that|to|you|not|the)\b(?!.*\b(?:your|me|us|bring)\b)",
    r"keep (?:it|your|the|all|replies|answers|responses|sentences|every|each)\b(?!.*\b(?:receipt|phone|ticket|line)\b)",
    rf"(?:be|stay|remain|sound) {_ADJECTIVE}(?! (?:with|please))",
    rf"(?:if|when|once|after|unless|until|whenever|as soon as|in case) (?:the {_PERSON}|they|he|she|asked|x)\b",
    r"(?:use|call|invoke|run) the (?:[a-z_]+ )*(?:tool|function|calculator|knowledge base|transition)\b",
    r"use (?:short|simple|plain|natural|the following|no)\b",
    r"start (?:by|with) (?:ask|greet|introduc|say|tell|confirm|explain|thank)ing\b",
    r"begin (?:by|with) (?:ask|greet|introduc|say|tell|confirm|explain|thank)ing\b",
    r"this (?:node|step|agent|assistant|prompt)\b",
)
_BEGINS = re.compile("|".join(f"(?:{each})" for each in _BEGINNINGS))
# Headings of a prompt that is written as a document.
_HEADED = re.compile(
    r"^[^\w\n]*(?:role|goals?|task|tasks|objectives?|instructions?|context|persona|personality|rules?|guidelines?|style|tone|"
    r"steps?|background|identity|system|script|constraints?|output|guardrails)[^\w:\n]*(?::|$)|^#{1,6} \w|^<\w+>",
    re.IGNORECASE | re.MULTILINE,
)
# Nobody who speaks to a caller says "the caller".
_ABOUT_CALLER = re.compile(
    r"\b(?:the|each|a) (?:caller|callee|user)(?:'s|s)?\b(?! (?:account|manual|name|guide|id|interface|group|list|fee))",
    re.IGNORECASE,
)


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
# Voices that the service chooses for the carrier and one of its own languages.
CHOSEN = _names("natural standard")
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
    if isinstance(voice, str) and voice.strip().lower() in CHOSEN and primary in LANGUAGES and primary not in PHRASES:
        text = (
            f'No "{voice.strip()}" voice is known for "{_cut(str(language))}", so the carrier\'s usual one speaks. '
            "Set the carrier's own name of a voice."
        )
        yield Finding("workflow", None, "workflow_configurations.voice", text, "unknown-voice")
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
    if name.lower() in OTHERS | CHOSEN or name in POLLY or _NAMED_BY_ITSELF.fullmatch(name):
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


# -- texts


def text_findings(outline: Outline, *, speaks_prompts: bool) -> Iterator[Finding]:
    """Yield what is wrong with the texts of a definition. Of a text with variables, the rest counts.

    :param speaks_prompts: prompts are spoken as they are written where a node has no scripted text, since the scripted
        model speaks.
    """
    general = (data_of(each).get("prompt") for each in outline.by_id.values() if each.get("type") == "globalNode")
    before = size(_literal(next(general, "")))
    for id, node in outline.by_id.items():
        type, data = node.get("type"), data_of(node)
        if type not in SPEAKING:
            continue
        greeting = data.get("greeting") if type == "startCall" else None
        has_greeting = isinstance(greeting, str) and bool(greeting.strip())
        if has_greeting:
            yield from _greeting(id, str(greeting))
        script = data.get("scripted_text")
        yield from _spoken("node", id, "data.scripted_text", script)
        has_script = isinstance(script, str) and bool(script.strip())
        if speaks_prompts and not has_greeting and not has_script:
            yield from _spoken("node", id, "data.prompt", data.get("prompt"))
        shared = before if as_boolean(data.get("add_global_prompt")) is not False else 0
        own = data.get("prompt")
        if not isinstance(own, str) or shared + 4 * len(own) <= MIB:  # a character has at most four bytes
            continue
        if (bytes := shared + size(_literal(own))) > MIB:
            text = f"This prompt and the global node's have {bytes} bytes; a model is asked at most 1 MiB."
            yield Finding("node", id, "data.prompt", text, "prompt-too-long")
    for edge in outline.edges:
        if isinstance(edge_id := edge.get("id"), str):
            yield from _spoken("edge", edge_id, "data.transition_speech", data_of(edge).get("transition_speech"))


def _greeting(id: str, text: str) -> Iterator[Finding]:
    yield from _spoken("node", id, "data.greeting", text)
    if next(placeholders(text), None) is None and not _WORD.search(_MARKUP.sub("", text)):
        message = "This greeting has no word that can be spoken; without one, the agent begins with its prompt."
        yield Finding("node", id, "data.greeting", message, "unspeakable-greeting")


def _spoken(kind: Any, id: str, field: str, text: object) -> Iterator[Finding]:
    if not isinstance(text, str) or len(text) <= LONGEST_SPEECH:
        return
    if (length := len(_literal(text))) > LONGEST_SPEECH:
        message = (
            f"This text has {length} characters. A turn can say {LONGEST_SPEECH}, which is what a carrier takes; the "
            "rest is not spoken."
        )
        yield Finding(kind, id, field, message, "speech-too-long")


def _literal(text: object) -> str:
    """A text without its placeholders."""
    if not isinstance(text, str) or "{{" not in text:
        return text if isinstance(text, str) else ""
    parts, done = [], 0
    for each in placeholders(text):
        parts.append(text[done : each.start])
        done = each.end
    return "".join([*parts, text[done:]])


def alike_findings(outline: Outline) -> Iterator[Finding]:
    """Yield each edge whose condition is that of an earlier edge of its node, though it leads elsewhere."""
    first: dict[tuple[str, str], dict[str, Any]] = {}
    for edge in outline.edges:
        id, source, condition = edge.get("id"), edge.get("source"), data_of(edge).get("condition")
        if not (isinstance(id, str) and isinstance(source, str) and isinstance(condition, str) and condition.strip()):
            continue
        known = first.setdefault((source, " ".join(condition.casefold().split()).rstrip(".!")), edge)
        if known.get("target") != edge.get("target"):
            label = data_of(known).get("label")
            text = f'This edge has the condition of the edge "{label}" of its node, and leads elsewhere.'
            yield Finding("edge", id, "data.condition", text, "edges-alike")


# -- instructions to a language model, as opposed to texts to speak
# In doubt a prompt counts as speech: a warning too many makes people blind to the others. Only English is recognized.


def is_instruction(prompt: str) -> bool:
    """Return whether a prompt tells a language model what to do, rather than being what a caller is told."""
    prompt = prompt[:LONGEST]
    return _remembered(prompt) if len(prompt) <= LONGEST_REMEMBERED else _is_instruction(prompt)


def _is_instruction(prompt: str) -> bool:
    if _HEADED.search(prompt) or _ABOUT_CALLER.search(prompt):
        return True
    text = _PLACEHOLDER.sub("x", prompt).replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    return any(_BEGINS.match(_LIST_MARK.sub("", sentence).casefold()) for sentence in _SENTENCE.split(text))


# Most prompts are as they were when a workflow is validated again.
_remembered = lru_cache(maxsize=MOST_REMEMBERED)(_is_instruction)
