"""Two editors of one workflow: ETag and If-Match keep one from overwriting what the other has saved."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from threading import Barrier, Thread
from typing import Any

import pytest
import waitress
from flask import Flask
from flask.testing import FlaskClient

from voiceapi.service import Service
from voiceapi.store.database import execute

API = "/api/v1"
KEY = "test-key-0123456789"
EDITORS = 8
CHANGED = "The workflow was changed since it was read: read it again, and send the change with the new ETag."


@pytest.fixture
def url(workflow: Callable[..., Any]) -> str:
    """The path of a workflow."""
    return f"{API}/workflow/{workflow()['id']}"


def fetch(client: FlaskClient, url: str, **headers: str) -> Any:
    return client.get(url.replace("/workflow/", "/workflow/fetch/"), headers=headers)


def etag(client: FlaskClient, url: str) -> str:
    found: str = fetch(client, url).headers["ETag"]
    return found


def edit(client: FlaskClient, url: str, tag: str, **body: Any) -> Any:
    return client.put(url, json=body or {"name": "New"}, headers={"If-Match": tag})


def test_every_answer_that_shows_a_workflow_has_its_tag(
    client: FlaskClient, talk: Callable[..., Any], url: str
) -> None:
    body = {"name": "Agent", "workflow_definition": talk()}
    created = client.post(f"{API}/workflow/create/definition", json=body)
    assert created.headers["ETag"] == etag(client, f"{API}/workflow/{created.get_json()['id']}")
    for method, path, sent in (
        ("PUT", "", {"name": "Second"}),
        ("PUT", "", {"workflow_definition": talk(prompt="Other.")}),
        ("PUT", "", {"workflow_configurations": {"max_call_duration": 60, "x": 1.5}, "template_context_variables": {}}),
        ("POST", "/create-draft", None),
        ("POST", "/publish", None),
        ("POST", "/create-draft", None),
        ("PUT", "/status", {"status": "archived"}),
        ("PUT", "/status", {"status": "active"}),
    ):
        answer = client.open(f"{url}{path}", method=method, json=sent)
        assert answer.status_code == 200, answer.text
        assert answer.headers["ETag"] == etag(client, url), (method, path)
    template = {"call_type": "outbound", "use_case": "Ask", "activity_description": "Ask."}
    for made in (
        client.post(f"{url}/duplicate"),
        client.post(f"{API}/workflow/create/template", json=template),
    ):
        assert made.headers["ETag"] == etag(client, f"{API}/workflow/{made.get_json()['id']}")


def test_the_tag_is_of_the_text_that_is_stored(
    client: FlaskClient, service: Service, talk: Callable[..., Any], url: str
) -> None:
    """An earlier release, or an editor of the database, may have written the same value in another way."""
    client.put(url, json={"workflow_definition": {**talk(), "zoom": 1e-7}})
    with service.store.session():
        changed = execute("UPDATE workflow_version SET definition = replace(definition, '1e-7', '1e-07')")
    assert changed.rowcount > 0
    tag = etag(client, url)
    assert client.post(f"{url}/publish", headers={"If-Match": tag}).headers["ETag"] == etag(client, url)


def test_every_change_changes_the_tag(client: FlaskClient, talk: Callable[..., Any], url: str) -> None:
    tags = [etag(client, url)]
    for method, path, sent in (
        ("PUT", "", {"name": "Second"}),
        ("PUT", "", {"workflow_definition": talk(prompt="Other.")}),
        ("PUT", "", {"workflow_configurations": {"max_call_duration": 60}}),
        ("PUT", "", {"template_context_variables": {"a": 1}}),
        ("POST", "/publish", None),
        ("POST", "/create-draft", None),
        ("PUT", "/status", {"status": "archived"}),
    ):
        client.open(f"{url}{path}", method=method, json=sent)
        tags.append(etag(client, url))
    assert len(set(tags)) == len(tags)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "", {"name": "New"}),
        ("PUT", "", {"template_context_variables": {"a": 1}}),
        ("PUT", "/status", {"status": "archived"}),
        ("POST", "/create-draft", None),
        ("POST", "/publish", None),
        ("POST", "/duplicate", None),
    ],
)
def test_a_change_of_what_was_changed_since_is_refused(
    client: FlaskClient, url: str, method: str, path: str, body: Any
) -> None:
    stale = etag(client, url)
    client.put(url, json={"template_context_variables": {"b": 2}})
    before = [fetch(client, url).get_json(), client.get(f"{API}/workflow/count").get_json()]
    refused = client.open(f"{url}{path}", method=method, json=body, headers={"If-Match": stale})
    assert (refused.status_code, refused.get_json()) == (412, {"detail": CHANGED})
    assert [fetch(client, url).get_json(), client.get(f"{API}/workflow/count").get_json()] == before
    current = client.open(f"{url}{path}", method=method, json=body, headers={"If-Match": etag(client, url)})
    assert current.status_code == 200


def test_if_match_as_http_has_it(client: FlaskClient, url: str) -> None:
    tag = etag(client, url)
    for wrong in ('"other"', f"W/{tag}", '"a", "b"', "other", '""', '"a", ""', tag.rstrip('"'), ",", "W/"):
        assert edit(client, url, wrong).status_code == 412, wrong
    assert edit(client, url, f'"other", {tag}').status_code == 200
    assert edit(client, url, "*", name="Any").status_code == 200
    assert edit(client, url, "", name="None").status_code == 200
    assert client.put(url, json={"name": "Without"}).status_code == 200
    # What is wrong with a request, and that there is no such record, is said first.
    assert client.put(url, json={"name": 5}, headers={"If-Match": '"other"'}).status_code == 422
    assert edit(client, f"{API}/workflow/99", '"other"').status_code == 404
    assert edit(client, f"{API}/workflow/99", "*").status_code == 404


def test_a_run_does_not_make_the_tag_of_an_editor_stale(client: FlaskClient, url: str) -> None:
    tag = etag(client, url)
    client.post(f"{url}/text-chat/sessions", json={})
    # The answer shows the number of runs, so a copy of it is out of date all the same.
    answer = fetch(client, url, if_none_match=tag)
    assert (answer.status_code, answer.get_json()["total_runs"]) == (200, 1)
    assert answer.headers["ETag"] != tag
    assert edit(client, url, tag).status_code == 200


def test_an_answer_that_would_be_the_same_is_not_sent_again(client: FlaskClient, url: str) -> None:
    tag = etag(client, url)
    for sent in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        answer = fetch(client, url, if_none_match=sent)
        assert (answer.status_code, answer.data, answer.headers["ETag"]) == (304, b"", tag)
        assert "Content-Type" not in answer.headers
    for other in ('"other"', '""', '"a', ","):
        assert fetch(client, url, if_none_match=other).status_code == 200
    client.put(url, json={"name": "New"})
    assert fetch(client, url, if_none_match=tag).get_json()["name"] == "New"


@pytest.fixture
def address(app: Flask) -> Iterator[str]:
    """A waitress that serves the app."""
    server = waitress.create_server(app, host="127.0.0.1", port=0, threads=EDITORS)
    thread = Thread(target=server.run)
    thread.start()
    yield f"http://127.0.0.1:{server.effective_port}"
    server.trigger.pull_trigger(lambda: server.asyncore.close_all(server._map))
    thread.join()
    server.task_dispatcher.shutdown()


def send(address: str, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, str]:
    """The status of an answer, and its ETag or its error."""
    data = None if body is None else json.dumps(body).encode()
    all_headers = {"X-API-Key": KEY, "Content-Type": "application/json", **headers}
    request = urllib.request.Request(f"{address}{path}", data, all_headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.headers["ETag"]
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)["detail"]


def test_of_editors_at_once_exactly_one_wins(address: str, url: str) -> None:
    statuses: Counter[int] = Counter()
    for attempt in range(5):
        _, tag = send(address, "GET", url.replace("/workflow/", "/workflow/fetch/"))
        together = Barrier(EDITORS)

        def change(number: int, attempt: int = attempt, tag: str = tag, together: Barrier = together) -> None:
            together.wait()
            body = {"template_context_variables": {"editor": [attempt, number]}}
            status, _ = send(address, "PUT", url, body, **{"If-Match": tag})
            statuses[status] += 1

        editors = [Thread(target=change, args=(number,)) for number in range(EDITORS)]
        for editor in editors:
            editor.start()
        for editor in editors:
            editor.join()
    assert statuses == {200: 5, 412: 5 * (EDITORS - 1)}
