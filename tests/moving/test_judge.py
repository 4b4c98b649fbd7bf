"""Moving from a real voiceapi, served on loopback, to an empty one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

ROOT = Path(__file__).parents[2]
KEY = "source-key-0123456789"


@pytest.mark.long
def test_from_a_served_voiceapi(tmp_path: Path, database_at: Callable[[Path], str]) -> None:
    def command(database: str, *arguments: str, input: str = "") -> str:
        env = {**os.environ, "VOICEAPI_DATABASE": database_at(tmp_path / database), "VOICEAPI_API_KEY": KEY}
        done = subprocess.run(
            [sys.executable, "-m", "voiceapi", *arguments],
            cwd=ROOT,
            env=env,
            input=input,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    env = {**os.environ, "VOICEAPI_DATABASE": database_at(tmp_path / "source.db"), "VOICEAPI_API_KEY": KEY}
    serve = [sys.executable, "-m", "voiceapi", "serve", "--port", "0"]
    with subprocess.Popen(serve, cwd=ROOT, env=env, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            url = server.stderr.readline().split()[-1]

            def send(method: str, path: str, **body: Any) -> Any:
                answer = requests.request(method, f"{url}/api/v1{path}", headers={"X-API-Key": KEY}, timeout=60, **body)
                assert answer.status_code == 200, answer.text
                return answer.json()

            credential = send(
                "POST",
                "/credentials/",
                json={"name": "CRM", "credential_type": "bearer_token", "credential_data": {"token": "s3cret-1234"}},
            )["uuid"]
            config = {"method": "GET", "url": "https://crm.example.org", "credential_uuid": credential}
            tool = send(
                "POST", "/tools/", json={"name": "Look up", "definition": {"type": "http_api", "config": config}}
            )["tool_uuid"]
            document = send("POST", "/knowledge-base/documents", files={"file": ("hours.md", b"We open at nine.")})[
                "document_uuid"
            ]
            body = json.loads((ROOT / "examples" / "appointment.json").read_text())
            data = body["workflow_definition"]["nodes"][1]["data"]
            data |= {"tool_uuids": [tool], "document_uuids": [document]}
            send("POST", "/workflow/create/definition", json=body)
            for city in ("Graz", "Linz"):
                send("PUT", "/workflow/1", json={"template_context_variables": {"city": city}})
                send("POST", "/workflow/1/publish")
            send("PUT", "/workflow/1", json={"workflow_configurations": {"voice": "Joanna"}})
            form = {"name": "Winter", "workflow_id": "1", "max_concurrency": "3"}
            contacts = {"file": ("people.csv", b"phone_number\n+12025550171\n")}
            send("POST", "/campaign/create/csv", data=form, files=contacts)
            (tmp_path / "files").mkdir()
            (tmp_path / "files" / "hours.md").write_bytes(b"We open at nine.")
            moved = ("workflow", "import", "--from", url, "--documents", str(tmp_path / "files"))
            first = json.loads(command("here.db", *moved, "--json", input=f"{KEY}\n"))
            again = json.loads(command("here.db", *moved, "--json", "--key", KEY))
        finally:
            server.terminate()
            server.communicate(timeout=60)
    names = [("document", "hours.md"), ("credential", "CRM"), ("tool", "Look up"), ("workflow", body["name"])]
    assert [(each["kind"], each["name"]) for each in first["carried"]] == [*names, ("campaign", "Winter")]
    assert {each["outcome"] for each in first["carried"]} == {"carried over"}
    assert {each["outcome"] for each in again["carried"]} == {"is here already"}
    assert {each["place"] for each in first["left_out"]} == {
        "credential 'CRM'",
        "telephony configuration 'Simulator' (simulator, 1 numbers)",
    }
    there, here = (json.loads(command(name, "workflow", "export", "--all")) for name in ("source.db", "here.db"))
    assert here["tools"] == there["tools"]
    moved_document = here["documents"][0]["document_uuid"]
    assert json.loads(json.dumps(there["workflows"]).replace(document, moved_document)) == here["workflows"]
    assert [each["version_number"] for each in here["workflows"][0]["versions"]] == [1, 2, 3, 4]
    (campaign,) = json.loads(command("here.db", "campaign", "list", "--json"))
    assert (campaign["state"], campaign["max_concurrency"], campaign["workflow_id"]) == ("created", 3, 1)
    # The agent that was moved answers the caller.
    said = command("here.db", "chat", "1", "--set", "first_name=Ada", input="yes\ntwo\n")
    assert said.splitlines()[-1] == '-- user_qualified; gathered: {"companions": 2}'
