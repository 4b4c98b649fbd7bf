"""What a host's app does in Python: call, look at runs, chat, and publish its agents."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

import voiceapi
from voiceapi import (
    AgentNotFound,
    CallRefused,
    InvalidNumber,
    KeyConflict,
    LimitReached,
    Run,
    VoiceAPI,
    VoiceAPIError,
)
from voiceapi.bulkhead import WAIT_SECONDS
from voiceapi.http_client import HTTPClient, Reply, RequestFailed
from voiceapi.store.database import write
from voiceapi.store.idempotency import IdempotencyKey
from voiceapi.store.runs import Run as StoredRun
from voiceapi.store.telephony import TelephonyConfiguration
from voiceapi.store.workflows import Workflow, WorkflowVersion
from voiceapi.telephony import configurations
from voiceapi.telephony.carriers.rest import TIMEOUT_SECONDS
from voiceapi.telephony.configurations import LONGEST_WAIT

API = "/voice/api/v1"
KEY = "test-key-0123456789"
NUMBER = "+12025550123"
CALL = {"phone_number": NUMBER}
TWILIO = {"provider": "twilio", "account_sid": "AC" + "1" * 32, "auth_token": "a-token-of-twilio-0123456789"}


class Carrier(HTTPClient):
    """Answers every request for a call, or never does."""

    answers = True
    asked = 0

    def send(self, method: str, url: str, **options: Any) -> Reply:
        type(self).asked += 1
        if self.answers:
            return Reply(201, {}, b'{"sid": "CA1"}', 0.0)
        raise RequestFailed("timeout", "api.twilio.com did not answer within 10 seconds.", sent=True)


@pytest.fixture
def voice() -> VoiceAPI:
    return VoiceAPI()


@pytest.fixture
def host(tmp_path: Path, database_at: Callable[[Path], str], voice: VoiceAPI) -> Iterator[Flask]:
    """A host's app, whose context is there."""
    app = Flask("host")
    app.config.update(VOICEAPI_DATABASE=database_at(tmp_path / "voice.db"), VOICEAPI_API_KEY=KEY)
    app.config |= {"VOICEAPI_CONCURRENT_CALLS": 2, "VOICEAPI_PUBLIC_URL": "https://shop.example.org"}
    voice.init_app(app, url_prefix="/voice")
    with app.app_context():
        yield app
    app.extensions["voiceapi"].close()


@pytest.fixture
def client(host: Flask) -> FlaskClient:
    found = host.test_client()
    found.environ_base["HTTP_X_API_KEY"] = KEY
    return found


@pytest.fixture
def agent(host: Flask, voice: VoiceAPI, talk: Callable[..., Any]) -> int:
    return voice.publish(talk("line"), name="Agent")


@pytest.fixture
def records(host: Flask) -> Iterator[None]:
    """The models are bound to the host's database."""
    with host.extensions["voiceapi"].store.session():
        yield


