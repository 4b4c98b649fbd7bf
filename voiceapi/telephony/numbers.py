"""Telephone numbers and SIP addresses: the canonical form to store and compare, and the form to dial."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

AddressType = Literal["pstn", "sip_uri", "sip_extension"]

# Hints for numbers written without their country; other countries' hints are ignored (API contract, E.4).
DIAL_CODES: Mapping[str, str] = {
    "AT": "43",
    "AU": "61",
    "BE": "32",
    "BR": "55",
    "CA": "1",
    "CH": "41",
    "DE": "49",
    "DK": "45",
    "ES": "34",
    "FI": "358",
    "FR": "33",
    "GB": "44",
    "IE": "353",
    "IN": "91",
    "IT": "39",
    "LU": "352",
    "MX": "52",
    "NL": "31",
    "NO": "47",
    "SE": "46",
    "US": "1",
}

_DEFAULT_PORTS = {"sip": ":5060", "sips": ":5061"}

_PUNCTUATION = re.compile(r"[\s()-]")
_DIGITS = re.compile(r"[0-9]{8,15}")
_SIP_LIKE = re.compile(r"sips?:", re.IGNORECASE)
_SIP = re.compile(
    r"""(?P<scheme> sips? ) :
        (?P<user> [^\s@<>"]+ @ )?
        (?P<host> [A-Za-z0-9] [A-Za-z0-9.-]* | \[ [0-9A-Fa-f:.]+ \] )
        (?P<port> : [0-9]{1,5} )?
        (?P<params> [;?] [^\s@<>"]* )?""",
    re.IGNORECASE | re.VERBOSE | re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Normalized:
    """An address in canonical form; the names are those of the API contract."""

    address_normalized: str
    address_type: AddressType


class NotDialable(ValueError):
    """An address that can't be called; `reason` is a full sentence for the person who gave it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def normalize(address: str, country_code: str | None = None) -> Normalized:
    """The canonical form of an address and what kind it is (API contract, E.4). Any text has one.

    A number of 8 to 15 digits becomes `+` and digits; spaces, hyphens and parentheses don't matter. `country_code`
    (ISO 3166, two letters) completes a number that is written without `+` and without its country.
    """
    text = address.strip()
    if _SIP_LIKE.match(text):
        return Normalized(_sip_uri(text), "sip_uri")
    compact = _PUNCTUATION.sub("", text)
    digits = compact.removeprefix("+")
    if not _DIGITS.fullmatch(digits):
        return Normalized(text.lower(), "sip_extension")
    if compact == digits:
        digits = _completed(digits, DIAL_CODES.get((country_code or "").upper(), ""))
    return Normalized(f"+{digits}", "pstn")


def needs_country_code(address: str, country_code: str | None) -> bool:
    """Whether an address is a telephone number that doesn't say its country, neither by `+` nor by `country_code`."""
    return not country_code and _DIGITS.fullmatch(_PUNCTUATION.sub("", address)) is not None


def dialable(text: str, *, sip: bool) -> str:
    """The form to hand to a carrier: E.164 with its `+`, or a SIP address where the carrier takes them (`sip`).

    Raises NotDialable.
    """
    address = normalize(text)
    if address.address_type == "pstn":
        return _e164(address.address_normalized)
    if address.address_type == "sip_extension":
        raise NotDialable("A number to call is written with its country code, such as +12025550123.")
    if not sip:
        raise NotDialable("This carrier calls telephone numbers only, such as +12025550123, not SIP addresses.")
    if not _SIP.fullmatch(address.address_normalized):
        raise NotDialable("A SIP address to call is written like sip:name@example.org.")
    return address.address_normalized


def _completed(digits: str, dial_code: str) -> str:
    if digits.startswith(dial_code):
        return digits
    national = dial_code + digits.lstrip("0")
    return national if _DIGITS.fullmatch(national) else digits


def _sip_uri(text: str) -> str:
    found = _SIP.fullmatch(text)
    if not found:
        return text.lower()
    scheme = found["scheme"].lower()
    port = found["port"] or ""
    return "".join(
        (
            f"{scheme}:",
            found["user"] or "",
            found["host"].lower(),
            "" if port == _DEFAULT_PORTS[scheme] else port,
            (found["params"] or "").lower(),
        )
    )


def _e164(number: str) -> str:
    import phonenumbers  # its tables take memory that a service without calls doesn't need

    try:
        parsed = phonenumbers.parse(number)
    except phonenumbers.NumberParseException:
        raise NotDialable(f"No country has telephone numbers that begin like {number}.") from None
    if not phonenumbers.is_possible_number(parsed):
        raise NotDialable(f"{number} is too short or too long for a telephone number of its country.")
    return phonenumbers.format_number(parsed, phonenumbers.PhoneNumberFormat.E164)


@lru_cache(maxsize=4096)
def zones_of_number(number: str) -> tuple[str, ...]:
    """IANA names, several where the number doesn't tell more; none for a SIP address or a number of no place.

    :param number: E.164 with its `+`.
    """
    import phonenumbers.timezone  # its tables take memory that a service without calling hours doesn't need

    try:
        zones = phonenumbers.timezone.time_zones_for_number(phonenumbers.parse(number))
    except phonenumbers.NumberParseException:
        return ()
    return tuple(zone for zone in zones if zone != phonenumbers.timezone.UNKNOWN_TIMEZONE)
