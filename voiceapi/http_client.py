"""HTTP requests to other servers: http and https only, no redirects, limits on time and size, addresses checked.

A connection is kept for a short while, and only for requests with the same owner to the same place.
"""

from __future__ import annotations

import json as jsonlib
import math
import socket
import ssl
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

from .config import host_and_port
from .connections import DEFAULT_PORTS, FRESH_SECONDS, KEPT_SECONDS, KeptConnections, Place, connection_class
from .masking import hide, sent_secrets

Kind = Literal["address", "timeout", "connection", "certificate", "size", "scheme"]
Resolve = Callable[[str, int], Sequence[str]]

MEBIBYTE = 1024 * 1024
CHUNK = 64 * 1024
# The owner of requests that carry the operator's credentials; that of all others is the id of an organization.
OWNER_OPERATOR = "operator"
# A request with one of these headers has a connection of its own: they say where it ends, or what follows on it.
FRAMING = {"connection", "content-length", "expect", "te", "trailer", "transfer-encoding", "upgrade"}
# The tables are our own, because the `ipaddress` module of each Python release knows another part of the registries.
# IANA's IPv4 special-purpose registry, also the blocks that are reachable, and multicast.
IPV4_BLOCKS = {
    "0.0.0.0/8": "this network",
    "10.0.0.0/8": "private use",
    "100.64.0.0/10": "shared address space of carriers",
    "127.0.0.0/8": "loopback",
    "169.254.0.0/16": "link local",
    "172.16.0.0/12": "private use",
    "192.0.0.0/24": "IETF protocol assignments",
    "192.0.2.0/24": "documentation",
    "192.31.196.0/24": "AS112",
    "192.52.193.0/24": "automatic multicast tunneling",
    "192.88.99.0/24": "6to4 relays",
    "192.168.0.0/16": "private use",
    "192.175.48.0/24": "direct delegation of AS112",
    "198.18.0.0/15": "benchmarking",
    "198.51.100.0/24": "documentation",
    "203.0.113.0/24": "documentation",
    "224.0.0.0/4": "multicast",
    "240.0.0.0/4": "reserved, and limited broadcast",
}
# IANA's IPv6 special-purpose registry, what else is reserved outside 2000::/3, and multicast.
IPV6_BLOCKS = {
    "::1/128": "loopback",
    "::/128": "unspecified",
    "::/96": "IPv4-compatible",
    "::ffff:0:0:0/96": "IPv4-translated",
    "64:ff9b:1::/48": "translation of IPv4, local use",
    "100::/64": "discard only",
    "100:0:0:1::/64": "dummy",
    "2001::/32": "Teredo",
    "2001:1::1/128": "port control protocol anycast",
    "2001:1::2/128": "TURN anycast",
    "2001:1::3/128": "DNS service discovery anycast",
    "2001:2::/48": "benchmarking",
    "2001:3::/32": "automatic multicast tunneling",
    "2001:4:112::/48": "AS112",
    "2001:10::/28": "ORCHID",
    "2001:20::/28": "ORCHIDv2",
    "2001:30::/28": "drone remote identification",
    "2001::/23": "IETF protocol assignments",
    "2001:db8::/32": "documentation",
    "2002::/16": "6to4",
    "2620:4f:8000::/48": "direct delegation of AS112",
    "3fff::/20": "documentation",
    "5f00::/16": "segment routing",
    "fc00::/7": "unique local",
    "fe80::/10": "link local",
    "fec0::/10": "site local",
    "ff00::/8": "multicast",
}
# Where clouds answer their machines, often with credentials. Only Azure's is outside the blocks above.
METADATA = {
    "100.100.100.200/32": "Alibaba Cloud",
    "168.63.129.16/32": "Azure",
    "169.254.0.23/32": "Tencent Cloud",
    "169.254.42.42/32": "Scaleway",
    "169.254.169.254/32": "most clouds",
    "169.254.170.2/32": "tasks of Amazon ECS",
    "169.254.170.23/32": "pods of Amazon EKS",
    "192.0.0.192/32": "Oracle Cloud",
    "fd00:42::42/128": "Scaleway",
    "fd00:ec2::23/128": "pods of Amazon EKS",
    "fd00:ec2::254/128": "Amazon EC2",
    "fd20:ce::254/128": "Google Cloud",
    "fe80::a9fe:a9fe/128": "OpenStack",
}
# The networks whose addresses are those of IPv4 hosts: IPv4-mapped ones, and those of translators to IPv4 (NAT64).
_EMBEDDING_IPV4 = (IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"))
# All that has been allocated for the public internet; the rest of IPv6 is reserved.
_GLOBAL_UNICAST = IPv6Network("2000::/3")

_BLOCKS = (*IPV4_BLOCKS, *IPV6_BLOCKS, *METADATA)
_IPV4 = tuple(IPv4Network(block) for block in _BLOCKS if ":" not in block)
_IPV6 = tuple(IPv6Network(block) for block in _BLOCKS if ":" in block)

# Ports of other protocols, whose servers might take an HTTP request for one of theirs: the Fetch standard's bad ports.
# fmt: off
OTHER_PROTOCOLS = frozenset(
    {
        1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104,
        109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515,
        526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049,
        3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
    }
)


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


@dataclass(frozen=True)
class StreamedReply:
    """An answer of any status whose body is read as it comes; its methods raise RequestFailed."""

    status: int
    headers: Mapping[str, str]
    _response: Any = field(repr=False)
    _guard: _Guard = field(repr=False)

    def read(self, max_bytes: int = MEBIBYTE, truncate: bool = False) -> bytes:
        """The rest of the body.

        :param max_bytes: how large it may be, after decompression.
        :param truncate: cut a larger one off instead of raising an error.
        """
        body = bytearray()
        for chunk in self._chunks(lambda: self._response.stream(CHUNK, decode_content=True)):
            body += chunk
            if len(body) > max_bytes:
                if truncate:
                    return bytes(body[:max_bytes])
                text = f"The answer of {self._guard.name} is larger than {max_bytes} bytes."
                raise RequestFailed("size", text, sent=True)
        return bytes(body)

    def chunks(self) -> Iterator[bytes]:
        """The parts of the body as they arrive."""
        return self._chunks(lambda: iter(partial(self._response.read1, CHUNK, decode_content=True), b""))

    def expect(self, seconds: float) -> None:
        """Give the request up unless this is called again within so many seconds."""
        self._guard.expect(seconds)

    def _chunks(self, read: Callable[[], Iterator[bytes]]) -> Iterator[bytes]:
        with self._guard.explaining():
            yield from read()
            if self._guard.late:  # an aborted connection may look like the end of a body
                raise self._guard.too_late()


def resolve(host: str, port: int) -> list[str]:
    """The IP addresses of a host, from the system's resolver.

    :raises OSError: when there are none.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


def is_loopback(url: str) -> bool:
    """True for a URL that leads to the machine itself, such as http://localhost:8000; names aren't looked up."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    try:
        ip = ip_address(host.partition("%")[0])
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    ip = getattr(ip, "ipv4_mapped", None) or ip
    return ip.is_loopback or ip.is_unspecified


class Send(Protocol):
    """The signature of `HTTPClient.send`, as far as carriers and language models need it."""

    def __call__(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        json: Any = None,
        data: bytes | None = None,
        timeout: float,
        trusted: bool = False,
    ) -> Reply: ...


@dataclass(frozen=True)
class HTTPClient:
    """Sends HTTP requests to other servers.

    :param allow_private: whether URLs that users of the API gave may lead to private addresses; or the hosts that may,
        as `Settings.allow_private_urls` has them.
    :param resolve: returns the IP addresses of a host and port, or raises OSError.
    :param before_sending: called before each request, to give back what the wait for its answer would block.
    """

    allow_private: bool | frozenset[str] = False
    resolve: Resolve = resolve
    before_sending: Callable[[], None] = lambda: None
    kept: KeptConnections = field(default_factory=KeptConnections, repr=False, compare=False)

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
        owner: Hashable = None,
        repeatable: bool | None = None,
    ) -> Reply:
        """Send one request and read its answer, whatever its status; redirects aren't followed.

        An answer that repeats a secret of the request has it masked, since answers end up in logs and transcripts.

        :param timeout: seconds for the whole request, from the DNS lookup to the last byte of the answer.
        :param max_bytes: how large the answer's body may be, after decompression.
        :param truncate: cut a larger body off instead of raising an error.
        :param trusted: the operator set this URL, so it may lead to a private address.
        :param owner: whose credentials the request carries: OWNER_OPERATOR or the id of an organization. Its
            connection is kept for the owner's next request; without an owner, it is closed.
        :param repeatable: its server may get the request twice: it is sent again if a kept connection turns out to be
            closed. True by default for GET and HEAD. Others take only connections that were just used.
        :raises RequestFailed: when there is no answer within these limits, or the address isn't allowed.
        """
        started = time.monotonic()
        prepared = _prepare(method, url, headers, json, data, params)
        keep = owner is not None and FRAMING.isdisjoint(each.lower() for each in headers or {})
        with self._open(prepared, timeout, trusted, owner, keep, repeatable) as answer:
            body = answer.read(max_bytes, truncate)
        body = hide(body, sent_secrets(url, headers or {}))
        return Reply(answer.status, answer.headers, body, round(time.monotonic() - started, 4))

    def stream(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        json: Any = None,
        timeout: float,
        trusted: bool = False,
        owner: Hashable = None,
        repeatable: bool | None = None,
    ) -> AbstractContextManager[StreamedReply]:
        """Send one request; within the block its answer is read as it comes. Nothing in it is masked.

        A block that is left before the end of the body closes the connection. The parameters are those of `send`.

        :raises RequestFailed: as `send`, also while the answer is read.
        """
        prepared = _prepare(method, url, headers, json, None, None)
        return self._open(prepared, timeout, trusted, owner, owner is not None, repeatable)

    @contextmanager
    def _open(
        self, prepared: Any, timeout: float, trusted: bool, owner: Hashable, keep: bool, repeatable: bool | None
    ) -> Iterator[StreamedReply]:
        """Send a request; its answer, whose body the block reads. Keep the connection if it has read all of it.

        :param keep: whether the connection may be kept.
        """
        self.before_sending()
        private = None if trusted or self.allow_private is True else self.allow_private or frozenset()
        guard = _Guard(self.resolve, private, time.monotonic() + timeout, timeout, _origin(prepared.url))
        repeatable = prepared.method in ("GET", "HEAD") if repeatable is None else repeatable
        timer = threading.Timer(timeout, guard.abort)
        timer.daemon = True
        timer.start()
        try:
            with ExitStack() as unkept:
                with guard.explaining():
                    places = _places(prepared.url, guard, owner, trusted)
                    connection, response = self._begin(prepared, guard, places, keep, repeatable)
                unkept.callback(connection.close)
                with closing(response):
                    yield StreamedReply(response.status, response.headers, response, guard)
                    is_over = connection.is_over(response)
                if keep and is_over and guard.let_go():
                    unkept.pop_all()
                    self.kept.keep(connection)
        finally:
            timer.cancel()
            guard.close()

    def _begin(
        self, prepared: Any, guard: _Guard, places: Sequence[Place], keep: bool, repeatable: bool
    ) -> tuple[Any, Any]:
        """Send the request over a kept connection if there is one, else over a new one, and read the answer's head.

        The connection and the answer have to be closed.
        """
        connection = self.kept.take(places, KEPT_SECONDS if repeatable else FRESH_SECONDS) if keep else None
        if connection is not None:
            try:
                return connection, connection.ask(prepared, guard)
            except OSError:
                if not repeatable or guard.late:
                    raise
        connection = connection_class()(*guard.connect(places))
        return connection, connection.ask(prepared, guard)

    def close(self) -> None:
        """Close the connections that are kept; later requests have one each."""
        self.kept.close()