class TestCall:
    def test_a_call_is_placed_and_its_run_is_returned(self, voice: VoiceAPI, agent: int, wait_for: Any) -> None:
        run = voice.call(agent, NUMBER, context={"name": "Ada", "at": datetime(2026, 1, 2, tzinfo=UTC)})
        assert (run.agent, run.organization, run.direction, run.to) == (agent, "default", "outbound", NUMBER)
        assert (run.context["name"], run.context["at"]) == ("Ada", "2026-01-02T00:00:00Z")
        assert (run.state in ("ringing", "talking", "completed"), run.is_test) == (True, False)
        ended = wait_for(lambda: (found := voice.run(run.id)).is_completed and found)
        assert ended.disposition == "user_qualified"
        assert (ended.turns[0].who, ended.turns[0].text) == ("agent", "Hello, is now a good time?")
        assert "caller" in {turn.who for turn in ended.turns}
        assert ended.turns[0].time.tzinfo is not None
        assert ended.gathered["triggered_by"] == "python"

    def test_an_agent_is_named_by_id_uuid_path_or_name(
        self, voice: VoiceAPI, agent: int, records: None, wait_for: Any
    ) -> None:
        for name in (agent, Workflow.get_by_id(agent).workflow_uuid, "line", "Agent"):
            run = voice.call(name, NUMBER)
            assert run.agent == agent
            wait_for(lambda run=run: voice.run(run.id).is_completed)

    def test_an_agent_that_is_not_there(
        self, voice: VoiceAPI, agent: int, client: FlaskClient, talk: Callable[..., Any]
    ) -> None:
        for name in (99, "nobody", "00000000-0000-4000-8000-000000000000"):
            with pytest.raises(AgentNotFound, match="There is no agent"):
                voice.call(name, NUMBER)
        with pytest.raises(AgentNotFound, match="There is no organization named 'ada'"):
            voice.call(agent, NUMBER, organization="ada")
        body = {"name": "Agent", "workflow_definition": talk()}
        other = client.post(f"{API}/workflow/create/definition", json=body).get_json()["id"]
        several = f"Several agents are named 'Agent'; give the id of one: {agent}, {other}."
        with pytest.raises(AgentNotFound, match=several):
            voice.call("Agent", NUMBER)
        answer = client.put(f"{API}/workflow/{agent}/status", json={"status": "archived"})
        assert answer.status_code == 200, answer.text
        with pytest.raises(AgentNotFound, match="is archived") as found:
            voice.call(agent, NUMBER)
        assert (found.value.status, found.value.retry_after) == (404, None)
        assert voice.call("Agent", NUMBER).agent == other

    def test_errors_have_a_sentence_and_the_status_of_the_api(
        self, voice: VoiceAPI, agent: int, host: Flask, client: FlaskClient, records: None
    ) -> None:
        with pytest.raises(InvalidNumber) as invalid:
            voice.call(agent, "12")
        body = {"phone_number": "12"}
        answer = client.post(f"{API}/public/agent/line", json=body)
        assert answer.status_code == invalid.value.status == 422
        assert answer.get_json()["detail"][0]["msg"] == f"Value error, {invalid.value.detail}"
        with pytest.raises(CallRefused, match="Telephony configuration not found") as refused:
            voice.call(agent, NUMBER, configuration=99)
        assert refused.value.status == 404
        with pytest.raises(TypeError):
            voice.call(agent, NUMBER, context={"it": object()})
        with pytest.raises(CallRefused, match="NUL"):
            voice.call(agent, NUMBER, context={"it": "\0"})
        assert StoredRun.select().count() == 0
        StoredRun.create(workflow=agent, organization=1, name="a", token="a", mode="twilio", state="talking")
        StoredRun.create(workflow=agent, organization=1, name="b", token="b", mode="twilio", state="talking")
        far = datetime(2100, 1, 1, tzinfo=UTC)
        StoredRun.update(slot_until=far, deadline_at=far).execute()
        with pytest.raises(LimitReached, match="Concurrent call limit reached") as limit:
            voice.call(agent, NUMBER)
        assert (limit.value.status, limit.value.retry_after) == (429, 5)
        assert isinstance(limit.value, VoiceAPIError)

    def test_what_no_database_can_hold_is_not_there(self, voice: VoiceAPI, agent: int) -> None:
        for name in (1 << 70, "a\0b", "\ud800", ""):
            with pytest.raises(AgentNotFound, match="There is no agent"):
                voice.call(name, NUMBER)
        for organization in ("", "a\0b"):
            with pytest.raises(AgentNotFound, match="There is no organization"):
                voice.call(agent, NUMBER, organization=organization)
            with pytest.raises(ValueError, match="name of an organization"):
                voice.publish({}, name="Agent", organization=organization)
        for found in (lambda: voice.run(1 << 70), lambda: voice.chat(run=1 << 70)):
            with pytest.raises(VoiceAPIError) as error:
                found()
            assert error.value.status == 404
        with pytest.raises(CallRefused, match="Telephony configuration not found"):
            voice.call(agent, NUMBER, configuration=1 << 70)

    def test_outside_of_an_app(self, voice: VoiceAPI) -> None:
        with pytest.raises(RuntimeError, match="application context"):
            voice.call(1, NUMBER)
        with Flask("other").app_context(), pytest.raises(RuntimeError, match="This app has no voiceapi"):
            voice.call(1, NUMBER)


@pytest.fixture
def carrier(host: Flask, client: FlaskClient, agent: int) -> tuple[int, type[Carrier]]:
    """The id of a configuration of a real carrier, and the class of its stand-in."""

    class Twilio(Carrier):
        pass

    made = client.post(f"{API}/organizations/telephony-configs", json={"name": "Main", "config": TWILIO}).get_json()
    number = {"address": "+12025550188", "is_default_caller_id": True}
    answer = client.post(f"{API}/organizations/telephony-configs/{made['id']}/phone-numbers", json=number)
    assert answer.status_code == 200, answer.text
    object.__setattr__(host.extensions["voiceapi"], "http", Twilio())
    return made["id"], Twilio


