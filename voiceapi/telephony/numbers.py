"""Telephone numbers and SIP addresses: the form to store and compare, the form to dial, and a number's time zones."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Literal

AddressType = Literal["pstn", "sip_uri", "sip_extension"]
# Reads what somebody wrote, as `read_number` does for one configuration; see `selection.reader`.
Reader = Callable[[str], str]

# The codes of the countries that may complete a number written without one; another country code is ignored.
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

_IMPOSSIBLE = "{} is too short or too long for a telephone number of its country."
_UNREADABLE = "A number to call is written with + and its country code, such as +12025550123."
_NO_COUNTRY = (
    "The number needs + and its country code, as in +12025550123, unless the telephony configuration names a country."
)
_ADVICE = "Write it with + and its country code, such as +12025550123."
_DEFAULT_PORTS = {"sip": ":5060", "sips": ":5061"}

_PUNCTUATION = re.compile(r"[\s()-]")
# What people write between digits; a line end isn't among it, because it ends the number.
_SEPARATORS = re.compile(r"[\t \xa0\u2000-\u200a\u202f()./-]")
_NATIONAL = re.compile(r"[0-9 ()./-]+")
# What copying a number from elsewhere leaves at its edges: marks of no width, and of the direction of writing.
_INVISIBLE = "\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff"
_DIGITS = re.compile(r"[0-9]{8,15}")
_E164 = re.compile(r"\+[0-9]{8,15}")
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
    """An address in the form that is stored and compared; the API shows both fields by these names."""

    address_normalized: str
    address_type: AddressType


class NotDialable(ValueError):
    """An address that can't be called; `reason` is a sentence for the person who entered it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def normalize(address: str, country_code: str | None = None) -> Normalized:
    """The form of an address to store and compare, and its type. Any text has one.

    A number of 8 to 15 digits becomes `+` and digits; spaces, hyphens and parentheses are dropped. A SIP address gets
    lower case, but for its user, and loses the default port. Other text becomes an extension, in lower case.

    :param country_code: ISO 3166, two letters; completes a number written without `+` and without its country.
    """
    text = address.strip()
    if _SIP_LIKE.match(text):
        return Normalized(_sip_uri(text), "sip_uri")
    compact = _PUNCTUATION.sub("", text)
    digits = compact.removeprefix("+")
    if not _DIGITS.fullmatch(digits):
        return Normalized(text.lower(), "sip_extension")
    if compact == digits:
        digits = _with_country(digits, DIAL_CODES.get((country_code or "").upper(), ""))
    return Normalized(f"+{digits}", "pstn")


def needs_country_code(address: str, country_code: str | None) -> bool:
    """True if an address is a telephone number of an unknown country: without `+`, and without `country_code`."""
    return not country_code and _DIGITS.fullmatch(_PUNCTUATION.sub("", address)) is not None


def read_number(text: str, countries: Sequence[str] = (), *, sip: bool) -> str:
    """The form that a carrier dials of an address that somebody wrote: E.164 with its `+`, or a SIP address.

    A telephone number has `+` or `00` and its country code. Without them it is read only as a national number, and
    only if that is the one way to read it: digits are never guessed to be a country code.

    :param countries: ISO 3166, in capitals: whose national numbers may be meant. Only of one country are they read.
    :param sip: whether the carrier dials SIP addresses.
    :raises NotDialable: when it isn't such an address, or the number isn't possible in its country.
    """
    if _E164.fullmatch(text):
        return _e164(text)
    text = text.strip().strip(_INVISIBLE).strip()
    if _SIP_LIKE.match(text):
        return _sip_to_dial(text, sip)
    compact = _SEPARATORS.sub("", text)
    if compact.startswith("00"):
        return _international(compact, countries)
    if _E164.fullmatch(compact):
        return _e164(compact)
    if not compact or not _NATIONAL.fullmatch(text):
        raise NotDialable(_UNREADABLE)
    if not countries:
        raise NotDialable(_NO_COUNTRY)
    if len(countries) > 1:
        raise NotDialable(f"The number may be one of {' or '.join(sorted(countries))}. {_ADVICE}")
    return _national(compact, countries[0])


def _international(digits: str, countries: Sequence[str]) -> str:
    """The number behind 00, unless these digits lead to another one from one of the countries, as 001 does in Korea."""
    number = f"+{digits.removeprefix('00')}"
    if not _E164.fullmatch(number):
        raise NotDialable(_UNREADABLE)
    found = _e164(number)
    for country in countries:
        if _dialed_abroad(digits, country) not in (None, found):
            raise NotDialable(f"{digits} leads to another number in {country}. {_ADVICE}")
    return found


def _sip_to_dial(text: str, sip: bool) -> str:
    if not sip:
        raise NotDialable("This carrier calls telephone numbers only, such as +12025550123, not SIP addresses.")
    address = _sip_uri(text)
    if not _SIP.fullmatch(address):
        raise NotDialable("A SIP address to call is written like sip:name@example.org.")
    return address


def _national(digits: str, country: str) -> str:
    """The number that these digits are within a country.

    :raises NotDialable: when they aren't a number there, when they are another one behind its country code or an
        international prefix, or when it belongs to another country with the same code, as in +1.
    """
    import phonenumbers  # imported when needed, because its tables take memory

    code = str(phonenumbers.country_code_for_region(country))
    found = _possible(f"+{code}{digits}")
    if found is None or _dialed_abroad(digits, country):
        raise NotDialable(f"{digits} isn't a telephone number of {country}. {_ADVICE}")
    if digits.startswith(code) and _possible(f"+{digits}") not in (None, found):
        raise NotDialable(f"{digits} can be read with and without the country code of {country}. {_ADVICE}")
    belongs = country_of(found)
    if belongs not in (None, country):
        raise NotDialable(f"{digits} is a number of {belongs}, not of {country}. {_ADVICE}")
    return found


