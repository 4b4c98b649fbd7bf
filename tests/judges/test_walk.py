"""Judges the first call of docs/carriers.md: its commands, to the letter, in a new checkout, against a strict Twilio.

Once by three commands, and once by curl. A person with a Twilio account is simulated: terminals, a telephone, and a
Twilio that is reached by its own name.
"""

from __future__ import annotations

import os
import pty
import re
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest
from internet import Internet
from strict_twilio import APPLICATION_ERROR, NOTICE, Call, Person, StrictTwilio

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "carriers.md").read_text(encoding="utf-8")
CHECKOUT = ("voiceapi", "schemas", "examples", "app.py")
TUNNEL, ANOTHER = ("four-random-english-words.trycloudflare.com", "another-four-random-words.trycloudflare.com")
OURS, MINE, STRANGER = "+12025550188", "+12025550123", "+12025550166"
GREETING = "Hello, this is your first voice agent. Can you hear me well?"
SPOKEN = [GREETING, "Good. Please say a number between one and ten.", "Thank you, I have noted your number. Goodbye."]
DONE = "-- done --"

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        any(shutil.which(program) is None for program in ("bash", "curl", "ps", "python3")),
        reason="the walk needs bash, curl, ps and python3",
    ),
]


def blocks(section: str) -> dict[str, list[str]]:
    """The shell blocks of a section of the page, by the headings of its steps."""
    found = re.search(rf"^## {section}\n(.*?)^## ", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None
    steps = re.split(r"^### (.*)\n", found[1], flags=re.MULTILINE)
    block = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)
    return {heading: block.findall(text) for heading, text in zip(steps[1::2], steps[2::2], strict=True)}


[SERVE, IMPORT, CONNECT] = blocks("A first call with Twilio")["Three commands"]
BLOCKS = blocks("The same by curl")
OPEN, VALUES, START, SET_UP, OUTBOUND, INBOUND, NEW_TUNNEL, TROUBLE = BLOCKS


# A program that was started in the background ignores interrupts, and so would the shell and all that it starts.
SHELL = """
import os, signal
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execvp("bash", ["bash", "--noprofile", "--norc"])
"""


class Terminal:
    """A shell in the checkout, with nothing of this one's environment."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._keyboard, keys = pty.openpty()
        settings = termios.tcgetattr(keys)
        settings[3] &= ~termios.ECHO
        termios.tcsetattr(keys, termios.TCSANOW, settings)
        self._shell = subprocess.Popen(
            [sys.executable, "-c", SHELL],
            cwd=folder,
            env=environment,
            stdin=keys,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        os.close(keys)
        self._shown = bytearray()
        assert self._shell.stdout is not None
        # Passwords are asked for at the terminal itself.
        outputs = (self._shell.stdout.fileno(), self._keyboard)
        self._readers = [Thread(target=self._read, args=(output,)) for output in outputs]
        for reader in self._readers:
            reader.start()

    def _read(self, output: int) -> None:
        with suppress(OSError):  # of a terminal that nobody has open any more
            while shown := os.read(output, 65536):
                self._shown += shown.replace(b"\r\n", b"\n")

    def type(self, block: str) -> None:
        """Paste a block, and don't wait for its end."""
        os.write(self._keyboard, block.encode())

    def paste(self, block: str) -> str:
        """What a block prints."""
        before = len(self.text)
        self.type(f"{block}echo '{DONE}'\n")
        self.wait_for(lambda: f"{DONE}\n" in self.text[before:])
        return self.text[before:].replace(f"{DONE}\n", "").removesuffix("\n")

    def answer(self, question: str, text: str) -> None:
        """Type an answer once the question is asked."""
        before = self.text.count(question)
        self.wait_for(lambda: self.text.count(question) > before or self.text.endswith(question))
        self.type(f"{text}\n")

    def wait_for(self, true: Callable[[], object]) -> None:
        deadline = time.monotonic() + 60
        while not true():
            assert time.monotonic() < deadline, self.text
            time.sleep(0.02)

    @property
    def text(self) -> str:
        return self._shown.decode(errors="replace")

    def shell_children(self) -> list[int]:
        listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
        pairs = (map(int, line.split()) for line in listed.splitlines())
        return [pid for pid, parent in pairs if parent == self._shell.pid]

    def interrupt(self, with_signal: int = signal.SIGINT) -> None:
        """Ctrl-C: the program in the foreground is stopped, the shell goes on."""
        for pid in self.shell_children():
            os.kill(pid, with_signal)

    def close(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._shell.pid, signal.SIGKILL)
        self._shell.wait(60)
        for reader in self._readers:
            reader.join(60)
        os.close(self._keyboard)
        assert self._shell.stdout is not None
        self._shell.stdout.close()