def test_each_app_of_a_process_has_its_own(
    voice: VoiceAPI, host: Flask, agent: int, tmp_path: Path, database_at: Callable[[Path], str], talk: Any
) -> None:
    """One `VoiceAPI` serves several apps, as where a factory is called twice."""
    other = Flask("other")
    other.config.update(VOICEAPI_DATABASE=database_at(tmp_path / "other.db"), VOICEAPI_API_KEY=KEY)
    voice.init_app(other, url_prefix="/voice")
    try:
        run = voice.call(agent, NUMBER)
        with other.app_context():
            with pytest.raises(AgentNotFound):
                voice.call("Agent", NUMBER)
            with pytest.raises(VoiceAPIError, match="There is no such run"):
                voice.run(run.id)
            assert voice.chat(voice.publish(talk(), name="Theirs")).run.id == 1
        with pytest.raises(AgentNotFound):
            voice.chat("Theirs")
    finally:
        other.extensions["voiceapi"].close()


class TestTime:
    """A call returns after 25 seconds at most."""

    def test_its_parts_are_25_seconds(self) -> None:
        assert WAIT_SECONDS + LONGEST_WAIT + TIMEOUT_SECONDS == 25

    def test_a_carrier_that_gives_no_answer(
        self, voice: VoiceAPI, agent: int, carrier: tuple[int, type[Carrier]]
    ) -> None:
        configuration, twilio = carrier
        twilio.answers = False
        run = voice.call(agent, NUMBER, key="order 7", configuration=configuration)
        assert (run.state, run.is_completed) == ("unknown", False)
        assert "did not answer within 10 seconds" in (run.error or "")
        again = voice.call(agent, NUMBER, key="order 7", configuration=configuration)
        assert (again, twilio.asked) == (run, 1)

    @pytest.mark.parametrize(
        ("seconds", "reason"), [(10.9, "Too many calls are waiting to be placed"), (60, "takes no more calls")]
    )
    def test_a_turn_that_is_too_far_away(
        self,
        voice: VoiceAPI,
        agent: int,
        carrier: tuple[int, type[Carrier]],
        records: None,
        seconds: float,
        reason: str,
    ) -> None:
        """The account's pace lets no call be placed within ten seconds, so none is."""
        configuration, twilio = carrier
        with write():
            configurations.hold(TelephonyConfiguration.get_by_id(configuration), seconds)
        with pytest.raises(LimitReached, match=reason) as error:
            voice.call(agent, NUMBER, key="order 7", configuration=configuration)
        assert (error.value.status, error.value.retry_after) == (429, 5 if seconds < 11 else 60)
        assert (twilio.asked, StoredRun.select().count(), IdempotencyKey.select().count()) == (0, 0, 0)

    def test_no_permit_for_slow_work(
        self, voice: VoiceAPI, agent: int, carrier: tuple[int, type[Carrier]], host: Flask, records: None
    ) -> None:
        bulkhead = host.extensions["voiceapi"].bulkhead
        bulkhead.permit_queue.limit, bulkhead.wait_seconds = 1, 0.01
        with bulkhead.slow("another"), pytest.raises(CallRefused, match="did nothing for this one") as error:
            voice.call(agent, NUMBER, configuration=carrier[0])
        assert (error.value.status, error.value.retry_after) == (503, 5)
        assert (carrier[1].asked, StoredRun.select().count()) == (0, 0)


