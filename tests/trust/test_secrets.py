"""Secrets are encrypted wherever they come in, hidden wherever they go out, and used only in requests."""

from __future__ import annotations

import logging
import sqlite3
import stat
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from scan_secrets import SCAN

from voiceapi.config import Settings, names
from voiceapi.engine.actions import RunTool
from voiceapi.llm.chat_completions import ChatCompletions
from voiceapi.masking import HIDDEN
from voiceapi.opening import open_service
from voiceapi.postcall import delivery, processing
from voiceapi.security import SecretError, Vault
from voiceapi.service import Service
from voiceapi.store import secret_fields
from voiceapi.store.base import Record
from voiceapi.store.campaigns import Upload
from voiceapi.store.database import execute
from voiceapi.store.failures import StoreError
from voiceapi.store.organizations import ApiKey
from voiceapi.store.tools import Tool
from voiceapi.telephony.carriers.base import Account
from voiceapi.telephony.carriers.rest import Rest
from voiceapi.tools import catalog

API = "/api/v1"
KEY = "test-key-0123456789"
DATA = Path(__file__).parents[1] / "data"


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"VOICEAPI_WORKER": False, "VOICEAPI_ALLOW_PRIVATE_URLS": True}


@pytest.fixture
def receiver() -> Iterator[tuple[str, list[dict[str, str]]]]:
    """A server's host and port, and the headers of its requests; its answers repeat the request's Authorization."""
    requests: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            requests.append(dict(self.headers))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"you sent": "%s"}' % (self.headers["Authorization"] or "").encode())

        do_GET = do_POST  # noqa: N815 - the name that the library calls

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"127.0.0.1:{server.server_address[1]}", requests
    server.shutdown()
    thread.join()
    server.server_close()


def basic(user: str, password: str) -> str:
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()


def tool_of(host: str, **config: Any) -> dict[str, Any]:
    config = {"method": "GET", "url": f"http://ann:s3cr3t-password@{host}/x", **config}
    headers = {"X-Api-Key": "s3cr3t-header-value", "Accept": "text/plain"}
    return {"type": "http_api", "config": {"headers": headers, **config}}


def test_a_tools_headers_and_password(client: FlaskClient, service: Service, receiver: Any) -> None:
    host, requests = receiver
    made = client.post(f"{API}/tools/", json={"name": "T", "definition": tool_of(host)}).get_json()
    uuid, config = made["tool_uuid"], made["definition"]["config"]
    assert (config["url"], config["headers"]) == (
        f"http://ann:{HIDDEN}@{host}/x",
        {"X-Api-Key": HIDDEN, "Accept": "text/plain"},
    )
    for change in ({"definition": made["definition"]}, {"name": "Other"}):
        assert client.put(f"{API}/tools/{uuid}", json=change).get_json()["definition"] == made["definition"]
    config["url"] += "/longer"
    assert client.put(f"{API}/tools/{uuid}", json={"definition": made["definition"]}).status_code == 200
    tried = client.post(f"{API}/tools/{uuid}/test", json={}).get_json()
    assert (tried["request_url"], tried["request_headers"]["X-Api-Key"]) == (
        f"http://ann:{HIDDEN}@{host}/x/longer",
        HIDDEN,
    )
    assert requests[0]["X-Api-Key"] == "s3cr3t-header-value"
    assert requests[0]["Authorization"] == basic("ann", "s3cr3t-password")
    with service.store.session():
        assert "s3cr3t" not in str(Tool.get().definition)
        asked = RunTool(0, 0.0, "", "", "t", uuid, {})
        assert catalog.run(1, asked, catalog.context_for(service, 1)).result["status"] == "success"
    assert [each["X-Api-Key"] for each in requests] == ["s3cr3t-header-value"] * 2


@pytest.mark.parametrize(
    ("path", "change"),
    [
        (["headers", "X-New"], {"headers": {"X-New": HIDDEN}}),
        (["url"], {"url": f"http://ann:{HIDDEN}@elsewhere.example/x"}),
        (["url"], {"url": f"http://eve:{HIDDEN}@127.0.0.1:9/x"}),
    ],
)
def test_a_mask_that_stands_for_nothing(client: FlaskClient, path: list[str], change: dict[str, Any]) -> None:
    made = client.post(f"{API}/tools/", json={"name": "T", "definition": tool_of("127.0.0.1:9")}).get_json()
    changed = tool_of("127.0.0.1:9", **change)
    for answer in (
        client.put(f"{API}/tools/{made['tool_uuid']}", json={"definition": changed}),
        client.post(f"{API}/tools/", json={"name": "U", "definition": changed}),
    ):
        assert answer.status_code == 422
        assert [each["loc"] for each in answer.get_json()["detail"]] == [["body", "definition", "config", *path]]


