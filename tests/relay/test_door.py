"""The websockets of relays: the handshake, the protocol as RFC 6455 has it, and sockets that misbehave."""

from __future__ import annotations

import json
import socket
import struct
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strict_relay import RelayedCall
from websockets.client import ClientProtocol
from websockets.exceptions import ConnectionClosed
from websockets.frames import Close, Frame, Opcode
from websockets.protocol import State
from websockets.server import ServerProtocol
from websockets.uri import parse_uri

from voiceapi.relay import door as doors
from voiceapi.relay.door import LONGEST_MESSAGE, Door, Upgrade, Wire, is_upgrade, objection

Ring = Callable[..., RelayedCall]
KEY = "dGhlIHNhbXBsZSBub25jZQ=="
HEADERS = {
    "host": "voice.example.org",
    "upgrade": "websocket",
    "connection": "Upgrade",
    "sec-websocket-key": KEY,
    "sec-websocket-version": "13",
}
MASK = b"\x01\x02\x03\x04"


def frame(opcode: int, payload: bytes = b"", *, fin: bool = True, rsv: int = 0, masked: bool = True) -> bytes:
    """A frame by hand, so that it may be wrong."""
    length = len(payload)
    head = bytes([fin << 7 | rsv << 4 | opcode])
    mark = masked << 7
    if length < 126:
        head += bytes([mark | length])
    elif length < 65536:
        head += bytes([mark | 126]) + struct.pack("!H", length)
    else:
        head += bytes([mark | 127]) + struct.pack("!Q", length)
    if not masked:
        return head + payload
    return head + MASK + bytes(byte ^ MASK[place % 4] for place, byte in enumerate(payload))


def sent(wire: Wire) -> list[Frame]:
    """What the wire wants to send, as a client of the websockets library reads it."""
    client = ClientProtocol(parse_uri("ws://voice.example.org/"), state=State.OPEN)
    client.receive_data(bytes(wire.out))
    return [each for each in client.events_received() if isinstance(each, Frame)]


def closed_with(wire: Wire) -> int | None:
    """The code of the close frame that the wire wants to send, None for none."""
    codes = [Close.parse(bytes(each.data)).code for each in sent(wire) if each.opcode is Opcode.CLOSE]
    return codes[0] if codes else None


TEXT, BINARY, CONTINUED, CLOSE, PING, PONG = 1, 2, 0, 8, 9, 10


