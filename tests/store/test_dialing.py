"""The form of an address that decides whether it is on the do-not-call list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapi.store.dialing import listed_form

ANN, TELEPHONE, IPV6 = "sip:ann@example.org", "+12025550170", "sip:ann@[2001:db8::1]"
USERS = st.text(st.sampled_from("aA+0%41.:;()é @"), max_size=8)


@pytest.mark.parametrize(
    ("address", "form"),
    [
        (TELEPHONE, TELEPHONE),
        ("front-desk", "front-desk"),
        ("", ""),
        *(
            (address, ANN)
            for address in (
                ANN,
                "SIP:Ann@Example.ORG",
                "sips:ann@example.org",
                "sips:ann@example.org:5061;transport=tls",
                "sip:ann@example.org:5070",
                "sip:ann@example.org;transport=udp;lr?subject=hello",
                "sip:ann@example.org?subject=hello",
                "sip:%41nn@example.org",
                "sip:%61%6e%6E@example.org",
                "sip:ann@example.org.",
                "sip:ann@example.org.:5060",
                "sip:ann:secret@example.org",
            )
        ),
        *(
            (address, TELEPHONE)
            for address in (
                "sip:+12025550170@example.org",
                "sips:+12025550170@pbx.example.com;user=phone",
                "sip:%2B12025550170@example.org",
                "sip:+1-202-555-0170@example.org",
                "sip:+1(202)555.0170@example.org",
                "sip:+12025550170;ext=5@example.org",
                "sip:0012025550170@example.org",
            )
        ),
        ("sip:12025550170@example.org", "sip:12025550170@example.org"),
        ("sip:ann;day=monday@example.org", "sip:ann;day=monday@example.org"),
        ("sip:a%3Ab%40c%ff@example.org", "sip:a%3Ab%40c%FF@example.org"),
        ("sip:Example.org:5060", "sip:example.org"),
        ("sip:ann@[2001:DB8:0:0::1]:5060", IPV6),
        ("sip:ann@[nothing]", "sip:ann@[nothing]"),
    ],
)
def test_the_form_of_an_address(address: str, form: str) -> None:
    assert listed_form(address) == form


@given(st.builds("{}:{}{}@{}{}".format, st.sampled_from(["sip", "SIPS"]), USERS, USERS, USERS, USERS) | st.text())
def test_a_form_is_its_own_form(address: str) -> None:
    form = listed_form(address)
    assert listed_form(form) == form
