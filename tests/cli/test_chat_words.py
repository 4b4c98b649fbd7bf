"""`voiceapi chat` with a model that streams: words as they come in a terminal, whole lines anywhere else."""

from __future__ import annotations

import itertools
import json
import os
import pty
import select
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from streamed import Gate, StreamingServer, Writer, events, serving

from voiceapi.conversations.conversation import Conversation
from voiceapi.conversations.local import LocalConversation
from voiceapi.llm.streams import words
from voiceapi.service import Service

from .conftest import KEY, command_on

HELLO = "Hello, is now a good time?"
FIRST, SECOND = "I have noted that for you now.", "Anything else?"


@pytest.fixture
def server() -> Iterator[StreamingServer]:
    with serving() as found:
        yield found


@pytest.fixture
def agent(tmp_path: Path, talk: Callable[..., Any]) -> str:
    path = tmp_path / "agent.json"
    path.write_text(json.dumps(talk()))
    return str(path)


def reply(text: str) -> Iterator[bytes]:
    """The events of a reply: its role, each word, and its end in three more."""
    return events({"choices": [{"message": {"role": "assistant", "content": text}}]})


class Terminal:
    """A command in a terminal of its own; `seen` is what it shows."""

    def __init__(self, *arguments: str, **env: str) -> None:
        self.seen = ""
        self._pid, self._screen = pty.fork()
        if self._pid == 0:
            # A shell has what it starts in the background ignore an interrupt, the tests and their children included.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.execve(sys.executable, [sys.executable, "-m", "voiceapi", *arguments], {**os.environ, **env})

    def until(self, text: str) -> None:
        """Read until it shows this text, which has to come within a minute."""
        while text not in self.seen:
            if not select.select([self._screen], [], [], 60)[0]:
                os.kill(self._pid, signal.SIGKILL)  # else it waits for input for ever
                raise AssertionError(f"{text!r} doesn't come after {self.seen!r}")
            part = os.read(self._screen, 4096)
            assert part, self.seen
            self.seen += part.decode()

    def type(self, text: str) -> None:
        os.write(self._screen, text.encode())

    def close(self) -> None:
        """Wait until it has ended."""
        with suppress(OSError):  # of a terminal that nobody writes to any more
            while part := os.read(self._screen, 4096):
                self.seen += part.decode()
        os.close(self._screen)
        _, status = os.waitpid(self._pid, 0)
        self.code = os.waitstatus_to_exitcode(status)


def test_in_a_terminal_words_are_shown_as_they_come(
    server: StreamingServer, agent: str, tmp_path: Path, database_at: Callable[[Path], str]
) -> None:
    gate, last = Gate(), Gate()
    text = reply(f"{FIRST} {SECOND}")
    server.script = [
        [*itertools.islice(text, 4), gate, *text],
        [*itertools.islice(reply("One moment please. Then"), 4), last],
    ]
    env = {"VOICEAPI_LLM_URL": server.url, "VOICEAPI_DATABASE": database_at(tmp_path / "v.db"), "VOICEAPI_API_KEY": KEY}
    with closing(Terminal("chat", agent, **env)) as terminal:
        terminal.until("you: ")
        terminal.type("Hm.\n")
        terminal.until("agent: I have noted")
        assert not gate.opened.is_set()
        gate.open()
        terminal.until(f"agent: {FIRST} {SECOND}\r\nyou: ")
        terminal.type("Well.\n")
        terminal.until("agent: One moment please.")
        # Ctrl-C while the agent speaks hangs up, and the rest isn't waited for.
        terminal.type("\x03")
        terminal.until("-- user_hangup; gathered: {}\r\n")
        assert not last.opened.is_set()
    assert terminal.code == 0
    last.open()
    shown = terminal.seen.replace("^C", "")
    assert shown == "\r\n".join(
        [
            f"agent: {HELLO}",
            "you: Hm.",
            f"agent: {FIRST} {SECOND}",
            "you: Well.",
            "agent: One moment please.",
            "-- user_hangup; gathered: {}",
            "",
        ]
    )


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_anywhere_else_it_writes_the_same_bytes_whether_the_model_streams_or_not(
    server: StreamingServer,
    agent: str,
    tmp_path: Path,
    database_at: Callable[[Path], str],
    options: tuple[str, ...],
) -> None:
    run, found = command_on(database_at(tmp_path / "v.db")), []
    for streams in ("on", "off"):
        server.script = [[*reply(f"{FIRST} {SECOND}")]]
        env = {"VOICEAPI_LLM_URL": server.url, "VOICEAPI_LLM_STREAM": streams}
        result = run("chat", agent, *options, input="Hm.\n", **env)
        assert (result.exit_code, result.stderr) == (0, "")
        found.append(result.stdout)
    assert found[0] == found[1]
    if not options:
        assert found[0] == f"agent: {HELLO}\nagent: {FIRST} {SECOND}\n-- user_hangup; gathered: {{}}\n"


def test_what_was_said_before_an_interrupt_is_kept(service: Service, db: None, talk: Callable[..., Any]) -> None:
    """The request to the model is closed, and the rest of the answer isn't said."""
    gate, given_out = Gate(), []
    writer = Writer([f"{FIRST} ", gate, SECOND])
    object.__setattr__(service, "model", writer.model)

    def interrupt(text: str, begins: bool) -> None:
        given_out.append((text, begins))
        if text == FIRST:
            raise KeyboardInterrupt

    inner = Conversation.of_definition(service, talk(), {}, {}, pace=words)
    conversation = LocalConversation(inner, on_words=interrupt)
    assert conversation.start() == [HELLO]
    with pytest.raises(KeyboardInterrupt):
        conversation.say("Hm.")
    conversation.hang_up()
    assert given_out == [(HELLO, True), (FIRST, True)]
    said = [(line["role"], line["text"]) for line in conversation.transcript]
    assert said == [("assistant", HELLO), ("user", "Hm."), ("assistant", FIRST)]
    assert (conversation.outcome()["disposition"], writer.left) == ("user_hangup", 1)
