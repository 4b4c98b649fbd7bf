"""Telephone numbers and SIP addresses: stored, compared and dialed."""

import re
from collections.abc import Callable

import phonenumbers
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from voiceapi.masking import mask_number
from voiceapi.telephony import numbers
from voiceapi.telephony.numbers import (
    Normalized,
    NotDialable,
    country_of,
    needs_country_code,
    normalize,
    read_number,
)

ADDRESSES = st.text() | st.from_regex(r"\A\s?\+?[0-9 ()-]{1,20}\s?\Z") | st.from_regex(r"\A[sS]ips?:.{0,30}\Z")
# Numbers behind each country code, many with one of the digits that are only dialed within a country.
INTERNATIONAL = st.builds(
    "+{}{}{}".format,
    st.sampled_from(sorted(phonenumbers.COUNTRY_CODE_TO_REGION_CODE)) | st.integers(0, 999),
    st.sampled_from(["", "", "0", "00", "1", "8", "9", "15", "01", "066"]),
    st.from_regex(r"\A[0-9]{4,12}\Z"),
).filter(re.compile(r"\+[0-9]{8,15}").fullmatch)
COUNTRIES = st.none() | st.sampled_from(["US", "GB", "de", "LU", "JP", ""])


@pytest.mark.parametrize(
    ("address", "country_code", "normalized", "address_type"),
    [
        ("+12025550101", None, "+12025550101", "pstn"),
        ("  +1 (202) 555-0101 ", None, "+12025550101", "pstn"),
        ("12025550101", None, "+12025550101", "pstn"),
        ("12345678", None, "+12345678", "pstn"),
        ("123456789012345", None, "+123456789012345", "pstn"),
        # completed by the country
        ("2025550101", "US", "+12025550101", "pstn"),
        ("(202) 555-0101", "us", "+12025550101", "pstn"),
        ("12025550101", "CA", "+12025550101", "pstn"),
        ("020 7946 0018", "GB", "+442079460018", "pstn"),
        ("00621 123456", "LU", "+352621123456", "pstn"),
        ("2025550101", "JP", "+2025550101", "pstn"),
        ("2025550101", "", "+2025550101", "pstn"),
        # a number that names its country needs no hint
        ("+2025550101", "US", "+2025550101", "pstn"),
        # the completed number would be too long or too short
        ("234567890123456", "GB", "+234567890123456", "pstn"),
        ("00000000", "GB", "+00000000", "pstn"),
        # too short, too long, or not only digits
        ("1234567", None, "1234567", "sip_extension"),
        ("1234567890123456", None, "1234567890123456", "sip_extension"),
        ("++12025550101", None, "++12025550101", "sip_extension"),
        ("415.555.1234", "US", "415.555.1234", "sip_extension"),
        ("١٢٣٤٥٦٧٨٩", None, "١٢٣٤٥٦٧٨٩", "sip_extension"),
        (" Front-Desk ", None, "front-desk", "sip_extension"),
        ("", None, "", "sip_extension"),
        # SIP addresses
        ("SIP:Alice@Example.ORG", None, "sip:Alice@example.org", "sip_uri"),
        ("sip:Alice@example.org:5060", None, "sip:Alice@example.org", "sip_uri"),
        ("sip:Alice@example.org:5061", None, "sip:Alice@example.org:5061", "sip_uri"),
        ("Sips:Alice@example.org:5061;Transport=TLS", None, "sips:Alice@example.org;transport=tls", "sip_uri"),
        ("sips:Alice@example.org:5060", None, "sips:Alice@example.org:5060", "sip_uri"),
        ("sip:[2001:DB8::1]:5070", None, "sip:[2001:db8::1]:5070", "sip_uri"),
        ("sip:+12025550101@PBX.example.org", "GB", "sip:+12025550101@pbx.example.org", "sip_uri"),
        ("SIP:Alice @Example.org", None, "sip:alice @example.org", "sip_uri"),
        ("sip:", None, "sip:", "sip_uri"),
    ],
)
def test_normalize(address: str, country_code: str | None, normalized: str, address_type: str) -> None:
    assert normalize(address, country_code) == Normalized(normalized, address_type)  # type: ignore[arg-type]


@given(ADDRESSES, COUNTRIES)
def test_any_text_has_a_canonical_form_and_a_number_keeps_it(address: str, country_code: str | None) -> None:
    found = normalize(address, country_code)

    if found.address_type == "pstn":
        assert re.fullmatch(r"\+[0-9]{8,15}", found.address_normalized)
        assert normalize(found.address_normalized, country_code) == found