@dataclass(frozen=True)
class LimitedHTTPClient(HTTPClient):
    """Sends requests as another client does, but no longer than until a deadline, a time of the monotonic clock."""

    client: HTTPClient = field(default_factory=HTTPClient)
    deadline: float = 0.0

    def send(self, method: str, url: str, *, timeout: float, **options: Any) -> Reply:
        """As `HTTPClient.send`.

        :raises RequestFailed: also when no time is left; nothing was sent then.
        """
        return self.client.send(method, url, timeout=self._shortened(timeout, url), **options)

    def stream(
        self, method: str, url: str, *, timeout: float, **options: Any
    ) -> AbstractContextManager[StreamedReply]:
        """As `HTTPClient.stream`.

        :raises RequestFailed: as `send`.
        """
        return self.client.stream(method, url, timeout=self._shortened(timeout, url), **options)

    def _shortened(self, timeout: float, url: str) -> float:
        # Rounded up: a request that fails before the deadline would seem to fail for another reason.
        left = math.ceil(10 * (self.deadline - time.monotonic())) / 10
        if left <= 0:
            raise RequestFailed("timeout", f"There was no time left to ask {_origin(url)}.")
        return min(timeout, left)


class _Guard:
    """Enforces the limits of one request: which addresses it may connect to, and when it is aborted."""

    def __init__(
        self, resolve: Resolve, private: frozenset[str] | None, deadline: float, timeout: float, name: str
    ) -> None:
        self._resolve = resolve
        # The hosts that may be private; None for any.
        self._private = private
        self._deadline = deadline
        self._timeout = timeout
        self.name = name
        self._lock = threading.Lock()
        self._handle: socket.socket | None = None
        self._aborted = False
        self.sent = False
        # When something has to have come, see `expect`, and what looks whether it has.
        self._expected_at = math.inf
        self._watchdog: threading.Timer | None = None
        self._pause = 0.0

    @property
    def late(self) -> bool:
        return self._aborted or time.monotonic() >= self._deadline

    def too_late(self) -> RequestFailed:
        text = f"{self.name} did not answer within {self._timeout:.3g} seconds."
        if self._pause:
            text = f"{self.name} broke its answer off, and sent nothing for {self._pause:.3g} seconds."
        return RequestFailed("timeout", text, sent=self.sent)

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Within the block, raise RequestFailed for every error: http.client and urllib3 have many kinds."""
        try:
            yield
        except RequestFailed:
            raise
        except Exception as error:
            if self.late or _is_timeout(error):
                raise self.too_late() from None
            if (fault := _certificate_fault(error)) and not self.sent:
                text = f"The TLS certificate of {self.name} doesn't verify: {fault}. Nothing was sent."
                raise RequestFailed("certificate", text) from None
            text = f"{self.name} could not be reached, or its answer broke off."
            raise RequestFailed("connection", text, sent=self.sent) from None

    def expect(self, seconds: float) -> None:
        """Abort the request unless this is called again within so many seconds."""
        with self._lock:
            before, self._expected_at = self._expected_at, time.monotonic() + seconds
            if self._watchdog is not None and self._expected_at < before:  # it would look too late
                self._watchdog.cancel()
                self._watchdog = None
            if self._watchdog is None:
                self._watch_for(seconds, seconds)

    def _watch_for(self, left: float, seconds: float) -> None:
        self._watchdog = threading.Timer(left, self._look_after, (seconds,))
        self._watchdog.daemon = True
        self._watchdog.start()

    def _look_after(self, seconds: float) -> None:
        with self._lock:
            if self._watchdog is None:  # the request is over
                return
            left = self._expected_at - time.monotonic()
            if left > 0:
                self._watch_for(left, seconds)
                return
            self._pause = seconds
        self.abort()

    @property
    def seconds_left(self) -> float:
        """The seconds that are left for the request.

        :raises RequestFailed: when none are.
        """
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise self.too_late()
        return left

    def addresses(self, host: str, port: int) -> list[str]:
        """The IP addresses of a host, after all of them and the port were checked.

        Of hosts that are listed the name counts that was asked for, since anybody's name may lead to their addresses.
        """
        addresses = list(dict.fromkeys(self._look_up(host, port)))
        if self._private is None or not self._private.isdisjoint(_listings(host, port)):
            return addresses
        if self._private.isdisjoint(_listings(host)) and not all(map(is_public, addresses)):
            setting = f"VOICEAPI_ALLOW_PRIVATE_URLS has {host_and_port(host, port)}"
            text = f"{self.name} is an address in a private network, which this service may ask only if {setting}."
            raise RequestFailed("address", text)
        if port in OTHER_PROTOCOLS:
            raise RequestFailed("address", f"Port {port} of {self.name} is one of another protocol than HTTP.")
        return addresses

    def connect(self, places: Sequence[Place]) -> tuple[Place, socket.socket]:
        """Connect to the first of these places that accepts."""
        failure: OSError = OSError("no address")
        for place in places:
            try:
                connection = socket.create_connection((place.address, place.port), self.seconds_left)
            except OSError as error:
                failure = error
                continue
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.watch(connection)
            return place, connection
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
            self._close_handle()
            if self._watchdog is not None:
                self._watchdog.cancel()
                self._watchdog = None

    def let_go(self) -> bool:
        """Never shut the connection down from now on; False if that was done, or is due."""
        with self._lock:
            if self.late:
                return False
            self._close_handle()
            return True

    def watch(self, connection: socket.socket) -> None:
        """Shut this connection down when the request is aborted, and no other."""
        # A second handle on the connection, because TLS detaches the first one.
        with self._lock:
            self._close_handle()
            self._handle = socket.fromfd(connection.fileno(), connection.family, connection.type)
        if self.late:
            self.abort()

    def _close_handle(self) -> None:
        if self._handle is not None:
            self._handle.close()
            self._handle = None

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
            reason = "has no known address: check the name, and that this machine reaches the internet."
            raise RequestFailed("address", f"{self.name} {reason}")
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


def _places(url: str, guard: _Guard, owner: Hashable, trusted: bool) -> list[Place]:
    """Where a prepared URL leads: a place for each address of its host."""
    from urllib3.util import parse_url

    parts = parse_url(url)
    scheme, host = parts.scheme or "", (parts.host or "").strip("[]")
    port = parts.port or DEFAULT_PORTS[scheme]
    return [Place(owner, trusted, scheme, host, port, address) for address in guard.addresses(host, port)]


def _is_timeout(error: Exception) -> bool:
    # Imported on first use, as everywhere here: they would add to the time that the service takes to start.
    from urllib3.exceptions import TimeoutError as AnswerTimeout

    return isinstance(error, TimeoutError | AnswerTimeout)


def _certificate_fault(error: BaseException) -> str | None:
    """Why a server's certificate doesn't verify, without a full stop; None if the error is another one."""
    seen: list[BaseException] = []
    while error not in seen:
        if isinstance(error, ssl.SSLCertVerificationError):
            return error.verify_message.rstrip(".") or "it isn't valid"
        seen.append(error)
        # Libraries wrap it as a reason, as an argument, or as the context of an error of their own.
        wrapped = (getattr(error, "reason", None), *error.args, error.__cause__, error.__context__)
        error = next((each for each in wrapped if isinstance(each, BaseException)), error)
    return None


# -- addresses that URLs of users may not lead to



# fmt: on


def _listings(host: str, port: int | None = None) -> set[str]:
    """How a list of hosts may have this one: by itself, or as one of all names below another."""
    name = host_and_port(host)
    labels = name.split(".")
    is_address = name.startswith("[") or labels[-1].isdecimal()
    below = () if is_address else (f"*.{'.'.join(labels[at:])}" for at in range(1, len(labels)))
    return {host_and_port(each, port) for each in (name, *below)}


def is_public(address: str) -> bool:
    """True for an address of the public internet; an IPv6 address with a zone is one of a local network."""
    return "%" not in address and not is_special(ip_address(address))


def is_special(ip: IPv4Address | IPv6Address) -> bool:
    """True unless the address is one of the public internet; one that embeds an IPv4 address is judged by that."""
    if isinstance(ip, IPv6Address):
        if any(ip in network for network in _EMBEDDING_IPV4):
            return is_special(IPv4Address(int(ip) & 0xFFFFFFFF))
        return ip not in _GLOBAL_UNICAST or any(ip in network for network in _IPV6)
    return any(ip in network for network in _IPV4)
