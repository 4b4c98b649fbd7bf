"""The parts of the documentation that are made from the code; run as a program, it writes them into the pages.

    .venv/bin/python tests/generated_docs.py

A part stands between two comments of a page: `<!-- generated: NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

import click  # noqa: E402

from voiceapi import config  # noqa: E402
from voiceapi.api.openapi import METHODS  # noqa: E402
from voiceapi.cli.main import group  # noqa: E402
from voiceapi.config import MEANINGS, Settings  # noqa: E402
from voiceapi.engine.validation.lint_rules import RULES, SEVERITIES  # noqa: E402
from voiceapi.workflows import node_types  # noqa: E402

PART = re.compile(r"^<!-- generated: (?P<name>[\w ]+) -->\n.*?^<!-- end -->\n", re.DOTALL | re.MULTILINE)
# Columns of a command's help.
WIDTH = 100


def table(*rows: tuple[str, ...]) -> str:
    """A table in Markdown; the first row is its heading."""
    cells = [[each.replace("|", "\\|") for each in row] for row in rows]
    heading, *lines = [f"| {' | '.join(row)} |" for row in cells]
    return "\n".join([heading, f"|{'---|' * len(rows[0])}", *lines])


def settings() -> str:
    """Every setting with its default and its meaning."""
    defaults = {name: setting.default for name, setting in Settings.__dataclass_fields__.items()}
    rows = [("name", "default", "meaning")]
    for name, (unset, meaning) in MEANINGS.items():
        default = defaults[name]
        shown = unset or {True: "on", False: "off"}.get(default, f"{default:g}" if _is_float(default) else str(default))
        rows.append((config.PREFIX + name.upper(), shown, meaning))
    return table(*rows)


def _is_float(value: Any) -> bool:
    return isinstance(value, float)


def help_of(name: str) -> str:
    """What `--help` of a command prints, and of each command below it."""
    pages = [_help(command, path) for path, command in _commands(group.commands[name], f"voiceapi {name}")]
    return "```text\n" + "\n\n".join(pages) + "\n```"


def _commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        for name, below in sorted(command.commands.items()):
            yield from _commands(below, f"{path} {name}")


def _help(command: click.Command, path: str) -> str:
    # A command remembers the names of its option for help; all of them are those of the outermost group.
    context = click.Context(group, info_name="voiceapi", **group.context_settings)
    for word in path.split()[1:-1]:
        context = click.Context(click.Group(word), info_name=word, parent=context)
    name = path.split()[-1]
    return command.get_help(
        click.Context(command, info_name=name, parent=context, terminal_width=WIDTH, max_content_width=WIDTH)
    )


def nodes() -> str:
    """Each node type with the members of its data, as an editor shows them."""
    parts = []
    for name, spec in node_types.by_name().items():
        rows = [("member", "type", "default", "meaning")]
        rows += [_member(each) for each in spec["properties"]]
        parts.append(
            f"### {name}\n\n{spec['description']} {spec.get('llm_hint') or ''}".rstrip() + f"\n\n{table(*rows)}"
        )
    return "\n\n".join(parts)


def _member(spec: dict[str, Any]) -> tuple[str, ...]:
    default = "" if spec["default"] is None else f"`{json.dumps(spec['default'], ensure_ascii=False)}`"
    if len(default) > 60:
        default = "a text" if isinstance(spec["default"], str) else "an object"
    kind = spec["type"].replace("_", " ")
    if spec["options"]:
        kind = "one of " + ", ".join(f"`{option['value']}`" for option in spec["options"])
    bounds = [(word, spec[key]) for word, key in (("from", "min_value"), ("to", "max_value")) if spec[key] is not None]
    kind += "".join(f" {word} {bound:g}" for word, bound in bounds)
    meaning = spec["description"] + (" Required." if spec["required"] else "")
    return f"`{spec['name']}`", kind, default, " ".join(meaning.split())


def endpoints() -> str:
    """Every operation of the API by subject."""
    document = json.loads((ROOT / "schemas" / "openapi.json").read_text(encoding="utf-8"))
    by_tag: dict[str, list[tuple[str, ...]]] = {each["name"]: [] for each in document["tags"]}
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                short = path.removeprefix("/api/v1")
                by_tag[item[method]["tags"][0]].append((f"`{method.upper()} {short}`", item[method]["summary"]))
    return "\n\n".join(f"## {tag}\n\n{table(('request', 'what it does'), *rows)}" for tag, rows in by_tag.items())


def lint_rules() -> str:
    """Every rule of lint, the most severe first."""
    rows = [("code", "severity", "what it finds")]
    for severity in SEVERITIES:
        for code, rule in RULES.items():
            if rule.severity == severity:
                shown = f"{severity}, prevents publishing" if rule.prevents_publishing else severity
                rows.append((f"[`{code}`]({code}.md)", shown, rule.title))
    return table(*rows)


PARTS: dict[str, Callable[[], str]] = {
    "settings": settings,
    "node types": nodes,
    "endpoints": endpoints,
    "lint rules": lint_rules,
}


def made(name: str) -> str:
    """The text of a part by its name: one of PARTS, or `help` and a command's name."""
    return help_of(name.removeprefix("help ")) if name.startswith("help ") else PARTS[name]()


def with_parts(page: str) -> str:
    """The text of a page with its parts made."""

    def replaced(found: re.Match[str]) -> str:
        return f"<!-- generated: {found['name']} -->\n{made(found['name'])}\n<!-- end -->\n"

    return PART.sub(replaced, page)


def with_helps(page: str) -> str:
    """The page of commands with a place for the help of each, below its heading."""

    def below(found: re.Match[str]) -> str:
        mark = f"<!-- generated: help {found[1]} -->"
        return found[0] if mark in page else f"{found[0]}\n{mark}\n<!-- end -->\n"

    return re.sub(r"^## (\w+)\n", below, page, flags=re.MULTILINE)


def main() -> None:
    """Write the parts into all pages."""
    commands = ROOT / "docs" / "commands.md"
    commands.write_text(with_helps(commands.read_text(encoding="utf-8")), encoding="utf-8")
    for path in sorted((ROOT / "docs").rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        path.write_text(with_parts(text), encoding="utf-8")


if __name__ == "__main__":
    main()
