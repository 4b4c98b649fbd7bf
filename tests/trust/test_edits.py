"""Two editors of one thing: ETag and If-Match keep one from overwriting what the other has saved."""

from __future__ import annotations

import io
import json
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
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
    for wrong in ('"other"', 'W/"other"', '"a", "b"', "other", '""', '"a", ""', tag.rstrip('"'), ",", "W/"):
        assert edit(client, url, wrong).status_code == 412, wrong
    assert edit(client, url, f'"other", {tag}').status_code == 200
    weak = f"W/{etag(client, url)}"  # as a proxy makes it
    assert edit(client, url, weak, name="Weak").status_code == 200
    assert edit(client, url, weak, name="Late").status_code == 412
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


def model_body(name: str) -> dict[str, Any]:
    speech = {"provider": "carrier", "model": "default"}
    pipeline = {"llm": {"provider": "openai", "model": name, "api_key": "sk-1"}, "tts": speech, "stt": speech}
    return {"version": 2, "mode": "byok", "byok": {"mode": "pipeline", "pipeline": pipeline}}


HTTP_TOOL: dict[str, Any] = {
    "schema_version": 1,
    "type": "http_api",
    "config": {"method": "GET", "url": "https://example.com/"},
}
# What the console edits besides workflows: what errors call it, how it is changed, what each of two editors changes,
# and statements that set what changes by itself.
EDITED: Sequence[tuple[str, str, dict[str, Any], dict[str, Any], str]] = (
    (
        "set of preferences",
        "PUT /organizations/preferences",
        {"calling_hours": {"start": "09:00", "end": "17:00"}},
        {"timezone": "Europe/Berlin"},
        "UPDATE organization SET model_configuration = NULL",
    ),
    (
        "model configuration",
        "PUT /organizations/model-configurations/v2",
        model_body("small"),
        model_body("large"),
        """UPDATE organization SET preferences = '{"timezone":"UTC"}'""",
    ),
    (
        "tool",
        "PUT /tools/{tool_uuid}",
        {"definition": {**HTTP_TOOL, "config": {**HTTP_TOOL["config"], "url": "https://example.com/new"}}},
        {"name": "Mine"},
        "UPDATE tool SET updated_at = 1",
    ),
    ("tool", "PUT /tools/{tool_uuid}", {"status": "draft"}, {"status": "active"}, "UPDATE tool SET updated_at = 2"),
    (
        "case",
        "PUT /workflow/{workflow_id}/cases/{case_id}",
        {"enabled": False},
        {"name": "Mine"},
        "UPDATE conversation_case SET updated_at = 1",
    ),
    (
        "telephony configuration",
        "PUT /organizations/telephony-configs/{config_id}",
        {"config": {"provider": "simulator", "calls_per_second": 0.5}},
        {"name": "Mine"},
        "UPDATE telephony_configuration SET paced_until = 1, inactive = TRUE, is_default_outbound = FALSE",
    ),
    (
        "telephony configuration",
        "PUT /organizations/telephony-configs/{config_id}",
        {"config": {"provider": "simulator", "country": "DE"}},
        {"config": {"provider": "simulator", "country": "FR"}},
        "UPDATE telephony_configuration SET paced_until = 2",
    ),
    (
        "phone number",
        "PUT /organizations/telephony-configs/{config_id}/phone-numbers/{phone_number_id}",
        {"is_active": False},
        {"label": "Mine"},
        "UPDATE phone_number SET is_default_caller_id = TRUE, updated_at = 1",
    ),
    (
        "credential",
        "PUT /credentials/{credential_uuid}",
        {"credential_data": {"token": "another-secret"}},
        {"name": "Mine"},
        "UPDATE credential SET updated_at = 1",
    ),
    (
        "campaign",
        "PATCH /campaign/{campaign_id}",
        {"calling_hours": {"start": "09:00", "end": "17:00"}},
        {"name": "Mine"},
        "UPDATE campaign SET state = 'paused', total_rows = 60, executed_count = 7, dialed_at = 1",
    ),
)


