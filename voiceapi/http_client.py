"""Every request that leaves: only http and https, no redirects, time and size limits, the address checked."""

from __future__ import annotations

import json as jsonlib
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Any, Literal
from urllib.parse import urlsplit

Kind = Literal["address", "timeout", "connection", "size", "scheme"]
Resolve = Callable[[str, int], Sequence[str]]

MEBIBYTE = 1024 * 1024
CHUNK = 64 * 1024

# IPv6 addresses that stand for an IPv4 address in their last 32 bits (RFC 6052, RFC 4291).
_EMBEDDING = (IPv6Network("64:ff9b::/96"), IPv6Network("::/96"))
_LOCAL_NAT64 = IPv6Network("64:ff9b:1::/48")


class RequestFailed(Exception):
    """A request that got no answer; its text is one sentence for a user, without credentials.

    `sent` says whether any of it went out, so that the other side may have done what it was asked.
    """

    def __init__(self, kind: Kind, text: str, *, sent: bool = False) -> None:
        super().__init__(text)
        self.kind = kind
        self.sent = sent


@dataclass(frozen=True)
class Reply:
    """An answer, whatever its status; `seconds` is how long it took. Names of headers match in any case."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    seconds: float

    def json(self) -> Any:
        """The body as JSON.

        :raises ValueError: when it isn't JSON.
        """
        try:
            return jsonlib.loads(self.body)
        except RecursionError:
            raise ValueError("The body is nested too deeply.") from None


def resolve(host: str, port: int) -> list[str]:
    """The IP addresses of a host, as the system knows them.

    :raises OSError: when it knows none.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


def is_public(address: str) -> bool:
    """Whether an IP address is one of the public internet, also when it is an IPv4 address in an IPv6 one's clothes."""
    ip: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    if isinstance(ip, IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo or (None, None))[1]
        if inner is None and any(ip in network for network in _EMBEDDING):
            inner = IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
        if ip in _LOCAL_NAT64 or ip.is_site_local:
            return False
    return ip.is_global and not (ip.is_multicast or ip.is_reserved or ip.is_unspecified or ip.is_link_local)


@dataclass(frozen=True)
class HTTPClient:
    """Sends requests out of the service.

    :param allow_private: whether addresses that came in through the API may be private ones.
    :param resolve: finds the IP addresses of a host and port.
    """

    allow_private: bool = False
    resolve: Resolve = resolve

    def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        json: Any = None,
        data: bytes | None = None,
        params: Mapping[str, str] | None = None,
        timeout: float,
        largest: int = MEBIBYTE,
        cut: bool = False,
        trusted: bool = False,
    ) -> Reply:
        """Send one request and read its answer; a redirect is an answer like any other.

        :param timeout: seconds for everything, from looking up the name to the last byte.
        :param largest: how many bytes the answer's body may have.
        :param cut: whether the rest of a larger one is left unread, instead of refusing the answer.
        :param trusted: the operator set this address, so it may be a private one.
        :raises RequestFailed: when there is no answer within these limits, or the address may not be asked.
        """
        started = time.monotonic()
        prepared = _prepare(method, url, headers, json, data, params)
        name = _name(url)
        course = _Course(self.resolve, trusted or self.allow_private, started + timeout, timeout, name)
        alarm = threading.Timer(timeout, course.cut)
        alarm.daemon = True
        alarm.start()
        try:
            response = _adapter(course).send(prepared, stream=True, timeout=timeout)
            try:
                body = _read(response, largest, cut, name)
            finally:
                response.close()
        except RequestFailed:
            raise
        except Exception as error:  # whatever a strange answer makes requests or urllib3 stumble over
            if course.late or _is_timeout(error):
                raise course.too_late() from None
            text = f"{name} could not be reached, or its answer broke off."
            raise RequestFailed("connection", text, sent=course.sent) from None
        finally:
            alarm.cancel()
            course.close()
        if course.late:  # a cut connection may look like the end of a body
            raise course.too_late()
        return Reply(response.status_code, response.headers, body, round(time.monotonic() - started, 4))


