"""The commands `chat` and `validate`, which try out and check a workflow without a call, and dialogues as text."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any, BinaryIO

import click
from flask.cli import with_appcontext

from ..config import PREFIX
from ..conversations.conversation import Conversation, Progress
from ..conversations.local import LocalConversation
from ..engine.graph import Graph
from ..engine.validation.graph_rules import check
from ..engine.validation.lint import lint
from ..engine.validation.outline import Outline
from ..llm import selection
from ..llm.model_needs import model_needs
from ..llm.streams import words
from ..organizations import api_keys
from ..rehearsal.cases import CaseResult, Line, Mismatch
from ..store.base import find
from ..store.organizations import Organization
from ..tools import catalog
from ..workflows import node_types
from .base import JSON, TEXT, current_service, errors_as_lines, with_session
from .definitions import STANDARD_INPUT, file_name, is_stored, read_definition, read_file, show_findings
from .output import columns, printable
from .trace import lines, model_lines, variables_line
from .watch import EVERY, Watcher, announce

# How the lines of each kind begin.
SPEAKERS = {
    "caller": "caller",
    "agent": "agent",
    "edge": "-> edge",
    "tool": "-> tool",
    "answer": "<- tool",
    "error": "error",
}
MARK = ">"
WIDEST_NODE = 20


@click.command("chat")
@click.argument("workflow")
@click.option(
    "--set", "variables", type=TEXT, multiple=True, metavar="NAME=VALUE", help="A variable of the initial context."
)
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Show the edge taken, functions with their answers, variables, the model and its time.",
)
@click.option("--watch", is_flag=True, help="Begin again whenever the file is saved, with what you have said so far.")
@JSON
@with_appcontext
@with_session
def chat(workflow: str, variables: tuple[str, ...], verbose: bool, watch: bool, as_json: bool) -> None:
    """Talk to WORKFLOW, a definition's file or a stored workflow's id, by text.

    What you type is what the caller says; an empty line is silence, the end of the input or Ctrl-C hangs up. In a
    terminal the agent's words are written as the language model writes them, unless --verbose has more to say before.
    What fails, such as the model, is written to standard error with its reason. A definition in a file uses the tools,
    documents and language model of the default organization.
    """
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    if workflow == STANDARD_INPUT:
        raise click.UsageError("WORKFLOW must be a file or an id, because standard input is what the caller says.")
    context = dict(_pair(pair) for pair in variables)
    speaker = Speaker(is_live=sys.stdout.isatty() and not verbose and not as_json, is_silent=as_json)
    if watch:
        if as_json or is_stored(workflow):
            raise click.UsageError("--watch takes a file, and no --json.")
        opened = partial(_opened, workflow, context, speaker, verbose=verbose)
        talk_again_on_change(workflow, lambda: opened()[0], TypedLines().next, speaker)
        return
    conversation, trace = _opened(workflow, context, speaker, verbose=verbose, write=not as_json)
    try:
        speaker.show(conversation.start())
        while not conversation.is_over:
            speaker.show(conversation.say(input("you: " if sys.stdin.isatty() and not as_json else "")))
    except (EOFError, KeyboardInterrupt):
        speaker.end_line()
        conversation.hang_up()
    if as_json:
        found = {"transcript": conversation.transcript, **conversation.outcome(), "errors": conversation.errors}
        if verbose:
            found["trace"] = trace.turns
        click.echo(json.dumps(found, ensure_ascii=False, indent=2))
    else:
        show_outcome(conversation)


class Speaker:
    """Writes what the agent says: if it `is_live` each word when it is there, else each speech of a whole answer."""

    def __init__(self, *, is_live: bool = False, is_silent: bool = False) -> None:
        self.is_live, self._is_silent = is_live, is_silent
        self._is_within_line = False

    def add(self, text: str, begins: bool) -> None:
        """Write further words of an answer, if it is live; `begins` says that a speech begins with them."""
        if self.is_live:
            if begins:
                self.end_line()
            click.echo(f"agent: {text}" if begins else text, nl=False)
            self._is_within_line = True

    def show(self, speeches: Sequence[str]) -> None:
        """Write the speeches of an answer that is whole, unless its words were written."""
        self.end_line()
        for text in () if self.is_live or self._is_silent else speeches:
            click.echo(f"agent: {text}")

    def end_line(self) -> None:
        """End the line of a speech that is being written."""
        if self._is_within_line:
            click.echo()
        self._is_within_line = False


def show_outcome(conversation: LocalConversation) -> None:
    """Write how a conversation ended, and what it gathered."""
    outcome = conversation.outcome()
    click.echo(f"-- {outcome['disposition']}; gathered: {json.dumps(outcome['gathered'], ensure_ascii=False)}")


def _opened(
    workflow: str, context: Mapping[str, Any], speaker: Speaker, *, verbose: bool, write: bool = True
) -> tuple[LocalConversation, Trace]:
    """A conversation with a workflow that hasn't begun, and its trace.

    :param write: write the trace; else it is only kept.
    :raises click.ClickException: when the workflow can't be run.
    """
    definition, configurations, stored = read_definition(workflow)
    outline = Outline.of(definition)
    findings = check(outline, node_types.rules())
    if findings:
        raise click.ClickException(f"{workflow} can't be run: {findings[0].message} Try `voiceapi validate`.")
    if stored is None:
        default = find(Organization, name=api_keys.DEFAULT_ORGANIZATION)
        organization, workflow_id = (None if default is None else default.id), None
    else:
        organization, workflow_id = stored.organization_id, stored.id
    service = current_service()
    if selection.is_scripted(selection.choose(service, organization, configurations)):
        usable = catalog.usable_without_model(catalog.attached(organization, outline))
        show_findings("warning", model_needs(outline, usable), err=True)
    inner = Conversation.of_definition(
        *(service, definition, configurations, context, organization, workflow_id),
        pace=words if speaker.is_live else None,
    )
    trace = Trace(inner.graph, write=write)

    def show_error(error: Mapping[str, str]) -> None:
        speaker.end_line()
        click.echo(printable(f"error: {error['processor']}: {error['error']}"), err=True)

    note = trace.note if verbose else lambda _: None
    conversation = LocalConversation(inner, on_error=show_error, on_progress=note, on_words=speaker.add)
    return conversation, trace


def talk_again_on_change(
    workflow: str,
    open_conversation: Callable[[], LocalConversation],
    next_line: Callable[[float], str | None],
    speaker: Speaker,
) -> None:
    """Talk to the workflow in a file, again from the beginning whenever the file is saved.

    What the caller has said so far is said again then, so that the answer of what was saved is there at once. A file
    that can't be run is reported, and the conversation before it goes on.

    :param open_conversation: opens a conversation with what the file holds now.
    :param next_line: as `TypedLines.next`.
    """
    watcher = Watcher(lambda: [Path(workflow)])
    said: list[str] = []
    conversation = _spoken(open_conversation(), said, speaker)
    try:
        while True:
            line = next_line(EVERY)
            if changed := watcher.changed():
                announce(changed)
                try:
                    with errors_as_lines():
                        conversation = _spoken(open_conversation(), said, speaker)
                except click.ClickException as error:
                    error.show()
            if line is not None and conversation.is_over:
                said = []
                conversation = _spoken(open_conversation(), said, speaker)
            elif line is not None:
                said.append(line)
                _answer(conversation, line, speaker)
    except (EOFError, KeyboardInterrupt):
        speaker.end_line()
        if not conversation.is_over:
            conversation.hang_up()
            show_outcome(conversation)


def _spoken(conversation: LocalConversation, said: Sequence[str], speaker: Speaker) -> LocalConversation:
    """A conversation that has begun and in which all this was said, as far as it went."""
    speaker.show(conversation.start())
    for line in said:
        if not conversation.is_over:
            click.echo(f"you: {line}")
            _answer(conversation, line, speaker)
    return conversation


def _answer(conversation: LocalConversation, line: str, speaker: Speaker) -> None:
    speaker.show(conversation.say(line))
    if conversation.is_over:
        show_outcome(conversation)


class Trace:
    """What `chat --verbose` shows of each turn before the agent's answer.

    :param write: write the lines; else they are only kept, in `turns`.
    """

    def __init__(self, graph: Graph, *, write: bool) -> None:
        self.turns: list[list[str]] = []
        self._graph = graph
        self._write = write
        self._variables: Mapping[str, Any] = {}

    def note(self, progress: Progress) -> None:
        variables = progress.state.gathered_context.get("extracted_variables", {})
        found = [*model_lines(progress)]
        found += [line for record in progress.records for line in lines(record, self._graph)]
        found += variables_line(self._variables, variables)
        # An error is written to standard error when it occurs.
        found = [line for line in found if not line.startswith("error: ")]
        self._variables = variables
        self.turns.append(found)
        for line in found if self._write else ():
            click.echo(f"  {line}")


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise click.UsageError(f"--set takes NAME=VALUE, not {text!r}.")
    return name, value


@click.command("validate")
@click.argument("file")
@JSON
def validate(file: str, as_json: bool) -> None:
    """Check the workflow definition in FILE. Exit code 1 when it isn't valid."""
    outline = Outline.of(read_file(file))
    errors = check(outline, node_types.rules())
    warnings = lint(outline, node_types.rules())
    if not os.environ.get(f"{PREFIX}LLM_URL"):
        warnings += model_needs(outline)
    if as_json:
        found = {"is_valid": not errors, "errors": errors, "warnings": warnings}
        click.echo(json.dumps(found, default=lambda item: item.as_dict(), ensure_ascii=False, indent=2))
    else:
        show_findings("error", errors)
        show_findings("warning", warnings)
        click.echo(f"{file_name(file)} is {'not valid' if errors else 'valid'}.")
    sys.exit(1 if errors else 0)