def test_a_mask_of_few_stars(service: Service) -> None:
    """A key of five characters has a mask with a single star, which keeps the key, too."""
    find = secret_fields.in_configurations
    stored = secret_fields.merged(service.vault, {"stt": {"api_key": "abcde"}}, find)
    masked = secret_fields.masked(service.vault, stored, find)
    assert masked == {"stt": {"api_key": "*bcde"}}
    assert secret_fields.merged(service.vault, masked, find, [stored]) == stored


def test_nodes_with_one_id_keep_their_own_secrets(service: Service) -> None:
    def definition(*values: str) -> dict[str, Any]:
        headers = [{"custom_headers": [{"key": "X-Partner", "value": value}]} for value in values]
        return {"nodes": [{"id": "w", "data": data} for data in headers]}

    stored = secret_fields.merged(service.vault, definition("s3cr3t-one", "s3cr3t-two"), secret_fields.in_definition)
    masked = secret_fields.masked(service.vault, stored, secret_fields.in_definition)
    assert masked == definition(HIDDEN, HIDDEN)
    assert secret_fields.merged(service.vault, masked, secret_fields.in_definition, [stored]) == stored


def test_what_another_secret_encrypted_is_not_sent(client: FlaskClient, service: Service, receiver: Any) -> None:
    """Neither in clear, which nobody can, nor as it is stored."""
    host, requests = receiver
    uuid = client.post(f"{API}/tools/", json={"name": "T", "definition": tool_of(host)}).get_json()["tool_uuid"]
    other = Vault(b"another secret, which was lost since")
    with service.store.session():
        tool = Tool.get()
        clear = secret_fields.decrypted(service.vault, tool.definition, secret_fields.in_tool)
        tool.definition = secret_fields.encrypted(other, clear, secret_fields.in_tool)
        tool.save()
    assert client.post(f"{API}/tools/{uuid}/test", json={}).status_code == 200
    assert (requests[0]["X-Api-Key"], requests[0]["Accept"]) == ("", "text/plain")
    assert "gAAAA" not in str(requests)
    assert basic("ann", "") == requests[0]["Authorization"]


def webhook_definition(host: str, talk: Callable[..., Any]) -> dict[str, Any]:
    data = {
        "name": "CRM",
        "endpoint_url": f"http://ann:s3cr3t-hook@{host}/hook",
        "custom_headers": [
            {"key": "X-Partner", "value": "s3cr3t-partner {{initial_context.name}}"},
            {"key": "User-Agent", "value": "agent"},
        ],
        "payload_template": {},
    }
    definition = talk(pre_call_fetch_enabled=True, pre_call_fetch_url=f"http://ann:s3cr3t-fetch@{host}/fetch")
    definition["nodes"].append({"id": "w", "type": "webhook", "position": {"x": 0, "y": 0}, "data": data})
    return dict(definition)


def test_a_webhooks_headers_and_password(
    client: FlaskClient, service: Service, receiver: Any, talk: Callable[..., Any], workflow: Callable[..., Any]
) -> None:
    host, requests = receiver
    made = workflow(webhook_definition(host, talk))
    id, shown = made["id"], made["workflow_definition"]
    hook = shown["nodes"][-1]["data"]
    assert hook["endpoint_url"] == f"http://ann:{HIDDEN}@{host}/hook"
    assert [each["value"] for each in hook["custom_headers"]] == [HIDDEN, "agent"]
    hook["custom_headers"].reverse()
    assert client.put(f"{API}/workflow/{id}", json={"workflow_definition": shown}).status_code == 200
    assert client.post(f"{API}/workflow/{id}/publish").status_code == 200
    copy = client.post(f"{API}/workflow/{id}/duplicate").get_json()
    sessions = f"{API}/workflow/{copy['id']}/text-chat/sessions"
    run = client.post(sessions, json={"initial_context": {"name": "Ada"}}).get_json()["workflow_run_id"]
    assert client.post(f"{sessions}/{run}/messages", json={"text": "Yes."}).get_json()["is_completed"]
    assert processing.process_next(service)
    assert delivery.deliver_next(service)
    sent = requests[-1]
    assert (sent["X-Partner"], sent["Authorization"]) == ("s3cr3t-partner Ada", basic("ann", "s3cr3t-hook"))
    listed = client.get(f"{API}/organizations/webhook-deliveries?state=succeeded").get_json()
    assert [each["url"] for each in listed["deliveries"]] == [f"http://ann:{HIDDEN}@{host}/hook"]


def test_a_fetch_before_the_call_uses_its_password(
    service: Service, receiver: Any, talk: Callable[..., Any], workflow: Callable[..., Any], client: FlaskClient
) -> None:
    host, requests = receiver
    id = workflow(webhook_definition(host, talk))["id"]
    assert client.post(f"{API}/workflow/{id}/text-chat/sessions", json={}).status_code == 200
    assert [each["Authorization"] for each in requests] == [basic("ann", "s3cr3t-fetch")]


