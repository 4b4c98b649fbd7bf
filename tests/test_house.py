"""The rules of the house: who may import whom, how long a module is, and that importing one does nothing."""

from __future__ import annotations

import ast
import configparser
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HOUSE = ROOT / "voiceapi"
MODULES = sorted(HOUSE.rglob("*.py"))
# Lines: a module is as long as its concept, up to about so many.
LONGEST = 700

# Any room may use these, but the engine.
LEAVES = {
    "background",
    "bulkhead",
    "config",
    "connections",
    "errors",
    "http_client",
    "masking",
    "security",
    "strict_json",
    "timestamps",
}

# A room is a package, or a module beside them: what it may import, from the ground up. Every room above `service` may
# import it.
ARROWS: dict[str, set[str]] = {
    **{leaf: set() for leaf in LEAVES},
    "engine": set(),
    "store": set(),
    "service": {"engine", "store"},
    "telephony": {"engine", "store"},
    "operating": {"store", "telephony"},
    "llm": {"engine", "store"},
    "organizations": {"store", "telephony"},
    "tools": {"engine", "organizations", "store", "telephony"},
    "workflows": {"engine", "llm", "organizations", "store", "telephony", "tools"},
    "runs": {"store", "workflows"},
    "conversations": {"engine", "llm", "organizations", "runs", "store", "tools", "workflows"},
    "postcall": {"engine", "llm", "organizations", "runs", "store", "workflows"},
    "calls": {"conversations", "engine", "llm", "organizations", "runs", "store", "telephony", "tools", "workflows"},
    "campaigns": {"calls", "engine", "organizations", "runs", "store", "telephony", "workflows"},
}
USE_CASES = set(ARROWS) - LEAVES
for above in USE_CASES - {"engine", "store", "service"}:
    ARROWS[above].add("service")
ARROWS |= {
    "rehearsal": set(USE_CASES),
    "api": USE_CASES | {"rehearsal", "__init__"},
    "console": USE_CASES | {"api", "rehearsal"},
    "relay": {"calls", "engine", "service", "store", "telephony"},
    # What comes from elsewhere is checked by the schemas of the API.
    "moving": USE_CASES | {"api", "rehearsal"},
    "cli": USE_CASES | {"api", "console", "host", "moving", "opening", "rehearsal", "relay", "__init__"},
    "host": USE_CASES | {"jobs", "moving"},
    "jobs": set(USE_CASES),
    "opening": USE_CASES | {"__init__", "jobs"},
    "extension": {"api", "cli", "console", "host", "opening", "service", "store", "tools"},
    "__main__": {"cli", "extension", "opening"},
    "__init__": {"cli", "extension", "host"},
}

# What isn't Python's own: the rooms that may import it. One that isn't here needs a reason in CONTRIBUTING.md first.
THIRD_PARTIES: dict[str, set[str]] = {
    "click": {"cli"},
    "cryptography": {"security", "telephony"},
    "flask": {"__main__", "api", "cli", "console", "extension", "opening"},
    "flask_smorest": {"api"},
    "itsdangerous": {"security"},
    "jwt": {"telephony"},
    "limits": {"security"},
    "marshmallow": {"api"},
    "orjson": {"strict_json"},
    "peewee": {"store"},
    "prometheus_client": {"operating"},
    "phonenumbers": {"telephony"},
    "psycopg": {"store"},
    "playhouse": {"store"},
    "pypdf": {"tools"},
    "pytest": {"cli"},
    "regex": {"rehearsal"},
    "requests": {"connections", "http_client"},
    "urllib3": {"connections", "http_client"},
    "waitress": {"cli"},
    "werkzeug": {"api", "console", "extension", "store"},
    "wsproto": {"relay"},
    "yaml": {"rehearsal"},
}


