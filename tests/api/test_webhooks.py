"""Webhooks as the API shows them, and the example's receiver that checks who sent them."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from voiceapi.organizations import api_keys
from voiceapi.postcall import delivery as deliveries
from voiceapi.postcall import processing, signing
from voiceapi.service import Service
from voiceapi.store.forgetting import delete_runs
from voiceapi.store.runs import Run

API = "/api/v1"
KEY = "test-key-0123456789"
SECRETS = f"{API}/organizations/webhook-secrets"


@pytest.fixture
def settings() -> dict[str, Any]:
    """Its own threads send nothing: the tests do it."""
    return {"VOICEAPI_WORKER": False, "VOICEAPI_ALLOW_PRIVATE_URLS": True}


@pytest.fixture(scope="session")
def example() -> ModuleType:
    path = Path(__file__).parents[2] / "examples/webhook_receiver.py"
    spec = importlib.util.spec_from_file_location("webhook_receiver", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def receiver(example: ModuleType) -> Iterator[Callable[[str], tuple[str, list[Any]]]]:
    """Starts the example's receiver with a secret; its URL, and what it took."""
    running: list[tuple[Any, threading.Thread]] = []

    def start(secret: str) -> tuple[str, list[Any]]:
        taken: list[Any] = []
        server = example.make_server(secret, lambda *delivery: taken.append(delivery))
        server.RequestHandlerClass.log_message = lambda *_: None
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        running.append((server, thread))
        return f"http://127.0.0.1:{server.server_address[1]}", taken

    yield start
    for server, thread in running:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def ended(client: FlaskClient, talk: Callable[..., Any]) -> Callable[..., str]:
    """Ends a chat of an agent with one webhook; the path of its run."""

    def end(url: str, **data: Any) -> str:
        definition = talk()
        data = {"name": "CRM", "endpoint_url": url, "payload_template": {"how": "it went"}, **data}
        definition["nodes"].append({"id": "w", "type": "webhook", "position": {"x": 0, "y": 0}, "data": data})
        body = {"name": "A", "workflow_definition": definition}
        workflow = client.post(f"{API}/workflow/create/definition", json=body).get_json()["id"]
        sessions = f"{API}/workflow/{workflow}/text-chat/sessions"
        run = client.post(sessions, json={}).get_json()["workflow_run_id"]
        client.post(f"{sessions}/{run}/messages", json={"text": "Yes."})
        return f"{API}/workflow/{workflow}/runs/{run}"

    return end


def work(service: Service) -> None:
    for _ in range(3):
        processing.process_next(service)
        deliveries.deliver_next(service)


def test_a_delivery_from_its_beginning_to_its_redelivery(
    client: FlaskClient, service: Service, ended: Any, receiver: Any
) -> None:
    url, taken = receiver("not the secret")
    run = ended(url)
    (delivery,) = client.get(f"{run}/deliveries").get_json()["deliveries"]
    uuid, created = delivery["delivery_uuid"], delivery["created_at"]
    workflow, run_id = (int(part) for part in run.split("/")[4::2])
    owed = {"delivery_uuid": uuid, "workflow_id": workflow, "run_id": run_id}
    owed |= {"node_id": "w", "node_name": "CRM", "created_at": created}
    unrendered = dict.fromkeys(("method", "url", "body", "next_attempt_at", "finished_at"))
    assert delivery == {**owed, **unrendered, "state": "pending", "attempts": []}
    again_url = f"{run}/deliveries/{uuid}/redeliver"
    refused = client.post(again_url)
    assert (refused.status_code, refused.get_json()) == (
        409,
        {"detail": "This delivery is still on its way: it is tried again by itself."},
    )

    work(service)
    (failed,) = client.get(f"{run}/deliveries").get_json()["deliveries"]
    (attempt,) = failed["attempts"]
    body = '{"how":"it went","call_disposition":"user_qualified"}'
    sent = {**owed, "method": "POST", "url": url, "body": body}
    assert failed == {
        **sent,
        "state": "dead_letter",
        "next_attempt_at": None,
        "finished_at": failed["finished_at"],
        "attempts": [attempt],
    }
    assert (attempt["number"], attempt["status"], attempt["error"], attempt["note"]) == (
        *(1, 401, "The receiver answered with status 401.", None),
    )

    answer = client.post(again_url)
    assert answer.status_code == 200, answer.text
    resent = answer.get_json()
    assert resent["next_attempt_at"] is not None
    assert resent == {
        **sent,
        "state": "pending",
        "next_attempt_at": resent["next_attempt_at"],
        "finished_at": None,
        "attempts": [attempt],
    }
    work(service)
    (failed_again,) = client.get(f"{run}/deliveries").get_json()["deliveries"]
    assert [attempt["number"] for attempt in failed_again["attempts"]] == [1, 2]
    assert (failed_again["body"], failed_again["state"], taken) == (body, "dead_letter", [])