@pytest.mark.parametrize(
    ("address", "country_code", "needed"),
    [
        ("2025550101", None, True),
        ("2025550101", "", True),
        (" (202) 555-0101 ", None, True),
        ("2025550101", "US", False),
        ("+12025550101", None, False),
        ("1234567", None, False),
        ("1234567890123456", None, False),
        ("front-desk", None, False),
        ("sip:12345678@example.org", None, False),
    ],
)
def test_only_a_bare_number_needs_a_country(address: str, country_code: str | None, needed: bool) -> None:
    assert needs_country_code(address, country_code) is needed


@pytest.mark.parametrize(
    ("text", "sip", "dialed"),
    [
        ("+12025550101", False, "+12025550101"),
        ("+12025550105", False, "+12025550105"),
        ("+12025550199", True, "+12025550199"),
        ("001 (202) 555-0102", False, "+12025550102"),
        ("+44 20 7946 0018", False, "+442079460018"),
        ("+44 (0)20 7946 0018", False, "+442079460018"),
        ("+971 00 22222", False, "+97122222"),
        ("+39 06 1234 5678", False, "+390612345678"),
        ("SIP:Alice@Example.org:5060", True, "sip:Alice@example.org"),
    ],
)
def test_what_can_be_dialed(text: str, sip: bool, dialed: str) -> None:
    assert read_number(text, sip=sip) == dialed


NO_NUMBER = "A number to call is written with + and its country code, such as +12025550123."
NO_COUNTRY = (
    "The number needs + and its country code, as in +12025550123, unless the telephony configuration names a country."
)
NO_SIP = "This carrier calls telephone numbers only, such as +12025550123, not SIP addresses."
BAD_SIP = "A SIP address to call is written like sip:name@example.org."


@pytest.mark.parametrize(
    ("text", "sip", "reason"),
    [
        ("", False, NO_NUMBER),
        ("call me", True, NO_NUMBER),
        ("+1202555", False, NO_NUMBER),
        ("+999123456789", False, "No country has telephone numbers that begin like +999123456789."),
        ("0000000000", False, "No country has telephone numbers that begin like +00000000."),
        ("1 (202) 555-0102", False, NO_COUNTRY),
        ("+15551234", False, "+15551234 is too short or too long for a telephone number of its country."),
        ("+120255501", False, "+120255501 is too short or too long for a telephone number of its country."),
        ("+27022222", False, "+27022222 is too short or too long for a telephone number of its country."),
        ("+120255501011", False, "+120255501011 is too short or too long for a telephone number of its country."),
        ("sip:alice@example.org", False, NO_SIP),
        ("sip:", True, BAD_SIP),
        ("sip:alice@example.org\r\nX: y", True, BAD_SIP),
    ],
)
def test_what_cannot_be_dialed_says_why(text: str, sip: bool, reason: str) -> None:
    with pytest.raises(NotDialable) as error:
        read_number(text, sip=sip)

    assert (error.value.reason, str(error.value)) == (reason, reason)


ADVICE = "Write it with + and its country code, such as +12025550123."


@pytest.mark.parametrize(
    ("text", "countries", "reason"),
    [
        ("2025550123", ["US", "DE"], f"The number may be one of DE or US. {ADVICE}"),
        ("5551234", ["US"], f"5551234 isn't a telephone number of US. {ADVICE}"),
        ("011 44 20 7946 0018", ["US"], f"011442079460018 isn't a telephone number of US. {ADVICE}"),
        ("0112025501", ["US"], f"0112025501 isn't a telephone number of US. {ADVICE}"),
        (
            "4915112345678",
            ["DE"],
            f"4915112345678 can be read with and without the country code of DE. {ADVICE}",
        ),
        ("416 555 0199", ["US"], f"4165550199 is a number of CA, not of US. {ADVICE}"),
        ("001 49 30 123456", ["KR"], f"0014930123456 leads to another number in KR. {ADVICE}"),
        ("2025550123;ext=5", ["US"], NO_NUMBER),
        ("202\n5550123", ["US"], NO_NUMBER),
        ("202\t555\t0123", ["US"], NO_NUMBER),
    ],
)
def test_a_national_number_that_cannot_be_dialed_says_why(text: str, countries: list[str], reason: str) -> None:
    with pytest.raises(NotDialable) as error:
        read_number(text, countries, sip=True)
    assert error.value.reason == reason