def room_of(module: tuple[str, ...]) -> str:
    """The room of `voiceapi.<room>...`; names of the package itself live in `__init__`."""
    room = module[1] if len(module) > 1 else ""
    there = (HOUSE / room).is_dir() or (HOUSE / f"{room}.py").is_file()
    return room if room and there else "__init__"


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Every import of a module, also those inside functions: the line, and the absolute name in parts."""
    package = ("voiceapi", *path.relative_to(HOUSE).parts[:-1])
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, tuple(alias.name.split("."))) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            base += tuple(node.module.split(".")) if node.module else ()
            yield from ((node.lineno, (*base, alias.name)) for alias in node.names)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def room(path: Path) -> str:
    return room_of(("voiceapi", *path.relative_to(HOUSE).with_suffix("").parts))


def forbidden_imports(path: Path) -> Iterator[str]:
    """What a module imports that its room may not, each with its line."""
    here = room(path)
    if here not in ARROWS:
        yield f"{here} is a new room: say in ARROWS what it may import"
        return
    allowed = ARROWS[here] | {here} | (set() if here == "engine" else LEAVES)
    for line, module in imports(path):
        top = module[0]
        if top == "voiceapi":
            if room_of(module) not in allowed:
                yield f"{name(path)}:{line}: {here} may not import {'.'.join(module)}"
        elif top not in sys.stdlib_module_names and here not in THIRD_PARTIES.get(top, ()):
            yield f"{name(path)}:{line}: {here} may not import {top}"


def test_a_module_imports_only_what_its_room_may() -> None:
    assert [wrong for path in MODULES for wrong in forbidden_imports(path)] == []


def test_there_is_no_circle_in_the_table() -> None:
    arrows = {here: there - {"__init__"} for here, there in ARROWS.items()}
    assert list(TopologicalSorter(arrows).static_order())


def test_no_module_imports_itself_through_others() -> None:
    """Imports inside functions and for types count as well; `voiceapi` itself imports its factory when asked to."""
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in MODULES}
    graph = {}
    for module, path in names.items():
        imported = {".".join(parts) for _, parts in imports(path)}
        found = {each if each in names else each.rpartition(".")[0] for each in imported}
        graph[module] = (found & set(names)) - {module, "voiceapi"}
    assert len(list(TopologicalSorter(graph).static_order())) == len(MODULES)


@pytest.mark.parametrize(
    ("path", "text", "complaint"),
    [
        ("engine/new.py", "from .. import errors", "engine may not import voiceapi.errors"),
        ("engine/new.py", "import flask", "engine may not import flask"),
        ("store/new.py", "def late():\n    from ..calls import turns", "store may not import voiceapi.calls.turns"),
        ("calls/new.py", "from peewee import SQL", "calls may not import peewee"),
        ("api/new.py", "from ..extension import VoiceAPI", "api may not import voiceapi.extension.VoiceAPI"),
        ("api/schemas/new.py", "import requests", "api may not import requests"),
        ("attic/new.py", "", "attic is a new room: say in ARROWS what it may import"),
    ],
)
def test_a_wrong_arrow_is_found(
    path: str, text: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for existing in HOUSE.glob("*"):
        (tmp_path / existing.name).mkdir() if existing.is_dir() else (tmp_path / existing.name).touch()
    monkeypatch.setattr(sys.modules[__name__], "HOUSE", tmp_path)
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    module = tmp_path / path
    module.parent.mkdir(exist_ok=True, parents=True)
    module.write_text(text)
    (found,) = forbidden_imports(module)
    assert found.endswith(complaint)


def test_a_turn_is_answered_without_http() -> None:
    """A text relay, which has no webhooks, can call `turns.answer` and the conversations, too."""
    of_http = {"webhook", "webhooks", "CallbackURLs", "WebhookDocument", "retried"}
    answering = (HOUSE / "calls/turns.py", HOUSE / "calls/ending.py", *(HOUSE / "conversations").glob("*.py"))
    found = [(path.name, parts) for path in answering for _, parts in imports(path) if of_http & set(parts)]
    assert found == []


def test_a_module_holds_one_concept() -> None:
    others = (*(ROOT / "benchmarks").glob("*.py"), *(ROOT / "examples").glob("*.py"))
    lengths = {name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in (*MODULES, *others)}
    assert {module: lines for module, lines in lengths.items() if lines > LONGEST} == {}


def acts(path: Path) -> Iterator[str]:
    """What a module does when it is imported: a bare call, loop or `with`. The `add_index` of a table defines, too."""
    for node in parsed(path).body:
        source = ast.unparse(node)
        defines = isinstance(
            node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign
        )
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        guarded = isinstance(node, ast.If) and ("TYPE_CHECKING" in source or "__main__" in source)
        index = ".add_index(" in source
        if not (defines or docstring or guarded or index):
            yield f"{name(path)}:{node.lineno}: {source.splitlines()[0]}"


def test_a_module_only_defines() -> None:
    assert [act for path in MODULES for act in acts(path)] == []


def test_what_a_module_does_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    module = tmp_path / "new.py"
    module.write_text('"""Says."""\nimport os\nX: int = 1\nif X:\n    X = 2\nprint(X)\n')
    assert list(acts(module)) == ["new.py:4: if X:", "new.py:6: print(X)"]


def test_importing_everything_opens_starts_and_writes_nothing() -> None:
    script = """
