"""The rules of the house: who may import whom, how long a module is, and that importing one does nothing."""

from __future__ import annotations

import ast
import configparser
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HOUSE = ROOT / "voiceapi"
MODULES = sorted(HOUSE.rglob("*.py"))
LONGEST = 400

# Any room may use these, but the engine.
LEAVES = {
    "background",
    "bulkhead",
    "config",
    "errors",
    "http_client",
    "masking",
    "security",
    "special_addresses",
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
    "tools": {"engine", "organizations", "store"},
    "workflows": {"engine", "llm", "organizations", "store", "tools"},
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
    # What comes from elsewhere is checked by the schemas of the API.
    "moving": USE_CASES | {"api", "rehearsal"},
    "cli": USE_CASES | {"api", "console", "moving", "rehearsal", "__init__"},
    "jobs": set(USE_CASES),
    "extension": USE_CASES | {"api", "cli", "console", "jobs"},
    "factory": {"api", "console", "extension"},
    "__main__": {"cli", "factory"},
    "__init__": {"extension", "factory"},
}

# What isn't Python's own: the rooms that may import it. One that isn't here needs a reason in CONTRIBUTING.md first.
THIRD_PARTIES: dict[str, set[str]] = {
    "click": {"cli"},
    "cryptography": {"security", "telephony"},
    "fast_sugiyama": {"workflows"},
    "flask": {"__main__", "api", "cli", "console", "extension", "factory"},
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
    "requests": {"http_client"},
    "urllib3": {"http_client"},
    "waitress": {"cli"},
    "werkzeug": {"api", "console", "store"},
    "yaml": {"rehearsal"},
}


def room_of(module: tuple[str, ...]) -> str:
    """The room of `voiceapi.<room>...`; names of the package itself live in `__init__`."""
    room = module[1] if len(module) > 1 else ""
    there = (HOUSE / room).is_dir() or (HOUSE / f"{room}.py").is_file()
    return room if room and there else "__init__"


def imports(path: Path) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Every import of a module, also those inside functions: the line, and the absolute name in parts."""
    package = ("voiceapi", *path.relative_to(HOUSE).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
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


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_module_imports_only_what_its_room_may(path: Path) -> None:
    here = room(path)
    assert here in ARROWS, f"{here} is a new room: say in ARROWS what it may import."
    allowed = ARROWS[here] | {here} | (set() if here == "engine" else LEAVES)
    wrong = []
    for line, module in imports(path):
        top = module[0]
        if top == "voiceapi":
            if room_of(module) not in allowed:
                wrong.append(f"line {line}: {here} may not import {'.'.join(module)}")
        elif top not in sys.stdlib_module_names and here not in THIRD_PARTIES.get(top, ()):
            wrong.append(f"line {line}: {here} may not import {top}")
    assert wrong == []


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
    ],
)
def test_a_wrong_arrow_is_found(
    path: str, text: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for existing in HOUSE.glob("*"):
        (tmp_path / existing.name).mkdir() if existing.is_dir() else (tmp_path / existing.name).touch()
    monkeypatch.setattr(sys.modules[__name__], "HOUSE", tmp_path)
    module = tmp_path / path
    module.parent.mkdir(exist_ok=True, parents=True)
    module.write_text(text)
    with pytest.raises(AssertionError, match=complaint):
        test_a_module_imports_only_what_its_room_may(module)


@pytest.mark.parametrize(
    "path", [*MODULES, *(ROOT / "benchmarks").glob("*.py"), *(ROOT / "examples").glob("*.py")], ids=name
)
def test_a_module_holds_one_concept(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_module_only_defines(path: Path) -> None:
    """No bare call, loop or `with` at the top; the `add_index` of a table is a definition, too."""
    acts = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        source = ast.unparse(node)
        defines = isinstance(
            node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign
        )
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        guarded = isinstance(node, ast.If) and ("TYPE_CHECKING" in source or "__main__" in source)
        index = ".add_index(" in source
        if not (defines or docstring or guarded or index):
            acts.append(f"line {node.lineno}: {source.splitlines()[0]}")
    assert acts == []


def test_importing_everything_opens_starts_and_writes_nothing() -> None:
    script = """
import sys
import importlib
acts = []
def hook(event, args):
    writes = event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+")
    if writes and not str(args[0]).rpartition("/")[0].endswith("__pycache__"):
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
    done = subprocess.run([sys.executable, "-c", script, *modules], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "pure",
    [
        "voiceapi.engine.step",
        "voiceapi.workflows.node_types",
        "voiceapi.llm.scripted",
        "voiceapi.campaigns.dry_run.simulator",
    ],
)
def test_the_pure_rooms_need_no_third_party(pure: str) -> None:
    script = f"import sys, {pure}; print(*sorted({{*sys.modules}} & {set(THIRD_PARTIES)}))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


@pytest.mark.parametrize(
    "use_cases",
    [
        "voiceapi.store.runs",
        "voiceapi.runs.filters",
        "voiceapi.llm.selection",
        "voiceapi.calls.triggers",
        "voiceapi.campaigns.lifecycle",
        "voiceapi.errors",
        "voiceapi.strict_json",
    ],
)
def test_use_cases_know_nothing_of_http(use_cases: str) -> None:
    """They can be used without Flask. Werkzeug's `local`, which the store uses, brings no Flask along."""
    script = f"import sys, {use_cases}; print(*sorted({{*sys.modules}} & {{'flask', 'flask_smorest', 'marshmallow'}}))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


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
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
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


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_names_are_those_of_the_field(path: Path) -> None:
    former = FORMER_NAMES.union(*(more for place, more in FORMER_NAMES_OF.items() if name(path).startswith(place)))
    assert path.stem not in FORMER_MODULES
    assert [f"line {line}: {found}" for line, found in sorted(defined(path)) if found in former] == []


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
