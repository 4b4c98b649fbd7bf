"""The parts of the documentation that are made from the code; run as a program, it writes them into the pages.

    .venv/bin/python tests/generated_docs.py

A part stands between two comments of a page: `<!-- generated: NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from inspect import cleandoc
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

import click  # noqa: E402

from voiceapi import config  # noqa: E402
from voiceapi.cli.main import group  # noqa: E402
from voiceapi.config import MEANINGS, Settings  # noqa: E402
from voiceapi.engine.validation.finding import RULES, SEVERITIES  # noqa: E402
from voiceapi.telephony.carriers.jambonz import Jambonz  # noqa: E402
from voiceapi.telephony.carriers.voices import VOICES  # noqa: E402
from voiceapi.telephony.connect import CARRIERS  # noqa: E402
from voiceapi.workflows import node_types  # noqa: E402

PART = re.compile(r"^<!-- generated: (?P<name>[\w ]+) -->\n.*?^<!-- end -->\n", re.DOTALL | re.MULTILINE)
# Columns of a command's help.
WIDTH = 100
# Options that mean the same in every command that has them.
COMMON = [("--organization TEXT", "[default: default]"), ("--json", "Write JSON, for machines.")]
# Commands that choose runs as `run list` does.
FILTERED = ["insights", "replay"]
# The bounds of an id or the number of a page, which nobody gets to.
UNBOUNDED = re.compile(r" ?\[1<=x<=9223372036854775807\]|; 1<=x<=2147483648|1<=x<=9223372036854775807; ")


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
    """The usage, meaning and options of a command, or of each command below a group."""
    return "```text\n" + "\n\n".join(_help(*each) for each in _commands(command_of(group, name), name)) + "\n```"


def command_of(group: click.Group, name: str) -> click.Command:
    """A command of a group, which imports it first."""
    found = group.get_command(click.Context(group), name)
    assert found is not None, name
    return found


def _commands(command: click.Command, path: str) -> Iterator[tuple[click.Command, str]]:
    if not isinstance(command, click.Group):
        yield command, path
        return
    for name in command.list_commands(click.Context(command)):
        yield from _commands(command_of(command, name), f"{path} {name}")


def _help(command: click.Command, path: str) -> str:
    """A command's usage, the first paragraph of its help, and its options but for COMMON ones."""
    context = click.Context(command, info_name=f"voiceapi {path}", terminal_width=WIDTH, max_content_width=WIDTH)
    options = _options(command)
    filters = _filters()
    usage = [each for each in COMMON if each in options.items()]
    shown = {option: meaning for option, meaning in options.items() if (option, meaning) not in COMMON}
    words = [f"[{option}]" for option, _ in usage]
    if path != "run list" and filters.items() <= shown.items():
        shown = {option: meaning for option, meaning in shown.items() if option not in filters}
        words.append("[FILTERS]")
    words += ["[OPTIONS]"] if shown else []
    _, *arguments = command.collect_usage_pieces(context)
    formatter = context.make_formatter()
    formatter.write_usage(context.command_path, " ".join([*words, *arguments]), "")
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text(cleandoc(command.help or "").partition("\n\n")[0])
    if shown:
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_dl(list(shown.items()))
    return formatter.getvalue().strip()


def _options(command: click.Command) -> dict[str, str]:
    context = click.Context(command)
    records = [each.get_help_record(context) for each in command.params if isinstance(each, click.Option)]
    return {
        option.replace(" RANGE", ""): UNBOUNDED.sub("", meaning).strip() for option, meaning in filter(None, records)
    }


def _filters() -> dict[str, str]:
    """The options that choose runs: those that all commands have that take them."""
    run = command_of(group, "run")
    assert isinstance(run, click.Group)
    first, *others = map(_options, (command_of(run, "list"), *(command_of(group, name) for name in FILTERED)))
    return {
        option: meaning
        for option, meaning in first.items()
        if (option, meaning) not in COMMON and all(other.get(option) == meaning for other in others)
    }