def test_keys_and_passwords_in_configurations(client: FlaskClient, workflow: Callable[..., Any]) -> None:
    id = workflow()["id"]
    given: dict[str, Any] = {"stt": {"api_key": "s3cr3t-speech-key", "url": "https://ann:s3cr3t-speech@stt.example/"}}
    masked: dict[str, Any] = {"stt": {"api_key": "*************-key", "url": f"https://ann:{HIDDEN}@stt.example/"}}
    given["stt"] |= {"extra_headers": {"X-Team": "s3cr3t-header", "Accept": "text/plain"}}
    masked["stt"] |= {"extra_headers": {"X-Team": HIDDEN, "Accept": "text/plain"}}
    for sent in (given, masked):
        answer = client.put(f"{API}/workflow/{id}", json={"workflow_configurations": sent})
        assert answer.get_json()["workflow_configurations"] == masked
    masked["stt"]["api_key"] = "****-other"
    answer = client.put(f"{API}/workflow/{id}", json={"workflow_configurations": masked})
    assert answer.get_json()["detail"][0]["loc"] == ["body", "workflow_configurations", "stt", "api_key"]


def test_a_password_in_the_models_url(client: FlaskClient) -> None:
    speech = {"provider": "deepgram", "model": "m", "api_key": "k"}
    llm = {"provider": "openai", "model": "m", "base_url": "https://ann:s3cr3t-model@llm.example/v1"}
    body = {
        "version": 2,
        "mode": "byok",
        "byok": {"mode": "pipeline", "pipeline": {"llm": llm, "tts": speech, "stt": speech}},
    }
    path = f"{API}/organizations/model-configurations/v2"
    shown = f"https://ann:{HIDDEN}@llm.example/v1"
    for url in (llm["base_url"], shown):
        llm["base_url"] = url
        answer = client.put(path, json=body)
        assert f'"{shown}"' in answer.text
    llm["base_url"] = f"https://ann:{HIDDEN}@elsewhere.example/v1"
    assert client.put(path, json=body).status_code == 422


def test_an_answer_that_repeats_a_secret(service: Service, receiver: Any) -> None:
    host, _ = receiver
    reply = service.http.send(
        "POST", f"http://{host}/", headers={"Authorization": "Bearer s3cr3t-bearer"}, json={}, timeout=5
    )
    assert reply.json() == {"you sent": HIDDEN}
    reply = service.http.send("POST", f"http://ann:s3cr3t%21{'x' * 8}@{host}/", json={}, timeout=5)
    assert reply.json() == {"you sent": f"Basic {HIDDEN}"}


# -- repr, logs


def test_nothing_shows_secrets_when_it_is_printed(service: Service) -> None:
    given = {
        "VOICEAPI_DATABASE": "postgresql://voice:s3cr3t-database@db/voice",
        "VOICEAPI_SECRET": "s3cr3t-" * 5,
        "VOICEAPI_API_KEY": "s3cr3t-api-key-1",
        "VOICEAPI_LLM_KEY": "s3cr3t-llm",
        "VOICEAPI_LLM_URL": "http://ann:s3cr3t-url@llm/v1",
    }
    read = Settings.read(dict.fromkeys(names()) | given)
    account = Account({"auth_token": "s3cr3t-token"}, service.http.send)
    rest = Rest("Carrier", "https://carrier.example", {"Authorization": "Bearer s3cr3t-token"}, service.http.send)
    model = ChatCompletions(service.http.send, "https://ann:s3cr3t-url@llm.example/v1", key="s3cr3t-key")
    for each in (read, service, service.vault, account, rest, model):
        assert "s3cr3t" not in repr(each)
        assert KEY not in repr(each)
    assert "host='127.0.0.1'" in repr(read)


