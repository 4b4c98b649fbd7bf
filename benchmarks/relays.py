"""Measures calls over text relays: `.venv/bin/python -m benchmarks.relays`, from the repository.

A process of voiceapi serves calls with the scripted model, whose sockets this process holds as Twilio does. It prints
the memory that sockets take, and how long it takes from what a caller said to the first word of the answer.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import hmac
import json
import random
import re
import tempfile
import time
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from websockets.asyncio.client import ClientConnection, connect

from .processes import API, PATIENCE_SECONDS, Server, start_service, use_defaults

PUBLIC = "https://voice.example.org"
ACCOUNT, TOKEN, NUMBER = "AC" + "0" * 32, "1" * 32, "+12025550199"
# How many calls begin side by side, and the seconds between two turns of a call that talks.
BEGUN_AT_ONCE, PAUSE_SECONDS = 10, 4.0
# What every caller says; it leads from one node to the other.
SAID = {"type": "prompt", "voicePrompt": "Yes, fine.", "last": True}
HEARD = {"type": "info", "name": "agentSpeaking", "value": "off"}


@dataclass
class Result:
    """What was measured: of `calls`, `talking` took turns."""

    calls: int
    talking: int
    megabytes: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.relays", description="Measure calls over relays.")
    parser.add_argument("--calls", type=int, default=300, help="how many at once (300)")
    parser.add_argument("--talking", type=int, default=100, help="how many of them talk; the others are silent (100)")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long they talk (30)")
    options = parser.parse_args()
    use_defaults()
    with tempfile.TemporaryDirectory(prefix="voiceapi-relays-") as folder:
        found = measure(Path(folder), options.calls, options.talking, options.seconds)
    before, idle, after = found.megabytes
    times = sorted(found.seconds)
    p50, p95, last = (1000 * times[min(int(len(times) * share), len(times) - 1)] for share in (0.5, 0.95, 1))
    print(f"{found.calls} calls, {found.talking} of them talking: {len(times)} turns")
    print(f"until the first word: p50 {p50:.1f} ms, p95 {p95:.1f} ms, at most {last:.1f} ms")
    each = 1024 * (idle - before) / found.calls
    print(f"memory: {before:.0f} MB before, {idle:.0f} MB with all sockets ({each:.0f} kB each), {after:.0f} MB after")
    return 0


def measure(folder: Path, calls: int, talking: int, seconds: float) -> Result:
    """Hold so many calls, and let some of them talk for so long."""
    found = Result(calls, talking)
    settings = {"PUBLIC_URL": PUBLIC, "CONNECTIONS": str(2 * calls + 100)}
    with start_service(folder / "relays.db", **settings) as server:
        configuration = _prepare(server)
        asyncio.run(_hold(server, configuration, found, seconds))
    return found


def _prepare(server: Server) -> int:
    """An agent that asks for ever, and Twilio's number that it answers; returns the configuration's id."""

    def node(id: str, kind: str, name: str) -> dict[str, Any]:
        data = {"name": name, "prompt": f"This is {name}. Shall we go on?", "allow_interrupt": True}
        return {"id": id, "type": kind, "position": {"x": 0, "y": 0}, "data": data}

    def edge(source: str, target: str, label: str) -> dict[str, Any]:
        return {
            "id": f"{source}-{target}",
            "source": source,
            "target": target,
            "data": {"label": label, "condition": label},
        }

    nodes = [node("1", "startCall", "one"), node("2", "agentNode", "two"), node("3", "agentNode", "three")]
    edges = [edge("1", "2", "Yes"), edge("2", "3", "Yes"), edge("3", "2", "Yes"), edge("2", "4", "Stop it")]
    definition = {
        "nodes": [*nodes, node("4", "endCall", "the end")],
        "edges": edges,
        "viewport": {"x": 0, "y": 0, "zoom": 1},
    }
    agent = server.ask("POST", "/workflow/create/definition", {"name": "Agent", "workflow_definition": definition})[
        "id"
    ]
    account = {"provider": "twilio", "account_sid": ACCOUNT, "auth_token": TOKEN, "transport": "relay"}
    configs = "/organizations/telephony-configs"
    server.ask("DELETE", f"{configs}/1/phone-numbers/1")  # the simulator's own number is the same
    made = int(server.ask("POST", configs, {"name": "Twilio", "config": account})["id"])
    server.ask("POST", f"{configs}/{made}/phone-numbers", {"address": NUMBER, "inbound_workflow_id": agent})
    return made


async def _hold(server: Server, configuration: int, found: Result, seconds: float) -> None:
    found.megabytes.append(server.resident_megabytes())
    sockets: list[ClientConnection] = []
    silent: list[asyncio.Task[None]] = []
    for first in range(0, found.calls, BEGUN_AT_ONCE):
        numbers = range(first, min(first + BEGUN_AT_ONCE, found.calls))
        begun = await asyncio.gather(*(_begin(server.port, configuration, number) for number in numbers))
        sockets += begun
        silent += [asyncio.create_task(_stay(each)) for each in begun]
    found.megabytes.append(server.resident_megabytes())
    until = time.monotonic() + seconds
    for task in silent[: found.talking]:
        task.cancel()
    await asyncio.gather(*(_talk(each, until, found.seconds) for each in sockets[: found.talking]))
    found.megabytes.append(server.resident_megabytes())
    for task in silent:
        task.cancel()
    await asyncio.gather(*(each.close() for each in sockets))


async def _begin(port: int, configuration: int, number: int) -> ClientConnection:
    """The socket of a call that was answered."""
    sid = f"CA{number:032d}"
    url = await asyncio.to_thread(_ring, port, configuration, sid)
    socket = await connect(
        f"ws://127.0.0.1:{port}{urlsplit(url).path}",
        additional_headers={"X-Twilio-Signature": _signature(url)},
        compression=None,
        ping_interval=None,
        open_timeout=PATIENCE_SECONDS,
    )
    await socket.send(json.dumps({"type": "setup", "sessionId": f"VX{number}", "callSid": sid}))
    return socket


def _ring(port: int, configuration: int, sid: str) -> str:
    """The address in the document that answers a call."""
    url = f"{PUBLIC}{API}/telephony/inbound/{configuration}"
    form = {"AccountSid": ACCOUNT, "CallSid": sid, "CallStatus": "ringing", "From": "+12025550123", "To": NUMBER}
    signed = _signature(url + "".join(f"{name}{form[name]}" for name in sorted(form)))
    headers = {"Content-Type": "application/x-www-form-urlencoded", "X-Twilio-Signature": signed}
    client = HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
    client.request("POST", url.removeprefix(PUBLIC), urlencode(form), headers)
    document = client.getresponse().read().decode()
    client.close()
    address = re.search('ConversationRelay url="([^"]+)"', document)
    if address is None:
        raise RuntimeError(f"The call has no relay: {document}")
    return address[1]


def _signature(text: str) -> str:
    return base64.b64encode(hmac.digest(TOKEN.encode(), text.encode(), "sha1")).decode()


async def _talk(socket: ClientConnection, until: float, seconds: list[float]) -> None:
    await asyncio.sleep(PAUSE_SECONDS * random.random())
    while True:
        began, first = time.perf_counter(), 0.0
        await socket.send(json.dumps(SAID))
        while True:
            frame = json.loads(await socket.recv())
            first = first or time.perf_counter() - began
            if frame.get("last"):
                break
        seconds.append(first)
        if time.monotonic() >= until:
            return
        await asyncio.sleep(PAUSE_SECONDS * (0.5 + random.random()))


async def _stay(socket: ClientConnection) -> None:
    """Let the agent wait for the caller, so that it asks nothing."""
    while True:
        await socket.send(json.dumps(HEARD))
        await asyncio.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    raise SystemExit(main())