def nodes() -> str:
    """The members that node types share, then those of each type alone, with their types and defaults."""
    types = node_types.by_name()
    sharing: dict[tuple[str, str], dict[str, str]] = {}
    for name, spec in types.items():
        for member, kind, default in map(_member, spec["properties"]):
            sharing.setdefault((member, kind), {})[name] = default
    shared = [(*key, users) for key, users in sharing.items() if len(users) > 1]
    lines = [f"* {member} ({kind}): {_users(users)}" for member, kind, users in shared]
    for name, spec in types.items():
        own = [each for each in map(_member, spec["properties"]) if len(sharing[each[:2]]) == 1]
        members = ", ".join(f"{member} ({kind}{default and f', {default}'})" for member, kind, default in own)
        lines += [f"* **{name}**: {members}"] if own else []
    return "\n".join(lines)


def _users(defaults: dict[str, str]) -> str:
    """The node types that have a member, each with its default."""
    return ", ".join(f"{name} {default}".strip() for name, default in defaults.items())


def _member(spec: dict[str, Any]) -> tuple[str, str, str]:
    """A member's name, its type with its bounds, and its default."""
    default = "" if spec["default"] is None else f"`{json.dumps(spec['default'], ensure_ascii=False)}`"
    if len(default) > 60:
        default = "a text" if isinstance(spec["default"], str) else "an object"
    kind = spec["type"].replace("_", " ")
    if spec["options"]:
        kind = "one of " + ", ".join(f"`{option['value']}`" for option in spec["options"])
    bounds = [(word, spec[key]) for word, key in (("from", "min_value"), ("to", "max_value")) if spec[key] is not None]
    kind += "".join(f" {word} {bound:g}" for word, bound in bounds)
    kind += ", required" if spec["required"] else ""
    return f"`{spec['name']}`", kind, default


def lint_rules() -> str:
    """The code of every rule of lint, the most severe first."""
    parts = []
    for severity in SEVERITIES:
        for needed in (True, False):
            found = [
                code for code, rule in RULES.items() if (rule.severity, rule.prevents_publishing) == (severity, needed)
            ]
            heading = f"**{severity.capitalize()}s{', which prevent publishing' if needed else ''}**"
            parts += [f"{heading}: {', '.join(f'[{code}]({code}.md)' for code in found)}"] if found else []
    return "\n\n".join(parts)


def pauses() -> str:
    """After which pause each carrier ends what the caller says."""
    rows = [("carrier", "quick", "normal", "patient", "seconds")]
    for carrier in CARRIERS.values():
        known, own = carrier.pauses, "the vendor's own" if carrier is Jambonz else "`auto`"
        named = [own if each is None else f"{each:g} s" for each in (known.quick, known.normal, known.patient)]
        kind = "whole, " if known.whole else ""
        limits = "no effect" if known.limits is None else f"{kind}{known.limits[0]:g} to {known.limits[1]:g}"
        rows.append((carrier.name, *named, limits))
    return table(*rows)


def voices() -> str:
    """What each carrier calls the voices of each language, by kind."""
    carriers: dict[tuple[str, str], list[str]] = {}
    for carrier in CARRIERS.values():
        if carrier.voices:
            named = [carrier.voices.get(kind, "its usual one") for kind in ("natural", "standard")]
            carriers.setdefault((named[0], named[1]), []).append(carrier.name)
    rows = [("language", *map(", ".join, carriers.values()))]
    for tag, voice in VOICES.items():
        spoken = [[form.format(voice) or "its usual one" for form in dict.fromkeys(forms)] for forms in carriers]
        rows.append((tag, *("; ".join(each) for each in spoken)))
    return table(*rows)


PARTS: dict[str, Callable[[], str]] = {
    "settings": settings,
    "node types": nodes,
    "lint rules": lint_rules,
    "pauses": pauses,
    "voices": voices,
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
