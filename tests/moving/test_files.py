"""Export to a file, and import from one."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from flask import Flask
from flask.testing import FlaskClient

from voiceapi import create_app
from voiceapi.store import workflows

Run = Callable[..., Result]
Get = Callable[[str], Any]
CASE = {"name": "They are done", "turns": [{"caller": "Done.", "edges": ["Done"]}]}
SECRETS = ("Bearer s3cret-of-the-header", "s3cret-of-the-url", "s3cret-of-the-model", "s3cret-of-the-credential")


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    """A client of an app with workflow 1 in three versions, and a tool, a credential and a document that it uses."""
    client = app.test_client()
    client.environ_base["HTTP_X_API_KEY"] = "test-key-0123456789"

    def send(method: str, path: str, **body: Any) -> Any:
        answer = getattr(client, method)(f"/api/v1{path}", **body)
        assert answer.status_code == 200, answer.get_data(as_text=True)
        return answer.get_json()

    data = {"token": SECRETS[3]}
    credential = send(
        "post",
        "/credentials/",
        json={"name": "CRM", "credential_type": "bearer_token", "credential_data": data},
    )["uuid"]
    config = {
        "method": "GET",
        "url": f"https://me:{SECRETS[1]}@crm.example.org/x",
        "headers": {"X-Token": SECRETS[0], "Accept": "text/plain"},
        "credential_uuid": credential,
    }
    body = {"name": "Look up", "definition": {"type": "http_api", "config": config}}
    tool = send("post", "/tools/", json=body)["tool_uuid"]
    file = {"file": (io.BytesIO(b"We open at nine."), "hours.md")}
    document = send("post", "/knowledge-base/documents", data=file)["document_uuid"]
    start = {"name": "Hello", "prompt": "Greet.", "tool_uuids": [tool], "document_uuids": [document]}
    nodes = [
        {"id": "1", "type": "startCall", "position": {"x": 0, "y": 0}, "data": start},
        {"id": "2", "type": "endCall", "position": {"x": 0, "y": 9}, "data": {"name": "Bye", "prompt": "Bye."}},
        {
            "id": "3",
            "type": "webhook",
            "position": {"x": 9, "y": 9},
            "data": {
                "name": "Tell",
                "endpoint_url": "https://crm.example.org/y",
                "custom_headers": [{"key": "X-Token", "value": SECRETS[0]}],
            },
        },
    ]
    edges = [{"id": "1-2", "source": "1", "target": "2", "data": {"label": "Done", "condition": "They are done."}}]
    definition = {"nodes": nodes, "edges": edges}
    send("post", "/workflow/create/definition", json={"name": "Reception", "workflow_definition": definition})
    llm = {"provider": "openai", "model": "m", "api_key": SECRETS[2]}
    own = {"mode": "byok", "byok": {"mode": "pipeline", "pipeline": {"llm": llm}}}
    send("put", "/workflow/1", json={"workflow_configurations": {"model_configuration_v2_override": own}})
    send("post", "/workflow/1/publish")
    send("put", "/workflow/1", json={"template_context_variables": {"city": "Graz"}})
    for case in ({"case": CASE}, {"case": {"name": "Off"}, "enabled": False}):
        send("post", "/workflow/1/cases", json=case)
    return client


def test_an_export_holds_no_secret_and_says_what_it_left_out(client: FlaskClient, run: Run) -> None:
    result = run("export", "1")
    found = json.loads(result.stdout)
    assert not [secret for secret in (*SECRETS, "gAAAA") if secret in result.output]
    assert [(each["version_number"], each["status"]) for each in found["workflows"][0]["versions"]] == [
        (2, "published"),
        (3, "draft"),
    ]
    places = {each["place"] for each in found["left_out"]}
    assert places == {
        "workflow 'Reception', version 2, node 3, data.custom_headers.0.value",
        "workflow 'Reception', version 3, node 3, data.custom_headers.0.value",
        "workflow 'Reception', version 2, model_configuration_v2_override",
        "workflow 'Reception', version 3, model_configuration_v2_override",
        "tool 'Look up', config.url",
        "tool 'Look up', config.headers.X-Token",
        "credential 'CRM'",
        "document 'hours.md'",
    }
    assert all(f"left out: {place}: " in result.stderr for place in places)
    config = found["tools"][0]["definition"]["config"]
    assert (config["url"], config["headers"]) == ("https://crm.example.org/x", {"X-Token": "", "Accept": "text/plain"})
    everything = json.loads(run("export", "--all").stdout)
    assert [each["version_number"] for each in everything["workflows"][0]["versions"]] == [1, 2, 3]


def test_an_export_is_imported_where_nothing_is(
    client: FlaskClient, run: Run, tmp_path: Path, database_at: Callable[[Path], str]
) -> None:
    file = tmp_path / "reception.json"
    assert run("export", "--all", "-o", str(file)).stdout == f"1 workflow in {file}.\n"
    (tmp_path / "hours.md").write_bytes(b"We open at nine.")
    exported = json.loads(file.read_text())
    elsewhere = create_app({"VOICEAPI_DATABASE": database_at(tmp_path / "other.db"), "VOICEAPI_WORKER": False})
    there = _run_on(elsewhere)
    result = there("import", str(file), "--documents", str(tmp_path), "--json")
    carried = json.loads(result.stdout)["carried"]
    assert [(each["kind"], each["name"]) for each in carried] == [
        ("document", "hours.md"),
        ("credential", "CRM"),
        ("tool", "Look up"),
        ("workflow", "Reception"),
    ]
    again = json.loads(there("export", "--all").stdout)
    elsewhere.extensions["voiceapi"].close()
    assert exported["workflows"][0]["cases"] == [
        {"case": CASE, "enabled": True},
        {"case": {"name": "Off"}, "enabled": False},
    ]
    assert carried[-1]["note"] == "3 versions, 2 cases"
    # But for its credential without a secret and the uuid of its document, all is as it was.
    new, old = (json.dumps(each["workflows"]) for each in (again, exported))
    for before, after in zip(exported["documents"], again["documents"], strict=True):
        old = old.replace(before["document_uuid"], after["document_uuid"])
    assert new == old
    assert again["tools"] == exported["tools"]


def test_a_case_that_can_not_be_stored_is_left_out(client: FlaskClient, run: Run, get: Get, tmp_path: Path) -> None:
    exported = json.loads(run("export", "1").stdout)
    (moved,) = exported["workflows"]
    wrong = {"name": "Wrong", "turns": [{"caller": "x", "keys": "1"}, {"says": 5}]}
    moved["cases"] += [{"case": wrong}, {"case": CASE}]
    (file := tmp_path / "agent.json").write_text(json.dumps(exported))
    result = json.loads(run("import", str(file), "--copy", "--json").stdout)
    reasons = {each["place"]: each["reason"] for each in result["left_out"]}
    assert reasons["workflow 'Reception', case 'Wrong'"] == (
        "It can't be stored: case.turns.0: it needs exactly one of caller, keys, silence, hangs_up, ends; "
        "case.turns.1: it needs exactly one of caller, keys, silence, hangs_up, ends"
    )
    assert "has the name “They are done”" in reasons["workflow 'Reception', case 'They are done'"]
    (note,) = [each["note"] for each in result["carried"] if each["kind"] == "workflow"]
    assert note == "2 versions, 2 cases; workflow 1 has the same name"
    cases = get("/workflow/2/cases")
    assert [(each["case"], each["enabled"]) for each in cases] == [(CASE, True), ({"name": "Off"}, False)]


def test_a_published_version_that_is_not_valid_is_named_once(
    run: Run, tmp_path: Path, talk: Callable[..., Any], client: FlaskClient
) -> None:
    broken = talk()
    broken["nodes"][0]["data"]["prompt"] = ""
    broken["nodes"][1]["data"]["prompt"] = ""
    (file := tmp_path / "agent.json").write_text(json.dumps({"name": "Broken", "workflow_definition": broken}))
    place = "workflow 'Broken', version 1"
    reason = "No call can use it until it is mended and published: {} (node 1 data.prompt), and 1 more error."
    for options in (["--dry-run"], []):
        found = json.loads(run("import", str(file), "--json", *options).stdout)
        said = client.post("/api/v1/workflow/validate", json={"workflow_definition": broken}).json["errors"]
        assert found["left_out"] == []
        assert found["not_valid"] == [{"place": place, "reason": reason.format(said[0]["message"])}]
    assert json.loads(run("import", str(file), "--json").stdout)["not_valid"] == [], "it is here already"
    lines = run("import", str(file), "--copy").stdout.splitlines()
    assert lines[-2:] == ["Not valid:", f"{place}: {reason.format(said[0]['message'])}"]
    # Several versions of an agent, of which the published one and older ones have errors; a draft counts for nothing.
    exported = json.loads(run("export", "1", "--all").stdout)
    (moved,) = exported["workflows"]
    for each, status in zip(moved["versions"], ("archived", "published", "draft"), strict=True):
        each |= {"status": status, "workflow_json": talk() if status == "draft" else broken}
    file.write_text(json.dumps(exported))
    again = json.loads(run("import", str(file), "--copy", "--json").stdout)["not_valid"]
    assert [each["place"] for each in again] == ["workflow 'Reception', version 2"]
    moved["versions"][1]["workflow_json"], moved["versions"][2]["workflow_json"] = talk(), broken
    file.write_text(json.dumps(exported))
    assert json.loads(run("import", str(file), "--copy", "--json").stdout)["not_valid"] == []


def test_a_version_that_was_published_stays_so_whatever_it_demands(
    client: FlaskClient, run: Run, get: Get, tmp_path: Path
) -> None:
    demands = {"cases": True, "coverage": {"edges": 100}}
    exported = json.loads(run("export", "1").stdout)
    for version in exported["workflows"][0]["versions"]:
        version["workflow_configurations"] = {"publish_requirements": demands}
    del exported["workflows"][0]["cases"]
    (file := tmp_path / "agent.json").write_text(json.dumps(exported))
    run("import", str(file), "--copy")
    draft, published = get("/workflow/2/versions")
    assert (draft["status"], published["status"]) == ("draft", "published")
    assert published["workflow_configurations"]["publish_requirements"] == demands
    assert "publish_requirements.cases: No enabled case is stored" in run("publish", "2", code=1).stderr


@pytest.mark.parametrize(
    ("cases", "error"),
    [("all", "cases must be a list of objects."), ([{"case": [1]}], "cases.0.case must be an object, not a list.")],
)
def test_cases_of_another_shape(client: FlaskClient, run: Run, tmp_path: Path, cases: Any, error: str) -> None:
    exported = json.loads(run("export", "1").stdout)
    exported["workflows"][0]["cases"] = cases
    (file := tmp_path / "agent.json").write_text(json.dumps(exported))
    assert error in run("import", str(file), code=2).stderr


def _run_on(app: Flask) -> Run:
    def command(*arguments: str) -> Result:
        result = app.test_cli_runner().invoke(args=["voiceapi", "workflow", *arguments])
        assert result.exit_code == 0, result.output
        return result

    return command


def test_each_shape_of_a_file(run: Run, get: Get, tmp_path: Path, talk: Callable[..., Any]) -> None:
    file = tmp_path / "agent.json"
    answer = {
        "id": 9,
        "name": "Answered",
        "status": "active",
        "workflow_definition": talk("b"),
        "workflow_configurations": {"voice": "Joanna"},
        "template_context_variables": {"city": "Graz"},
        "version_number": 4,
        "version_status": "draft",
        "workflow_uuid": "c" * 36,
    }
    for content in (
        talk("a"),
        {"name": "Body", "workflow_definition": talk("c")},
        answer,
        {"workflow_json": talk("d", greeting="Its own.")},
    ):
        file.write_text(json.dumps(content))
        run("import", str(file))
    found = get("/workflow/fetch")
    assert [each["name"] for each in found] == ["agent", "Body", "Answered", "agent"]
    shown = get("/workflow/fetch/3")
    assert (shown["workflow_uuid"], shown["workflow_configurations"]) == ("c" * 36, {"voice": "Joanna"})
    assert (shown["version_number"], shown["version_status"]) == (1, "published")
    assert shown["template_context_variables"] == {"city": "Graz"}
    # The last one is here already, by its content; the first has another one of that name beside it.
    twice = json.loads(run("import", str(file), "--json").stdout)["carried"]
    assert [(each["id"], each["outcome"]) for each in twice] == [(4, "is here already")]
    file.write_text(json.dumps(talk("e", greeting="Another one.")))
    other = json.loads(run("import", str(file), "--json").stdout)["carried"]
    assert other[0]["note"] == "1 version; workflow 1 has the same name"


def test_a_secret_in_a_file_is_stored_encrypted(run: Run, get: Get, tmp_path: Path, talk: Callable[..., Any]) -> None:
    definition = talk("a")
    data = {"name": "QA", "qa_api_key": "s3cret-of-the-file-1234"}
    definition["nodes"].append({"id": "9", "type": "qa", "position": {"x": 0, "y": 0}, "data": data})
    file = tmp_path / "agent.json"
    file.write_text(json.dumps(definition))
    result = run("import", str(file))
    assert "Not carried over" not in result.stdout
    assert get("/workflow/fetch/1")["workflow_definition"]["nodes"][-1]["data"]["qa_api_key"].endswith("*1234")
    again = run("import", str(file))
    assert "is here already" in again.stdout


BAD = [
    ([], "can't be imported. It is no workflow: it holds a list, not an object."),
    ("x", "can't be imported. It is no workflow: it holds a text, not an object."),
    ({}, 'can\'t be imported. It is no workflow: it has no "nodes".'),
    ({"workflow_definition": []}, "it.versions.0: the definition must be an object, not a list."),
    ({"workflow_definition": {}, "workflow_configurations": 3}, "must be an object, not a number."),
    ({"workflow_definition": {}, "name": 3}, "it.name must be a text, not a number."),
    ({"voiceapi_export": 2}, "The export has the format 2; this release reads 1."),
    ({"voiceapi_export": 1, "workflows": {}}, "the export: workflows must be a list of objects."),
    ({"voiceapi_export": 1, "workflows": [{"name": "x", "versions": []}]}, "workflows.0 has no versions."),
    (
        {"voiceapi_export": 1, "workflows": [{"name": "x", "versions": [{"status": "new"}]}]},
        "workflows.0.versions.0.status must be one of draft, published, archived.",
    ),
    ({"voiceapi_export": 1, "left_out": [{}]}, "left_out.place must be a text, not nothing."),
]


@pytest.mark.parametrize(("content", "error"), BAD)
def test_a_file_that_is_no_workflow(run: Run, tmp_path: Path, content: Any, error: str) -> None:
    file = tmp_path / "agent.json"
    file.write_text(json.dumps(content))
    last = run("import", str(file), code=2).stderr.splitlines()[-1]
    assert last.startswith(f"Error: {file} can't be imported.")
    assert error in last


def test_an_export_through_a_pipe(run: Run, get: Get, talk: Callable[..., Any]) -> None:
    run("import", "-", input=json.dumps(talk()))
    assert [each["name"] for each in get("/workflow/fetch")] == ["Imported"]
    assert "is here already" in run("import", "-", input=run("export").stdout).stdout
    last = run("import", "-", input="{", code=2).stderr.splitlines()[-1]
    assert last.startswith("Error: Standard input is not JSON that can be used")


def test_files_that_can_not_be_read_or_written(run: Run, tmp_path: Path) -> None:
    for name, reason in (("nope.json", "No such file or directory"), (".", "Is a directory")):
        path = str(tmp_path / name)
        assert run("import", path, code=2).stderr.splitlines()[-1] == f"Error: {path} can't be read: {reason}."
    path = str(tmp_path / "no" / "export.json")
    error = f"Error: {path} can't be written: No such file or directory. --output names another file."
    assert run("export", "-o", path, code=2).stderr.splitlines()[-1] == error
    missing = run("export", "7", code=1).stderr
    assert missing == "Error: There is no workflow with id 7. `voiceapi workflow list` shows which there are.\n"


def test_a_name_that_is_no_text(run: Run, get: Get, tmp_path: Path, talk: Callable[..., Any]) -> None:
    """Of a file whose name isn't UTF-8."""
    file = tmp_path / "caf\udce9.json"
    file.write_text(json.dumps(talk()))
    run("import", str(file))
    assert get("/workflow/fetch")[0]["name"] == "caf\ufffd"


