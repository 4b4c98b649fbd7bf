"""Who is let in: keys that are tried out, keys that are easily guessed, logins and pages of other sites."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask, render_template_string, session
from flask.testing import FlaskClient
from flask_wtf.csrf import CSRFProtect

from voiceapi import VoiceAPI, create_app, security
from voiceapi.config import GUESSED_KEYS
from voiceapi.organizations import api_keys
from voiceapi.security import WrongKeys, _network
from voiceapi.service import Service
from voiceapi.store.organizations import Organization

KEY = "test-key-0123456789"
API = "/api/v1"
KEYS = f"{API}/user/api-keys"
ROOT = Path(__file__).parents[2]


# -- wrong keys


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four wrong keys a minute are enough to be refused, and addresses are counted in 64 groups."""
    monkeypatch.setattr(security, "WRONG_KEYS_A_MINUTE", 4)
    monkeypatch.setattr(security, "ADDRESS_GROUPS", 64)


def ask(app: Flask, key: str, address: str = "203.0.113.7", path: str = KEYS) -> Any:
    return app.test_client().get(path, headers={"X-API-Key": key}, environ_base={"REMOTE_ADDR": address})


def try_out(app: Flask, address: str = "203.0.113.7") -> None:
    """Send as many wrong keys as aren't too many."""
    for number in range(security.WRONG_KEYS_A_MINUTE):
        assert ask(app, f"guess-{number}", address).status_code == 401


def test_an_address_that_tries_keys_out_is_told_to_wait(app: Flask) -> None:
    assert security.WRONG_KEYS_A_MINUTE == 60
    try_out(app)
    refused = ask(app, "another guess")
    assert refused.status_code == 429
    seconds = int(refused.headers["Retry-After"])
    assert 1 <= seconds <= 60
    assert refused.get_json() == {
        "detail": f"This API key is wrong, as were too many before it from this address; wait {seconds} s. A right key "
        "is let in at once."
    }


@pytest.mark.usefixtures("few")
def test_the_seconds_to_wait_are_those_until_the_minute_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong_keys, begun = WrongKeys(), time.time()
    monkeypatch.setattr(time, "time", lambda: begun)
    for _ in range(security.WRONG_KEYS_A_MINUTE):
        assert wrong_keys.count("203.0.113.7") is None
    for passed, left in ((40.0, (20, 21)), (59.5, (1, 2)), (61.0, (None,))):
        monkeypatch.setattr(time, "time", lambda passed=passed: begun + passed)
        assert wrong_keys.count("203.0.113.7") in left


@pytest.mark.usefixtures("few")
def test_a_right_key_is_let_in_whatever_its_address_sent_before(app: Flask) -> None:
    """Behind a tunnel everybody has one address."""
    try_out(app)
    assert ask(app, "another guess").status_code == 429
    for _ in range(2 * security.WRONG_KEYS_A_MINUTE):
        assert ask(app, KEY).status_code == 200
    assert ask(app, "another guess").status_code == 429


@pytest.mark.usefixtures("few")
def test_only_wrong_keys_count(app: Flask) -> None:
    client = app.test_client()
    address = {"REMOTE_ADDR": "203.0.113.7"}
    for _ in range(security.WRONG_KEYS_A_MINUTE + 1):
        assert client.get(KEYS, environ_base=address).status_code == 401
        assert client.get(KEYS, environ_base=address, headers={"Authorization": "Bearer "}).status_code == 401
        assert client.get(f"{API}/health", environ_base=address, headers={"X-API-Key": "x"}).status_code == 200
        assert client.post(f"{API}/telephony/calls/none/turns/0", environ_base=address).status_code in (403, 404)
    assert ask(app, "first guess").status_code == 401


@pytest.mark.usefixtures("few")
def test_webhooks_of_carriers_are_never_refused_for_wrong_keys(app: Flask) -> None:
    address = {"REMOTE_ADDR": "203.0.113.7"}
    path = f"{API}/telephony/calls/none/turns/0"
    before = app.test_client().post(path, environ_base=address)
    try_out(app)
    assert ask(app, "another guess").status_code == 429
    after = app.test_client().post(path, environ_base=address, headers={"X-API-Key": "another guess"})
    assert (after.status_code, after.data) == (before.status_code, before.data)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("header", ["X-API-Key", "Authorization"])
