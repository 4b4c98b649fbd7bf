"""Why calls fail: SIP status codes, Q.850 causes and the carriers' own codes and words, each with a plain sentence.

A carrier's class has tables from its codes to the kinds here. What no table has is kept as the carrier wrote it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .webhook import clean

# The sentence of each kind.
SENTENCES: Mapping[str, str] = {
    "account": "The carrier doesn't take calls of this account for now.",
    "barred": "The account may not call this number or its country.",
    "busy": "The line was busy.",
    "caller_id": "The carrier doesn't accept the number that the call came from.",
    "canceled": "The call was canceled before anybody answered.",
    "congestion": "The telephone network had no free line.",
    "declined": "The callee declined the call.",
    "forbidden": "The carrier or the callee's network didn't allow the call.",
    "invalid_number": "The number isn't a valid telephone number.",
    "limit": "The account had reached its carrier's limit of calls.",
    "media": "Both sides have no audio format in common.",
    "network": "The telephone network had a fault.",
    "no_answer": "Nobody answered.",
    "no_credit": "The account has no credit left.",
    "no_response": "The telephone network didn't respond in time.",
    "no_route": "The carrier has no route to this number.",
    "no_such_number": "The number doesn't exist or isn't in service.",
    "service": "The carrier got no document from this service that it could use.",
    "time_limit": "The call reached its longest duration.",
    "unreachable": "The phone can't be reached for now; it may be switched off.",
    "unwanted": "The call was blocked as an unwanted one.",
}
# The kind of what is no fault, and so no cause.
NORMAL = "normal"
# By the final status of a call: what its SIP code or Q.850 cause means there. A carrier that gives up ringing cancels.
IN_STATUS: Mapping[tuple[str, str], str] = {
    ("no-answer", "canceled"): "no_answer",
    ("no-answer", "no_response"): "no_answer",
}
# SIP status codes (RFC 3261, RFC 8197, RFC 8688).
SIP: Mapping[int, str] = {
    401: "account",
    402: "no_credit",
    403: "forbidden",
    404: "no_such_number",
    407: "account",
    408: "no_response",
    410: "no_such_number",
    480: "unreachable",
    484: "invalid_number",
    486: "busy",
    487: "canceled",
    488: "media",
    500: "network",
    502: "network",
    503: "congestion",
    504: "no_response",
    600: "busy",
    603: "declined",
    604: "no_such_number",
    606: "media",
    607: "unwanted",
    608: "unwanted",
}
# Causes of Q.850; the codes of other protocols that telephone networks are bound to are made into these.
Q850: Mapping[int, str] = {
    1: "no_such_number",
    2: "no_route",
    3: "no_route",
    16: NORMAL,
    17: "busy",
    18: "no_response",
    19: "no_answer",
    20: "unreachable",
    21: "declined",
    22: "no_such_number",
    27: "unreachable",
    28: "invalid_number",
    34: "congestion",
    38: "network",
    41: "network",
    42: "congestion",
    50: "barred",
    52: "barred",
    54: "barred",
    57: "barred",
    88: "media",
    102: "no_response",
    111: "network",
    127: "network",
}
# The names that many carriers write for causes of Q.850, in capitals.
NAMES: Mapping[str, int] = {
    "UNALLOCATED_NUMBER": 1,
    "NO_ROUTE_TRANSIT_NET": 2,
    "NO_ROUTE_DESTINATION": 3,
    "NORMAL_CLEARING": 16,
    "USER_BUSY": 17,
    "NO_USER_RESPONSE": 18,
    "NO_ANSWER": 19,
    "SUBSCRIBER_ABSENT": 20,
    "CALL_REJECTED": 21,
    "NUMBER_CHANGED": 22,
    "DESTINATION_OUT_OF_ORDER": 27,
    "INVALID_NUMBER_FORMAT": 28,
    "NORMAL_CIRCUIT_CONGESTION": 34,
    "NETWORK_OUT_OF_ORDER": 38,
    "NORMAL_TEMPORARY_FAILURE": 41,
    "SWITCH_CONGESTION": 42,
    "FACILITY_NOT_SUBSCRIBED": 50,
    "OUTGOING_CALL_BARRED": 52,
    "INCOMING_CALL_BARRED": 54,
    "BEARERCAPABILITY_NOTAUTH": 57,
    "INCOMPATIBLE_DESTINATION": 88,
    "RECOVERY_ON_TIMER_EXPIRE": 102,
    "PROTOCOL_ERROR": 111,
    "INTERWORKING": 127,
}
# What stands in the field of a code where there is none.
NO_CODE = ("", "0")
LONGEST_WORDS = 200


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a call wasn't answered or broke off, as its carrier gave it; never empty.

    :param kind: a key of SENTENCES, None if neither codes nor words are known here.
    :param code: the carrier's own code or name of it.
    :param words: the carrier's text, without a full stop.
    :param sip: the SIP status code.
    :param q850: the cause of Q.850.
    """

    kind: str | None = None
    code: str | None = None
    words: str | None = None
    sip: int | None = None
    q850: int | None = None

    def sentence(self, status: str | None = None) -> str:
        """A plain sentence with the codes and words behind it.

        :param status: the final status of the call.
        """
        kind = IN_STATUS.get((status or "", self.kind or ""), self.kind)
        plain = SENTENCES.get(kind or "", "The carrier gave a reason.").rstrip(".")
        code = None if self.code in (None, self.words) else f"code {self.code}"
        codes = (code, self.sip and f"SIP {self.sip}", self.q850 and f"Q.850 {self.q850}")
        given = ", ".join(each for each in codes if each)
        return f"{plain} ({': '.join(filter(None, (given, self.words)))})."

    def record(self, status: str | None = None) -> dict[str, Any]:
        """The cause as a run keeps it: `text`, the sentence, and what the carrier gave of the rest."""
        given = {"code": self.code, "message": self.words, "sip": self.sip, "q850": self.q850}
        return {"text": self.sentence(status), **{name: value for name, value in given.items() if value is not None}}


@dataclass(frozen=True, slots=True)
class CauseFields:
    """Where a carrier's webhooks or answers have the cause of an end, each as names of fields, the best first.

    :param code: the carrier's own code, or its name of a cause.
    :param words: its text.
    :param sip: the SIP status code.
    :param kinds: the kinds of its codes and names, in capitals; they go before SIP and Q.850.
    """

    code: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    sip: tuple[str, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)

    def read(self, text_of: Callable[[str], str]) -> Cause | None:
        """The cause; None where none is given, or nothing was wrong.

        :param text_of: the text of a field, empty where it is missing.
        """
        codes = [text for name in self.code if (text := _words(text_of(name))) not in NO_CODE]
        words = next((text for name in self.words if (text := _words(text_of(name)))), None)
        sip = next((code for name in self.sip if (code := _sip_code(text_of(name)))), None)
        named = [code.upper() for code in codes]
        q850 = next((NAMES[name] for name in named if name in NAMES), None)
        own = next((self.kinds[name] for name in named if name in self.kinds), None)
        kind = own or SIP.get(sip or 0) or Q850.get(q850 or 0)
        if kind == NORMAL or (sip is None and not codes):
            return None
        return Cause(kind, codes[0] if codes else None, words, sip, q850)


def _words(text: str) -> str:
    return " ".join(clean(text).split())[:LONGEST_WORDS].rstrip(" .")


def _sip_code(text: str) -> int | None:
    """A SIP status code that isn't a success."""
    return int(text) if len(text) == 3 and text.isascii() and text.isdigit() and "3" <= text[0] <= "6" else None