def ids_of_new_records(client: FlaskClient) -> dict[str, Any]:
    """The ids of a record of each kind, by the names that the paths of EDITED have for them."""

    def make(path: str, body: Any, **sent: Any) -> Any:
        answer = client.post(f"{API}{path}", json=body, **sent)
        assert answer.status_code == 200, answer.text
        if path not in ("/workflow/create/template", "/campaign/create/csv"):
            assert answer.headers["ETag"], path
        return answer.get_json()

    template = {"call_type": "outbound", "use_case": "Ask", "activity_description": "Ask."}
    workflow_id = make("/workflow/create/template", template)["id"]
    token = {"name": "Theirs", "credential_type": "bearer_token", "credential_data": {"token": "a-secret"}}
    configuration = {"name": "Theirs", "config": {"provider": "simulator"}}
    config_id = make("/organizations/telephony-configs", configuration)["id"]
    numbers = f"/organizations/telephony-configs/{config_id}/phone-numbers"
    form = {"name": "Theirs", "workflow_id": str(workflow_id), "telephony_configuration_id": str(config_id)}
    contacts = (io.BytesIO(b"phone_number\n+12025550123\n"), "contacts.csv")
    campaign = client.post(f"{API}/campaign/create/csv", data={**form, "file": contacts})
    assert campaign.status_code == 200, campaign.text
    return {
        "workflow_id": workflow_id,
        "credential_uuid": make("/credentials/", token)["uuid"],
        "tool_uuid": make("/tools/", {"name": "Theirs", "definition": HTTP_TOOL})["tool_uuid"],
        "case_id": make(f"/workflow/{workflow_id}/cases", {"case": {"name": "Theirs", "turns": []}})["id"],
        "config_id": config_id,
        "phone_number_id": make(numbers, {"address": "+12025550150"})["id"],
        "campaign_id": campaign.get_json()["id"],
    }


def test_what_the_console_edits_is_not_saved_over_what_another_tab_has_saved(
    client: FlaskClient, service: Service
) -> None:
    ids = ids_of_new_records(client)
    for name, operation, theirs, mine, by_itself in EDITED:
        method, path = operation.format_map(ids).split(" ")
        url = f"{API}{path}"

        def send(body: Any, tag: str, method: str = method, url: str = url) -> Any:
            return client.open(url, method=method, json=body, headers={"If-Match": tag} if tag else {})

        read = client.get(url).headers["ETag"]
        with service.store.session():
            assert execute(by_itself).rowcount > 0
        assert client.get(url).headers["ETag"] == read, f"{name}: what changes by itself is in the tag"

        first = send(theirs, read)
        assert first.status_code == 200, f"{name}: {first.text}"
        tag = first.headers["ETag"]
        assert tag == client.get(url).headers["ETag"] != read, name
        stored = client.get(url).get_json()
        refusals = [send(mine, read), send(mine, '"0123"')]
        if client.open(url, method="DELETE", headers={"If-Match": read}).status_code != 405:
            refusals.append(client.delete(url, headers={"If-Match": read}))
        for refused in refusals:
            assert (refused.status_code, refused.get_json()) == (412, {"detail": CHANGED.replace("workflow", name)})
        assert client.get(url).get_json() == stored, name

        second = send(mine, tag)
        assert second.status_code == 200, f"{name}: {second.text}"
        assert second.headers["ETag"] == client.get(url).headers["ETag"] != tag, name
        assert send(theirs, "").status_code == 200, f"{name}: without If-Match"
    for path in (
        *("/tools/{tool_uuid}", "/workflow/{workflow_id}/cases/{case_id}", "/credentials/{credential_uuid}"),
        "/organizations/telephony-configs/{config_id}/phone-numbers/{phone_number_id}",
    ):
        url = f"{API}{path.format_map(ids)}"
        assert client.delete(url, headers={"If-Match": client.get(url).headers["ETag"]}).status_code == 200, path


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
        with urllib.request.urlopen(request, timeout=60) as answer:
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
