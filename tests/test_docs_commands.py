"""The shell blocks of the pages can be pasted in a checkout: programs, commands, options and files exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from voiceapi.cli.main import group

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)
# Programs of the system and the shell's own, those in .venv/bin, and those of language models.
SYSTEM = {
    "cat",
    "cloudflared",
    "cmp",
    "cp",
    "curl",
    "echo",
    "export",
    "grep",
    "kill",
    "mkdir",
    "printf",
    "python3",
    "sed",
    "sleep",
    "sqlite3",
    "wait",
}
INSTALLED = {"flask", "mypy", "pip", "python", "ruff", "voiceapi"}
MODELS = {"llama-server", "ollama"}
# What a command reads from the lines after it.
HERE = re.compile(r"<<'(\w+)'\n.*?^\1$", re.DOTALL | re.MULTILINE)
KEYWORDS = {"!", "do", "done", "else", "fi", "for", "if", "then", "until", "while", "{", "}"}
FILES = re.compile(r"(?:examples|schemas|tests|docs|benchmarks)/[\w./-]+|app\.py|requirements\.txt")
# commands.md shows what a mistyped one prints.
MISTYPED = "nothing"


def commands(block: str) -> Iterator[list[str]]:
    """The simple commands of a block, each a list of words; variables set before the program are left out."""
    lexer = shlex.shlex(HERE.sub("", block).replace("\\\n", " "), posix=True, punctuation_chars="();<>|&\n")
    lexer.whitespace, lexer.whitespace_split = " \t", True
    command: list[str] = []
    for token in [*lexer, "\n"]:
        if not set(token) <= set("();|&\n"):
            command.append(token)
            continue
        if token.startswith("()"):
            yield ["function", *command]
            command = []
            continue
        while command and (command[0] in KEYWORDS or re.match(r"\w+=", command[0])):
            # What follows `for` are names and values; `X=$` stands before a command in brackets.
            command = [] if command[0] == "for" else command[1:]
        if command and command != ["$"]:
            yield command
        command = []


def wrong_with(arguments: list[str]) -> str | None:
    """What is wrong with the arguments of `voiceapi`: a command or an option that isn't there."""
    command: click.Command = group
    for word in arguments:
        if word in (">", "<", ">>"):
            break
        if isinstance(command, click.Group) and not word.startswith("-"):
            if word == MISTYPED:
                return None
            below = command.get_command(click.Context(command), word)
            if below is None:
                return f"no command {word}"
            command = below
        elif word.startswith("--"):
            known = {option for param in command.params for option in param.opts} | {"--help"}
            if word not in known:
                return f"no option {word} of {command.name}"
    return None


def wrong_in_blocks(content: str) -> Iterator[str | None]:
    """What is wrong in the shell blocks of a page; None for each command of ours in which nothing is."""
    found = [command for block in BLOCK.findall(content) for command in commands(block)]
    functions = {command[1] for command in found if command[0] == "function"}
    installed = {word for command in found if command[0] == ".venv/bin/pip" for word in command[1:]}
    for program, *arguments in found:
        folder, _, name = program.rpartition("/")
        if program == "function" or program in SYSTEM | MODELS | functions | {".ci/run"}:
            continue
        if folder == ".venv/bin" and name in installed:
            continue
        if folder != ".venv/bin" or name not in INSTALLED:
            yield f"{program} is not there"
        elif name == "voiceapi":
            yield wrong_with(arguments)
        elif name == "flask" and "voiceapi" in arguments:
            yield wrong_with(arguments[arguments.index("voiceapi") + 1 :])
    named = [path for block in BLOCK.findall(content) for path in FILES.findall(block)]
    yield from (f"no file {path}" for path in named if not (ROOT / path.rstrip(".")).exists())


def wrong_in_sentences(content: str) -> Iterator[str | None]:
    """What is wrong with the commands that a page's sentences name; None for each in which nothing is."""
    sentences = re.sub(r"^```.*?^```", "", content, flags=re.DOTALL | re.MULTILINE)
    named = re.findall(r"`(?:\.venv/bin/|flask )?voiceapi ((?:[a-z]|--)[^`]*)`", sentences)
    yield from (wrong_with(shlex.split(command)) for command in named)


@pytest.mark.parametrize("wrong_in", [wrong_in_blocks, wrong_in_sentences])
def test_commands_and_files_that_are_named_exist(wrong_in: Callable[[str], Iterator[str | None]]) -> None:
    contents = {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in PAGES}
    assert [(page, wrong) for page, content in contents.items() for wrong in wrong_in(content) if wrong] == []


def test_what_is_wrong_on_a_page_is_found() -> None:
    block = (
        "```sh\n.venv/bin/voiceapi keys make x\ncurk http://x/\n.venv/bin/python -m pytest tests/test_none.py\n```\n"
    )
    found = ["no command make", "curk is not there", "no file tests/test_none.py"]
    assert list(filter(None, wrong_in_blocks(block))) == found
    assert list(filter(None, wrong_in_sentences(f"{block}`voiceapi make` and `voiceapi keys list`"))) == [
        "no command make"
    ]


def test_nothing_installs_our_name_from_an_index() -> None:
    """Whoever has that name there would run code on a reader's machine."""
    places = [*PAGES, ROOT / "Dockerfile", *(ROOT / "deploy").iterdir(), *(ROOT / "voiceapi").rglob("*.py")]
    command = re.compile(r"""\binstall\b(?! -d)[^\n`]*[\s'"]voiceapi(?=[\['"\s`]|==|$)""")
    assert [path.name for path in places if command.search(path.read_text(encoding="utf-8"))] == []


def test_commands_in_a_container_name_one_that_is_started() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert set(re.findall(r"docker exec (\w+)", text)) <= set(re.findall(r"docker run .*--name (\w+)", text)), page


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("voiceapi --version\n", [["voiceapi", "--version"]]),
        ("KEY=$(.venv/bin/voiceapi keys create x)\n", [[".venv/bin/voiceapi", "keys", "create", "x"]]),
        ("A=1 one a | two b; three && four & five\n", [["one", "a"], ["two", "b"], ["three"], ["four"], ["five"]]),
        ("until one; do two; done\n", [["one"], ["two"]]),
        ("for n in 1 2; do one $n; done\n", [["one", "$n"]]),
        ("api() { curl -s \"$1\"; }\napi 'a\nb'\n", [["function", "api"], ["curl", "-s", "$1"], ["api", "a\nb"]]),
        ("one a \\\n  b > c\n", [["one", "a", "b", ">", "c"]]),
    ],
)
def test_a_block_is_split_into_commands(block: str, expected: list[list[str]]) -> None:
    assert list(commands(block)) == expected


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("keys create x --organization y", None),
        ("campaign watch 1 --json", None),
        ("keys make x", "no command make"),
        ("chat 1 --variable x=y", "no option --variable of chat"),
    ],
)
def test_what_is_wrong_with_a_command_is_found(command: str, error: str | None) -> None:
    assert wrong_with(command.split()) == error
