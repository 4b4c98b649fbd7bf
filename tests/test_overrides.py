"""The private names of libraries that the package overrides or uses; a release of theirs may change any of them.

So each of these libraries has an upper bound in setup.cfg, and a newer release is tried on purpose.
"""

from __future__ import annotations

import ast
import configparser
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import voiceapi

ROOT = Path(__file__).parent.parent
# By the library: where it defines each name. The one that has to go on meaning the same.
NAMES: dict[str, dict[str, tuple[str, ...]]] = {
    "peewee": {
        "peewee": ("__exception_wrapper__",),
        "peewee.Database": ("_lock",),
        "peewee.SqliteDatabase": ("_set_pragmas",),
        "peewee.PostgresqlDatabase": ("_adapter",),
        "playhouse.pool.PooledDatabase": (
            *("_connect", "_is_closed", "_connections", "_in_use", "_max_connections"),
            *("_pool_available", "_pool_lock"),
        ),
    },
    "psycopg[binary]": {"psycopg.errors": ("_WaitTimeout",)},
    "flask-smorest": {
        "flask_smorest.blueprint.Blueprint": ("_store_endpoint_docs",),
        "flask_smorest.spec.APISpecMixin": ("_register_pagination_header",),
        "flask_smorest.arguments.ArgumentsMixin": ("_apidoc",),
    },
    "waitress": {"waitress.wasyncore.dispatcher": ("_fileno",)},
}
# What the libraries document as theirs to be overridden or used.
DOCUMENTED = {
    *("_serialize", "_deserialize", "_format_error"),  # fields and validators of marshmallow
    *("_declared_fields", "_hooks", "_abc_impl"),  # which Python and marshmallow make of each class
    "_meta",  # of Peewee's models
    "_get_current_object",  # of werkzeug's proxies
    "_make",  # of named tuples
}
# What makes the start slower if it is gone, and nothing else: it has no upper bound, and a test misses it.
FOR_SPEED = {"_compile_builder"}
# Of Python's own library.
OF_PYTHON = {"_work_queue"}


def test_each_name_is_there() -> None:
    missing = []
    for places in NAMES.values():
        for place, names in places.items():
            source = inspect.getsource(_found(place))
            missing += [f"{place} has no {name}" for name in names if name not in source]
    assert missing == []


@pytest.mark.parametrize("library", NAMES)
def test_the_library_has_an_upper_bound(library: str) -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    required = [setup["options"]["install_requires"], *setup["options.extras_require"].values()]
    [line] = {line for text in required for line in text.splitlines() if line.startswith(f"{library}>=")}
    assert ",<" in line


def test_no_other_private_name_is_overridden_or_used() -> None:
    known = {name for places in NAMES.values() for names in places.values() for name in names}
    found = {*_overridden(), *_used()}
    unknown = {text for name, text in found if name not in known | DOCUMENTED | FOR_SPEED | OF_PYTHON}
    assert sorted(unknown) == []


def _found(place: str) -> object:
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError:
        module, _, name = place.rpartition(".")
        found: object = getattr(importlib.import_module(module), name)
        return found


def _overridden() -> Iterator[tuple[str, str]]:
    """Private names of classes of libraries that our classes have, too."""
    for module in pkgutil.walk_packages(voiceapi.__path__, "voiceapi."):
        if module.name.endswith((".__main__", ".pytest_plugin")):
            continue
        for cls in vars(importlib.import_module(module.name)).values():
            if inspect.isclass(cls) and cls.__module__ == module.name:
                others = [each for each in cls.__mro__ if _is_of_a_library(each.__module__)]
                for name in vars(cls):
                    if (
                        name.startswith("_")
                        and not name.startswith("__")
                        and any(name in vars(each) for each in others)
                    ):
                        yield name, f"{module.name}.{cls.__name__} overrides {name}"


def _is_of_a_library(module: str) -> bool:
    top = module.partition(".")[0]
    return top != "voiceapi" and top not in sys.stdlib_module_names


def _used() -> Iterator[tuple[str, str]]:
    """Private attributes that are read in the package, and that nothing in it defines."""
    defined: set[str] = set()
    used: set[tuple[str, str]] = set()
    for path in Path(voiceapi.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Name(id=name, ctx=ast.Store()):
                    defined.add(name)
                case ast.Attribute(attr=name, ctx=ast.Store()):
                    defined.add(name)
                case ast.Attribute(attr=name) if name.startswith("_") and not name.endswith("__"):
                    used.add((name, f"{path.name} uses {name}"))
    return ((name, text) for name, text in sorted(used) if name not in defined)
