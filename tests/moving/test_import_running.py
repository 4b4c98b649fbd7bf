"""Import from a running service, played by a strict fake."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from click.testing import Result

from voiceapi.cli import workflows
from voiceapi.moving import source
from voiceapi.organizations import api_keys
from voiceapi.service import Service
from voiceapi.tools import stored

from . import dograh
from .dograh import ARCHIVED, CREDENTIAL, DOCUMENT, HOURS, KEY, LOST, RECORDING, TOOL

NO_JSON = "doesn't answer with JSON that can be used, so it isn't such a service, or is broken."
Run = Callable[..., Result]
Get = Callable[[str], Any]


def left(result: Result) -> dict[str, str]:
    return {each["place"]: each["reason"] for each in json.loads(result.stdout)["left_out"]}


def test_everything_is_carried_over(run: Run, get: Get, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "renamed.md").write_bytes(HOURS)
    with dograh.served() as (url, _):
        result = run("import", "--from", url, "--key", KEY, "--documents", str(tmp_path / "files"), "--json")
    old, reception = sorted(get("/workflow/fetch"), key=lambda each: str(each["name"]))
    assert (old["name"], old["status"], old["workflow_uuid"]) == ("Old one", "archived", "b" * 36)
    assert (reception["name"], reception["status"], reception["workflow_uuid"]) == ("Reception", "active", "a" * 36)
    versions = get(f"/workflow/{reception['id']}/versions")
    assert [(each["version_number"], each["status"]) for each in versions] == [
        (3, "draft"),
        (2, "published"),
        (1, "archived"),
    ]
    greetings = [each["workflow_json"]["nodes"][0]["data"]["greeting"] for each in versions]
    assert greetings == ["Draft.", "Published.", "First."]
    assert versions[0]["workflow_configurations"] == {"max_call_duration": 600, "voice": "Joanna"}
    assert versions[1]["workflow_configurations"] == {"voice": "Joanna"}
    assert versions[0]["template_context_variables"] == {"city": "Graz"}
    # References lead to what they led to; what isn't there is no reference any more.
    (document,) = get("/knowledge-base/documents")["documents"]
    data = versions[1]["workflow_json"]["nodes"][0]["data"]
    assert (data["tool_uuids"], data["document_uuids"]) == ([TOOL], [document["document_uuid"]])
    assert (data["pre_call_fetch_credential_uuid"], data["greeting_recording_id"]) == (CREDENTIAL, RECORDING)
    assert versions[1]["workflow_json"]["nodes"][3]["data"]["custom_headers"] == [{"key": "X-Tenant", "value": ""}]
    assert document["filename"] == "hours.md"
    (tool,) = get("/tools/")
    assert (tool["tool_uuid"], tool["definition"]["config"]["credential_uuid"]) == (TOOL, CREDENTIAL)
    (credential,) = get("/credentials/")
    assert (credential["name"], credential["credential_type"]) == ("CRM", "none")
    # Campaigns have their settings and their lists, and aren't started.
    under_way, winter = sorted(get("/campaign/")["campaigns"], key=lambda each: str(each["name"]))
    source = dograh.campaign(1, "Winter", "created", 7)
    for campaign in (under_way, winter):
        assert (campaign["state"], campaign["workflow_id"]) == ("created", reception["id"])
        for setting in ("retry_config", "max_concurrency", "schedule_config", "circuit_breaker"):
            assert campaign[setting] == source[setting]
    notes = {(each["kind"], each["name"]): each["note"] for each in json.loads(result.stdout)["carried"]}
    assert notes["campaign", "Under way"] == "not started; there it has placed 1 calls, and here it begins anew"
    # What couldn't be carried over, at the place that it concerns.
    reasons = left(result)
    assert reasons.keys() >= {
        "credential 'CRM'",
        "tool 'Broken'",
        "tool 'Look up', config.headers.X-Secret",
        "workflow 'Reception', version 2, max_call_duration",
        "workflow 'Reception', version 2, model_configuration_v2_override",
        "workflow 'Reception', version 3, node 1, tool_uuids",
        "workflow 'Reception', version 3, node 1, document_uuids",
        "workflow 'Reception', version 3, node 1, greeting_recording_id",
        "workflow 'Reception', version 3, node 4, data.custom_headers.0.value",
        "campaign 'Over'",
        "campaign 'Elsewhere'",
        "telephony configuration 'Main' (twilio, 2 numbers)",
        "model configuration of the organization",
        f"recording '{RECORDING}'",
    }
    assert ARCHIVED in reasons["workflow 'Reception', version 3, node 1, tool_uuids"]
    assert LOST in reasons["workflow 'Reception', version 3, node 1, document_uuids"]
    assert "less than or equal to 1200" in reasons["workflow 'Reception', version 2, max_call_duration"]
    assert reasons["campaign 'Over'"] == "It is completed; here it would call everybody again."


def test_nothing_is_imported_twice(run: Run, get: Get, tmp_path: Path) -> None:
    def everything() -> list[Any]:
        lists = ("/workflow/fetch", "/tools/", "/credentials/", "/campaign/", "/knowledge-base/documents")
        return [get(path) for path in lists]

    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "hours.md").write_bytes(HOURS)
    with dograh.served() as (url, _):
        run("import", "--from", url, "--key", KEY, "--documents", str(tmp_path / "files"))
        before = everything()
        # Now the document is here, so its file isn't needed.
        again = run("import", "--from", url, "--key", KEY, "--json")
        assert everything() == before
        assert {each["outcome"] for each in json.loads(again.stdout)["carried"]} == {"is here already"}
        copied = json.loads(run("import", "--from", url, "--key", KEY, "--copy", "--workflow", "7", "--json").stdout)
    (copy,) = [each for each in copied["carried"] if each["kind"] == "workflow"]
    assert (copy["outcome"], copy["note"]) == ("carried over", "3 versions; workflow 1 has the same name")
    paths = [each["place"] for each in copied["left_out"] if "trigger path" in each["place"]]
    assert paths == ["workflow 'Reception', trigger path reception"]
    found = get(f"/workflow/{copy['id']}/versions")
    assert len({each["workflow_json"]["nodes"][2]["data"]["trigger_path"] for each in found}) == 1
    assert found[0]["workflow_json"]["nodes"][0]["data"]["tool_uuids"] == [TOOL]


def test_a_dry_run_stores_nothing(run: Run, get: Get) -> None:
    with dograh.served() as (url, _):
        result = run("import", "--from", url, "--dry-run", input=f"{KEY}\n")
    assert get("/workflow/fetch") == get("/tools/") == get("/credentials/") == get("/campaign/")["campaigns"] == []
    assert [line.split()[0] for line in result.stdout.partition("\n\n")[0].splitlines()] == [
        *("KIND", "credential", "tool", "workflow", "workflow", "campaign", "campaign"),
    ]
    assert "\nNot carried over:\n" in result.stdout
    assert result.stderr.endswith("Nothing was stored, because of --dry-run.\n")
    with dograh.served() as (url, _):
        found = json.loads(run("import", "--from", url, "--dry-run", "--key", KEY, "--json").stdout)
    assert {each["id"] for each in found["carried"]} == {None}


def test_some_workflows_come_with_what_they_refer_to(run: Run, get: Get) -> None:
    with dograh.served() as (url, asked):
        run("import", "--from", f"{url}/api/v1/", "--key", KEY, "--workflow", "8")
        assert [each["name"] for each in get("/workflow/fetch")] == ["Old one"]
        assert get("/tools/") == get("/credentials/") == get("/campaign/")["campaigns"] == []
        assert not any(path.startswith("/api/v1/workflow/7") for path in asked)
        run("import", "--from", url, "--key", KEY, "--workflow", "7")
        assert [each["name"] for each in get("/tools/")] == ["Look up"]
        missing = run("import", "--from", url, "--key", KEY, "--workflow", "9", code=1)
    assert missing.stderr == f"Error: {url} has no workflow with id 9.\n"


def test_taken_uuids_are_replaced_everywhere(run: Run, service: Service, tmp_path: Path) -> None:
    """Another organization of this service has imported the same before."""
    (tmp_path / "hours.md").write_bytes(HOURS)
    with service.store.session():
        api_keys.get_or_create_organization(service, "office")
    with dograh.served() as (url, _):
        run("import", "--from", url, "--key", KEY, "--documents", str(tmp_path))
        theirs = ("import", "--from", url, "--key", KEY, "--documents", str(tmp_path), "--organization", "office")
        carried = json.loads(run(*theirs, "--json").stdout)["carried"]
        assert {each["outcome"] for each in carried} == {"carried over"}
        ids = {(each["kind"], each["name"]): each["id"] for each in carried}
        tool, credential, document = ids["tool", "Look up"], ids["credential", "CRM"], ids["document", "hours.md"]
        assert not {tool, credential, document} & {TOOL, CREDENTIAL, DOCUMENT}
        shown = run("show", str(ids["workflow", "Reception"]), "--organization", "office", "--json")
        data = json.loads(shown.stdout)["workflow_definition"]["nodes"][0]["data"]
        assert (data["tool_uuids"], data["document_uuids"]) == ([tool], [document])
        assert data["pre_call_fetch_credential_uuid"] == credential
        with service.store.session():
            assert stored.get(2, tool).definition["config"]["credential_uuid"] == credential


@pytest.mark.parametrize(
    ("changes", "key", "error"),
    [
        ({}, "wrong", "{url} refuses the key; --key takes one of its API keys."),
        ({"workflow/fetch": b"<html>"}, KEY, NO_JSON),
        ({"workflow/fetch": b"[" * 100_000}, KEY, NO_JSON),
        ({"workflow/fetch": b'[{"id": 7, "name": "\\ud800"}]'}, KEY, NO_JSON),
        ({"workflow/7/versions": b'[{"x": NaN}]'}, KEY, NO_JSON),
        (
            {"workflow/fetch": {"detail": "x"}},
            KEY,
            "{url}/api/v1/workflow/fetch doesn't answer with a list of objects.",
        ),
        ({"workflow/fetch": 500}, KEY, "answers with the status 500, so it isn't such a service, or is broken."),
        ({"workflow/fetch": 307}, KEY, "{url} leads to https://voice.example.org; give that address to --from."),
        (
            {"workflow/7/versions": [{"version_number": "1"}]},
            KEY,
            "workflows.0.versions.0.version_number must be a whole number from 1.",
        ),
        ({"workflow/7/versions": []}, KEY, "workflows.0 has no versions."),
        (
            {"workflow/7/versions": [dograh.version(1, "published", "x")] * 2},
            KEY,
            "has several versions of one number.",
        ),
        ({"campaign/": {"campaigns": [1]}}, KEY, "{url}/api/v1/campaign/ doesn't answer with a list of objects."),
    ],
)
def test_a_source_that_is_none(run: Run, get: Get, changes: Any, key: str, error: str) -> None:
    with dograh.served(**changes) as (url, _):
        result = run("import", "--from", url, "--key", key, code=1)
    assert result.stderr.splitlines()[-1].endswith(error.format(url=url)), result.stderr
    assert get("/workflow/fetch") == []


def test_what_goes_wrong_with_a_part_leaves_that_part_out(run: Run, get: Get) -> None:
    broken = {**dograh.version(1, "published", "x"), "workflow_json": dograh.definition("x")}
    broken["workflow_json"]["nodes"].append({**broken["workflow_json"]["nodes"][0], "id": "5"})
    changes = {
        "workflow/8/versions": [broken],
        "campaign/1/source-download-url": 404,
        "organizations/telephony-configs": 404,
        "tools/": [{"name": "None"}, dograh.tool("x" * 99, "Sums", {"type": "calculator"})],
        "credentials/": [{"uuid": 3, "name": None}],
    }
    with dograh.served(**changes) as (url, _):
        result = run("import", "--from", url, "--key", KEY, "--json", code=1)
    reasons = left(result)
    assert reasons["workflow 'Old one'"] == "It can't be stored: Workflow can have at most one Start Call"
    assert "answers with the status 404" in reasons["campaign 'Winter'"]
    assert reasons["tool 'None'"] == "It has no definition."
    assert [each["name"] for each in get("/workflow/fetch")] == ["Reception"]
    assert [each["name"] for each in get("/campaign/")["campaigns"]] == ["Under way"]
    (tool,) = get("/tools/")
    assert len(tool["tool_uuid"]) == 36


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((), "Give either FILE, or --from with the address of a running service."),
        (
            ("x.json", "--from", "http://127.0.0.1:1"),
            "Give either FILE, or --from with the address of a running service.",
        ),
        (("x.json", "--key", "x"), "--key and --workflow go with --from."),
        (("--from", "voice.example.org"), "it must be an address like https://voice.example.org."),
        (("--from", "http://["), "it must be an address like https://voice.example.org."),
        (
            ("--from", "http://127.0.0.1:1"),
            "--key is missing: an API key of that service, or give it on standard input.",
        ),
        (("--from", "http://127.0.0.1:1", "--documents", "nowhere"), "Directory 'nowhere' does not exist."),
    ],
)
def test_wrong_options_of_import(run: Run, arguments: tuple[str, ...], error: str) -> None:
    assert run("import", *arguments, code=2).stderr.splitlines()[-1].endswith(error)


def test_a_list_that_is_too_long_is_not_cut(run: Run, get: Get, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "PAGE", 1)
    monkeypatch.setattr(source, "MOST_PAGES", 1)
    with dograh.served() as (url, _):
        result = run("import", "--from", url, "--key", KEY, code=1)
    assert "/workflow/7/versions goes on after 1 items; that is more than is read." in result.stderr
    assert get("/workflow/fetch") == []


def test_progress_is_not_written_over_the_question_for_the_key(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    order = []

    @contextmanager
    def progress(text: str) -> Iterator[Any]:
        order.append(text)
        yield Mock()

    monkeypatch.setattr(workflows, "progress", progress)
    monkeypatch.setattr(workflows, "_ask_for_key", lambda: order.append("key") or KEY)
    run("import", "--from", "http://127.0.0.1:1", code=1)
    assert order == ["key", "Reading"]


def test_a_source_that_does_not_answer(run: Run) -> None:
    result = run("import", "--from", "http://127.0.0.1:1", "--key", "x", code=1)
    reason = "http://127.0.0.1:1 could not be reached, or its answer broke off."
    assert result.stderr == f"Error: {reason} --from names the address of a running service.\n"
