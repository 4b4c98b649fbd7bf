"""The simulator's phones: what they ask for and report, for given documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from voiceapi.background.pausing_jobs import Cancelled, Pausing
from voiceapi.engine.actions import Action, HangUp, Listen, Pause, Redirect, Say, Transfer
from voiceapi.telephony.carriers.base import Carrier, OutboundCall, VoiceSettings, WebhookDocument
from voiceapi.telephony.carriers.events import CallerInput, Keys, Machine, Silence, Speech, StatusUpdate, Transferred
from voiceapi.telephony.carriers.rest import CarrierRefused, CarrierSilent
from voiceapi.telephony.carriers.simulator import Callee, Interrupted, Phone, Simulator
from voiceapi.telephony.carriers.webhook import CallbackURLs

URLS = CallbackURLs("https://voice.example.org/calls", "tok")
LISTEN = Listen(10.0, True)


@dataclass
class Agent:
    """Answers with one list of actions after another, and records the webhooks."""

    scripts: list[Sequence[Action]]
    asked: list[tuple[int, CallerInput]] = field(default_factory=list)
    told: list[tuple[str, float | None]] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)
    is_owner: bool = True
    realtime: bool = False
    # How many statuses were reported at once.
    together: list[int] = field(default_factory=list)

    def turn(self, carrier: Carrier, token: str, number: int, given: CallerInput, part: int = 0) -> WebhookDocument:
        assert (token, carrier) == ("tok", self.simulator)
        self.asked.append((number, given))
        return carrier.render(self.scripts.pop(0), CallbackURLs(URLS.base, token, number + 1), VoiceSettings())

    def status(self, token: str, updates: Sequence[StatusUpdate]) -> None:
        if not self.is_owner:
            raise Interrupted
        self.together.append(len(updates))
        for update in updates:
            assert (token, update.call_id, update.raw) == ("tok", "SIM-tok", update.status)
            self.told.append((update.raw, update.duration))

    @property
    def simulator(self) -> Simulator:
        return Simulator(self, b"key", self, self.realtime)

    def start(self, token: str, call: Pausing, *, pauses: bool) -> None:
        self.pauses = list(call)

    def cancel(self, call_id: str) -> bool:
        return call_id == "SIM-tok"


def dial(agent: Agent, to: str = "+12025550123", **context: Any) -> None:
    agent.simulator.place_call(OutboundCall(URLS, to, None, 60, 1200, context))
    assert agent.scripts == []


def test_a_conversation() -> None:
    agent = Agent([[Pause(2.0), Say("Hello there.", True), LISTEN], [Say("Bye.", False), HangUp()]])
    dial(agent, simulated_callee=["Yes, please do."])
    assert agent.asked == [(0, Silence()), (1, Speech("Yes, please do."))]
    assert agent.told == [("ringing", None), ("in-progress", None), ("completed", 4.4)]


@pytest.mark.parametrize(("realtime", "together"), [(False, [2, 1]), (True, [1, 1, 1])])
def test_statuses_between_which_no_time_passes_are_reported_together(realtime: bool, together: list[int]) -> None:
    agent = Agent([[HangUp()]], realtime=realtime)
    dial(agent)
    assert agent.together == together


def test_a_reply_that_takes_long_is_asked_for_again() -> None:
    agent = Agent([[LISTEN], [Say("One moment.", False), Redirect(1)], [HangUp()]])
    dial(agent, simulated_callee=["Yes."])
    assert agent.asked == [(0, Silence()), (1, Speech("Yes.")), (1, Silence())]


@pytest.mark.parametrize(
    ("context", "outcome"),
    [
        ({}, "answered"),
        ({"simulated_transfer": "busy"}, "busy"),
        ({"simulated_transfer": None}, "answered"),
        ({"simulated_transfer": 7}, "7"),
    ],
)
def test_a_transfer(context: dict[str, Any], outcome: str) -> None:
    agent = Agent([[Say("One moment.", False), Transfer(1, 0.0, "+12025550177", 30.0)], [LISTEN], [HangUp()]])
    dial(agent, simulated_callee=["Well."], **context)
    assert agent.asked == [(0, Silence()), (1, Transferred(outcome == "answered", outcome)), (2, Speech("Well."))]


def test_a_callee_who_hangs_up_while_a_transfer_rings_says_nothing_more() -> None:
    agent = Agent([[Transfer(1, 0.0, "+12025550177", 30.0)], [Say("Nobody is there.", False), LISTEN]])
    dial(agent, simulated_callee=["Well."], simulated_transfer="canceled")
    assert agent.asked == [(0, Silence()), (1, Transferred(False, "canceled", caller_hung_up=True))]
    assert agent.told[-1] == ("completed", 0.0)


def test_a_callee_who_presses_keys() -> None:
    agent = Agent([[LISTEN], [LISTEN], [HangUp()]])
    dial(agent, simulated_callee=[{"keys": "42#"}, {"keys": "*1"}])
    assert agent.asked == [(0, Silence()), (1, Keys("42")), (2, Keys("*1"))]


def test_what_is_said_reaches_the_agent_as_over_http() -> None:
    agent = Agent([[LISTEN], [LISTEN], [HangUp()]])
    dial(agent, simulated_callee=[" Well,\x00 yes.\ud800 ", " \x01"])
    assert agent.asked == [(0, Silence()), (1, Speech("Well, yes.")), (2, Silence())]


def test_a_machine_takes_the_call() -> None:
    agent = Agent([[HangUp()]])
    dial(agent, to="+12025550104")
    assert agent.asked == [(0, Machine())]


@pytest.mark.parametrize(
    "callee",
    [
        "Yes.",
        [1],
        {"a": "b"},
        7,
        *([{"keys": keys}] for keys in ("", "#", "4#2", "four", 42, None)),
        [{"keys": "1", "x": 1}],
    ],
)
def test_a_malformed_callee_is_refused(callee: Any) -> None:
    with pytest.raises(CarrierRefused, match="must be a list of texts"):
        dial(Agent([]), simulated_callee=callee)


def test_a_call_is_hung_up_where_it_is_carried_out() -> None:
    simulator = Agent([]).simulator
    simulator.hang_up("SIM-tok")
    with pytest.raises(CarrierSilent, match="isn't carried out by this process"):
        simulator.hang_up("SIM-1")


def test_nobody_looks_up_its_calls() -> None:
    simulator = Agent([]).simulator
    with pytest.raises(CarrierRefused):
        simulator.look_up("SIM-1")
    assert simulator.check(["+12025550199"]) == []


@pytest.mark.parametrize(
    ("pauses", "told"),
    [
        (1, [("ringing", None), ("canceled", 0.0)]),
        (2, [("ringing", None), ("in-progress", None), ("completed", 0.0)]),
        (3, [("ringing", None), ("in-progress", None), ("completed", 2.0)]),
    ],
)
def test_a_call_is_cancelled_while_it_pauses(pauses: int, told: list[Any]) -> None:
    agent = Agent([[Pause(2.0), Say("Hello there.", True), LISTEN]])
    call = Phone(agent.simulator, URLS, "answers", Callee(("Yes.",))).steps()
    for _ in range(pauses):
        next(call)
    with pytest.raises(StopIteration):
        call.throw(Cancelled())
    assert agent.told == told


def test_a_call_that_another_process_carries_out_is_left_to_it() -> None:
    agent = Agent([])
    agent.is_owner = False
    dial(agent)
    assert (agent.asked, agent.told, agent.pauses) == ([], [], [2.0])