class World:
    """A machine with a new checkout and an empty home, an internet, and a Twilio account."""

    def __init__(self, folder: Path) -> None:
        self.internet = Internet(_made(folder / "internet"))
        self.twilio = StrictTwilio(self.internet, f"https://{TUNNEL}", OURS, trial=True)
        self.twilio.verified.add(MINE)
        self.twilio.people[MINE] = Person(["Yes, I can.", "Seven, please."])
        self.checkout, home, programs = (_made(folder / name) for name in ("checkout", "home", "programs"))
        for name in CHECKOUT:
            source = ROOT / name
            if source.is_file():
                shutil.copy2(source, self.checkout)
            else:
                shutil.copytree(source, self.checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name, arguments in (("python", ""), ("voiceapi", "-m voiceapi")):
            _program(
                self.checkout / ".venv" / "bin" / name,
                f'PYTHONPATH="{self.internet.site}:{self.checkout}" exec "{sys.executable}" {arguments} "$@"',
            )
        self.cloudflared = programs / "pid"
        self.address = programs / "address"
        self.address.write_text(TUNNEL, encoding="utf-8")
        script = (
            f"""echo $$ > "{self.cloudflared}"; echo "INF |  https://$(cat '{self.address}')  |" >&2; exec sleep 300"""
        )
        _program(programs / "cloudflared", script)
        self.port = _free_port()
        self.environment = {
            **self.internet.environment,
            "HOME": str(home),
            "PATH": f"{programs}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "VOICEAPI_PORT": str(self.port),
            # As if it were nowhere else: what the operator sets may lead to a private address, as this test's does.
            "VOICEAPI_TWILIO_URL": "https://api.twilio.com",
        }
        self._terminals: list[Terminal] = []

    def terminal(self) -> Terminal:
        self._terminals.append(Terminal(self.checkout, self.environment))
        return self._terminals[-1]

    def close(self) -> None:
        for terminal in self._terminals:
            terminal.close()
        self.twilio.close()
        self.internet.close()

    # -- what the person does

    def values(self, **changed: str) -> str:
        """The block of values, each replaced by the person's own."""
        own = {
            "VOICEAPI_PUBLIC_URL": self.twilio.public,
            "TWILIO_ACCOUNT_SID": self.twilio.account_sid,
            "TWILIO_AUTH_TOKEN": self.twilio.auth_token,
            "TWILIO_NUMBER": OURS,
            "MY_NUMBER": MINE,
            **changed,
        }
        [block] = BLOCKS[VALUES]
        assert re.findall(r"^export (\w+)=\S+$", block, re.MULTILINE) == list(own) == re.findall(r"\w+(?==)", block)
        return "".join(f"export {name}={value}\n" for name, value in own.items() if value)

    def open_tunnel(self) -> None:
        terminal = self.terminal()
        [block] = BLOCKS[OPEN]
        terminal.type(block)
        terminal.wait_for(lambda: f"https://{TUNNEL}" in terminal.text)
        self.internet.tunnels[TUNNEL] = self.port

    def has_tunnel(self) -> bool:
        """True if cloudflared runs."""
        try:
            os.kill(int(self.cloudflared.read_text()), 0)
        except ProcessLookupError:
            return False
        return True

    def start(self, terminal: Terminal) -> None:
        [block] = BLOCKS[START]
        started = terminal.text.count(" listens on ")
        terminal.type(block)
        terminal.wait_for(lambda: terminal.text.count(" listens on ") > started)


def _free_port() -> int:
    """A free port that no system gives away by itself before the service has started."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _program(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    try:
        yield world
    finally:
        world.close()


def served(world: World, **values: str) -> tuple[Terminal, Terminal]:
    """The second and the third terminal, with the service started in the second one."""
    world.open_tunnel()
    second, third = world.terminal(), world.terminal()
    for terminal in (second, third):
        assert terminal.paste(world.values(**values)) == ""
    world.start(second)
    return second, third


def said(call: Call) -> list[str]:
    """What the person heard of the agent."""
    return [text for text in call.heard if text != NOTICE]


def all_good(doctor: str) -> None:
    """Doctor finds nothing wrong with the public URL and the configuration, whatever it advises."""
    lines = [line for line in doctor.splitlines() if " advice: " not in line]
    assert [line for line in lines if "good" not in line] == []
    for part in (TUNNEL, "'Twilio' (twilio"):
        assert any(part in line for line in lines)


def test_three_commands(world: World) -> None:
    world.internet.tunnels |= {TUNNEL: world.port, ANOTHER: world.port}
    first, second = world.terminal(), world.terminal()
    first.type(SERVE)
    first.wait_for(lambda: f"Tunnel: https://{TUNNEL}\n" in first.text)
    assert re.search(r"^workflow +First call +1 ", second.paste(IMPORT), re.MULTILINE)
    second.type(CONNECT)
    second.answer("Account SID: ", world.twilio.account_sid)
    second.answer("Auth token: ", world.twilio.auth_token)
    second.answer(f"Number [{OURS}]: ", "")
    second.answer("Change this? [y/N]: ", "y")
    second.answer("(empty: none): ", MINE)
    second.wait_for(lambda: re.search(r"^-- .* s$", second.text, re.MULTILINE))
    assert said(world.twilio.last_call()) == SPOKEN
    # What the page shows is what was shown, but for the answers and the seconds.
    [shown] = re.findall(r"^```\n(Account SID.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    questions = "Account SID|Auth token|Number|Change this|Your own|--"
    lines = [line for line in shown.splitlines() if not re.match(questions, line)]
    assert [line for line in lines if line not in second.text] == []
    assert re.search(r"^-- user_qualified; run 1, \d+ s$", second.text, re.MULTILINE)
    assert world.twilio.auth_token not in second.text
    assert said(world.twilio.call_in(MINE, OURS)) == SPOKEN

    # Another start, another address: the number follows it.
    first.interrupt()
    first.wait_for(lambda: not world.has_tunnel())
    del world.internet.tunnels[TUNNEL]
    world.address.write_text(ANOTHER, encoding="utf-8")
    world.twilio.public = f"https://{ANOTHER}"
    first.type(SERVE)
    first.wait_for(lambda: f"Tunnel: Calls to {OURS} come to https://{ANOTHER}." in first.text)
    assert said(world.twilio.call_in(MINE, OURS)) == SPOKEN

    assert "go to https://demo.twilio.com/welcome/voice/ again" in second.paste(
        ".venv/bin/voiceapi connect --undo --yes\n"
    )
    assert world.twilio.numbers[OURS].voice_url == "https://demo.twilio.com/welcome/voice/"
    assert (world.twilio.alerts, world.twilio.violations) == ([], [])
    assert "Traceback" not in first.text + second.text
    first.interrupt()
    first.wait_for(lambda: not world.has_tunnel())


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="only the system can end it then")
def test_a_service_that_is_killed_takes_its_tunnel_along(world: World) -> None:
    world.internet.tunnels[TUNNEL] = world.port
    terminal = world.terminal()
    terminal.type(SERVE)
    terminal.wait_for(lambda: f"Tunnel: https://{TUNNEL}\n" in terminal.text)
    assert world.has_tunnel()
    terminal.interrupt(signal.SIGKILL)
    terminal.wait_for(lambda: not world.has_tunnel())
    # Its address isn't that of the service any more.
    assert "VOICEAPI_PUBLIC_URL isn't set" in terminal.paste(".venv/bin/voiceapi connect twilio\n")


def test_the_walk_by_curl(world: World) -> None:
    second, third = served(world)
    first, more = BLOCKS[SET_UP]
    assert third.paste(first) == "ok"
    ids, _, doctor = third.paste(more).partition("\n")
    assert ids == "CONFIG=2 NUMBER=2 WORKFLOW=1"
    all_good(doctor)

    call, show = BLOCKS[OUTBOUND]
    assert third.paste(call) == ""
    assert said(world.twilio.last_call()) == SPOKEN
    assert "outbound call to ...0123 through configuration 2 'Twilio' (twilio)" in second.text
    shown = third.paste(show)
    assert shown.splitlines()[:4] == [
        "telephony_configuration_name: Twilio",
        "call_disposition: user_qualified",
        "extracted_variables: {'number': 7}",
        "error: None",
    ]
    transcript = re.findall(r"^\[\S+\] (\w+): (.*)$", shown, re.MULTILINE)
    assert transcript == [
        ("assistant", SPOKEN[0]),
        ("user", "Yes, I can."),
        ("assistant", SPOKEN[1]),
        ("user", "Seven, please."),
        ("assistant", SPOKEN[2]),
    ]

    enter, show = BLOCKS[INBOUND]
    assert third.paste(enter) == f"1\n{world.twilio.public}/api/v1/telephony/inbound/2"
    assert said(world.twilio.call_in(MINE, OURS)) == SPOKEN
    assert "inbound call from ...0123 through configuration 2 'Twilio' (twilio)" in second.text
    assert "call_disposition: user_qualified" in third.paste(show)
    doctor = third.paste(".venv/bin/voiceapi doctor\n")
    all_good(doctor)
    # The advice about the number is gone.
    assert re.findall("^(.*): advice", doctor, re.MULTILINE) == ["limits of outbound calls"]

    # The tunnel is started again.
    del world.internet.tunnels[TUNNEL]
    world.internet.tunnels[ANOTHER] = world.port
    world.twilio.public = f"https://{ANOTHER}"
    second.interrupt()
    second.paste(f"export VOICEAPI_PUBLIC_URL=https://{ANOTHER}\n")
    world.start(second)
    third = world.terminal()
    third.paste(world.values())
    third.paste(first)
    third.paste(f"{ids}\n")
    third.paste(enter)
    assert said(world.twilio.call_in(MINE, OURS)) == SPOKEN
    third.paste(call)
    assert said(world.twilio.last_call()) == SPOKEN
    assert (world.twilio.alerts, world.twilio.violations) == ([], [])
    assert "Traceback" not in second.text
    assert OURS not in second.text
    assert MINE not in second.text


def test_without_a_public_url(world: World) -> None:
    _, third = served(world, VOICEAPI_PUBLIC_URL="")
    third.paste(world.values())
    for block in BLOCKS[SET_UP]:
        third.paste(block)
    refused = third.paste(BLOCKS[OUTBOUND][0])
    assert "VOICEAPI_PUBLIC_URL isn't set, so Twilio couldn't ask this service what to say in the call." in refused
    assert world.twilio.calls == {}
    assert third.paste("api GET /workflow/$WORKFLOW/runs | get total_count\n") == "0"


def test_a_number_that_a_trial_account_may_not_call(world: World) -> None:
    _, third = served(world, MY_NUMBER=STRANGER)
    for block in BLOCKS[SET_UP]:
        third.paste(block)
    refused = third.paste(BLOCKS[OUTBOUND][0])
    reason = (
        f"The number {STRANGER} is unverified. Trial accounts may only make calls to verified numbers (code 21219)."
    )
    assert f"Failed to initiate call: Twilio answered 400: {reason}" in refused
    assert world.twilio.calls == {}
    assert "(code 21219)" in PAGE


def test_a_mistyped_token(world: World) -> None:
    second, third = served(world, TWILIO_AUTH_TOKEN="0" * 32)
    first, more = BLOCKS[SET_UP]
    third.paste(first)
    assert "Twilio answered 401: Authenticate (code 20003)." in third.paste(more)
    assert "Authenticate (code 20003)" in third.paste(BLOCKS[OUTBOUND][0])
    third.paste(world.values())
    correct, _ = BLOCKS[TROUBLE]
    all_good(third.paste(correct).removeprefix("Twilio\n"))
    third.paste(BLOCKS[OUTBOUND][0])
    assert said(world.twilio.last_call()) == SPOKEN
    assert "Traceback" not in second.text


def test_a_tunnel_that_is_closed(world: World) -> None:
    """Twilio's own log says so, and the walk shows it."""
    _, third = served(world)
    for block in BLOCKS[SET_UP]:
        third.paste(block)
    world.twilio.people[MINE] = Person(answering=world.internet.tunnels.clear)
    third.paste(BLOCKS[OUTBOUND][0])
    call = world.twilio.last_call()
    assert said(call) == [APPLICATION_ERROR]
    _, alerts = BLOCKS[TROUBLE]
    shown = third.paste(alerts)
    asked = call.url.partition("#")[0]
    assert re.search(rf"^\S+ 11200 POST {re.escape(asked)}$", shown, re.MULTILINE), shown
    assert f"https://{TUNNEL}: Something else than this service answers there." in third.paste(
        ".venv/bin/voiceapi doctor\n"
    )
    first, _ = BLOCKS[SET_UP]
    assert third.paste(first) == "error code: 1033"