class _Course:
    """One request under way: where it may go and until when."""

    def __init__(self, resolve: Resolve, private: bool, until: float, timeout: float, name: str) -> None:
        self._resolve = resolve
        self._private = private
        self._until = until
        self._timeout = timeout
        self._name = name
        self._lock = threading.Lock()
        self._twin: socket.socket | None = None
        self._cut = False
        self.sent = False

    @property
    def late(self) -> bool:
        return self._cut or time.monotonic() >= self._until

    def too_late(self) -> RequestFailed:
        return RequestFailed(
            "timeout", f"{self._name} did not answer within {self._timeout:g} seconds.", sent=self.sent
        )

    def connect(self, host: str, port: int) -> socket.socket:
        """Connect to the first address of `host` that takes it, after all of them were checked."""
        found = list(dict.fromkeys(self._look_up(host.strip("[]"), port)))
        if not self._private and not all(map(is_public, found)):
            raise RequestFailed(
                "address", f"{self._name} is an address in a private network, which this service may not ask."
            )
        failure: OSError = OSError("no address")
        for address in found:
            left = self._until - time.monotonic()
            if left <= 0:
                raise self.too_late()
            try:
                connected = socket.create_connection((address, port), left)
            except OSError as error:
                failure = error
                continue
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._watch(connected)
            return connected
        raise failure

    def cut(self) -> None:
        """End the connection: a slow drip must not outlast the limit."""
        with self._lock:
            self._cut = True
            if self._twin is not None:
                with suppress(OSError):
                    self._twin.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with self._lock:
            if self._twin is not None:
                self._twin.close()
                self._twin = None

    def _watch(self, connected: socket.socket) -> None:
        # A second handle on the connection, since TLS takes the first one over.
        with self._lock:
            self._twin = connected.dup()
        if self.late:
            self.cut()

    def _look_up(self, host: str, port: int) -> Sequence[str]:
        with suppress(ValueError):
            return [str(ip_address(host))]
        found: list[Sequence[str]] = []

        def look() -> None:
            with suppress(OSError, UnicodeError):
                found.append(self._resolve(host, port))

        # On a thread, because nothing limits the time that a name server takes.
        looking = threading.Thread(target=look, daemon=True)
        looking.start()
        looking.join(max(0.0, self._until - time.monotonic()))
        if looking.is_alive():
            raise self.too_late()
        if not found or not found[0]:
            raise RequestFailed("address", f"{self._name} has no known address.")
        return found[0]


def _name(url: str) -> str:
    """Where a URL leads, without its path, query and credentials."""
    with suppress(ValueError):
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    return "This URL"


def _prepare(
    method: str,
    url: str,
    headers: Mapping[str, str] | None,
    json: Any,
    data: bytes | None,
    params: Mapping[str, str] | None,
) -> Any:
    import requests

    named = {"User-Agent": "voiceapi", **(headers or {})}
    try:
        parts = urlsplit(url)
        if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
            raise ValueError
        return requests.Request(method, url, headers=named, json=json, data=data, params=params).prepare()
    except requests.exceptions.InvalidHeader:
        raise RequestFailed("connection", "A header of the request has a name or value that can't be sent.") from None
    except requests.exceptions.InvalidJSONError:
        raise RequestFailed("connection", "The body of the request has a value that JSON doesn't know.") from None
    except (requests.RequestException, ValueError):
        raise RequestFailed("scheme", "The URL must be one of http or https, with a host.") from None


@cache
def _kinds() -> tuple[Any, Any]:
    """The two kinds of connections, http and https, that leave finding their address to a course."""
    from urllib3.connection import HTTPConnection, HTTPSConnection

    class Plain(HTTPConnection):
        def __init__(self, *args: Any, course: _Course, **options: Any) -> None:
            super().__init__(*args, **options)
            self._course = course

        def _new_conn(self) -> socket.socket:
            return self._course.connect(self._dns_host, self.port or 80)

        def send(self, data: Any) -> None:
            if self.sock is None:
                self.connect()
            self._course.sent = True
            super().send(data)

    class Secure(HTTPSConnection):
        def __init__(self, *args: Any, course: _Course, **options: Any) -> None:
            super().__init__(*args, **options)
            self._course = course

        def _new_conn(self) -> socket.socket:
            return self._course.connect(self._dns_host, self.port or 443)

        def send(self, data: Any) -> None:
            if self.sock is None:
                self.connect()
            self._course.sent = True
            super().send(data)

    return Plain, Secure


def _adapter(course: _Course) -> Any:
    """What sends one request along `course`; it follows no redirect, and knows no proxy of the environment."""
    from requests.adapters import HTTPAdapter
    from urllib3 import HTTPConnectionPool, HTTPSConnectionPool

    def pool(kind: Any, connection: Any) -> Any:
        def make(host: str, port: int | None = None, **options: Any) -> Any:
            made = kind(host, port, **options)
            made.ConnectionCls = lambda *args, **more: connection(*args, course=course, **more)
            return made

        return make

    plain, secure = _kinds()
    adapter = HTTPAdapter(pool_maxsize=1)
    adapter.poolmanager.pool_classes_by_scheme = {
        "http": pool(HTTPConnectionPool, plain),
        "https": pool(HTTPSConnectionPool, secure),
    }
    return adapter


def _read(response: Any, largest: int, cut: bool, name: str) -> bytes:
    body = bytearray()
    for chunk in response.raw.stream(CHUNK, decode_content=True):
        body += chunk
        if len(body) > largest:
            if cut:
                return bytes(body[:largest])
            raise RequestFailed("size", f"The answer of {name} is larger than {largest} bytes.", sent=True)
    return bytes(body)


def _is_timeout(error: Exception) -> bool:
    import requests
    import urllib3

    return isinstance(error, TimeoutError | requests.Timeout | urllib3.exceptions.TimeoutError)
