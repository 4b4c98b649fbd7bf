"""Holds what became of campaigns against the notes of the carrier that carried out their calls."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from carrier_notes import several, token_of
from cluster import Cluster

from benchmarks.ledger import unsettled
from voiceapi.store.campaigns import FINAL, Campaign, Contact
from voiceapi.store.dialing import decisions
from voiceapi.store.runs import Run

MOST_RETRIES, RETRY_SECONDS = 1, 30
# How much longer one request for a call may take to the carrier than another one, on a busy machine. Their pace is kept
# where they leave.
NETWORK_SECONDS = 1.5


# Settings of a campaign: who isn't reached is called again soon, or not at all; failures don't stop it.
AGAIN: dict[str, Any] = {
    "retry_config": {"enabled": True, "max_retries": MOST_RETRIES, "retry_delay_seconds": RETRY_SECONDS},
    "circuit_breaker": {"enabled": False},
}
ONCE: dict[str, Any] = {**AGAIN, "retry_config": {"enabled": False}}


def wait_for_end(cluster: Cluster, seconds: float) -> None:
    """Wait until all calls and campaigns are over."""
    deadline = time.monotonic() + seconds
    while True:
        with cluster.session():
            left = unsettled()
        if not left:
            return
        assert time.monotonic() < deadline, left
        time.sleep(1)


def check(cluster: Cluster, campaigns: Mapping[int, tuple[Sequence[str], int]], *, reached: bool = True) -> None:
    """Nobody is called twice for one attempt, no limit and no pace is exceeded, every contact ends, no call is lost.

    :param campaigns: by id, the numbers of their lists and their `max_concurrency`.
    :param reached: whether the limits were within reach, so that they must have been reached.
    """
    notes = cluster.notes()
    print(  # noqa: T201
        f"{len(notes.of('placed'))} calls in {notes.all[-1]['at'] - notes.all[0]['at']:.0f} s, "
        f"at most {notes.most_in_progress()} at once, ahead of the pace by {notes.ahead_of(cluster.pace or 1e9):.3f} s;"
        f" {len(notes.of('webhook'))} webhooks: {dict(Counter(note['status'] for note in notes.of('webhook')))}"
    )
    # Nobody is called twice for one attempt, nor while a call goes on, nor after the attempt that reached them.
    assert several(notes.tokens()) == {}
    assert notes.overlapping() == []
    assert notes.called_again() == []
    # No limit is exceeded. The carrier knows of a call for a shorter time than the service does.
    most = {id: notes.most_in_progress(set(numbers).__contains__) for id, (numbers, _) in campaigns.items()}
    assert {id: count for id, count in most.items() if count > campaigns[id][1]} == {}
    assert notes.most_in_progress() <= cluster.calls
    if reached:
        assert notes.most_in_progress() >= 0.75 * cluster.calls
        assert any(count >= 0.75 * campaigns[id][1] for id, count in most.items()), most
    if cluster.pace:
        assert notes.ahead_of(cluster.pace) <= NETWORK_SECONDS
    # Every webhook was answered at last, each turn with one answer.
    assert notes.of("given up") == []
    assert {note["status"] for note in notes.of("webhook")} <= {0, 200, 503}
    assert notes.contradictions() == []
    with cluster.session():
        _check_calls(cluster)
        for id, (numbers, _) in campaigns.items():
            _check_contacts(cluster, id, numbers)


def _check_calls(cluster: Cluster) -> None:
    """Every call of the carrier has its run, and what the carrier reported of its end is on it."""
    notes = cluster.notes()
    runs = {run.token: run for run in Run.select()}
    ended = {note["call"]: note for note in notes.of("ended")}
    for note in notes.of("placed"):
        run = runs[token_of(note["url"])]
        assert (run.carrier_call_id, run.called_number, run.state) == (note["call"], note["to"], "completed"), note
        if run.campaign_id is not None and ended[note["call"]]["talked"]:
            assert run.disposition == "user_qualified", (run.id, run.disposition, run.gathered_context)
    assert several(run.carrier_call_id for run in runs.values() if run.carrier_call_id) == {}


def _check_contacts(cluster: Cluster, id: int, numbers: Sequence[str]) -> None:
    """Every contact has ended, with the outcome that its calls had; the campaign's counters are true."""
    notes = cluster.notes()
    calls: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for note in notes.of("ended"):
        calls[note["to"]].append(note)
    campaign = Campaign.get_by_id(id)
    contacts = list(Contact.select().where(Contact.campaign == id).order_by(Contact.row))
    assert campaign.state == "completed"
    assert [contact.phone_number for contact in contacts] == list(numbers)
    assert {contact.state for contact in contacts} <= set(FINAL)
    for contact in contacts:
        found = calls[contact.phone_number]
        assert len(found) <= contact.attempts <= 1 + MOST_RETRIES, (contact.phone_number, found)
        if any(call["talked"] for call in found):
            assert contact.state == "completed", (contact.phone_number, contact.state, found)
        elif contact.attempts > len(found):
            # An attempt that the carrier never heard of: its process was killed on the way.
            assert contact.state in ("unknown", "failed"), (contact.phone_number, contact.state, found)
    attempts = sum(contact.attempts for contact in contacts)
    assert (campaign.processed_rows, campaign.executed_count) == (len(contacts), attempts)
    history = decisions([contact.id for contact in contacts])
    dialed = {id: sum(_worth(each.code) for each in entries) for id, entries in history.items()}
    assert dialed == {contact.id: contact.attempts for contact in contacts}


def _worth(code: str) -> int:
    return {"dialed": 1, "released": -1}.get(code, 0)