def test_a_redelivery_has_its_own_schedule(service: Service, client: FlaskClient, ended: Any) -> None:
    run = ended("http://127.0.0.1:1")
    with service.store.session():
        work(service)
        for waited in ((60, 120, 240, None), (30, 60, 120, 240, None)):
            for seconds in waited:
                due = deliveries.due()
                assert due is not None
                deliveries.deliver_next(service, due)
                following = deliveries.due()
                assert (None if following is None else (following - due).total_seconds()) == seconds
            (delivery,) = client.get(f"{run}/deliveries").get_json()["deliveries"]
            assert client.post(f"{run}/deliveries/{delivery['delivery_uuid']}/redeliver").status_code == 200
    assert len(delivery["attempts"]) == 10


def test_the_webhooks_of_an_organization_are_listed_by_state(
    client: FlaskClient, service: Service, db: None, ended: Any
) -> None:
    runs = [ended(url) for url in ("ftp://a", "http://127.0.0.1:1", "ftp://b", "ftp://c")]
    listing = f"{API}/organizations/webhook-deliveries"
    assert client.get(listing).get_json() == {
        **{"total_count": 0, "page": 1, "limit": 50, "total_pages": 0},
        "deliveries": [],
    }
    work(service)
    work(service)
    (of_run,) = client.get(f"{runs[3]}/deliveries").get_json()["deliveries"]
    pages = [client.get(f"{listing}?limit=2&page={page}").get_json() for page in (1, 2, 2**62)]
    assert [[each["url"] for each in page["deliveries"]] for page in pages] == [["ftp://c", "ftp://b"], ["ftp://a"], []]
    assert pages[0]["deliveries"][0] == of_run
    assert (pages[0]["total_count"], pages[0]["total_pages"]) == (3, 2)
    (waiting,) = client.get(f"{listing}?state=pending").get_json()["deliveries"]
    assert waiting["url"] == "http://127.0.0.1:1"
    assert client.get(f"{listing}?state=lost").status_code == 422