def test_an_export_can_be_checked_and_talked_to(app: Flask, tmp_path: Path, talk: Callable[..., Any]) -> None:
    workflow = {"name": "x", "versions": [{"version_number": 1, "status": "published", "workflow_json": talk()}]}
    file = tmp_path / "export.json"
    runner = app.test_cli_runner()
    file.write_text(json.dumps({"voiceapi_export": 1, "workflows": [workflow]}))
    assert runner.invoke(args=["voiceapi", "validate", str(file)]).exit_code == 0
    assert "agent: Hello" in runner.invoke(args=["voiceapi", "chat", str(file)], input="yes\n").output
    file.write_text(json.dumps({"voiceapi_export": 1, "workflows": [workflow, workflow]}))
    several = runner.invoke(args=["voiceapi", "chat", str(file)])
    assert (several.exit_code, several.stderr.splitlines()[-1]) == (
        2,
        f"Error: {file} holds several workflows; export one of them.",
    )


def test_all_is_stored_or_nothing(
    run: Run, get: Get, tmp_path: Path, talk: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that dies in the middle leaves nothing behind."""
    versions = [{"version_number": 1, "status": "published", "workflow_json": talk()}]
    export = {
        "voiceapi_export": 1,
        "workflows": [{"name": name, "versions": versions} for name in ("first", "second")],
        "tools": [{"tool_uuid": "t", "name": "Sums", "definition": {"type": "calculator"}}],
    }
    file = tmp_path / "export.json"
    file.write_text(json.dumps(export))
    add, calls = workflows.add_paths, []

    def add_paths(*arguments: Any) -> None:
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        add(*arguments)

    monkeypatch.setattr(workflows, "add_paths", add_paths)
    run("import", str(file), code=1)
    assert get("/workflow/fetch") == get("/tools/") == []


def test_an_example_brings_its_tools(run: Run, get: Get) -> None:
    file = Path(__file__).parents[2] / "examples" / "repair.json"
    assert run("import", str(file)).exit_code == 0
    names = {tool["tool_uuid"]: tool["name"] for tool in get("/tools/")}
    nodes = {node["id"]: node["data"] for node in get("/workflow/fetch/1")["workflow_definition"]["nodes"]}
    assert [names[uuid] for uuid in nodes["appointment"]["tool_uuids"]] == ["Find a slot", "Book a slot"]
    assert [names[uuid] for uuid in nodes["welcome"]["tool_uuids"]] == ["Mechanic", "Hang up"]
    again = run("import", str(file))
    assert (again.exit_code, again.stdout.count("is here already")) == (0, 6)


def test_the_cases_beside_a_file_come_along(run: Run, get: Get, tmp_path: Path, talk: Callable[..., Any]) -> None:
    desk = {"tool_uuid": "desk", "name": "Desk", "definition": {"type": "calculator"}}
    case = {"name": "Hello", "opening": {"says": "good time"}}
    file, cases = tmp_path / "agent.json", tmp_path / "agent.cases.json"
    file.write_text(json.dumps({"workflow_definition": talk()}))
    cases.write_text(json.dumps({"direction": "inbound", "tools": [desk], "cases": [case]}))
    (tmp_path / "agent.cases.yaml").write_text("cases: [{name: Another}]")
    (tmp_path / "agents.cases.yaml").write_text("cases: [{name: Of another agent}]")
    run("import", str(file))
    stored = [each["case"] for each in get("/workflow/1/cases")]
    assert stored == [{"name": "Another"}, {**case, "direction": "inbound"}]
    assert [tool["name"] for tool in get("/tools/")] == ["Desk"]
    # What an export has goes before what is beside it.
    assert run("export", "1", "-o", str(tmp_path / "out.json")).exit_code == 0
    (tmp_path / "out.cases.yaml").write_text("cases: [{name: Third}]")
    assert run("import", str(tmp_path / "out.json"), "--copy").exit_code == 0
    assert [each["name"] for each in get("/workflow/2/cases")] == ["Another", "Hello"]


def test_the_cases_of_a_body_come_along(run: Run, get: Get, tmp_path: Path, talk: Callable[..., Any]) -> None:
    file = tmp_path / "agent.json"
    file.write_text(json.dumps({"workflow_definition": talk(), "cases": [{"name": "Hello"}]}))
    assert run("import", str(file)).exit_code == 0
    assert [each["name"] for each in get("/workflow/1/cases")] == ["Hello"]


def test_cases_beside_a_file_that_can_not_be_read_are_named_and_nothing_is_stored(
    run: Run, get: Get, tmp_path: Path, talk: Callable[..., Any]
) -> None:
    file = tmp_path / "agent.json"
    file.write_text(json.dumps({"workflow_definition": talk()}))
    (tmp_path / "agent.cases.yaml").write_text("cases:\n  - name: Hello\n    says: good time\n")
    result = run("import", str(file), code=2)
    assert "agent.cases.yaml:3:5: cases.0.says: it isn't known" in result.output
    assert get("/workflow/count")["total"] == 0


def test_the_tools_that_nodes_call_come_along_and_functions_of_an_app_keep_their_names(
    client: FlaskClient, run: Run, tmp_path: Path, database_at: Callable[[Path], str], talk: Callable[..., Any]
) -> None:
    config = {"method": "GET", "url": "https://crm.example.org/z"}
    body: dict[str, Any] = {"name": "Book", "definition": {"type": "http_api", "config": config}}
    tool = client.post("/api/v1/tools/", json=body).get_json()["tool_uuid"]
    definition = talk(tool_uuids=["python:greet"], call={"tool": tool, "on_error": "2"})
    definition["nodes"][1]["data"] |= {"call": {"tool": "python:book", "save_as": "booking"}}
    made = {"name": "Calling", "workflow_definition": definition}
    assert client.post("/api/v1/workflow/create/definition", json=made).status_code == 200
    file = tmp_path / "calling.json"
    run("export", "2", "-o", str(file))
    exported = json.loads(file.read_text())
    assert [each["tool_uuid"] for each in exported["tools"]] == [tool]
    elsewhere = create_app({"VOICEAPI_DATABASE": database_at(tmp_path / "other.db"), "VOICEAPI_WORKER": False})
    there = _run_on(elsewhere)
    there("import", str(file))
    stored = json.loads(there("export").stdout)["workflows"][0]["versions"][0]["workflow_json"]["nodes"]
    assert [node["data"].get("call") for node in stored[:2]] == [
        {"tool": tool, "on_error": "2"},
        {"tool": "python:book", "save_as": "booking"},
    ]
    assert stored[0]["data"]["tool_uuids"] == ["python:greet"]
    # A tool that doesn't come along is named, and the node makes no call.
    exported["tools"] = []
    exported["workflows"][0] |= {"workflow_uuid": None, "name": "Without"}
    file.write_text(json.dumps(exported))
    left = there("import", str(file)).stdout
    assert f"workflow 'Without', version 1, node 1, call: There is no tool {tool}" in left
    assert "python:" not in left
    stored = json.loads(there("export", "2").stdout)["workflows"][0]["versions"][0]["workflow_json"]["nodes"]
    assert stored[0]["data"]["call"] is None
    elsewhere.extensions["voiceapi"].close()
