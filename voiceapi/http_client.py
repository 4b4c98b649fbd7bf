"""HTTP requests to other servers: http and https only, no redirects, limits on time and size, addresses checked."""

from __future__ import annotations

import json as jsonlib
import math
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from ipaddress import ip_address
from typing import Any, Literal
from urllib.parse import urlsplit

from .masking import hide, sent_secrets
from .special_addresses import OTHER_PROTOCOLS, is_special

Kind = Literal["address", "timeout", "connection", "size", "scheme"]
Resolve = Callable[[str, int], Sequence[str]]

MEBIBYTE = 1024 * 1024
CHUNK = 64 * 1024


class RequestFailed(Exception):
    """A request without an answer; its text is one sentence for a user, without credentials.

    `sent` is true when any of it was sent, so that the server may have acted on it.
    """

    def __init__(self, kind: Kind, text: str, *, sent: bool = False) -> None:
        super().__init__(text)
        self.kind = kind
        self.sent = sent


@dataclass(frozen=True)
class Reply:
    """An answer of any status; `seconds` is how long it took. Names of headers are case-insensitive."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    seconds: float

    def json(self) -> Any:
        """The body as JSON.

        :raises ValueError: when it isn't JSON, or is nested too deeply.
        """
        try:
            return jsonlib.loads(self.body)
        except RecursionError:
            raise ValueError("The body is nested too deeply.") from None


def resolve(host: str, port: int) -> list[str]:
    """The IP addresses of a host, from the system's resolver.

    :raises OSError: when there are none.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


def is_public(address: str) -> bool:
    """True for an address of the public internet; an IPv6 address with a zone is one of a local network."""
    return "%" not in address and not is_special(ip_address(address))