def test_a_webhook_whose_run_is_deleted_while_it_is_listed_is_left_out(
    client: FlaskClient, service: Service, db: None, ended: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted, _ = ended("ftp://a"), ended("ftp://b")
    work(service)
    read = deliveries.of_organization

    def read_and_delete(*asked: Any) -> Any:
        found = read(*asked)
        delete_runs([Run.get_by_id(deleted.rpartition("/")[2])])
        return found

    monkeypatch.setattr(deliveries, "of_organization", read_and_delete)
    page = client.get(f"{API}/organizations/webhook-deliveries").get_json()
    assert [each["url"] for each in page["deliveries"]] == ["ftp://b"]


@pytest.mark.parametrize("path", ["/workflow/{other}/runs/{run}", "/workflow/{workflow}/runs/9999"])
def test_another_run_has_no_deliveries(client: FlaskClient, ended: Any, workflow: Any, path: str) -> None:
    mine = ended("http://127.0.0.1:1").split("/")
    place = path.format(workflow=mine[4], run=mine[6], other=workflow()["id"])
    for answer in (client.get(f"{API}{place}/deliveries"), client.post(f"{API}{place}/deliveries/x/redeliver")):
        assert (answer.status_code, answer.get_json()) == (404, {"detail": "Workflow run not found"})


def test_another_organization_sees_neither_deliveries_nor_secrets(
    app: Flask, client: FlaskClient, service: Service, db: None, ended: Any
) -> None:
    run = ended("http://127.0.0.1:1")
    (delivery,) = client.get(f"{run}/deliveries").get_json()["deliveries"]
    client.post(f"{SECRETS}/rotate")
    other = app.test_client()
    other.environ_base["HTTP_X_API_KEY"] = api_keys.create(
        api_keys.get_or_create_organization(service, "other").id, "k"
    )[1]
    assert other.get(f"{run}/deliveries").status_code == 404
    assert other.post(f"{run}/deliveries/{delivery['delivery_uuid']}/redeliver").status_code == 404
    assert other.get(SECRETS).get_json() == {"secrets": []}
    assert other.get(f"{API}/organizations/webhook-deliveries?state=pending").get_json()["deliveries"] == []


def test_an_unknown_delivery_is_not_found(client: FlaskClient, ended: Any) -> None:
    answer = client.post(f"{ended('http://127.0.0.1:1')}/deliveries/none/redeliver")
    assert (answer.status_code, answer.get_json()) == (404, {"detail": "Delivery not found"})


# -- secrets


def test_secrets_are_shown_once_rotated_and_retired(client: FlaskClient, service: Service, db: None) -> None:
    assert client.get(SECRETS).get_json() == {"secrets": []}
    assert client.post(f"{SECRETS}/retire").get_json() == {"detail": "There is no older secret to retire."}
    first = client.post(f"{SECRETS}/rotate").get_json()
    second = client.post(f"{SECRETS}/rotate").get_json()
    assert first["secret"].startswith("whsec_")
    assert len(first["secret"]) == len("whsec_") + 43
    masked = [{**each, "secret": "*" * 45 + each["secret"][-4:]} for each in (second, first)]
    assert client.get(SECRETS).get_json() == {"secrets": masked}
    assert signing.signing_secrets(service.vault, 1) == [second["secret"], first["secret"]]
    third = client.post(f"{SECRETS}/rotate")
    detail = "Two secrets are in use. Retire the older one before you make another."
    assert (third.status_code, third.get_json()) == (409, {"detail": detail})
    assert client.post(f"{SECRETS}/retire").get_json() == {"secrets": masked[:1]}
    assert signing.signing_secrets(service.vault, 1) == [second["secret"]]
    assert client.post(f"{SECRETS}/retire").status_code == 409


def test_secrets_are_encrypted_at_rest(client: FlaskClient, stored: Callable[[], bytes]) -> None:
    secret = client.post(f"{SECRETS}/rotate").get_json()["secret"]
    found = stored()
    assert b"test-key" in found
    assert secret.removeprefix("whsec_").encode() not in found


def test_the_first_delivery_makes_the_first_secret(
    client: FlaskClient, service: Service, ended: Any, receiver: Any
) -> None:
    ended(receiver("?")[0])
    work(service)
    (made,) = client.get(SECRETS).get_json()["secrets"]
    assert made["secret"].startswith("*" * 45)


# -- the example


@pytest.mark.parametrize("known", [0, 1])
def test_the_example_takes_what_either_secret_signed_and_each_delivery_once(
    client: FlaskClient, service: Service, db: None, ended: Any, receiver: Any, known: int
) -> None:
    secrets = [client.post(f"{SECRETS}/rotate").get_json()["secret"] for _ in range(2)]
    url, taken = receiver(secrets[known])
    run = ended(url)
    work(service)
    (delivery,) = client.get(f"{run}/deliveries").get_json()["deliveries"]
    client.post(f"{run}/deliveries/{delivery['delivery_uuid']}/redeliver")
    work(service)
    (delivery,) = client.get(f"{run}/deliveries").get_json()["deliveries"]
    assert [attempt["status"] for attempt in delivery["attempts"]] == [200, 200]
    assert taken == [(delivery["delivery_uuid"], {"how": "it went", "call_disposition": "user_qualified"})]


def test_the_example_takes_a_webhook_without_a_body(
    client: FlaskClient, service: Service, ended: Any, receiver: Any
) -> None:
    url, taken = receiver(client.post(f"{SECRETS}/rotate").get_json()["secret"])
    ended(url, http_method="GET")
    work(service)
    assert [payload for _, payload in taken] == [None]


AT = 1_700_000_000
GENUINE = signing.signature(["s"], b"body", AT)


@pytest.mark.parametrize(
    ("signature", "body", "now", "genuine"),
    [
        (GENUINE, b"body", AT, True),
        (GENUINE, b"body", AT + 300, True),
        (GENUINE, b"body", AT - 300, True),
        (GENUINE, b"body", AT + 301, False),
        (GENUINE, b"body", AT - 301, False),
        (GENUINE, b"Body", AT, False),
        (GENUINE.replace(str(AT), str(AT + 1)), b"body", AT, False),
        (f"{GENUINE},t={AT}", b"body", AT, False),
        (signing.signature(["other", "s"], b"body", AT), b"body", AT, True),
        (signing.signature(["s", "other"], b"body", AT), b"body", AT, True),
        (signing.signature(["other"], b"body", AT), b"body", AT, False),
        (f"t={AT}", b"body", AT, False),
        (f"t={AT},v1=", b"body", AT, False),
        (f"t={AT},v1=é", b"body", AT, False),
        ("t=²,v1=0", b"body", AT, False),
        ("t=-1,v1=0", b"body", AT, False),
        (f"t={'9' * 5000},v1=0", b"body", AT, False),
        ("", b"body", AT, False),
    ],
)
def test_the_example_knows_what_is_genuine(
    example: ModuleType, signature: str, body: bytes, now: int, genuine: bool
) -> None:
    assert example.is_genuine("s", signature, body, now) is genuine