@pytest.mark.parametrize(
    ("data", "messages", "code"),
    [
        pytest.param(frame(TEXT, b"Hello"), ["Hello"], None, id="5.7 a masked text"),
        pytest.param(frame(TEXT, b"Hel", fin=False) + frame(CONTINUED, b"lo"), ["Hello"], None, id="5.7 fragmented"),
        pytest.param(
            frame(TEXT, b"Hel", fin=False) + frame(PING, b"x") + frame(CONTINUED, b"lo"),
            ["Hello"],
            None,
            id="5.4 a ping between fragments",
        ),
        pytest.param(frame(TEXT, b""), [""], None, id="an empty text"),
        pytest.param(frame(TEXT, b"x" * 126), ["x" * 126], None, id="5.2 a length of two bytes"),
        pytest.param(frame(TEXT, b"x" * 65536), ["x" * 65536], None, id="5.2 a length of eight bytes, and the limit"),
        pytest.param(
            frame(TEXT, b"x" * LONGEST_MESSAGE, fin=False) + frame(CONTINUED),
            ["x" * 65536],
            None,
            id="64 KiB by fragments",
        ),
        pytest.param(
            frame(TEXT, "é".encode()[:1], fin=False) + frame(CONTINUED, "é".encode()[1:]),
            ["é"],
            None,
            id="5.4 a character",
        ),
        pytest.param(
            frame(TEXT, fin=False) + frame(CONTINUED, fin=False) + frame(CONTINUED),
            [""],
            None,
            id="5.4 empty fragments",
        ),
        pytest.param(frame(PING, b"x" * 125) + frame(TEXT, b"x"), ["x"], None, id="5.5 the longest ping"),
        pytest.param(frame(TEXT, b"Hel", fin=False), [], None, id="5.4 a message that never ends"),
        pytest.param(frame(TEXT, b"a") + frame(TEXT, b"b"), ["a", "b"], None, id="two messages at once"),
        pytest.param(frame(PONG, b"x"), [], None, id="5.5.3 a pong that nobody asked for"),
        pytest.param(frame(TEXT, b"Hello", masked=False), [], 1002, id="5.1 unmasked"),
        pytest.param(frame(TEXT, b"Hello", rsv=4), [], 1002, id="5.2 RSV1 without an extension"),
        pytest.param(frame(TEXT, b"Hello", rsv=2), [], 1002, id="5.2 RSV2"),
        pytest.param(frame(TEXT, b"Hello", rsv=1), [], 1002, id="5.2 RSV3"),
        pytest.param(frame(PING, rsv=4), [], 1002, id="5.2 RSV1 of a ping"),
        pytest.param(frame(PING, b"x", masked=False), [], 1002, id="5.1 an unmasked ping"),
        pytest.param(frame(CLOSE, b"\x03\xe8", masked=False), [], 1002, id="5.1 an unmasked close"),
        pytest.param(frame(3, b"Hello"), [], 1002, id="5.2 an opcode without a meaning"),
        *(pytest.param(frame(each, b"x"), [], 1002, id=f"5.2 the opcode {each}") for each in (4, 5, 6, 7)),
        *(pytest.param(frame(each), [], 1002, id=f"5.2 the control opcode {each}") for each in range(11, 16)),
        pytest.param(frame(CLOSE, b"\x03\xe8", fin=False), [], 1002, id="5.5 a fragmented close"),
        pytest.param(frame(PONG, fin=False), [], 1002, id="5.5 a fragmented pong"),
        pytest.param(frame(CLOSE, b"\x03\xe8" + b"x" * 124), [], 1002, id="5.5 a long close"),
        pytest.param(b"\x81\xfe\x00\x05" + MASK, [], 1002, id="5.2 a length that isn't minimal"),
        pytest.param(b"\x81\xff" + b"\x80" + bytes(7) + MASK, [], 1002, id="5.2 a length with its first bit set"),
        pytest.param(frame(PING, b"x", fin=False), [], 1002, id="5.5 a fragmented ping"),
        pytest.param(frame(PING, b"x" * 126), [], 1002, id="5.5 a long ping"),
        pytest.param(frame(CONTINUED, b"lo"), [], 1002, id="5.4 a continuation of nothing"),
        pytest.param(frame(TEXT, b"a", fin=False) + frame(TEXT, b"b"), [], 1002, id="5.4 a text among fragments"),
        pytest.param(frame(TEXT, b"a", fin=False) + frame(BINARY, b"b"), [], 1002, id="5.4 a binary among fragments"),
        pytest.param(frame(TEXT, b"a") + frame(CONTINUED, b"b"), ["a"], 1002, id="5.4 a continuation after the end"),
        pytest.param(frame(TEXT, b"\xff"), [], 1007, id="8.1 no UTF-8"),
        pytest.param(frame(TEXT, b"\xed\xa0\x80"), [], 1007, id="8.1 a surrogate"),
        pytest.param(frame(TEXT, b"\xc3", fin=False) + frame(CONTINUED, b"("), [], 1007, id="8.1 across fragments"),
        pytest.param(frame(TEXT, b"\xc3"), [], 1007, id="8.1 an end within a character"),
        pytest.param(frame(BINARY, b"x"), [], 1003, id="7.4.1 a binary message"),
        pytest.param(frame(TEXT, b"x" * (LONGEST_MESSAGE + 1)), [], 1009, id="7.4.1 a long message"),
        pytest.param(
            frame(TEXT, b"x" * LONGEST_MESSAGE, fin=False) + frame(CONTINUED, b"x"), [], 1009, id="long by fragments"
        ),
        pytest.param(frame(CLOSE, b"\x03\xe8bye"), [], 1000, id="5.5.1 a close"),
        pytest.param(frame(CLOSE) + frame(TEXT, b"x"), [], 1005, id="5.5.1 a text after a close"),
        pytest.param(frame(CLOSE, b"\x03"), [], 1002, id="5.5.1 a close of one byte"),
        pytest.param(frame(TEXT, b"x", fin=False) + frame(CLOSE), [], 1005, id="5.4 a close between fragments"),
        *(
            pytest.param(frame(CLOSE, struct.pack("!H", each)), [], 1002, id=f"7.4 the code {each}")
            for each in (0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535)
        ),
        *(
            pytest.param(frame(CLOSE, struct.pack("!H", each)), [], each, id=f"7.4 the code {each}")
            for each in (1001, 1011, 3000, 4999)
        ),
        pytest.param(frame(CLOSE, b"\x03\xe8\xff"), [], 1007, id="7.1.6 a reason that isn't UTF-8"),
    ],
)
def test_frames_of_the_carrier(
    request: pytest.FixtureRequest, data: bytes, messages: list[str], code: int | None
) -> None:
    """Whole, and byte by byte; the websockets library finds the same."""
    whole, split = Wire(), Wire()
    assert list(whole.receive(data)) == messages
    assert closed_with(whole) == code
    if "minimal" not in request.node.name and "first bit" not in request.node.name:  # which it doesn't look at
        assert judged(data) == (messages, answers(sent(whole)))
    assert whole.is_closed == (code is not None)
    found = [message for byte in data[:200] for message in split.receive(bytes([byte]))]
    if len(data) <= 200:
        assert (found, closed_with(split)) == (messages, code)