class TestKeys:
    def test_a_key_is_one_call(self, voice: VoiceAPI, agent: int, records: None) -> None:
        first = voice.call(agent, NUMBER, context={"a": 1, "b": 2}, key="order 7")
        assert voice.call("Agent", NUMBER, context={"b": 2, "a": 1}, key="order 7").id == first.id
        with pytest.raises(KeyConflict) as conflict:
            voice.call(agent, NUMBER, key="order 7")
        assert conflict.value.status == 409
        assert StoredRun.select().count() == 1

    def test_a_key_of_a_request_is_another_one(
        self, voice: VoiceAPI, agent: int, client: FlaskClient, records: None
    ) -> None:
        run = voice.call(agent, NUMBER, key="order 7")
        answer = client.post(f"{API}/public/agent/line", json=CALL, headers={"Idempotency-Key": "order 7"})
        assert answer.status_code == 200, answer.text
        assert answer.get_json()["workflow_run_id"] != run.id

    def test_a_repeat_returns_the_run_of_a_call_that_is_being_placed_or_was_refused(
        self, voice: VoiceAPI, agent: int, records: None, wait_for: Any
    ) -> None:
        run = voice.call(agent, NUMBER, key="order 7")
        wait_for(lambda: voice.run(run.id).is_completed)
        IdempotencyKey.update(answer=None).execute()
        StoredRun.update(state="placing", carrier_call_id=None, answered_at=None).execute()
        again = voice.call(agent, NUMBER, key="order 7")
        assert (again.id, again.state) == (run.id, "placing")
        gathered = {"error": "No such number.", "call_disposition": "error"}
        StoredRun.update(state="completed", disposition="error", gathered_context=gathered).execute()
        failed = voice.call(agent, NUMBER, key="order 7")
        assert (failed.id, failed.is_completed, failed.error) == (run.id, True, "No such number.")

    def test_a_repeat_needs_no_agent_that_is_active(self, voice: VoiceAPI, agent: int, client: FlaskClient) -> None:
        run = voice.call(agent, NUMBER, key="order 7")
        assert client.put(f"{API}/workflow/{agent}/status", json={"status": "archived"}).status_code == 200
        assert voice.call(agent, NUMBER, key="order 7").id == run.id
        with pytest.raises(AgentNotFound, match="The agent 'Agent' is archived"):
            voice.call(agent, NUMBER, key="order 8")

    def test_a_key_is_a_text_that_can_be_stored(self, voice: VoiceAPI, agent: int) -> None:
        for key in ("", "a\0b", "k" * 256):
            with pytest.raises(ValueError, match="1 to 255 printable characters"):
                voice.call(agent, NUMBER, key=key)

    def test_others_at_the_same_time_place_nothing(
        self, voice: VoiceAPI, agent: int, host: Flask, records: None
    ) -> None:
        def place(number: int) -> Run | KeyConflict:
            with host.app_context():
                try:
                    return voice.call(agent, NUMBER, context={"number": number}, key="order 7")
                except KeyConflict as conflict:
                    return conflict

        with ThreadPoolExecutor(10) as pool:
            found = list(pool.map(place, range(10)))
        [run] = [each for each in found if isinstance(each, Run)]
        assert StoredRun.select().count() == 1
        assert {str(each) for each in found if each is not run} == {
            "The key 'order 7' belongs to a call with other arguments, of the last 24 hours."
        }

    def test_ten_at_once_place_one_call(self, voice: VoiceAPI, agent: int, host: Flask, records: None) -> None:
        def place(_: int) -> Run:
            with host.app_context():
                return voice.call(agent, NUMBER, key="order 7")

        with ThreadPoolExecutor(10) as pool:
            assert len({run.id for run in pool.map(place, range(10))}) == 1
        assert StoredRun.select().count() == 1


class TestRun:
    def test_a_run_of_another_organization_is_not_there(self, voice: VoiceAPI, agent: int, talk: Any) -> None:
        run = voice.call(agent, NUMBER)
        voice.publish(talk(), name="Theirs", organization="ada")
        for id, organization in ((run.id, "ada"), (99, None)):
            with pytest.raises(VoiceAPIError, match="There is no such run") as error:
                voice.run(id, organization=organization)
            assert error.value.status == 404