def test_wrong_keys_count_at_triggers_and_however_they_are_sent(app: Flask, header: str) -> None:
    client = app.test_client()
    for _ in range(security.WRONG_KEYS_A_MINUTE // 2):
        assert client.get(KEYS, headers={header: "guess"}).status_code == 401
        sent = client.post(
            f"{API}/public/agent/any", headers={"X-API-Key": "guess"}, json={"phone_number": "+12025550123"}
        )
        assert (sent.status_code, sent.get_json()) == (401, {"detail": "Invalid API key"})
    for path in (KEYS, f"{API}/public/agent/any"):
        sent = client.open(
            path,
            method="GET" if path == KEYS else "POST",
            headers={"X-API-Key": "guess"},
            json={"phone_number": "+12025550123"},
        )
        assert sent.status_code == 429, sent.text
        assert int(sent.headers["Retry-After"]) > 0


@pytest.mark.usefixtures("few")
def test_each_address_has_its_own_count(app: Flask) -> None:
    try_out(app)
    assert ask(app, "guess").status_code == 429
    # One of them may share the group by chance, but hardly all.
    others = (f"198.51.100.{number}" for number in range(1, 9))
    assert 401 in {ask(app, "guess", other).status_code for other in others}


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff:1:2:3", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:203.0.113.7", "203.0.113.7", True),
        ("203.0.113.7", "203.0.113.8", False),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        (None, None, True),
        ("not an address", "not an address", True),
    ],
)
def test_an_ipv6_address_counts_as_its_network(first: str | None, second: str | None, same: bool) -> None:
    assert (_network(first) == _network(second)) is same


@pytest.mark.usefixtures("few")
def test_no_number_of_addresses_takes_more_memory() -> None:
    wrong_keys = WrongKeys()
    for number in range(4 * security.ADDRESS_GROUPS):
        wrong_keys.count(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
    storage = wrong_keys._limiter.storage
    held = [len(part) for part in vars(storage).values() if isinstance(part, dict)]
    assert 0 < max(held) <= security.ADDRESS_GROUPS


@pytest.mark.usefixtures("few")
def test_two_apps_of_a_process_count_apart(app: Flask, tmp_path: Path, database_at: Callable[[Path], str]) -> None:
    other = create_app({"VOICEAPI_DATABASE": database_at(tmp_path / "other" / "voice.db"), "VOICEAPI_API_KEY": KEY})
    try_out(app)
    assert [ask(each, "guess").status_code for each in (app, other)] == [429, 401]
    other.extensions["voiceapi"].close()


def test_no_thread_starts_before_the_first_wrong_key(app: Flask) -> None:
    def timers() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]

    before = timers()
    WrongKeys()
    assert ask(app, KEY).status_code == 200
    assert set(timers()) <= set(before)


# -- keys that are easily guessed


def test_the_keys_that_the_docs_list_as_easily_guessed_are_all_refused() -> None:
    text = (ROOT / "docs" / "api.md").read_text()
    listed = text.partition("easily guessed and refused")[2].partition("\n\n")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"`([^`]+)`", listed)) == sorted(GUESSED_KEYS)
    assert all(16 <= len(key) <= 128 and len(set(key)) >= 8 and key == key.lower() for key in GUESSED_KEYS)


# -- a host's login


def host_app(database: str) -> Flask:
    """A host whose users log in by a session cookie."""
    host = Flask("host")
    host.secret_key = "a secret of the host"
    host.config.update(VOICEAPI_DATABASE=database, VOICEAPI_API_KEY=KEY, TESTING=True)

    @host.post("/login")
    def log_in() -> str:
        session["user"] = "ada"
        return "ada"

    @host.get("/form")
    def form() -> str:
        return render_template_string("{{ csrf_token() }}")

    VoiceAPI(authenticate=lambda: session.get("user")).init_app(host, url_prefix="/voice")
    return host


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory, database_at: Callable[[Path], str]) -> Iterator[Flask]:
    """The host of all tests of this module that leave its hooks alone."""
    host = host_app(database_at(tmp_path_factory.mktemp("host") / "voice.db"))
    yield host
    host.extensions["voiceapi"].close()


PAGE = {"method": "POST", "path": "/voice/api/v1/user/api-keys", "json": {"name": "made by a page"}}
FOREIGN = {
    "detail": "Another site's page sent this request, and only a login lets it in. Send it from a page of this site, "
    "or with an API key."
}


@pytest.fixture
def browser(host: Flask) -> FlaskClient:
    """A browser whose user is logged in at the host."""
    browser = host.test_client()
    assert browser.post("/login").status_code == 200
    return browser


