"""Versions have the hash of what they hold, and runs are pinned to that of the version that carries them out."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st

from voiceapi.security import Vault
from voiceapi.store.encryption import encrypt_again
from voiceapi.store.migrations import TABLES
from voiceapi.store.runs import Run
from voiceapi.store.workflows import WorkflowVersion, content_hash

API = "/api/v1"
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=5), below, max_size=3),
    max_leaves=8,
)


def hashes(client: FlaskClient, workflow: int = 1) -> dict[str, str]:
    """The hash of each version of a workflow, by its status and number."""
    found = client.get(f"{API}/workflow/{workflow}/versions").get_json()
    return {f"{each['status']} {each['version_number']}": each["content_hash"] for each in found}


def change(client: FlaskClient, **body: Any) -> None:
    answer = client.put(f"{API}/workflow/1", json=body)
    assert answer.status_code == 200, answer.text


def assert_stored_hashes() -> None:
    """Each stored hash is that of the content that is stored."""
    for each in WorkflowVersion.select():
        content = (each.definition, each.configurations, each.template_context_variables)
        assert each.content_hash == content_hash(*content), each.version_number


@given(VALUES, VALUES)
def test_the_spelling_doesnt_count_and_the_content_does(one: Any, other: Any) -> None:
    def backwards(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: backwards(value[name]) for name in reversed(value)}
        return [backwards(each) for each in value] if isinstance(value, list) else value

    spelled = json.loads(json.dumps(backwards(one), indent=2))
    assert content_hash({"a": one}, {}, {}) == content_hash({"a": spelled}, {}, {})
    if json.dumps(one, sort_keys=True) != json.dumps(other, sort_keys=True):
        assert content_hash({"a": one}, {}, {}) != content_hash({"a": other}, {}, {})
        for place in range(3):
            parts: list[list[Any]] = [[{}, {}, {}], [{}, {}, {}]]
            parts[0][place], parts[1][place] = {"a": one}, {"a": other}
            assert content_hash(*parts[0]) != content_hash(*parts[1])


def test_each_part_of_a_version_counts(
    client: FlaskClient, workflow: Callable[..., Any], talk: Callable[..., Any], db: None
) -> None:
    workflow()
    seen = [hashes(client)["published 1"]]
    for part in (
        {"workflow_definition": talk(greeting="Good day.")},
        {"workflow_configurations": {"language": "de-DE"}},
        {"template_context_variables": {"first_name": "Ada"}},
    ):
        change(client, **part)
        seen.append(hashes(client)["draft 2"])
    assert len(set(seen)) == 4
    assert all(len(bytes.fromhex(each)) == 32 for each in seen)
    assert_stored_hashes()


def test_a_copy_has_the_hash_of_what_it_is_a_copy_of(
    client: FlaskClient, workflow: Callable[..., Any], talk: Callable[..., Any], db: None
) -> None:
    workflow()
    first = hashes(client)["published 1"]
    client.post(f"{API}/workflow/1/create-draft")
    assert hashes(client)["draft 2"] == first
    change(client, workflow_definition=talk(greeting="Good day."), workflow_configurations={"language": "de-DE"})
    second = hashes(client)["draft 2"]
    client.post(f"{API}/workflow/1/publish")
    assert hashes(client) == {"published 2": second, "archived 1": first}
    client.post(f"{API}/workflow/1/versions/1/restore")
    assert hashes(client)["draft 3"] == first
    change(client, workflow_definition=talk(greeting="Good day."), workflow_configurations={"language": "de-DE"})
    assert hashes(client)["draft 3"] == second
    client.post(f"{API}/workflow/1/duplicate")
    assert hashes(client, 2) == {"published 1": second}  # without a trigger, it holds no path of its own
    assert_stored_hashes()


def test_the_hash_stays_when_secrets_are_encrypted_again(
    client: FlaskClient, workflow: Callable[..., Any], talk: Callable[..., Any], service: Any, db: None
) -> None:
    workflow(talk(pre_call_fetch_enabled=True, pre_call_fetch_url="https://ada:hidden-7391@example.com/customers"))
    change(client, workflow_configurations={"model_overrides": {"llm": {"api_key": "sk-hidden-4711"}}})
    before = {each.id: (each.content_hash, each.definition, each.configurations) for each in WorkflowVersion.select()}
    vault = Vault(b"another secret, which is long enough", service.vault.secret)
    assert encrypt_again(vault, [table for table in TABLES if table is WorkflowVersion]) == 2
    for each in WorkflowVersion.select():
        kept, definition, _ = before[each.id]
        assert (each.content_hash, each.definition != definition) == (kept, True)
    assert_stored_hashes()
    encrypt_again(Vault(service.vault.secret, vault.secret), [WorkflowVersion])


def test_a_chat_is_pinned_to_the_draft_as_it_is_at_each_turn(
    client: FlaskClient, workflow: Callable[..., Any], talk: Callable[..., Any]
) -> None:
    workflow()
    change(client, workflow_definition=talk(greeting="Good day, is it a good time?"))
    client.post(f"{API}/workflow/1/text-chat/sessions", json={})
    run = f"{API}/workflow/1/runs/1"
    first = hashes(client)["draft 2"]
    assert client.get(run).get_json()["content_hash"] == first
    change(client, workflow_configurations={"language": "en-GB"})
    second = hashes(client)["draft 2"]
    assert client.get(run).get_json()["content_hash"] == first != second
    answer = client.post(f"{API}/workflow/1/text-chat/sessions/1/messages", json={"text": "Yes."})
    assert answer.status_code == 200, answer.text
    assert client.get(run).get_json()["content_hash"] == second


def test_a_call_is_pinned_to_the_content_that_it_began_with(
    client: FlaskClient, workflow: Callable[..., Any], talk: Callable[..., Any], finished: Callable[..., Any], db: None
) -> None:
    workflow(path="line")
    first = hashes(client)["published 1"]
    body = {"phone_number": "+12025550101"}
    client.post(f"{API}/public/agent/line", json=body)
    change(client, workflow_definition=talk("line", greeting="Good day."))
    client.post(f"{API}/public/agent/test/line", json=body)
    second = hashes(client)["draft 2"]
    change(client, workflow_definition=talk("line", greeting="Good evening."))
    pinned = [finished(1, run)["content_hash"] for run in (1, 2)]
    assert pinned == [first, second]
    drafts = [run.draft for run in Run.select().order_by(Run.id)]
    assert drafts[0] is None
    assert content_hash(drafts[1], {}, {}) == second


def test_a_prepared_run_is_pinned_anew_when_it_is_dialed(
    client: FlaskClient, workflow: Callable[..., Any], talk: Callable[..., Any], finished: Callable[..., Any]
) -> None:
    workflow()
    client.post(f"{API}/workflow/1/runs", json={"name": "Prepared", "mode": "simulator"})
    assert client.get(f"{API}/workflow/1/runs/1").get_json()["content_hash"] == hashes(client)["published 1"]
    change(client, workflow_definition=talk(greeting="Good day."))
    call = {"workflow_id": 1, "workflow_run_id": 1, "phone_number": "+12025550101"}
    assert client.post(f"{API}/telephony/initiate-call", json=call).status_code == 200
    assert finished(1, 1)["content_hash"] == hashes(client)["draft 2"]
