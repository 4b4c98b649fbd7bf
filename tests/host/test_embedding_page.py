"""The beginning of docs/embedding.md: its host is the one of examples/, and each public name is as the code has it."""

from __future__ import annotations

import ast
import importlib.util
import re
import shutil
import subprocess
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import voiceapi
from voiceapi import Run, VoiceAPI, VoiceAPIError, VoiceTest
from voiceapi.host.chats import Chat

ROOT = Path(__file__).parents[2]
HOST = ROOT / "examples" / "host_app.py"
PAGE = (ROOT / "docs" / "embedding.md").read_text(encoding="utf-8")
IN_PYTHON, TESTS = (
    PAGE.partition(f"## {name}\n")[2].partition("\n## ")[0] for name in ("In Python", "Tests of the app")
)
BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n```\n(.*?)```)?", re.DOTALL)


def copy_to(folder: Path) -> None:
    """Copy the host and its agent."""
    shutil.copytree(HOST.parent / "with_app", folder / "with_app")
    shutil.copy(HOST, folder)


@pytest.fixture
def host(
    tmp_path: Path, database_at: Callable[[Path], str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[types.ModuleType]:
    """The module of the host, loaded from a copy, so that its instance folder is there."""
    copy_to(tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VOICEAPI_DATABASE", database_at(tmp_path / "voice.db"))
    spec = importlib.util.spec_from_file_location("host_app", tmp_path / "examples" / "host_app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "host_app", module)
    spec.loader.exec_module(module)
    yield module
    module.app.extensions["voiceapi"].close()


def test_the_page_begins_with_the_host_of_forty_lines() -> None:
    shown = BLOCK.search(PAGE)
    assert shown is not None
    assert shown[1] in HOST.read_text(encoding="utf-8")
    assert len([line for line in shown[1].splitlines() if line.strip()]) <= 40


def test_the_host_calls_looks_up_and_notes(host: types.ModuleType, wait_for: Callable[..., Any]) -> None:
    client = host.app.test_client()
    answers = [client.post("/orders/7/call") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert answers[0].get_json()["run"] == answers[1].get_json()["run"] == 1
    wait_for(lambda: host.query("SELECT result FROM orders") == [("collected today",)])
    with host.app.app_context():
        assert host.voice.run(1).turns[0].text.startswith("Hello Ada, this is the workshop. Your bicycle is ready.")
    assert client.post("/orders/8/call").status_code == 404
    host.query("INSERT INTO orders VALUES (9, 'Bob', 'lamp', '12', NULL)")
    refused = client.post("/orders/9/call")
    assert (refused.status_code, list(refused.get_json())) == (422, ["error"])


def test_what_the_page_shows_in_python_is_so(host: types.ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    shown = [found for found in BLOCK.findall(IN_PYTHON) if not _is_signature(found[0])]
    assert len(shown) == 6
    for code, printed in shown:
        capsys.readouterr()
        exec(compile(code, "embedding.md", "exec"), vars(host))
        if printed:
            assert capsys.readouterr().out == printed
    with host.app.app_context():
        assert {"look_up", "reserve"} == set(host.app.extensions["voiceapi"].host.functions)


def test_its_test_passes(tmp_path: Path) -> None:
    [(code, _)] = BLOCK.findall(TESTS)
    copy_to(tmp_path)
    before = "from flask import Flask\nimport host_app\ndef create_app():\n    return host_app.app\n"
    (tmp_path / "test_host_app.py").write_text(before + code)
    command = [sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout
    assert [path.name for path in (tmp_path / "instance").iterdir()] == ["orders.db"]  # the host's own


def _is_signature(code: str) -> bool:
    return bool(re.search(r": \.\.\.$", code, re.MULTILINE))


def test_its_signatures_are_those_of_the_code() -> None:
    def written(functions: Iterable[ast.stmt]) -> set[str]:
        found = [each for each in functions if isinstance(each, ast.FunctionDef)]
        return {
            f"{each.name} {ast.unparse(each.args)} -> {each.returns and ast.unparse(each.returns)}" for each in found
        }

    source = ast.parse((ROOT / "voiceapi" / "extension.py").read_text(encoding="utf-8"))
    extension = next(node for node in source.body if isinstance(node, ast.ClassDef) and node.name == "VoiceAPI")
    methods = [node for node in extension.body if isinstance(node, ast.FunctionDef)]
    overloaded = {node.name for node in methods if node.decorator_list}
    public = [
        node
        for node in methods
        if node.name != "init_app" and node.name[0] != "_" and (node.decorator_list or node.name not in overloaded)
    ]
    shown = [each for code, _ in BLOCK.findall(IN_PYTHON) if _is_signature(code) for each in ast.parse(code).body]
    assert written(shown) == written(public)
    types = {ast.unparse(each) for each in shown if isinstance(each, ast.Assign)}
    assert types <= {ast.unparse(node) for node in source.body}


def test_its_tables_name_what_there_is() -> None:
    fields = set(Run.__dataclass_fields__)
    rows = re.findall(r"^\| (`[^|]+) \|", IN_PYTHON, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    errors = {
        name
        for name in voiceapi.__all__
        if isinstance(found := getattr(voiceapi, name), type) and issubclass(found, VoiceAPIError)
    } - {"VoiceAPIError"}
    assert named == fields | errors
    for kind, text in ((Chat, IN_PYTHON), (VoiceTest, TESTS)):
        for name in (each for each in (*vars(kind), *kind.__annotations__) if not each.startswith("_")):
            assert re.search(rf"`(?:voiceapi\.)?{name}[`(]", text), f"{kind.__name__}.{name}"
    assert {name for name in vars(VoiceAPI) if name[0] != "_"} <= {
        *re.findall(r"def (\w+)", IN_PYTHON),
        *("init_app", "blueprints"),
    }