def is_loopback(url: str) -> bool:
    """True for a URL that leads to the machine itself, such as http://localhost:8000; names aren't looked up."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    try:
        ip = ip_address(host.partition("%")[0])
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    ip = getattr(ip, "ipv4_mapped", None) or ip
    return ip.is_loopback or ip.is_unspecified


@dataclass(frozen=True)
class HTTPClient:
    """Sends HTTP requests to other servers.

    :param allow_private: whether URLs that users of the API gave may lead to private addresses.
    :param resolve: returns the IP addresses of a host and port, or raises OSError.
    :param before_sending: called before each request, to give back what the wait for its answer would block.
    """

    allow_private: bool = False
    resolve: Resolve = resolve
    before_sending: Callable[[], None] = lambda: None

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
        max_bytes: int = MEBIBYTE,
        truncate: bool = False,
        trusted: bool = False,
    ) -> Reply:
        """Send one request and read its answer, whatever its status; redirects aren't followed.

        An answer that repeats a secret of the request has it masked, since answers end up in logs and transcripts.

        :param timeout: seconds for the whole request, from the DNS lookup to the last byte of the answer.
        :param max_bytes: how large the answer's body may be, after decompression.
        :param truncate: cut a larger body off instead of raising an error.
        :param trusted: the operator set this URL, so it may lead to a private address.
        :raises RequestFailed: when there is no answer within these limits, or the address isn't allowed.
        """
        self.before_sending()
        started = time.monotonic()
        prepared = _prepare(method, url, headers, json, data, params)
        name = _origin(url)
        guard = _Guard(self.resolve, trusted or self.allow_private, started + timeout, timeout, name)
        timer = threading.Timer(timeout, guard.abort)
        timer.daemon = True
        timer.start()
        try:
            response = _adapter(guard).send(prepared, stream=True, timeout=timeout)
            try:
                body = _read(response, max_bytes, truncate, name)
            finally:
                response.close()
        except RequestFailed:
            raise
        except Exception as error:  # requests and urllib3 raise many kinds for malformed answers
            if guard.late or _is_timeout(error):
                raise guard.too_late() from None
            text = f"{name} could not be reached, or its answer broke off."
            raise RequestFailed("connection", text, sent=guard.sent) from None
        finally:
            timer.cancel()
            guard.close()
        if guard.late:  # an aborted connection may look like the end of a body
            raise guard.too_late()
        body = hide(body, sent_secrets(url, headers or {}))
        return Reply(response.status_code, response.headers, body, round(time.monotonic() - started, 4))


@dataclass(frozen=True)
class LimitedHTTPClient(HTTPClient):
    """Sends requests as another client does, but no longer than until a deadline, a time of the monotonic clock."""

    client: HTTPClient = field(default_factory=HTTPClient)
    deadline: float = 0.0

    def send(self, method: str, url: str, *, timeout: float, **options: Any) -> Reply:
        """As `HTTPClient.send`.

        :raises RequestFailed: also when no time is left; nothing was sent then.
        """
        # Rounded up: a request that fails before the deadline would seem to fail for another reason.
        left = math.ceil(10 * (self.deadline - time.monotonic())) / 10
        if left <= 0:
            raise RequestFailed("timeout", f"There was no time left to ask {_origin(url)}.")
        return self.client.send(method, url, timeout=min(timeout, left), **options)


class _Guard:
    """Enforces the limits of one request: which addresses it may connect to, and when it is aborted."""

    def __init__(self, resolve: Resolve, allow_private: bool, deadline: float, timeout: float, name: str) -> None:
        self._resolve = resolve
        self._allow_private = allow_private
        self._deadline = deadline
        self._timeout = timeout
        self._name = name
        self._lock = threading.Lock()
        self._handle: socket.socket | None = None
        self._aborted = False
        self.sent = False

    @property
    def late(self) -> bool:
        return self._aborted or time.monotonic() >= self._deadline

    def too_late(self) -> RequestFailed:
        return RequestFailed(
            "timeout", f"{self._name} did not answer within {self._timeout:g} seconds.", sent=self.sent
        )

    def connect(self, host: str, port: int) -> socket.socket:
        """Connect to the first address of `host` that accepts, after all of them were checked."""
        addresses = list(dict.fromkeys(self._look_up(host.strip("[]"), port)))
        if not self._allow_private and not all(map(is_public, addresses)):
            raise RequestFailed(
                "address", f"{self._name} is an address in a private network, which this service may not ask."
            )
        if not self._allow_private and port in OTHER_PROTOCOLS:
            raise RequestFailed("address", f"Port {port} of {self._name} is one of another protocol than HTTP.")
        failure: OSError = OSError("no address")
        for address in addresses:
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise self.too_late()
            try:
                connection = socket.create_connection((address, port), left)
            except OSError as error:
                failure = error
                continue
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._watch(connection)
            return connection
        raise failure

    def begin_sending(self) -> None:
        """Note that the server may act on the request from now on.

        :raises RequestFailed: when the request is aborted. Python's ssl shakes no hands on a connection that was shut
            down just before, so nothing else would stop it here.
        """
        if self.late:
            raise self.too_late()
        self.sent = True

    def abort(self) -> None:
        """Shut the connection down, since a server that sends slowly would otherwise outlast the limit."""
        with self._lock:
            self._aborted = True
            if self._handle is not None:
                with suppress(OSError):
                    self._handle.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with self._lock:
            if self._handle is not None:
                self._handle.close()
                self._handle = None

    def _watch(self, connection: socket.socket) -> None:
        # A second handle on the connection, because TLS detaches the first one.
        with self._lock:
            self._handle = connection.dup()
        if self.late:
            self.abort()

    def _look_up(self, host: str, port: int) -> Sequence[str]:
        with suppress(ValueError):
            return [str(ip_address(host))]
        found: list[Sequence[str]] = []

        def look_up() -> None:
            with suppress(OSError, UnicodeError):
                found.append(self._resolve(host, port))

        # On a thread, because getaddrinfo has no timeout.
        thread = threading.Thread(target=look_up, daemon=True)
        thread.start()
        thread.join(max(0.0, self._deadline - time.monotonic()))
        if thread.is_alive():
            raise self.too_late()
        if not found or not found[0]:
            raise RequestFailed("address", f"{self._name} has no known address.")
        return found[0]


def _origin(url: str) -> str:
    """The origin of a URL for error messages: without path, query and credentials."""
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

    all_headers = {"User-Agent": "voiceapi", **(headers or {})}
    try:
        parts = urlsplit(url)
        # urllib3 takes port 0 for the default one.
        if parts.scheme.lower() not in ("http", "https") or not parts.hostname or parts.port == 0:
            raise ValueError
        return requests.Request(method, url, headers=all_headers, json=json, data=data, params=params).prepare()
    except requests.exceptions.InvalidHeader:
        raise RequestFailed("connection", "A header of the request has a name or value that can't be sent.") from None
    except requests.exceptions.InvalidJSONError:
        raise RequestFailed("connection", "The body of the request has a value that JSON doesn't know.") from None
    except (requests.RequestException, ValueError):
        raise RequestFailed("scheme", "The URL must be one of http or https, with a host.") from None


@cache
def _connection_classes() -> tuple[Any, Any]:
    """The connection classes for http and https: a guard opens their sockets and learns when something was sent."""
    from urllib3.connection import HTTPConnection, HTTPSConnection

    class GuardedHTTPConnection(HTTPConnection):
        def __init__(self, *args: Any, guard: _Guard, **options: Any) -> None:
            super().__init__(*args, **options)
            self._guard = guard

        def _new_conn(self) -> socket.socket:
            return self._guard.connect(self._dns_host, self.port or 80)

        def send(self, data: Any) -> None:
            if self.sock is None:
                self.connect()
            self._guard.begin_sending()
            super().send(data)

    class GuardedHTTPSConnection(HTTPSConnection):
        def __init__(self, *args: Any, guard: _Guard, **options: Any) -> None:
            super().__init__(*args, **options)
            self._guard = guard

        def _new_conn(self) -> socket.socket:
            return self._guard.connect(self._dns_host, self.port or 443)

        def send(self, data: Any) -> None:
            if self.sock is None:
                self.connect()
            self._guard.begin_sending()
            super().send(data)

    return GuardedHTTPConnection, GuardedHTTPSConnection


def _adapter(guard: _Guard) -> Any:
    """A transport adapter for one request under `guard`. Used without a session, it ignores redirects and proxies."""
    from requests.adapters import HTTPAdapter
    from urllib3 import HTTPConnectionPool, HTTPSConnectionPool

    def pool_of(pool_class: Any, connection_class: Any) -> Any:
        def make_pool(host: str, port: int | None = None, **options: Any) -> Any:
            pool = pool_class(host, port, **options)
            pool.ConnectionCls = lambda *args, **more: connection_class(*args, guard=guard, **more)
            return pool

        return make_pool

    http, https = _connection_classes()
    adapter = HTTPAdapter(pool_maxsize=1)
    adapter.poolmanager.pool_classes_by_scheme = {
        "http": pool_of(HTTPConnectionPool, http),
        "https": pool_of(HTTPSConnectionPool, https),
    }
    return adapter


def _read(response: Any, max_bytes: int, truncate: bool, name: str) -> bytes:
    body = bytearray()
    for chunk in response.raw.stream(CHUNK, decode_content=True):
        body += chunk
        if len(body) > max_bytes:
            if truncate:
                return bytes(body[:max_bytes])
            raise RequestFailed("size", f"The answer of {name} is larger than {max_bytes} bytes.", sent=True)
    return bytes(body)


def _is_timeout(error: Exception) -> bool:
    # Imported on first use, as everywhere here: they would add to the time that the service takes to start.
    import requests
    import urllib3

    return isinstance(error, TimeoutError | requests.Timeout | urllib3.exceptions.TimeoutError)