MARKS = st.text(" ()-./", max_size=2)
DIGITS = st.from_regex(r"\A[0-9]{1,15}\Z") | st.sampled_from(
    [
        str(known.national_number)
        for region in sorted(phonenumbers.SUPPORTED_REGIONS)
        if (known := phonenumbers.example_number(region)) is not None
    ]
)
WRITTEN = st.builds(
    lambda start, digits, marks, end: (
        start + "".join(f"{digit}{mark}" for digit, mark in zip(digits, marks, strict=False)) + end
    ),
    st.sampled_from(["", "", "", "+", "00", "0", "1", "011", "(0)", "+1", "+49", "49", "0049", " ", "\u202a+"]),
    DIGITS,
    st.lists(MARKS, min_size=15, max_size=15),
    st.sampled_from(["", "", "\n", " ", ";ext=5", ";phone-context=+44", "x"]),
)


@given(WRITTEN, st.sampled_from([None, *sorted(phonenumbers.SUPPORTED_REGIONS)]))
@example("2025550123", "EG")
@example("2025550123", "CA")
@example("4915112345678", "DE")
@example("01120255501", "US")
@example("0014930123456", "KR")
def test_no_number_is_dialed_to_a_country_that_was_neither_written_nor_configured(
    text: str, country: str | None
) -> None:
    try:
        dialed = read_number(text, () if country is None else [country], sip=False)
    except NotDialable:
        return
    digits = re.sub(r"[^0-9+]", "", text)
    code = str(phonenumbers.parse(dialed).country_code)
    if digits.startswith(("+", "00")):
        assert digits.removeprefix("00").removeprefix("+").startswith(code)
    else:
        assert country is not None
        assert code == str(phonenumbers.country_code_for_region(country))
        assert country_of(dialed) in (None, country)
    assert read_number(dialed, [country] if country else (), sip=False) == dialed


@given(ADDRESSES, st.booleans())
def test_any_text_is_dialed_as_e164_or_sip_or_refused_with_a_reason(text: str, sip: bool) -> None:
    try:
        outcome = read_number(text, sip=sip)
    except NotDialable as refused:
        outcome = refused.reason
    else:
        assert read_number(outcome, sip=sip) == outcome

    assert re.fullmatch(r"\+[0-9]{3,15}|sips?:\S+|[A-Z+].+\.", outcome)


def verdict(e164: Callable[[str], str], number: str) -> str:
    try:
        return e164(number)
    except NotDialable as refusal:
        return refusal.reason


@given(INTERNATIONAL)
@example("+54111512345678")
@example("+5491112345678")
@example("+4402079460018")
@example("+39061234567")
@example("+04930123456")
@example("+88112345678")
@example("+78001234567")
@pytest.mark.long
def test_the_library_judges_every_number_as_its_tables_do(number: str) -> None:
    assert verdict(numbers._e164, number) == verdict(numbers._e164_by_library, number)


def test_the_library_judges_every_country_and_length_as_its_tables_do() -> None:
    for code in phonenumbers.COUNTRY_CODE_TO_REGION_CODE:
        for first in range(10):
            # A third of the lengths for each first digit, so that this takes a moment only.
            for length in range(8 + (code + first) % 3, 16, 3):
                number = f"+{code}{first}2735641809471"[: length + 1]
                assert verdict(numbers._e164, number) == verdict(numbers._e164_by_library, number)


def test_most_numbers_need_only_the_tables_of_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(numbers, "_e164_by_library", asked.append)
    for region in phonenumbers.SUPPORTED_REGIONS:
        for kind in (phonenumbers.PhoneNumberType.FIXED_LINE, phonenumbers.PhoneNumberType.MOBILE):
            known = phonenumbers.example_number_for_type(region, kind)
            number = "" if known is None else phonenumbers.format_number(known, phonenumbers.PhoneNumberFormat.E164)
            if len(number) > 8:
                read_number(number, sip=False)
    assert len(asked) < 3
    read_number("+4402079460018", sip=False)
    assert asked[-1] == "+4402079460018"


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        ("+12025550123", "...0123"),
        ("12025550123", "...0123"),
        ("sip:ann@example.org", "a SIP address"),
        ("SIPS:+12025550123@example.org", "a SIP address"),
        ("anonymous", "no number"),
        ("", "no number"),
    ],
)
def test_a_number_in_the_log(number: str, shown: str) -> None:
    assert mask_number(number) == shown
