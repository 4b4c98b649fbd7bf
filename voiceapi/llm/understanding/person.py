"""Recognises a caller who asks for a person instead of the agent."""

import re

from .stances import LONGEST, normalize

_WHO = (
    r"(?:(?:a|an|the|your|some|my|any|actual|real|live|human|another) )*(?:person|people|human|human being|operator|"
    r"agent|representative|rep|manager|supervisor|receptionist|advisor|adviser|assistant|secretary|staff|employee|"
    r"customer service|member of staff|colleague)"
)
_ANYBODY = r"(?:someone|somebody|anyone|anybody)(?: else| real| human| there)?"
_REQUEST = re.compile(
    rf"\b(?:(?:talk|speak|chat) (?:directly )?(?:to|with)|connect me (?:to|with)|put me (?:through to|on to|on with)|"
    rf"transfer me to|pass me (?:on )?to|get me|give me|put on) (?:{_WHO}|{_ANYBODY})\b"
    rf"|\b(?:want|need|prefer|like|rather have) {_WHO}\b"
    r"|\b(?:transfer|connect) me(?: please)?$|\bput me through(?: please)?$"
    rf"|^(?:(?:no|please|just|um|uh|i said|can i (?:get|have)|could i (?:get|have)) )*{_WHO}(?: please| now)*$"
    r"|\bmitarbeiter(?:in)?\b|\bmit einem menschen\b|\bopérateur\b|\bconseiller\b|\boperador(?:a)?\b|\bun agente\b|"
    r"\bcon una persona\b|\boperatore\b|\bmedewerker\b|\bkonsultant(?:em|ką)?\b|\bmed en människa\b|オペレーター|人工"
)
# "I need to talk to someone first" is a doubt, and "I don't want an operator" the opposite.
_OTHERWISE = re.compile(
    r"\b(?:not|never|no need)\b.*\b(?:talk|speak|want|need|like)|\b(?:first|before)\b|\bwife|\bhusband"
)
_ASIDE = re.compile(r"[.,!?;:]")


def wants_person(said: str) -> bool:
    """Whether the caller asks for a person, an operator or a transfer."""
    parts = [part.strip() for part in _ASIDE.split(normalize(said[-LONGEST:]))]
    return any(_REQUEST.search(part) and not _OTHERWISE.search(part) for part in parts)


def offers_person(label: str, condition: str) -> bool:
    """Whether an edge is meant for callers who ask for a person."""
    words = normalize(label)
    named = re.search(r"\b(?:human|operator|agent|representative|transfer|staff|somebody|someone|person)\b", words)
    return bool(named) or bool(_REQUEST.search(normalize(condition)))