def test_a_ping_is_answered() -> None:
    wire = Wire()
    assert list(wire.receive(frame(PING, b"are you there"))) == []
    assert [(each.opcode, bytes(each.data)) for each in sent(wire)] == [(Opcode.PONG, b"are you there")]


def test_our_close() -> None:
    """Until the carrier's close comes, what it sends is read."""
    wire = Wire()
    wire.close(1001)
    wire.send("too late")
    assert closed_with(wire) == 1001
    assert (wire.is_closed, wire.is_done) == (False, False)
    assert list(wire.receive(frame(TEXT, b"x"))) == ["x"]
    assert list(wire.receive(frame(CLOSE, b"\x03\xe9"))) == []
    assert (wire.is_closed, wire.is_done) == (True, True)


@given(st.lists(st.text(max_size=300), max_size=8), st.lists(st.integers(1, 50), max_size=60), st.data())
def test_messages_arrive_however_they_are_cut(texts: Sequence[str], cuts: Sequence[int], data: st.DataObject) -> None:
    """By fragments of messages, and by reads from the socket."""
    stream = b""
    for each in texts:
        encoded = each.encode()
        place, opcode = 0, TEXT
        while place < len(encoded) and data.draw(st.booleans()):
            size = data.draw(st.integers(0, len(encoded) - place))
            stream += frame(opcode, encoded[place : place + size], fin=False) + frame(PING)
            place, opcode = place + size, CONTINUED
        stream += frame(opcode, encoded[place:])
    wire, found = Wire(), []
    for cut in (*cuts, len(stream)):
        found += wire.receive(stream[:cut])
        stream = stream[cut:]
    assert found == list(texts)
    assert closed_with(wire) is None


@given(st.lists(st.binary(max_size=80), max_size=10))
def test_whatever_arrives_is_answered_by_the_protocol(reads: Sequence[bytes]) -> None:
    wire = Wire()
    for each in reads:
        for message in wire.receive(each):
            assert len(message.encode()) <= LONGEST_MESSAGE
    assert all(each.opcode in (Opcode.PONG, Opcode.CLOSE) for each in sent(wire))
    assert (closed_with(wire) is not None) == wire.is_closed


class Judge(ServerProtocol):
    """Takes a close between the fragments of a message, as section 5.4 allows; the library calls it an error."""

    def recv_frame(self, frame: Frame) -> None:
        if frame.opcode is Opcode.CLOSE:
            self.current_size = None
        super().recv_frame(frame)