@pytest.mark.parametrize(
    ("headers", "is_let_in"),
    [
        ({}, True),
        ({"Sec-Fetch-Site": "same-origin"}, True),
        ({"Sec-Fetch-Site": "none"}, True),
        ({"Sec-Fetch-Site": "same-site"}, False),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "http://localhost"}, False),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "null"}, True),
        ({"Sec-Fetch-Site": "anything"}, False),
        ({"Origin": "http://localhost"}, True),
        ({"Origin": "http://localhost:80"}, True),
        ({"Origin": "HTTP://LOCALHOST"}, True),
        ({"Origin": "https://localhost"}, True),  # TLS ends at a proxy
        ({"Origin": "http://localhost:8080"}, False),
        ({"Origin": "http://localhost:8080", "Host": "localhost:8080"}, True),
        ({"Origin": "https://voice.example.org", "Host": "voice.example.org:443"}, True),
        ({"Origin": "http://[::1]:5000", "Host": "[::1]:5000"}, True),
        ({"Origin": "https://evil.example"}, False),
        ({"Origin": "https://localhost.evil.example"}, False),
        ({"Origin": "null"}, False),
        ({"Origin": "file://localhost"}, False),
        ({"Origin": "http://[::1"}, False),
        ({"Origin": "http://localhost:port"}, False),
        ({"Origin": "http://"}, False),
    ],
)
def test_a_login_writes_from_its_own_site_only(host: Flask, headers: dict[str, str], is_let_in: bool) -> None:
    site = f"http://{headers.get('Host', 'localhost')}"
    browser = host.test_client()
    browser.post("/login", base_url=site)
    before = browser.get("/voice/api/v1/user/api-keys", base_url=site).get_json()
    answer = browser.open(**PAGE, headers=headers, base_url=site)
    made = browser.get("/voice/api/v1/user/api-keys", base_url=site).get_json()[len(before) :]
    if is_let_in:
        assert (answer.status_code, len(made)) == (200, 1), answer.text
    else:
        assert (answer.status_code, answer.get_json(), made) == (403, FOREIGN, [])


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_every_method_that_writes_is_held_to_it(browser: FlaskClient, method: str) -> None:
    path = {"POST": "/user/api-keys", "PUT": "/organizations/preferences", "PATCH": "/campaign/1"}
    url = f"/voice/api/v1{path.get(method, '/user/api-keys/1')}"
    body = {"name": "x"} if method != "DELETE" else None
    answer = browser.open(url, method=method, json=body, headers={"Sec-Fetch-Site": "cross-site"})
    assert (answer.status_code, answer.get_json()) == (403, FOREIGN)


def test_reading_and_requests_with_a_key_are_not(host: Flask, browser: FlaskClient) -> None:
    foreign = {"Sec-Fetch-Site": "cross-site", "Origin": "https://other.example"}
    assert browser.get("/voice/api/v1/user/api-keys", headers=foreign).status_code == 200
    assert browser.head("/voice/api/v1/user/api-keys", headers=foreign).status_code == 200
    with_key = {**foreign, "X-API-Key": KEY}
    assert host.test_client().open(**PAGE, headers=with_key).status_code == 200
    nobody = host.test_client().open(**PAGE, headers=foreign)
    assert (nobody.status_code, nobody.get_json()) == (401, {"detail": "Authorization header required"})


def test_a_foreign_page_makes_no_organization(tmp_path: Path, database_at: Callable[[Path], str]) -> None:
    host = host_app(database_at(tmp_path / "voice.db"))
    browser = host.test_client()
    browser.post("/login")
    browser.open(**PAGE, headers={"Sec-Fetch-Site": "cross-site"})
    with host.extensions["voiceapi"].store.session():
        assert [found.name for found in Organization.select()] == ["default"]
    host.extensions["voiceapi"].close()


# -- a host's protection against forged requests


def exempted(host: Flask) -> CSRFProtect:
    """The lines of docs/embedding.md, word for word, for this host."""
    text = (ROOT / "docs" / "embedding.md").read_text()
    lines = re.search(r"```python\n(from flask_wtf.csrf import CSRFProtect\n.*?)```", text, re.DOTALL)
    assert lines is not None
    names: dict[str, Any] = {"app": host, "VoiceAPI": VoiceAPI}
    exec(lines[1], names)
    found = names["csrf"]
    assert isinstance(found, CSRFProtect)
    return found


def webhooks(host: Flask) -> list[str]:
    rules = [rule for rule in host.url_map.iter_rules() if ".call_webhooks." in rule.endpoint]
    assert len(rules) == 9
    values = {
        "token": "none",
        "number": 1,
        "step": "wait",
        "part": 1,
        "kind": "machine",
        "config_id": 1,
        "workflow_uuid": "none",
    }
    built = [rule.build(values, append_unknown=False) for rule in rules]
    return [path for _, path in filter(None, built)]


