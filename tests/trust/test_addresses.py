"""The addresses in answers: those of the request, unless VOICEAPI_PUBLIC_URL is set; what carriers get is never so."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from scan_secrets import rows_of
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.middleware.proxy_fix import ProxyFix
from werkzeug.test import Client

from voiceapi import VoiceAPI
from voiceapi.store.runs import Run

KEY = "test-key-0123456789"
API = "/voice/api/v1"
AUTHORIZED = {"X-API-Key": KEY}
LIES = {
    "X-Forwarded-Host": "evil.example.org",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Prefix": "/evil",
    "Forwarded": "host=evil.example.org;proto=https",
}


@pytest.fixture
def embed(tmp_path: Path, database_at: Callable[[Path], str]) -> Iterator[Callable[..., Flask]]:
    """Mounts voiceapi under /voice of a host app."""
    hosts: list[Flask] = []

    def mount(**config: Any) -> Flask:
        host = Flask("host")
        host.config.update(VOICEAPI_DATABASE=database_at(tmp_path / "voice.db"), VOICEAPI_API_KEY=KEY, **config)
        VoiceAPI(host, url_prefix="/voice")
        hosts.append(host)
        return host

    yield mount
    for host in hosts:
        host.extensions["voiceapi"].close()


def upload_url(client: Client, path: str = API, **options: Any) -> str:
    answer = client.post(
        f"{path}/s3/presigned-upload-url",
        data=json.dumps({"file_name": "a.csv", "file_size": 1}),
        content_type="application/json",
        **{**options, "headers": {**AUTHORIZED, **options.get("headers", {})}},
    )
    assert answer.status_code == 200, answer.text
    return str(json.loads(answer.data)["upload_url"])


def origin_of(client: Client, **options: Any) -> str:
    return str(json.loads(client.get(f"{API}/health", **options).data)["backend_api_endpoint"])


def test_they_follow_the_request(embed: Callable[..., Flask]) -> None:
    client = embed().test_client()
    for base in ("http://calls.example.org", "https://calls.example.org:8443", "http://[::1]:5000"):
        assert origin_of(client, base_url=base, headers=LIES) == base
        url = upload_url(client, base_url=base, headers=LIES)
        assert url.startswith(f"{base}{API}/s3/files/")
        assert client.put(url.removeprefix(base), data=b"phone_number\n", base_url=base).status_code == 200


def test_they_follow_the_hosts_proxy_fix_and_its_mount(embed: Callable[..., Flask]) -> None:
    host = embed()
    proxied = ProxyFix(host.wsgi_app, x_proto=1, x_host=1, x_prefix=1)
    asked = {"X-Forwarded-Host": "calls.example.org", "X-Forwarded-Proto": "https", "X-Forwarded-Prefix": "/office"}
    url = upload_url(Client(proxied), headers=asked)
    assert url.startswith(f"https://calls.example.org/office{API}/s3/files/")
    mounted = Client(DispatcherMiddleware(Flask("outer"), {"/mounted": host}))
    url = upload_url(mounted, f"/mounted{API}")
    assert url.startswith(f"http://localhost/mounted{API}/s3/files/")
    assert mounted.put(url.removeprefix("http://localhost"), data=b"phone_number\n").status_code == 200


def test_the_setting_goes_before_the_request(embed: Callable[..., Flask]) -> None:
    client = embed(VOICEAPI_PUBLIC_URL="https://calls.example.org").test_client()
    for base in ("http://localhost", "http://evil.example.org"):
        assert origin_of(client, base_url=base) == "https://calls.example.org"
        assert upload_url(client, base_url=base).startswith(f"https://calls.example.org{API}/")


def test_a_forged_host_reaches_nobody_else(
    embed: Callable[..., Flask], talk: Callable[..., Any], wait_for: Callable[..., Any]
) -> None:
    """It is in the answer to its own request; what is stored, sent to others or shown later knows nothing of it."""
    host = embed()
    client, evil = host.test_client(), "http://evil.example.org"
    body = {"name": "Agent", "workflow_definition": talk("path")}
    options: dict[str, Any] = {"headers": AUTHORIZED, "base_url": evil}
    client.post(f"{API}/workflow/create/definition", json=body, **options)
    client.post(f"{API}/public/agent/path", json={"phone_number": "+12025550123"}, **options)
    url = f"{API}/workflow/1/runs/1"
    wait_for(lambda: client.get(url, headers=AUTHORIZED).get_json()["is_completed"])
    shown = client.get(url, **options).get_json()["transcript_public_url"]
    assert shown.startswith(f"{evil}{API}/public/download/")
    shown = client.get(url, headers=AUTHORIZED).get_json()["transcript_public_url"]
    assert shown.startswith(f"http://localhost{API}/public/download/")
    report = client.get(f"{API}/organizations/usage/runs/report", headers=AUTHORIZED, base_url="http://office.example")
    assert report.status_code != 200 or b"evil" not in report.data
    service = host.extensions["voiceapi"]
    with service.store.session():
        assert "evil" not in repr([run.__data__ for run in Run.select()])
    assert service.base_url == "http://127.0.0.1:8000/voice"
    path = service.store.path
    stored = (
        [rows_of(service.store)] if path is None else [each.read_bytes() for each in path.parent.glob(f"{path.name}*")]
    )
    assert not [each for each in stored if b"evil.example" in each]


def test_a_host_may_say_which_hosts_it_trusts(embed: Callable[..., Flask]) -> None:
    client: FlaskClient = embed(TRUSTED_HOSTS=["calls.example.org"]).test_client()
    assert origin_of(client, base_url="https://calls.example.org") == "https://calls.example.org"
    refused = client.get(f"{API}/health", base_url="https://evil.example.org")
    assert refused.status_code == 400
