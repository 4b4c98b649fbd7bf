"""A carrier in a process of its own, in Twilio's dialect: it notes what it is asked and what it does, by its own clock.

    python recording_carrier.py SETTINGS

SETTINGS is a JSON object with the arguments of `Carrier`. It prints the URL of its API, and writes its notes until it
is terminated. It refuses nothing: who reads the notes judges.

What it does in a call depends on the seed, the number and how often that was called before. Its webhooks come late,
twice, or out of order; a request is sent again until a host of the service answers it. A few calls' ends are never
reported, and a few requests for a call aren't answered, though the call is placed or though it isn't.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit
from xml.etree import ElementTree as ET

# What becomes of a call, and how likely that is.
FATES = {"talks": 80, "hangs up": 6, "busy": 8, "no-answer": 5, "failed": 1}
# How likely it is that a webhook comes late or twice, that the end of a call is never reported, that a call is placed
# and the request for it isn't answered, and that it is answered with 500 and no call is placed.
LATE, TWICE, UNREPORTED, UNANSWERED, BROKEN = 0.1, 0.1, 0.004, 0.004, 0.002
LATE_SECONDS, WEBHOOK_SECONDS, PATIENCE_SECONDS = 3.0, 15.0, 90.0
RING_SECONDS, SPEECH_SECONDS = (0.1, 0.5), (0.1, 0.6)
AGREES = "Yes, this is a good time."


@dataclass
class Call:
    """A call; `chance` decides what happens in it."""

    sid: str
    to: str
    from_number: str
    url: str
    callback: str
    chance: random.Random
    status: str = "queued"
    answered_at: float | None = None
    duration: int | None = None
    is_hung_up: bool = False
    sequence: int = 0


class Carrier:
    """One account.

    :param notes: the file that a line of JSON is added to for everything that happens, with `at` in seconds.
    :param origin: what the service's webhooks begin with; they are signed with it, and sent to one of the `ports`.
    :param gentle: whether all webhooks come in order and once, and every request is answered.
    :param ring_seconds: how long it rings, if that isn't chance; then nobody answers.
    """

    def __init__(
        self,
        notes: str,
        origin: str,
        ports: list[int],
        auth_token: str,
        seed: str,
        *,
        gentle: bool = False,
        ring_seconds: float | None = None,
    ) -> None:
        self._notes = open(notes, "a", buffering=1)  # noqa: SIM115
        self._origin, self._ports, self._auth_token, self._seed = origin, ports, auth_token, seed
        self._gentle, self._ring_seconds = gentle, ring_seconds
        self._route = random.Random(f"{seed} route")
        self._calls: dict[str, Call] = {}
        self._times: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[Any]] = set()

    def note(self, event: str, **fields: Any) -> None:
        self._notes.write(json.dumps({"at": round(time.monotonic(), 6), "event": event, **fields}) + "\n")

    # -- the API

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            method, path, _ = head.split(" ", 2)
            lengths = [
                line.partition(":")[2] for line in head.split("\r\n") if line.lower().startswith("content-length")
            ]
            body = await reader.readexactly(int(lengths[0])) if lengths else b""
            status, answer = await self._answer(method, path, body.decode())
            if status:
                content = json.dumps(answer).encode()
                writer.write(
                    b"HTTP/1.1 %d Answer\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
                    b"Connection: close\r\n\r\n" % (status, len(content)) + content
                )
                await writer.drain()
        except (OSError, EOFError):
            pass  # who asked was killed
        finally:
            writer.close()

    async def _answer(self, method: str, path: str, body: str) -> tuple[int, Any]:
        """The status and body that answer a request; no status closes the connection without an answer."""
        *_, last = path.partition("?")[0].split("/")
        sid = last.removesuffix(".json")
        if sid == "Calls" and method == "POST":
            return await self._place({name: values[0] for name, values in parse_qs(body).items()})
        call = self._calls.get(sid)
        self.note("asked", method=method, path=path, call=sid, status=None if call is None else call.status)
        if call is None:
            return 404, {"code": 20404, "message": "There is no such call."}
        if method == "POST":
            call.is_hung_up = True
        return 200, self._view(call)

    async def _place(self, form: Mapping[str, str]) -> tuple[int, Any]:
        to = form.get("To", "")
        self._times[to] += 1
        chance = random.Random(f"{self._seed} {to} {self._times[to]}")
        trouble = 1.0 if self._gentle else chance.random()
        if trouble < BROKEN:
            self.note("broken", to=to, url=form.get("Url"))
            return 500, {"code": 20500, "message": "Internal error"}
        sid = f"CA{hashlib.md5(f'{self._seed} {len(self._calls)}'.encode()).hexdigest()}"
        call = Call(sid, to, form.get("From", ""), form.get("Url", ""), form.get("StatusCallback", ""), chance)
        self._calls[sid] = call
        self.note("placed", call=sid, to=to, url=call.url)
        self._start(self._carry_out(call))
        await asyncio.sleep(chance.uniform(0.0, 0.05))
        return (0, None) if trouble < BROKEN + UNANSWERED else (201, self._view(call))

    def _view(self, call: Call) -> dict[str, Any]:
        return {"sid": call.sid, "to": call.to, "status": call.status, "duration": call.duration, "price": None}

    def _start(self, work: Awaitable[Any]) -> asyncio.Task[Any]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # -- calls

    async def _carry_out(self, call: Call) -> None:
        [fate] = call.chance.choices(list(FATES), list(FATES.values()))
        self._report(call, "initiated")
        await asyncio.sleep(call.chance.uniform(0.0, 0.1))
        self._report(call, "ringing")
        if self._ring_seconds is not None:
            fate = "no-answer"
        await asyncio.sleep(self._ring_seconds or call.chance.uniform(*RING_SECONDS))
        talked = False
        if fate in ("talks", "hangs up"):
            call.answered_at = time.monotonic()
            self._report(call, "in-progress")
            try:
                talked = await self._converse(call, fate)
            except (LookupError, ET.ParseError) as error:
                self.note("failure", call=call.sid, reason=repr(error))
            fate = "completed"
            call.duration = round(time.monotonic() - call.answered_at)
        call.status = fate
        self.note("ended", call=call.sid, to=call.to, status=fate, talked=talked)
        if not self._gentle and call.chance.random() < UNREPORTED:
            self.note("unreported", call=call.sid)
        else:
            self._report(call, fate)

    async def _converse(self, call: Call, fate: str) -> bool:
        """Carry out documents until the call ends; True if the agent ended it after it was answered.

        :raises LookupError: when a document is not to be had.
        """
        document, said = await self._document(call, call.url, {}), False
        while not call.is_hung_up:
            following: tuple[str, Mapping[str, str]] | None = None
            for verb in document:
                if verb.tag in ("Say", "Play"):
                    await asyncio.sleep(call.chance.uniform(*SPEECH_SECONDS))
                elif verb.tag == "Pause":
                    await asyncio.sleep(float(verb.get("length", "1")))
                elif verb.tag == "Hangup":
                    return said
                elif verb.tag == "Redirect":
                    following = (verb.text or "", {})
                elif verb.tag == "Gather":
                    if fate == "hangs up":
                        return False
                    await asyncio.sleep(call.chance.uniform(*SPEECH_SECONDS))
                    following = (verb.get("action", ""), {"SpeechResult": AGREES, "Confidence": "0.9"})
                    said = True
                if following is not None:
                    break
            if following is None:
                return False
            document = await self._document(call, *following)
        return said

    async def _document(self, call: Call, url: str, fields: Mapping[str, str]) -> ET.Element:
        asked = {**self._fields(call), **fields}
        first = self._start(self._deliver(call, url, asked))
        if not self._gentle and call.chance.random() < TWICE:
            self._start(
                self._deliver(call, url, asked, call.chance.choice((0.0, call.chance.uniform(0.0, LATE_SECONDS))))
            )
        answer = await first
        if answer is None:
            raise LookupError(url)
        return ET.fromstring(answer)

    # -- webhooks

    def _fields(self, call: Call) -> dict[str, str]:
        return {"CallSid": call.sid, "CallStatus": call.status, "To": call.to, "From": call.from_number}

    def _report(self, call: Call, status: str) -> None:
        """Change the status of a call; its callback is sent meanwhile, perhaps late or twice."""
        call.status = status
        fields = {**self._fields(call), "SequenceNumber": str(call.sequence)}
        if call.duration is not None:
            fields["CallDuration"] = str(call.duration)
        call.sequence += 1
        times = 1 if self._gentle or call.chance.random() >= TWICE else 2
        for _ in range(times):
            late = not self._gentle and call.chance.random() < LATE
            delay = call.chance.uniform(0.0, LATE_SECONDS) if late else 0.0
            self._start(self._deliver(call, call.callback, fields, delay))

    async def _deliver(self, call: Call, url: str, fields: Mapping[str, str], delay: float = 0.0) -> bytes | None:
        """Send a webhook to one host after the other, until one answers it; None if none did, or it was refused."""
        await asyncio.sleep(delay)
        deadline = time.monotonic() + PATIENCE_SECONDS
        first, attempt = self._route.randrange(len(self._ports)), 0
        while time.monotonic() < deadline:
            port = self._ports[(first + attempt) % len(self._ports)]
            attempt += 1
            status, content = await self._ask(port, url, fields)
            said = fields.get("SpeechResult") or fields.get("CallStatus")
            digest = hashlib.sha256(content).hexdigest()[:16]
            found = {"answer": digest, "waits": b"/wait" in content}
            self.note("webhook", call=call.sid, url=url, port=port, status=status, said=said, **found)
            if 0 < status < 500:
                return content if status == 200 else None
            await asyncio.sleep(self._route.uniform(0.1, 0.6))
        self.note("given up", call=call.sid, url=url)
        return None

    async def _ask(self, port: int, url: str, fields: Mapping[str, str]) -> tuple[int, bytes]:
        """The status and content that a host answers; status 0 is none."""
        signed = url + "".join(name + fields[name] for name in sorted(fields))
        digest = hmac.new(self._auth_token.encode(), signed.encode(), hashlib.sha1).digest()
        body, parts = urlencode(fields).encode(), urlsplit(url)
        path = url.removeprefix(f"{parts.scheme}://{parts.netloc}")
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n"
            f"X-Twilio-Signature: {base64.b64encode(digest).decode()}\r\n"
            f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        if not url.startswith(f"{self._origin}/"):
            return 400, b"It isn't an address of the service."
        try:
            async with asyncio.timeout(WEBHOOK_SECONDS):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                try:
                    writer.write(head.encode() + body)
                    answer = await reader.read()
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            return 0, b""
        lines, end, content = answer.partition(b"\r\n\r\n")
        lengths = [
            int(line.partition(b":")[2]) for line in lines.split(b"\r\n") if line[:15].lower() == b"content-length:"
        ]
        # A host that is killed may have sent a part.
        complete = bool(end) and (not lengths or len(content) == lengths[0])
        return (int(answer.split(b" ", 2)[1]), content) if complete else (0, b"")


async def main() -> None:
    carrier = Carrier(**json.loads(sys.argv[1]))
    server = await asyncio.start_server(carrier.serve, "127.0.0.1", 0, backlog=500)
    sys.stdout.write(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