class TestChat:
    def test_a_chat_from_its_opening_to_its_end(self, voice: VoiceAPI, agent: int) -> None:
        chat = voice.chat("Agent", context={"name": "Ada"})
        assert (chat.opening, chat.is_over) == ("Hello, is now a good time?", False)
        again = voice.chat(run=chat.run.id)
        assert again.opening == chat.opening
        assert again.say("Yes, that's fine.")
        assert chat.is_over
        assert chat.run.is_completed
        assert [turn.who for turn in chat.run.turns] == ["agent", "caller", "agent"]
        assert (chat.run.context["name"], chat.run.is_test) == ("Ada", False)
        with pytest.raises(VoiceAPIError, match="has ended") as over:
            chat.say("Hello?")
        assert over.value.status == 400

    def test_the_published_version_speaks(
        self, voice: VoiceAPI, agent: int, client: FlaskClient, talk: Callable[..., Any]
    ) -> None:
        draft = talk("line", greeting="A draft.")
        assert client.put(f"{API}/workflow/{agent}", json={"workflow_definition": draft}).status_code == 200
        assert voice.chat(agent).opening == "Hello, is now a good time?"

    def test_what_a_chat_needs(self, voice: VoiceAPI, agent: int) -> None:
        with pytest.raises(TypeError, match="either an agent or the run"):
            voice.chat()  # type: ignore[call-overload]
        with pytest.raises(VoiceAPIError) as error:
            voice.chat(run=99)
        assert error.value.status == 404
        with pytest.raises(ValueError, match="The text is empty"):
            voice.chat(agent).say("")


class TestPublish:
    def versions(self) -> list[tuple[int, str]]:
        found = WorkflowVersion.select().order_by(WorkflowVersion.id)
        return [(version.version_number, version.status) for version in found]

    def test_a_definition_is_published_once(
        self, voice: VoiceAPI, host: Flask, client: FlaskClient, talk: Callable[..., Any], records: None
    ) -> None:
        id = voice.publish(talk(), name="Agent")
        assert voice.publish(talk(), name="Agent") == id
        assert self.versions() == [(1, "published")]
        edited = talk(greeting="Edited in the console.")
        assert client.put(f"{API}/workflow/{id}", json={"workflow_definition": edited}).status_code == 200
        assert client.post(f"{API}/workflow/{id}/publish").status_code == 200
        assert voice.publish(talk(), name="Agent") == id
        assert voice.chat(id).opening == "Edited in the console."
        assert voice.publish(talk(greeting="Changed in the file."), name="Agent") == id
        assert voice.chat(id).opening == "Changed in the file."
        assert self.versions() == [(1, "archived"), (2, "archived"), (3, "published")]

    def test_a_file_is_named_by_its_stem(
        self, voice: VoiceAPI, host: Flask, talk: Callable[..., Any], tmp_path: Path, records: None
    ) -> None:
        file = tmp_path / "reception.json"
        body = {"workflow_definition": talk(), "workflow_configurations": {"max_call_duration": 60}}
        file.write_text(json.dumps(body), encoding="utf-8")
        for path in (file, str(file)):
            found = Workflow.get_by_id(voice.publish(path))
        assert found.name == "reception"
        assert WorkflowVersion.get(status="published").configurations == {"max_call_duration": 60}
        with pytest.raises(OSError, match=r"nothing\.json"):
            voice.publish(tmp_path / "nothing.json")
        for content in (b"{", b"[1]", b'"text"', b"\xff"):
            file.write_bytes(content)
            with pytest.raises(VoiceAPIError) as error:
                voice.publish(file)
            assert error.value.status == 422

    def test_what_cannot_be_published_leaves_nothing(
        self, voice: VoiceAPI, agent: int, talk: Callable[..., Any], records: None
    ) -> None:
        before = self.versions()
        for name in ("Agent", "Another"):
            with pytest.raises(VoiceAPIError) as error:
                voice.publish({"nodes": [], "edges": []}, name=name)
            assert (error.value.status, "start" in error.value.detail.lower()) == (422, True)
        with pytest.raises(VoiceAPIError) as error:
            voice.publish(talk("line"), name="Another")
        assert error.value.status == 409
        with pytest.raises(VoiceAPIError, match="no workflow"):
            voice.publish({}, name="Another")
        with pytest.raises(ValueError, match="needs a name"):
            voice.publish(talk())
        assert self.versions() == before
        assert voice.chat(agent).opening == "Hello, is now a good time?"

    def test_processes_that_start_at_once_create_one_agent(
        self, voice: VoiceAPI, host: Flask, talk: Callable[..., Any], records: None
    ) -> None:
        def publish(_: int) -> int:
            with host.app_context():
                return voice.publish(talk(), name="Agent")

        with ThreadPoolExecutor(4) as pool:
            assert len(set(pool.map(publish, range(8)))) == 1
        assert self.versions() == [(1, "published")]


def test_the_names_of_the_package() -> None:
    assert all(getattr(voiceapi, name) is not None for name in voiceapi.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'Calls'"):
        _ = voiceapi.Calls
