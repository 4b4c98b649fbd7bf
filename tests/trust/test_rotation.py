"""The secret is replaced, also when the process is killed at any point; a number is forgotten."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from click.testing import CliRunner, Result
from flask.testing import FlaskClient

from voiceapi import create_app
from voiceapi.cli.base import script_info
from voiceapi.cli.main import group
from voiceapi.config import Settings, names
from voiceapi.opening import open_service
from voiceapi.organizations import credentials, rotation
from voiceapi.security import SecretError, Vault, read_secret, write_secret
from voiceapi.service import Service
from voiceapi.store import encryption
from voiceapi.store.database import Store, database, execute
from voiceapi.store.organizations import Credential

API = "/api/v1"
KEY = "test-key-0123456789"
OLD, NEW = "the old secret, of more than 32 characters", "the new secret, of more than 32 characters"
TEXTS = [f"s3cr3t-token-{number}" for number in range(3)]


class Killed(BaseException):
    """Stands for a kill: nothing handles it."""


def opened(location: str, secret: str | None = None) -> Service:
    given = {
        "VOICEAPI_DATABASE": location,
        "VOICEAPI_API_KEY": KEY,
        "VOICEAPI_WORKER": False,
        "VOICEAPI_SECRET": secret,
    }
    return open_service(Settings.read(dict.fromkeys(names()) | given))


def fill(location: str, secret: str | None = None) -> None:
    service = opened(location, secret)
    with service.store.session():
        for text in TEXTS:
            credentials.create(service.vault, 1, text[-1], None, "bearer_token", {"token": text})
    service.close()


def readable(service: Service) -> bool:
    """True if everything can be decrypted."""
    with service.store.session():
        headers = [credentials.header(service, 1, row.uuid) for row in Credential.select().order_by(Credential.id)]
    return headers == [{"Authorization": f"Bearer {text}"} for text in TEXTS]


def tokens(location: str) -> list[str]:
    store = Store(location)
    with store.session():
        found = [text for (text,) in execute("SELECT data FROM credential ORDER BY id")]
    store.close()
    return found


@contextmanager
def killed_after(last: int) -> Any:
    """Kill the process after its transaction or file write with this number, counted from 1."""
    writing, replace, count = Store.writing, os.replace, 0

    def counted() -> None:
        nonlocal count
        count += 1
        if count == last:
            raise Killed

    @contextmanager
    def write_and_count(self: Store, *locks: Any) -> Any:
        with writing(self, *locks):
            yield
        counted()

    def replace_and_count(*args: Any) -> None:
        replace(*args)
        counted()

    with patch.object(Store, "writing", write_and_count), patch.object(os, "replace", replace_and_count):
        yield


@pytest.mark.parametrize(
    "secret",
    [pytest.param(None, marks=pytest.mark.sqlite), pytest.param(OLD, marks=pytest.mark.long)],
    ids=["file", "setting"],
)
def test_killed_at_any_point(
    tmp_path: Path, database_at: Callable[[Path], str], monkeypatch: pytest.MonkeyPatch, secret: str | None
) -> None:
    """After each, everything is readable with the old secret and with the new one, and the next run finishes it."""
    monkeypatch.setattr(encryption, "BATCH", 2)
    for number in range(1, 100):
        location = database_at(tmp_path / f"{number}.db")
        fill(location, secret)
        before = tokens(location)
        service = opened(location, secret)
        new = None if secret is None else NEW
        try:
            with killed_after(number):
                rotation.rotate(service, new)
        except Killed:
            pass
        else:
            break
        finally:
            service.close()
        for each in {secret, new}:
            try:
                service = opened(location, each)
            except SecretError:
                assert each == OLD  # the last transaction is done
                continue
            assert readable(service)
            if rotation.is_unfinished(service):
                rotation.rotate(service)
                assert readable(service)
            service.close()
        service = opened(location, new)
        assert readable(service)
        assert not rotation.is_unfinished(service)
        service.close()
        assert not set(tokens(location)) & set(before)
    assert number > 5


@pytest.mark.sqlite
def test_a_service_that_runs_meanwhile(tmp_path: Path) -> None:
    """It reads the secret's file again: for what it can't decrypt, and before it encrypts."""
    location = str(tmp_path / "voice.db")
    fill(location)
    running, command = opened(location), opened(location)
    first = running.vault.sign({"file": 1}, "test", 2e9)
    assert rotation.rotate(command) >= len(TEXTS)
    assert readable(running)
    with running.store.session():
        credentials.create(running.vault, 1, "new", None, "bearer_token", {"token": "s3cr3t-new"})
    assert running.vault.verify(first, "test", 1e9) is None
    for service in (running, command):
        service.close()
    again = opened(location)
    with again.store.session():
        newest = Credential.select().order_by(Credential.id.desc()).first()
        assert credentials.header(again, 1, newest.uuid) == {"Authorization": "Bearer s3cr3t-new"}
    again.close()


def test_a_secret_that_is_replaced_while_a_process_starts(tmp_path: Path) -> None:
    """After the process has read the file, and before it first encrypts."""
    file = tmp_path / "voice.db.secret"
    write_secret(file, OLD)
    secret = read_secret(file)
    write_secret(file, NEW, replace=True)
    assert Vault(secret, file=file).secret == NEW.encode()


def test_the_old_secret_is_refused_afterwards(tmp_path: Path, database_at: Callable[[Path], str]) -> None:
    location = database_at(tmp_path / "voice.db")
    fill(location, OLD)
    service = opened(location, OLD)
    rotation.rotate(service, NEW)
    service.close()
    with pytest.raises(SecretError):
        opened(location, OLD)
    service = opened(location, NEW)
    assert readable(service)
    service.close()


def command(location: str, *arguments: str, input: str | None = None, secret: str = "") -> Result:
    env = {"VOICEAPI_DATABASE": location, "VOICEAPI_API_KEY": KEY, "VOICEAPI_SECRET": secret}
    return CliRunner().invoke(group, arguments, env=env, input=input, obj=script_info(create_app))


@pytest.mark.sqlite
def test_the_command_with_the_secrets_file(tmp_path: Path) -> None:
    location = str(tmp_path / "voice.db")
    fill(location)
    secret = Path(f"{location}.secret").read_text()
    done = command(location, "secret", "rotate")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.output.endswith(f"The new secret is in {location}.secret. Back it up with the database.\n")
    assert Path(f"{location}.secret").read_text() != secret


def test_the_command_with_the_setting(tmp_path: Path, database_at: Callable[[Path], str]) -> None:
    other = database_at(tmp_path / "other.db")
    fill(other, OLD)
    assert command(other, "secret", "rotate", input="short\n", secret=OLD).exit_code == 2
    assert command(other, "secret", "rotate", input=f"{NEW}\n", secret=OLD).exit_code == 0
    service = opened(other, NEW)
    assert readable(service)
    service.close()


# -- forgetting a number

NUMBER, OTHER = "+12025550123", "+12025550177"
LIST = 'phone_number,note\n"(202) 555-0123","first\nof all"\n+12025550177,second\n12025550123,third\n'


@pytest.fixture
def spoken(client: FlaskClient, workflow: Callable[..., Any], finished: Callable[..., Any], service: Service) -> Any:
    """Calls and chats with both numbers, and a contact list that holds both."""
    workflow(path="line")
    for number in (NUMBER, OTHER):
        trigger = client.post(
            f"{API}/public/agent/line", json={"phone_number": number}, headers={"Idempotency-Key": number}
        )
        assert trigger.status_code == 200, trigger.text
        finished(1, trigger.get_json()["workflow_run_id"])
        sessions = f"{API}/workflow/1/text-chat/sessions"
        run = client.post(sessions, json={"initial_context": {"callback": number}}).get_json()["workflow_run_id"]
        client.post(f"{sessions}/{run}/messages", json={"text": f"Call {number}."})
    assert client.post(f"{API}/do-not-call", json={"phone_numbers": [NUMBER]}).status_code == 200
    with service.store.session():
        from voiceapi.runs import files

        files.store(1, "people.csv", LIST.encode())


def forget(service: Service, *arguments: str, input: str | None = None) -> Result:
    return command(service.store.location, "forget", *arguments, input=input, secret=service.settings.secret or "")


def everything(service: Service) -> dict[str, str]:
    with service.store.session():
        return {name: str(execute(f'SELECT * FROM "{name}"').fetchall()) for name in database.get_tables()}


def test_a_number_is_forgotten(spoken: None, service: Service) -> None:
    before = everything(service)
    holding = {name for name, rows in before.items() if NUMBER[1:] in rows}
    assert holding >= {"run", "event", "chat_turn", "upload", "do_not_call"}
    done = forget(service, NUMBER, "--yes", "--organization", "default")
    assert done.output == "Removed: runs 2, contacts 0, rows of contact lists 2.\n"
    after = everything(service)
    assert {name for name, rows in after.items() if NUMBER[1:] in rows} == {"do_not_call"}
    assert "555-0123" not in after["upload"]
    for name in holding - {"do_not_call"}:
        assert after[name].count(OTHER[1:]) == before[name].count(OTHER[1:]), name
    assert forget(service, NUMBER, "--yes").output.startswith("Removed: runs 0, contacts 0, rows")


def test_a_stored_case_is_forgotten(workflow: Any, service: Service) -> None:
    from voiceapi.store.workflows import ConversationCase

    workflow()
    with service.store.session():
        for name in (NUMBER, OTHER):
            ConversationCase.create(workflow=1, name="of a call with " + name, content={})
    done = forget(service, NUMBER, "--yes")
    assert done.output == "Removed: runs 0, contacts 0, rows of contact lists 0, conversation cases 1.\n"
    with service.store.session():
        assert [case.name for case in ConversationCase.select()] == ["of a call with " + OTHER]


@pytest.mark.sqlite
def test_a_number_that_is_forgotten_is_in_no_file(spoken: None, service: Service, tmp_path: Path) -> None:
    assert forget(service, NUMBER, "--yes").exit_code == 0
    kept = sum(file.read_bytes().count(NUMBER[1:].encode()) for file in tmp_path.glob("voice.db*"))
    assert kept <= 2  # the do-not-call list, and its index


def test_a_contact_is_forgotten(client: FlaskClient, workflow: Any, service: Service) -> None:
    from voiceapi.store.campaigns import Campaign, Contact

    workflow()
    with service.store.session():
        campaign = Campaign.create(
            organization=1, workflow=1, name="C", source_type="csv", source_id="x", retry_config={}, circuit_breaker={}
        )
        for row, (number, note) in enumerate(((NUMBER, ""), (OTHER, f"or {NUMBER}"), (OTHER, "1" + NUMBER[1:]))):
            Contact.create(campaign=campaign, row=row + 1, phone_number=number, variables={"note": note})
    done = forget(service, NUMBER, "--yes", "--json")
    assert done.stdout == '{"runs": 0, "contacts": 2, "rows": 0, "cases": 0}\n', done.output


def test_a_national_number_is_forgotten_as_one_of_the_configured_country(
    client: FlaskClient, spoken: None, service: Service
) -> None:
    own = f"{API}/organizations/telephony-configs/1"
    client.put(own, json={"config": {"provider": "simulator", "country": "US"}})
    asked = forget(service, "202 555 0123", input="y\n")
    assert f"Remove for good what is kept about {NUMBER}?" in asked.output
    assert "Removed: runs 2," in asked.output


def test_nothing_is_forgotten_without_consent(spoken: None, client: FlaskClient, service: Service) -> None:
    before = everything(service)
    assert forget(service, NUMBER, input="n\n").exit_code == 1
    assert forget(service, "5550123", "--yes").exit_code == 1
    own = client.get(f"{API}/organizations/telephony-configs/1/phone-numbers").get_json()["phone_numbers"][0]["address"]
    assert "a number of a telephony configuration" in forget(service, own, "--yes").stderr
    with service.store.session():
        execute("UPDATE run SET deadline_at = 1 WHERE called_number = ?", NUMBER)
    refused = forget(service, NUMBER, "--yes")
    assert refused.stderr == "Error: A call with this number is in progress. Try again when it has ended.\n"
    assert everything(service)["event"] == before["event"]
