"""Connecting a number to an agent, here and at each carrier, whatever happens in the middle; and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from number_apis import (
    ELSEWHERE,
    MESSAGES,
    NUMBER_APIS,
    OURS,
    SECOND,
    Killed,
    NumberAPI,
    TelnyxNumbers,
    TwilioNumbers,
)

from voiceapi.calls import number_setup
from voiceapi.errors import NotPossible
from voiceapi.service import Service
from voiceapi.store.telephony import PhoneNumber, TelephonyConfiguration
from voiceapi.telephony import configurations, phone_numbers
from voiceapi.telephony.connect import CARRIERS
from voiceapi.workflows import versions

PUBLIC = "https://voice.example.org"
APPLICATIONS = ("telnyx", "plivo", "vonage", "jambonz")


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"VOICEAPI_PUBLIC_URL": PUBLIC}


# The tests of every day have one carrier of each kind: the number has the URLs, or its application has.
DAILY = (TwilioNumbers, TelnyxNumbers)


def reached(service: Service, kind: type[NumberAPI]) -> NumberAPI:
    found = kind()
    object.__setattr__(service, "http", found.client())
    return found


@pytest.fixture(
    params=[
        pytest.param(each, id=each.provider, marks=[] if each in DAILY else [pytest.mark.long]) for each in NUMBER_APIS
    ]
)
def api(request: pytest.FixtureRequest, service: Service) -> NumberAPI:
    return reached(service, request.param)


@pytest.fixture
def agent(db: None, service: Service, talk: Callable[..., Any]) -> int:
    return int(versions.create(service.vault, 1, "First call", talk())[0].id)


def account(service: Service, api: NumberAPI, **changed: Any) -> number_setup.Account:
    return number_setup.open_account(service, 1, api.provider, {**api.given(), **changed})


def planned(service: Service, api: NumberAPI, agent: int, number: str = OURS) -> number_setup.Plan:
    return number_setup.plan(service, account(service, api), number, agent)


def connect(service: Service, api: NumberAPI, agent: int, number: str = OURS) -> number_setup.Connected:
    return number_setup.carry_out(service, planned(service, api, agent, number))


def here() -> Any:
    """What is stored here, to be compared; times aside."""
    leave = ("updated_at", "created_at", "paced_until")
    rows = [
        *TelephonyConfiguration.select().order_by(TelephonyConfiguration.id),
        *PhoneNumber.select().order_by(PhoneNumber.id),
    ]
    return [{name: value for name, value in each.__data__.items() if name not in leave} for each in rows]


def urls(service: Service, api: NumberAPI, configuration: int) -> tuple[str, str]:
    retries = CARRIERS[api.provider].retries
    answer = f"{service.base_url}/api/v1/telephony/inbound/{configuration}"
    return f"{answer}{retries}", f"{answer}/status{retries}"


@pytest.mark.parametrize("kind", NUMBER_APIS, ids=[each.provider for each in NUMBER_APIS])
def test_connected_once_and_again_and_undone(service: Service, kind: type[NumberAPI], agent: int) -> None:
    api = reached(service, kind)
    before, was = api.state(), here()
    second = api.goes_to(SECOND)
    done = connect(service, api, agent)
    assert api.goes_to(OURS) == urls(service, api, done.configuration.id)
    assert api.goes_to(SECOND) == second
    assert (done.number.inbound_workflow_id, done.number.is_default_caller_id) == (agent, True)
    assert done.configuration.is_default_outbound
    assert done.notes == []
    api.writes.clear()
    again = planned(service, api, agent)
    assert again.changes == ()
    assert number_setup.carry_out(service, again)[:2] == done[:2]
    assert api.writes == []
    undone = number_setup.undo(service, 1, done.configuration.id, OURS)
    assert undone.left == []
    assert len(undone.restored) == 3
    assert api.state() == before
    assert here() == was


TROUBLES = (400, "lost", "killed", "killed after")


def attempt(call: Callable[[], Any]) -> str | None:
    """The error of a call, "killed" when the process ended, or None."""
    try:
        call()
    except NotPossible as error:
        return str(error.detail)
    except Killed:
        return "killed"
    return None


@pytest.mark.parametrize("trouble", TROUBLES)
def test_an_end_in_the_middle_is_finished_by_connecting_again(
    service: Service, api: NumberAPI, agent: int, trouble: int | str
) -> None:
    before, was = api.state(), here()
    for at in range(1, 10):
        api.writes.clear()
        api.trouble = {at: trouble}
        said = attempt(lambda: connect(service, api, agent))
        if said is None:
            break
        configuration = TelephonyConfiguration.get(TelephonyConfiguration.provider == api.provider)
        if said != "killed":
            # What was done is named, and what to do about the rest.
            assert f"Done until then: {configuration.title} and {OURS} are stored here." in said
            assert ("Application " in said) == (at > 1)
            assert said.endswith("Connect the number again to finish it, or undo it.")
        api.trouble = {}
        connect(service, api, agent)
        assert api.goes_to(OURS) == urls(service, api, configuration.id)
        undone = number_setup.undo(service, 1, configuration.id, OURS)
        assert (undone.left, api.state(), here()) == ([], before, was)
    assert at == (3 if api.provider in APPLICATIONS else 2)


@pytest.mark.parametrize("trouble", TROUBLES)
def test_an_end_in_the_middle_is_taken_back(service: Service, api: NumberAPI, agent: int, trouble: int | str) -> None:
    before, was = api.state(), here()
    for at in range(1, 4):
        api.writes.clear()
        api.trouble = {at: trouble}
        if attempt(lambda: connect(service, api, agent)) is None:
            break
        configuration = TelephonyConfiguration.get(TelephonyConfiguration.provider == api.provider)
        api.trouble = {}
        undone = number_setup.undo(service, 1, configuration.id, OURS)
        assert (undone.left, api.state(), here()) == ([], before, was)


@pytest.mark.parametrize("trouble", TROUBLES)
def test_an_end_in_the_middle_of_undoing_is_undone_again(
    service: Service, api: NumberAPI, agent: int, trouble: int | str
) -> None:
    before, was = api.state(), here()
    for at in range(1, 10):
        done = connect(service, api, agent)
        api.writes.clear()
        api.trouble = {at: trouble}
        said = attempt(lambda id=done.configuration.id: number_setup.undo(service, 1, id, OURS))
        if said is None:
            break
        assert ("Done until then: At " in said) == (at > 1 and said != "killed")
        api.trouble = {}
        undone = number_setup.undo(service, 1, done.configuration.id, OURS)
        assert (undone.left, api.state(), here()) == ([], before, was)
    assert at > 1


def test_wrong_credentials_change_nothing(service: Service, api: NumberAPI, agent: int) -> None:
    before, was = api.state(), here()
    with pytest.raises(NotPossible, match=f"^{CARRIERS[api.provider].name} answered 401"):
        number_setup.plan(service, account(service, api, **{api.wrong: "not-the-right-one"}), OURS, agent)
    assert (api.state(), here(), api.writes) == (before, was, [])


@pytest.mark.parametrize("number", ["+12025550100", MESSAGES])
def test_a_number_that_cannot_be_connected(service: Service, api: NumberAPI, agent: int, number: str) -> None:
    before, was = api.state(), here()
    name = CARRIERS[api.provider].name
    with pytest.raises(NotPossible) as refused:
        planned(service, api, agent, number)
    said = str(refused.value.detail)
    if number == MESSAGES and api.provider != "jambonz":  # which has it in another account
        assert said.startswith(f"Calls to {MESSAGES} can't come here: it ")
    else:
        others = f"{OURS}, {SECOND}" + (f", {MESSAGES}" if api.provider != "jambonz" else "")
        assert said == f"{number} is not a number of this {name} account, which has {others}."
    assert (api.state(), here(), api.writes) == (before, was, [])


def test_addresses_that_were_changed_since(service: Service, api: NumberAPI, agent: int) -> None:
    """Undoing leaves and names them; connecting again sets them."""
    done = connect(service, api, agent)
    api.point(OURS, "https://new.example.net/voice")
    assert [each for each in planned(service, api, agent).changes if "https://new.example.net/voice" in each]
    connect(service, api, agent)
    assert api.goes_to(OURS) == urls(service, api, done.configuration.id)
    api.point(OURS, "https://new.example.net/voice")
    undone = number_setup.undo(service, 1, done.configuration.id, OURS)
    assert api.goes_to(OURS)[0] == "https://new.example.net/voice"
    named = [each for each in undone.left if OURS in each]
    assert len(named) == 1
    assert "https://new.example.net/voice" in named[0]
    if api.provider in APPLICATIONS:
        assert [each for each in undone.left if "because a number has it" in each]
    assert find_here(OURS) is None


def find_here(number: str) -> PhoneNumber | None:
    found: PhoneNumber | None = PhoneNumber.get_or_none(PhoneNumber.address_normalized == number)
    return found


def test_two_numbers_of_an_account(service: Service, api: NumberAPI, agent: int) -> None:
    """They share the configuration and the application, which goes with the second one."""
    before, was = api.state(), here()
    first, second = connect(service, api, agent), connect(service, api, agent, SECOND)
    assert first.configuration == second.configuration
    assert api.goes_to(OURS) == api.goes_to(SECOND) == urls(service, api, first.configuration.id)
    assert not second.number.is_default_caller_id
    both = number_setup.connected(service, 1)
    assert [number for _, number in both] == [OURS, SECOND]
    for number in (OURS, SECOND):
        assert number_setup.undo(service, 1, first.configuration.id, number).left == []
    assert (api.state(), here(), number_setup.connected(service, 1)) == (before, was, [])


def test_an_account_that_is_stored_already(service: Service, api: NumberAPI, agent: int) -> None:
    """Its configuration and its number are used, and are as they were afterwards."""
    needed = {"jambonz": {"webhook_secret": "old"}, "vonage": {"application_id": "app-0", "private_key": "old"}}
    own = {"telnyx": {"connection_id": "77"}, **needed}.get(api.provider, {})
    configuration = configurations.create(
        service.vault, 1, "Main", {"provider": api.provider, **api.given(), **own, "amd_enabled": True}
    )
    phone_numbers.create(1, configuration.id, OURS, is_active=False)
    before, was = api.state(), here()
    plain = configurations.credentials(service.vault, configuration)
    done = connect(service, api, agent)
    assert done.configuration.id == configuration.id
    assert configurations.credentials(service.vault, done.configuration)["amd_enabled"] is True
    assert done.number.is_active
    assert api.goes_to(OURS) == urls(service, api, configuration.id)
    assert number_setup.undo(service, 1, configuration.id, OURS).left == []
    assert api.state() == before
    stored = configurations.get(1, configuration.id)
    now = configurations.credentials(service.vault, stored)
    assert {name: value or None for name, value in now.items() if name != "webhook_secret"} == {
        name: value or None for name, value in plain.items() if name != "webhook_secret"
    }
    without = [{name: value for name, value in each.items() if name != "credentials"} for each in here()]
    assert without == [{name: value for name, value in each.items() if name != "credentials"} for each in was]


def test_where_carriers_cannot_reach_the_service(service: Service, api: NumberAPI, agent: int) -> None:
    was = here()
    for url, state in ((None, "isn't set"), ("http://voice.example.org", "is http://voice.example.org and not https")):
        service.reach_at(url)
        with pytest.raises(NotPossible, match=f"^VOICEAPI_PUBLIC_URL {state}, so .* nothing was changed"):
            number_setup.plan(service, account(service, api), OURS, agent)
    assert (api.asked[:2], here()) == (
        ["GET /api/v1/Accounts/acc-1/WebhookSecret"] * 2 if api.provider == "jambonz" else [],
        was,
    )


def test_moved_to_another_address(service: Service, api: NumberAPI, agent: int) -> None:
    """As a tunnel is with each start; what was changed since stays."""
    before, was = api.state(), here()
    done = connect(service, api, agent)
    for base in ("https://one.trycloudflare.com", "https://two.trycloudflare.com"):
        service.reach_at(base)
        assert list(number_setup.move(service)) == [f"Calls to {OURS} come to {base}."]
        assert api.goes_to(OURS) == urls(service, api, done.configuration.id)
    assert number_setup.undo(service, 1, done.configuration.id, OURS).left == []
    assert (api.state(), here()) == (before, was)


@pytest.mark.parametrize("trouble", TROUBLES)
def test_an_end_in_the_middle_of_moving(service: Service, api: NumberAPI, agent: int, trouble: int | str) -> None:
    before, was = api.state(), here()
    done = connect(service, api, agent)
    api.writes.clear()
    api.trouble = {1: trouble}
    service.reach_at("https://one.trycloudflare.com")
    try:
        [said] = number_setup.move(service)
        assert said.startswith(f"The numbers of {done.configuration.title} may still have the address before: ")
    except Killed:
        pass
    api.trouble = {}
    service.reach_at("https://two.trycloudflare.com")
    assert list(number_setup.move(service)) == [f"Calls to {OURS} come to https://two.trycloudflare.com."]
    assert number_setup.undo(service, 1, done.configuration.id, OURS).left == []
    assert (api.state(), here()) == (before, was)


def test_a_number_that_was_moved_elsewhere_is_not_taken_back(service: Service, api: NumberAPI, agent: int) -> None:
    connect(service, api, agent)
    api.point(OURS, ELSEWHERE)
    service.reach_at("https://one.trycloudflare.com")
    api.writes.clear()
    [said] = number_setup.move(service)
    assert said.startswith(f"Calls to {OURS} aren't sent here any more")
    assert (api.goes_to(OURS)[0], api.writes) == (ELSEWHERE, [])


def test_two_numbers_move_together(service: Service, api: NumberAPI, agent: int) -> None:
    before = api.state()
    done = connect(service, api, agent)
    connect(service, api, agent, SECOND)
    service.reach_at("https://one.trycloudflare.com")
    # The first number is connected again there, before the second one follows.
    connect(service, api, agent)
    service.reach_at("https://two.trycloudflare.com")
    assert list(number_setup.move(service)) == [f"Calls to {n} come to {service.base_url}." for n in (OURS, SECOND)]
    assert api.goes_to(OURS) == api.goes_to(SECOND) == urls(service, api, done.configuration.id)
    for number in (OURS, SECOND):
        assert number_setup.undo(service, 1, done.configuration.id, number).left == []
    assert api.state() == before


def test_what_else_needs_the_configuration_keeps_it(
    service: Service, api: NumberAPI, agent: int, talk: Callable[..., Any]
) -> None:
    """Its credentials are those from before; a number that somebody has added to it is named."""
    done = connect(service, api, agent)
    phone_numbers.create(1, done.configuration.id, "+12025550111")
    undone = number_setup.undo(service, 1, done.configuration.id, OURS)
    assert undone.left == [f"Here: {done.configuration.title} stays, because it has other numbers."]
    kept = configurations.credentials(service.vault, configurations.get(1, done.configuration.id))
    assert not any(kept.get(name) for name in ("connection_id", "application_id", "application_sid", "private_key"))
    # Another agent that was chosen here since stays, as an address at the carrier does.
    phone_numbers.create(1, done.configuration.id, OURS)
    connect(service, api, agent)
    other = versions.create(service.vault, 1, "Other", talk())[0].id
    number = find_here(OURS)
    assert number is not None
    phone_numbers.update(1, done.configuration.id, number.id, inbound_workflow_id=other)
    undone = number_setup.undo(service, 1, done.configuration.id, OURS)
    assert undone.left == [f"Here: another agent was chosen for {OURS} since, which stays."]
