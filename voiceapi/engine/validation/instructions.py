"""Tells a prompt that instructs a language model from one that can be spoken to a caller as it is written.

In doubt a prompt counts as speech: a warning too many makes people blind to the others. Only English is recognized.
"""

import re
from functools import lru_cache

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
    r"^\W*(?:role|goals?|task|tasks|objectives?|instructions?|context|persona|personality|rules?|guidelines?|style|tone|"
    r"steps?|background|identity|system|script|constraints?|output|guardrails)\W*(?::|$)|^#{1,6} \w|^<\w+>",
    re.IGNORECASE | re.MULTILINE,
)
# Nobody who speaks to a caller says "the caller".
_ABOUT_CALLER = re.compile(
    r"\b(?:the|each|a) (?:caller|callee|user)(?:'s|s)?\b(?! (?:account|manual|name|guide|id|interface|group|list|fee))",
    re.IGNORECASE,
)


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