def judged(data: bytes) -> tuple[list[str], list[tuple[int, bytes]]]:
    """The messages that arrive, and the pongs and the close that answer them, by the server of the websockets library.

    It leaves UTF-8 to who reads the frames, and takes binary messages.
    """
    server = Judge(max_size=LONGEST_MESSAGE, state=State.OPEN)
    found: list[str] = []
    text, decoder = "", getincrementaldecoder("utf-8")()
    # Frame by frame, so that an answer to one comes before what the next one means.
    for byte in data:
        server.receive_data(bytes([byte]))
        for each in server.events_received():
            assert isinstance(each, Frame)
            if each.opcode is Opcode.BINARY:
                server.fail(1003)
            elif each.opcode in (Opcode.TEXT, Opcode.CONT):
                try:
                    text += decoder.decode(bytes(each.data), each.fin)
                except UnicodeDecodeError:
                    server.fail(1007)
                    break
                if each.fin:
                    found.append(text)
                    text, decoder = "", getincrementaldecoder("utf-8")()
        if server.state is not State.OPEN:
            break
    client = ClientProtocol(parse_uri("ws://voice.example.org/"), state=State.OPEN)
    client.receive_data(b"".join(server.data_to_send()))
    return found, answers(each for each in client.events_received() if isinstance(each, Frame))


def answers(frames: Iterable[Frame]) -> list[tuple[int, bytes]]:
    """Pongs with their payload, a close with its code."""
    return [
        (int(each.opcode), bytes(each.data)[:2] if each.opcode is Opcode.CLOSE else bytes(each.data)) for each in frames
    ]


# Codes that RFC 6455 doesn't know, and IANA does now, are left out: the libraries differ.
codes = st.integers(0, 1011) | st.integers(1015, 65535)
reasons = st.builds(lambda code, reason: struct.pack("!H", code) + reason.encode(), codes, st.text("xé", max_size=3))
# No message comes near the longest: the library counts the pings between its fragments as well.
payloads = st.one_of(
    st.text("aé€😀", max_size=40).map(str.encode),
    st.binary(max_size=6),
    st.sampled_from([b"\xff", b"\xed\xa0\x80", b"x" * 126, b"x" * 4000]),
)
opcodes = st.sampled_from([TEXT, TEXT, TEXT, CONTINUED, CONTINUED, CONTINUED, PING, PONG, BINARY, 3, 11])
bits = {
    "fin": st.sampled_from([True, True, False]),
    "rsv": st.sampled_from([*[0] * 20, 1, 2, 4]),
    "masked": st.sampled_from([*[True] * 20, False]),
}
raw_frames = st.builds(frame, opcodes, payloads, **bits) | st.builds(
    frame, st.just(CLOSE), reasons | st.binary(max_size=1), **bits
)


@given(st.lists(raw_frames, max_size=8), st.lists(st.integers(1, 80), max_size=40))
def test_the_websockets_library_judges_what_arrives_and_what_is_answered(
    frames: Sequence[bytes], cuts: Sequence[int]
) -> None:
    stream = b"".join(frames)
    wire, found, place = Wire(), [], 0
    for cut in (*cuts, len(stream)):
        found += wire.receive(stream[place : place + cut])
        place += cut
    assert (found, answers(sent(wire))) == judged(stream)


# -- the handshake


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({}, None),
        ({"sec-websocket-version": "8"}, 426),
        ({"sec-websocket-version": None}, 426),
        ({"sec-websocket-key": None}, 400),
        ({"sec-websocket-key": "c2hvcnQ="}, 400),
        ({"sec-websocket-key": "!" * 24}, 400),
        ({"sec-websocket-key": "é" * 24}, 400),
        ({"host": None}, 400),
    ],
)
def test_a_handshake(changed: dict[str, str | None], status: int | None) -> None:
    headers = {name: value for name, value in {**HEADERS, **changed}.items() if value is not None}
    found = objection(Upgrade("GET", "/", "1.1", headers))
    assert (None if found is None else found[0]) == status


@pytest.mark.parametrize(("method", "version"), [("POST", "1.1"), ("GET", "1.0")])
def test_a_handshake_by_another_request(method: str, version: str) -> None:
    found = objection(Upgrade(method, "/", version, HEADERS))
    assert found is not None
    assert found[0] == 400


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        ({"upgrade": "websocket", "connection": "keep-alive, Upgrade"}, True),
        ({"upgrade": "WebSocket", "connection": "upgrade"}, True),
        ({"upgrade": "h2c", "connection": "upgrade"}, False),
        ({"upgrade": "websocket"}, False),
        ({}, False),
    ],
)
def test_who_asks_for_a_websocket(headers: dict[str, str], found: bool) -> None:
    assert is_upgrade(headers) is found