def _possible(number: str) -> str | None:
    try:
        return _e164_by_library(number)
    except NotDialable:
        return None


def _dialed_abroad(digits: str, country: str) -> str | None:
    """The number that is dialed abroad with these digits, such as 011 44 ... in the US; None if they don't begin so."""
    import phonenumbers  # imported when needed, because its tables take memory

    try:
        parsed = phonenumbers.parse(digits, country, keep_raw_input=True)
    except phonenumbers.NumberParseException:
        return None
    if parsed.country_code_source != phonenumbers.CountryCodeSource.FROM_NUMBER_WITH_IDD:
        return None
    return str(phonenumbers.format_number(parsed, phonenumbers.PhoneNumberFormat.E164))


def _with_country(digits: str, dial_code: str) -> str:
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


@dataclass(frozen=True, slots=True)
class _NumberingPlan:
    """What national numbers are like behind a country code.

    :param start: where they begin in `+`, country code and national number.
    :param lengths: how many digits they may have.
    :param prefix: matches what is dialed before them only within the country.
    """

    start: int
    lengths: frozenset[int]
    prefix: re.Pattern[str]


@cache
def _numbering_plan(digits: str) -> _NumberingPlan | None:
    """The numbering plan of the country code that these three digits begin with; None if there is no such code."""
    import phonenumbers  # imported when needed, because its tables take memory

    for length in (1, 2, 3):
        code = int(digits[:length])
        if code in phonenumbers.COUNTRY_CODE_TO_REGION_CODE and digits[0] != "0":
            region = phonenumbers.region_code_for_country_code(code)
            known: Any = phonenumbers.PhoneMetadata.metadata_for_region_or_calling_code(code, region)
            general = known.general_desc
            lengths = frozenset(general.possible_length)  # without those that are dialed within a town only
            return _NumberingPlan(1 + length, lengths, re.compile(known.national_prefix_for_parsing or "(?!)"))
    return None


def _e164(number: str) -> str:
    """A number without what is only dialed within its country.

    :raises NotDialable: when the number isn't possible in its country.
    """
    plan = _numbering_plan(number[1:4])
    # Most numbers need only the library's tables; the library itself takes twenty times as long.
    if plan is None or ((prefix := plan.prefix.match(number, plan.start)) and prefix[0]):
        return _e164_by_library(number)
    if len(number) - plan.start not in plan.lengths:
        raise NotDialable(_IMPOSSIBLE.format(number))
    return number


def _e164_by_library(number: str) -> str:
    """As `_e164`, for every number."""
    import phonenumbers  # imported when needed, because its tables take memory

    try:
        parsed = phonenumbers.parse(number)
    except phonenumbers.NumberParseException:
        raise NotDialable(f"No country has telephone numbers that begin like {number}.") from None
    found = phonenumbers.format_number(parsed, phonenumbers.PhoneNumberFormat.E164)
    is_possible = phonenumbers.is_possible_number_with_reason(parsed) == phonenumbers.ValidationResult.IS_POSSIBLE
    if not is_possible or not _DIGITS.fullmatch(found.removeprefix("+")):
        raise NotDialable(_IMPOSSIBLE.format(number))
    # A 0 that is only dialed within the country was dropped; there may be another.
    return found if found == number else _e164_by_library(found)


@lru_cache(maxsize=4096)
def zones_of_number(number: str) -> tuple[str, ...]:
    """The time zones of a number, by their IANA names; several when its place isn't known more precisely.

    Empty for a SIP address, and for a number that belongs to no place.

    :param number: E.164 with its `+`.
    """
    import phonenumbers.timezone  # imported when needed, because its tables take memory

    try:
        zones = phonenumbers.timezone.time_zones_for_number(phonenumbers.parse(number))
    except phonenumbers.NumberParseException:
        return ()
    return tuple(zone for zone in zones if zone != phonenumbers.timezone.UNKNOWN_TIMEZONE)


@lru_cache(maxsize=4096)
def country_of(address: str) -> str | None:
    """The ISO 3166 code of the country that a number belongs to.

    None for a SIP address, a number without its `+` or with anything behind its digits, one of no country (satellites,
    international freephone), and one whose country can't be told: some countries share a code, as +1, and the number
    has to be one that is given out.
    """
    import phonenumbers  # imported when needed, because its tables take memory

    # Stricter than the library, which passes over what a carrier may dial: extensions, letters, further digits.
    text = _PUNCTUATION.sub("", address)
    if not text.startswith("+") or not _DIGITS.fullmatch(text.removeprefix("+")):
        return None
    try:
        code: str | None = phonenumbers.region_code_for_number(phonenumbers.parse(text))
    except phonenumbers.NumberParseException:
        return None
    return code if code != phonenumbers.REGION_CODE_FOR_NON_GEO_ENTITY else None


def is_country(code: str) -> bool:
    """True for the ISO 3166 code, two capitals, of a country that has telephone numbers."""
    import phonenumbers  # imported when needed, because its tables take memory

    return code in phonenumbers.SUPPORTED_REGIONS