import sys
import importlib
acts = []
def hook(event, args):
    writes = event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+")
    if writes:
        acts.append((event, args))
    elif event in ("socket.connect", "socket.bind", "subprocess.Popen", "sqlite3.connect", "os.mkdir", "os.fork"):
        acts.append((event, args))
    elif event == "_thread.start_new_thread":
        acts.append((event, args))
sys.addaudithook(hook)
for module in sys.argv[1:]:
    importlib.import_module(module)
assert not acts, acts
"""
    modules = [".".join(("voiceapi", *path.relative_to(HOUSE).with_suffix("").parts)) for path in MODULES]
    modules = [module.removesuffix(".__init__") for module in modules]
    # Python itself writes what it compiles, unless it is told not to.
    done = subprocess.run([sys.executable, "-B", "-c", script, *modules], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def brought_along(modules: list[str], unwanted: set[str]) -> dict[str, list[str]]:
    """Which of the unwanted packages each module imports, directly or not, and no module before it does."""
    script = """
import importlib, json, sys
modules, unwanted = json.load(sys.stdin)
found, known = {}, set()
for module in modules:
    importlib.import_module(module)
    found[module] = sorted((set(sys.modules) & set(unwanted)) - known)
    known.update(found[module])
print(json.dumps(found))
"""
    command, given = [sys.executable, "-c", script], json.dumps([modules, sorted(unwanted)])
    done = subprocess.run(command, input=given, cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


def test_the_pure_rooms_need_no_third_party() -> None:
    modules = ["engine.step", "workflows.node_types", "llm.scripted", "campaigns.dry_run.simulator"]
    pure = [f"voiceapi.{module}" for module in modules]
    assert brought_along(pure, set(THIRD_PARTIES)) == {module: [] for module in pure}


def test_use_cases_know_nothing_of_http() -> None:
    """They can be used without Flask. Werkzeug's `local`, which the store uses, brings no Flask along."""
    modules = ["store.runs", "runs.filters", "llm.selection", "calls.triggers", "campaigns.lifecycle"]
    use_cases = [f"voiceapi.{module}" for module in (*modules, "errors", "strict_json")]
    assert brought_along(use_cases, {"flask", "flask_smorest", "marshmallow"}) == {module: [] for module in use_cases}