# -- sockets


@pytest.fixture
def raw(door: Any) -> Iterator[Callable[[bytes], socket.socket]]:
    """Opens sockets that have sent this."""
    opened: list[socket.socket] = []

    def connect(data: bytes) -> socket.socket:
        opened.append(socket.create_connection(("127.0.0.1", door.port), 60))
        opened[-1].sendall(data)
        return opened[-1]

    yield connect
    for each in opened:
        each.close()


def request(path: str, **changed: str) -> bytes:
    headers = {**HEADERS, **{name.replace("_", "-"): value for name, value in changed.items()}}
    return "\r\n".join(
        [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    ).encode()


def read_all(client: socket.socket) -> tuple[int, Any]:
    """The status and the JSON body of an answer after which the connection is closed."""
    received = b""
    while data := client.recv(65536):
        received += data
    client.close()
    head, _, body = received.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


PATH = "/api/v1/telephony/relay/"


@pytest.mark.parametrize(
    ("data", "status", "detail"),
    [
        (request(f"{PATH}x"), 403, "There is no such call."),
        (request(f"{PATH}x", sec_websocket_version="8"), 426, "The version of the websocket protocol here is 13."),
        (request(f"{PATH}x", sec_websocket_key="x"), 400, "Sec-WebSocket-Key isn't 16 bytes in base64."),
        (request(f"{PATH}x", origin="https://voice.example.org"), 403, "Browsers have no business here."),
    ],
)
def test_a_request_that_is_refused(
    raw: Callable[[bytes], socket.socket],
    door: Door,
    wait_for: Callable[..., Any],
    data: bytes,
    status: int,
    detail: str,
) -> None:
    assert read_all(raw(data)) == (status, {"detail": detail})
    wait_for(lambda: door.count == 0)


@pytest.mark.parametrize("path", ["/api/v1/health", "/", f"{PATH}x"])
def test_other_requests_are_answered_by_the_app(raw: Callable[[bytes], socket.socket], path: str) -> None:
    """Also one for a websocket elsewhere, and one of a relay's address that asks for none."""
    asked = request(path, connection="close", upgrade="none" if path.endswith("x") else "websocket")
    received, client = b"", raw(asked)
    while data := client.recv(65536):
        received += data
    assert received.startswith((b"HTTP/1.1 200", b"HTTP/1.1 404", b"HTTP/1.1 30"))


def test_a_long_message_and_a_binary_one_close(ring: Ring) -> None:
    call = ring()
    for message, code in (("x" * (LONGEST_MESSAGE + 1), 1009), (b"x", 1003)):
        call.connect()
        call.socket.send(message)
        with pytest.raises(ConnectionClosed) as error:
            call.receive()
        assert error.value.rcvd is not None
        assert error.value.rcvd.code == code
        call.end("failed")


def test_a_carrier_that_does_not_read_is_left(
    ring: Ring, door: Door, wait_for: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    call = ring()
    call.connect()
    assert door.count == 1
    monkeypatch.setattr(doors, "MOST_UNREAD", 0)
    (channel,) = door._channels
    door._post(lambda: (channel.out.extend(b"x" * 10_000_000), door._write(channel)))
    wait_for(lambda: door.count == 0)


def test_a_stop_closes_the_sockets(ring: Ring, door: Door) -> None:
    call = ring()
    call.connect()
    door.close()
    with pytest.raises(ConnectionClosed) as error:
        call.receive()
    assert error.value.rcvd is not None
    assert error.value.rcvd.code == 1001


def test_idle_calls_take_no_thread(ring: Ring, door: Door, wait_for: Callable[..., Any]) -> None:
    call = ring()
    call.connect()
    call.says("What?")
    call.hears()
    wait_for(lambda: not any(each.is_working for each in door._channels))
    assert door._pool._work_queue.empty()