# -- typed lines, read while the files are watched


class TypedLines:
    """Reads standard input in another thread, which ends with the process at the latest."""

    def __init__(self) -> None:
        self._lines: Queue[str | None] = Queue()
        Thread(target=self._read, daemon=True).start()

    def next(self, timeout: float) -> str | None:
        """Return the next line, or None when there is none within `timeout` seconds.

        :raises EOFError: after the last line.
        """
        try:
            line = self._lines.get(timeout=timeout)
        except Empty:
            return None
        if line is None:
            raise EOFError
        return line

    def _read(self) -> None:
        try:
            for line in _source():
                self._lines.put(line.decode(errors="replace").rstrip("\r\n"))
        finally:
            self._lines.put(None)


def _source() -> BinaryIO:
    """Standard input without a buffer, whose lock a thread that waits for a line would hold when Python ends."""
    try:
        return os.fdopen(sys.stdin.fileno(), "rb", buffering=0, closefd=False)
    except io.UnsupportedOperation:
        return sys.stdin.buffer


# -- dialogues of cases


def dialogue(result: CaseResult, wrong: Callable[[str], str] = str) -> Iterator[str]:
    """The lines of a conversation; those that aren't as expected begin with a mark, and what was expected follows.

    What concerns the whole conversation is at the end.

    :param wrong: what is done with a line that isn't as expected, or says what was.
    """
    room = min(WIDEST_NODE, max((columns(printable(line.node_name)) for line in result.dialogue), default=0))
    for index, line in enumerate(result.dialogue):
        found = [each for each in result.mismatches if each.line == index]
        shown = _line(line, room)
        yield wrong(f"{MARK} {shown}") if found else f"  {shown}"
        for each in found:
            yield from map(wrong, _mismatch(each))
    rest = [each for each in result.mismatches if each.line is None]
    if rest:
        yield wrong(f"{MARK} The conversation as a whole")
    for each in rest:
        yield from map(wrong, _mismatch(each))


def _line(line: Line, room: int) -> str:
    node = printable(line.node_name)
    while columns(node) > room:
        node = node[:-1]
    padding = " " * (room - columns(node))
    return f"{node}{padding}  {SPEAKERS[line.role]:<7}  {printable(line.text)}"


def _mismatch(found: Mismatch) -> Iterator[str]:
    yield f"      {found.place}"
    yield f"        expected: {printable(found.expected)}"
    yield f"        but:      {printable(found.found)}"