@pytest.fixture
def protected(
    tmp_path: Path, database_at: Callable[[Path], str]
) -> Iterator[Callable[[Callable[[Flask], object]], FlaskClient]]:
    """Makes a client of a new host, protected as a function says."""
    made = []

    def make(protect: Callable[[Flask], object]) -> FlaskClient:
        made.append(host_app(database_at(tmp_path / "voice.db")))
        protect(made[0])
        return made[0].test_client()

    yield make
    made[0].extensions["voiceapi"].close()


def test_a_protection_that_knows_nothing_of_voiceapi_refuses_all(protected: Any) -> None:
    client = protected(CSRFProtect)
    paths = webhooks(client.application)
    assert [client.post(path).status_code for path in paths] == [400] * len(paths)
    assert client.open(**PAGE, headers={"X-API-Key": KEY}).status_code == 400


def test_flask_wtf_as_the_docs_show_it_leaves_voiceapi_alone_and_protects_the_hosts_forms(protected: Any) -> None:
    client = protected(exempted)
    key = {"X-API-Key": KEY}
    assert all(client.post(path).status_code in (403, 404) for path in webhooks(client.application))
    assert client.open(**PAGE, headers=key).status_code == 200
    trigger = client.post("/voice/api/v1/public/agent/none", headers=key, json={"phone_number": "+12025550123"})
    assert (trigger.status_code, trigger.get_json()) == (404, {"detail": "Agent trigger not found"})
    # The host's own form.
    assert client.post("/login").status_code == 400
    token = client.get("/form").text
    assert client.post("/login", data={"csrf_token": token}).status_code == 200
    # For a change by that login, voiceapi's own check stands in for the token.
    assert client.open(**PAGE).status_code == 200
    assert client.open(**PAGE, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403


def test_every_route_is_of_a_blueprint_that_is_handed_out(host: Flask) -> None:
    for rule in host.url_map.iter_rules():
        if rule.rule.startswith("/voice/"):
            owner = host.blueprints[rule.endpoint.rpartition(".")[0]]
            assert owner in VoiceAPI.blueprints, rule


def test_the_docs_name_the_paths_of_all_webhooks(host: Flask) -> None:
    text = (ROOT / "docs" / "embedding.md").read_text()
    prefixes = re.findall(r"^\| `(/voice/api/v1/telephony/[a-z]+/)` \|", text, re.MULTILINE)
    assert prefixes
    for path in webhooks(host):
        assert path.startswith(tuple(prefixes)), path
    others = [rule.rule for rule in host.url_map.iter_rules() if ".call_webhooks." not in rule.endpoint]
    assert not [rule for rule in others if rule.startswith(tuple(prefixes))]


# -- trigger paths


@pytest.fixture
def stranger(app: Flask, service: Service) -> FlaskClient:
    """A client of another organization."""
    with service.store.session():
        organization = api_keys.get_or_create_organization(service, "strangers")
        _, key = api_keys.create(organization.id, "theirs")
    stranger = app.test_client()
    stranger.environ_base["HTTP_X_API_KEY"] = key
    return stranger


def asked(client: FlaskClient, path: str, **headers: str) -> tuple[int, Any, list[str]]:
    answer = client.post(
        f"{API}/public/agent/{path}",
        json={"phone_number": "+12025550123", "more": 1},
        headers=headers,
    )
    names = sorted(name for name, _ in answer.headers)
    return answer.status_code, answer.get_json(), names


@pytest.mark.parametrize("mode", ["", "test/"])
def test_a_trigger_path_of_another_organization_is_like_an_unknown_one(
    client: FlaskClient, stranger: FlaskClient, workflow: Callable[..., Any], mode: str
) -> None:
    workflow(path="line")
    workflow(path="off", enabled=False)
    archived = workflow(path="gone")["id"]
    client.put(f"{API}/workflow/{archived}/status", json={"status": "archived"})
    unknown = asked(stranger, f"{mode}unknown", **{"Idempotency-Key": "1"})
    assert unknown[:2] == (404, {"detail": "Agent trigger not found"})
    for path in ("line", "off", "gone"):
        for key in ("1", "2", "2"):  # a key of a request that was refused is free
            assert asked(stranger, f"{mode}{path}", **{"Idempotency-Key": key}) == unknown
    assert client.get(f"{API}/organizations/usage/runs").get_json()["total_count"] == 0