def test_the_wheel_holds_every_package_and_no_schemas_of_its_own() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    packages = setup["options"]["packages"].split()
    folders = sorted(".".join(path.parent.relative_to(ROOT).parts) for path in HOUSE.rglob("__init__.py"))
    assert sorted(packages) == sorted([*folders, "voiceapi.examples", "voiceapi.schemas"])
    assert "py_modules" not in setup["options"]
    mapped = [line.split(" = ") for line in setup["options"]["package_dir"].strip().splitlines()]
    named = {"voiceapi": "voiceapi", "voiceapi.schemas": "schemas", "voiceapi.examples": "examples"}
    assert dict(mapped) == named
    assert list((ROOT / "schemas").rglob("*.py")) == []


# Words of the early code that the field has better ones for, as whole names of what is defined in voiceapi/. English
# words stay in prose and as names of local variables.
FORMER_NAMES = {
    *("hear", "hear_status", "heard", "settle_heard", "settle_overdue", "in_silence", "overdue", "overdue_at"),
    *("Believed", "Unserved", "UNBELIEVED", "Wish", "wish", "receipt", "World", "world", "worlds", "is_near"),
    *("again", "need", "one", "cell", "pass_over", "forbid", "note_ended", "faults", "remarks", "advice", "advise"),
    *("runnable", "shown", "intake", "gate", "Told", "told", "_recovered", "Clash", "Overtaken", "Desk", "Manner"),
    *("manner", "Links", "Heard", "Words", "bell", "chore", "duty", "every", "attend", "seal", "unseal"),
    *("Fault", "Refused", "Missing", "Busy"),
}
# These have another sense elsewhere, so they are looked for where they had the private one.
FORMER_NAMES_OF = {
    "voiceapi/calls/idempotency.py": {"claim", "claimed", "keep", "kept"},
    "voiceapi/api/idempotent.py": {"claim", "claimed", "keep", "kept"},
    "voiceapi/telephony": {"Report", "links"},
    "voiceapi/store": {"ring"},
}
FORMER_MODULES = {"plain", "item", "words", "rules", "shown", "intake", "gate", "keys", "sealed", "turn"}


def defined(path: Path) -> Iterator[tuple[int, str]]:
    """The names of classes, functions, parameters and attributes that a module defines, with their lines."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
        if isinstance(node, ast.ClassDef | ast.Module):
            for each in node.body:
                targets = each.targets if isinstance(each, ast.Assign) else [getattr(each, "target", None)]
                yield from ((each.lineno, target.id) for target in targets if isinstance(target, ast.Name))


def former_names(path: Path) -> Iterator[str]:
    """The former names that a module has or defines."""
    former = FORMER_NAMES.union(*(more for place, more in FORMER_NAMES_OF.items() if name(path).startswith(place)))
    if path.stem in FORMER_MODULES:
        yield name(path)
    yield from (f"{name(path)}:{line}: {found}" for line, found in sorted(defined(path)) if found in former)


def test_names_are_those_of_the_field() -> None:
    assert [former for path in MODULES for former in former_names(path)] == []


# A document that a reader of this repository doesn't have.
CITATION = re.compile(
    r"API contract|\bcontract['’]?s? (section|[A-J]\.|0\.)|specification,? \d|design(\.md)?,? (section )?\d|\([A-J]\.\d"
)


def test_nothing_cites_a_document_that_is_not_here() -> None:
    folders = ("voiceapi", "tests", "docs", "schemas", "examples", "benchmarks", ".ci")
    inside = [path for folder in folders for path in (ROOT / folder).rglob("*") if "__pycache__" not in path.parts]
    texts = [path for path in (*inside, *ROOT.glob("*")) if path.suffix in (".py", ".md", ".cfg", ".toml", ".json", "")]
    found = []
    for path in texts:
        if path.is_file() and path != Path(__file__):
            lines = path.read_text(encoding="utf-8").splitlines()
            found += [f"{name(path)}:{number}" for number, line in enumerate(lines, 1) if CITATION.search(line)]
    assert found == []


def test_the_product_makes_no_requests_to_itself() -> None:
    made = re.compile(r"\b(test_request_context|test_client|test_cli_runner)\b")
    assert [name(path) for path in MODULES if made.search(path.read_text(encoding="utf-8"))] == []