def test_log_lines_can_not_be_forged(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    """Neither by arguments nor by the message of an exception, whoever handles the records."""
    forged = "x\n2026-01-01 00:00:00 INFO voiceapi all is well\x1b[31m"
    log = logging.getLogger("voiceapi")
    log.warning("A caller said %s", forged)
    try:
        raise ValueError(forged)
    except ValueError as error:
        log.exception("The run %s failed: %s", 5, error)
    text = "\n".join(logging.Formatter("%(message)s").format(record) for record in caplog.records)
    assert r"A caller said x\n2026-01-01" in text
    assert "\x1b" not in text
    assert not [line for line in text.splitlines() if line.startswith("2026-01-01")]


def test_the_token_in_an_address_is_not_logged(
    bare: FlaskClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr("voiceapi.runs.files.fetch", fail)
    assert bare.get(f"{API}/s3/files/s3cr3t-token").status_code == 500
    assert "GET /api/v1/s3/files/… failed" in caplog.text


# -- files


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def opened(location: str | Path, **settings: Any) -> Service:
    given = {"VOICEAPI_DATABASE": location, "VOICEAPI_API_KEY": KEY, "VOICEAPI_WORKER": False, **settings}
    return open_service(Settings.read(dict.fromkeys(names()) | given))


@pytest.mark.sqlite
def test_only_their_owner_reads_the_databases_files(tmp_path: Path) -> None:
    """Whatever the umask, and also files that were there before."""
    old = tmp_path / "old.db"
    connection = sqlite3.connect(old)
    connection.executescript(DATA.joinpath("version-4.sql").read_text(encoding="utf-8"))
    connection.execute("PRAGMA user_version = 4")
    connection.close()
    assert mode(old) != 0o600
    for path in (old, tmp_path / "new.db"):
        service = opened(path, VOICEAPI_SECRET="s" * 32 if path == old else None)
        kept = {file.name.removeprefix(path.name): mode(file) for file in tmp_path.glob(f"{path.name}*")}
        service.close()
        assert set(kept.values()) == {0o600}
        assert set(kept) == {"", "-wal", "-shm", ".version-4" if path == old else ".secret"}


@pytest.mark.sqlite
def test_a_mode_that_can_not_be_changed_is_announced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "voice.db"
    opened(path).close()
    path.chmod(0o644)

    def refuse(*_: Any) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "chmod", refuse)
    opened(path).close()
    assert f"Others may be able to read {path}" in capsys.readouterr().err


# -- the secret


def test_another_secret_is_refused(tmp_path: Path, database_at: Callable[[Path], str]) -> None:
    location = database_at(tmp_path / "voice.db")
    opened(location, VOICEAPI_SECRET="a" * 32).close()
    with pytest.raises(SecretError, match=r"The secret isn't the one that .* was encrypted with"):
        opened(location, VOICEAPI_SECRET="b" * 32)


@pytest.mark.sqlite
def test_a_secrets_file_that_is_missing_is_not_made_again(tmp_path: Path) -> None:
    path = tmp_path / "voice.db"
    opened(path, VOICEAPI_SECRET="a" * 32).close()
    with pytest.raises(SecretError, match=r"there is no file .*voice\.db\.secret, and VOICEAPI_SECRET isn't set"):
        opened(path)
    assert not Path(f"{path}.secret").exists()


@pytest.mark.sqlite
def test_a_lost_secret(tmp_path: Path) -> None:
    """As docs/operations.md says."""
    path = tmp_path / "voice.db"
    opened(path).close()
    Path(f"{path}.secret").unlink()
    page = Path(__file__).parents[2].joinpath("docs", "operations.md").read_text(encoding="utf-8")
    statement = "DELETE FROM secret_check"
    assert f'"{statement}"' in page
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()
    opened(path).close()
    opened(path).close()


# -- the scan itself


def test_the_scan_finds_a_secret_that_is_stored(service: Service) -> None:
    """In the database, by the text that was encrypted or by its mark; in an answer and in a log line."""
    service.vault.encrypt("a key of some service")
    for secret in ("a key of some service", "s3cr3t-without-encryption"):
        with service.store.session():
            ApiKey.update(name=secret).execute()
        found = SCAN.found_in_database(service.store)
        assert any(each.startswith(secret.encode()) for each in found)
        with pytest.raises(AssertionError, match="holds secrets in clear"):
            service.close()
        assert SCAN.found_in_answer(f'{{"detail": "{secret}"}}'.encode()) == {secret.encode()}
        logging.getLogger("voiceapi").warning("The key %s was refused", secret)
        assert SCAN.found_in_log() == {secret.encode()}
        SCAN.lines.clear()
        with service.store.session():
            ApiKey.update(name="").execute()
            if service.store.path is not None:
                execute("VACUUM")
                execute("PRAGMA wal_checkpoint(TRUNCATE)")


def test_the_scan_finds_a_secret_within_bytes(service: Service) -> None:
    with service.store.session():
        Upload.create(organization=1, file_key="list", content=b"phone_number\ns3cr3t-in-a-list\n")
    assert SCAN.found_in_database(service.store) == {b"s3cr3t-in-a-list"}
    with service.store.session():
        Upload.delete().execute()
        if service.store.path is not None:
            execute("PRAGMA wal_checkpoint(TRUNCATE)")


def test_every_table_is_encrypted_again() -> None:
    """What is encrypted may stand in any text column; only the check value itself is replaced on its own."""
    from voiceapi.store.migrations import TABLES

    assert set(Record.__subclasses__()) == set(TABLES)


@pytest.mark.sqlite
def test_a_folder_that_is_given_as_the_database_keeps_its_mode(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(0o755)
    with pytest.raises(StoreError):
        open_service(Settings.read({"VOICEAPI_DATABASE": folder}))
    assert folder.stat().st_mode & 0o777 == 0o755
