"""What `forget` finds, wherever and however a number is written: the same on every database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from voiceapi.store import forgetting
from voiceapi.store.base import insert
from voiceapi.store.campaigns import Campaign, Contact
from voiceapi.store.forgetting import ForgottenNumber
from voiceapi.store.postcall import Delivery
from voiceapi.store.runs import Run
from voiceapi.store.workflows import ConversationCase

NUMBER = "+12025550123"
SIP = "sip:Ann_100%@Example.com"


@pytest.fixture
def run(workflow: Callable[..., Any], db: None) -> Callable[..., Run]:
    workflow()

    def make(**columns: Any) -> Run:
        number = Run.select().count()
        return insert(
            Run, organization=1, workflow=1, mode="simulator", token=f"t{number}", state="completed", **columns
        )

    return make


@pytest.mark.parametrize(
    ("address", "text", "is_found"),
    [
        (NUMBER, "called from 12025550123.", True),
        (NUMBER, "é12025550123é", True),
        (NUMBER, "112025550123", False),
        (NUMBER, "%12025550124", False),
        (SIP, "<SIP:ann_100%@example.COM>", True),
        (SIP, "sip:annx100%@example.com", False),
    ],
)
def test_a_run_is_found_in_texts_and_bytes(run: Callable[..., Run], address: str, text: str, is_found: bool) -> None:
    named, sent, _ = run(name=text), run(name="a"), run(name="b")
    body = text.encode() + b"\xff\x00"
    insert(Delivery, organization=1, run=sent, node_id="w", node_name="W", delivery_uuid="u", body=body)
    found = [each.id for each in forgetting.runs_of(ForgottenNumber(address), None)]
    assert found == ([named.id, sent.id] if is_found else [])
    assert forgetting.runs_of(ForgottenNumber(address), 2) == []


@pytest.mark.parametrize(("address", "other"), [(NUMBER, "+12025550124"), (SIP, "sip:bob@example.com")])
def test_a_case_is_found_by_its_name_and_by_its_content(
    workflow: Callable[..., Any], db: None, address: str, other: str
) -> None:
    workflow()
    texts = (("of a run", address.upper()), (f"{address} hangs up", ""), (f"{other} hangs up", f"1{address}1"))
    for name, number in texts:
        insert(ConversationCase, workflow=1, name=name, content={"context": {"phone_number": number}})
    found = forgetting.cases_of(ForgottenNumber(address), 1)
    # A SIP address is found wherever it stands.
    assert {case.name for case in found} == {name for name, _ in texts[: 3 if address == SIP else 2]}
    assert forgetting.cases_of(ForgottenNumber(address), 2) == []
    forgetting.delete_cases(found)
    assert ConversationCase.select().count() == len(texts) - len(found)


@pytest.mark.parametrize(("address", "other"), [(NUMBER, "+12025550124"), (SIP, "sip:bob@example.com")])
def test_a_contact_is_found_by_its_number_and_by_its_variables(
    run: Callable[..., Run], address: str, other: str
) -> None:
    settings = {"source_type": "csv", "source_id": "x", "retry_config": {}, "circuit_breaker": {}}
    campaign = Campaign.create(organization=1, workflow=1, name="C", **settings)
    rows = [(address.upper(), {}), (other, {"note": f"or {address.upper()}"}), (other, {"note": "nobody"})]
    for row, (number, variables) in enumerate(rows):
        Contact.create(campaign=campaign, row=row, phone_number=number, variables=variables)
    assert [contact.row for contact in forgetting.contacts_of(ForgottenNumber(address), 1)] == [0, 1]
    assert forgetting.contacts_of(ForgottenNumber(address), 2) == []
