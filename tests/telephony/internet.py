"""An internet of its own for a test: names, https and tunnels, all of it on this machine's loopback."""

from __future__ import annotations

import http.client
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

# What is asked of the world's name servers, and the names that its certificate is for.
NAMES = (".twilio.com", ".trycloudflare.com")
CERTIFIED = ("api.twilio.com", "monitor.twilio.com", "*.trycloudflare.com")
# Python programs find this file first on their path: the names lead to the test's server, whose certificate is trusted.
SITE = """
import os, socket, certifi

NAMES, SERVER, HERE = {names!r}, ("127.0.0.1", {port}), "127.77.0.1"
look_up, connect = socket.getaddrinfo, socket.create_connection

def getaddrinfo(host, *args, **kwargs):
    return look_up(HERE if isinstance(host, str) and host.endswith(NAMES) else host, *args, **kwargs)

def create_connection(address, *args, **kwargs):
    return connect(SERVER if address[0] == HERE else address, *args, **kwargs)

socket.getaddrinfo, socket.create_connection = getaddrinfo, create_connection
certifi.where = lambda: {authority!r}
"""


@dataclass(frozen=True)
class Request:
    """An HTTP request, as a server reads it; `path` has the query."""

    method: str
    host: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes


class Internet:
    """One https server for all names: those of `hosts` are answered by functions, those of `tunnels` by local ports."""

    def __init__(self, folder: Path) -> None:
        self.hosts: dict[str, Callable[[Request], Answer]] = {}
        self.tunnels: dict[str, int] = {}
        authority, server = folder / "authority.pem", folder / "server.pem"
        certify(authority, server)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(server)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        # The handshake is made when the connection's own thread first reads.
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        port = self._server.server_port
        (folder / "site").mkdir()
        site = SITE.format(names=NAMES, port=port, authority=str(authority))
        (folder / "site" / "sitecustomize.py").write_text(site, encoding="utf-8")
        (folder / ".curlrc").write_text(
            f'connect-to = "::127.0.0.1:{port}"\ncacert = "{authority}"\n', encoding="utf-8"
        )
        # For Python programs and for curl.
        self.environment = {"CURL_HOME": str(folder)}
        self.site = str(folder / "site")

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def fetch(self, method: str, url: str, headers: Mapping[str, str], body: bytes, timeout: float) -> Answer:
        """What a URL answers to somebody on the internet.

        :raises OSError: when nothing is found or reached there.
        """
        parts = urlsplit(url)
        if parts.scheme != "https" or parts.port is not None:
            raise OSError(f"{url} isn't reached from the internet.")
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        return self._tunnel(Request(method, parts.hostname or "", path, headers, body), timeout)

    def _tunnel(self, request: Request, timeout: float = 30) -> Answer:
        """The answer of the local port behind a tunnel. The request keeps its host and path, as with cloudflared."""
        if request.host not in self.tunnels:
            return Answer(530, {"Content-Type": "text/html"}, b"error code: 1033")
        connection = http.client.HTTPConnection("127.0.0.1", self.tunnels[request.host], timeout=timeout)
        forwarded = {"Host": request.host, "X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.7"}
        dropped = ("host", "connection")
        headers = {name: value for name, value in request.headers.items() if name.lower() not in dropped}
        try:
            connection.request(request.method, request.path, request.body or None, headers | forwarded)
            answer = connection.getresponse()
            return Answer(answer.status, dict(answer.getheaders()), answer.read())
        except ConnectionRefusedError:
            return Answer(502, {"Content-Type": "text/html"}, b"Bad gateway")
        finally:
            connection.close()

    def _answer(self, request: Request) -> Answer:
        return self.hosts.get(request.host, self._tunnel)(request)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        internet = self

        class Handler(BaseHTTPRequestHandler):
            timeout = 30

            def serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                host = self.headers["Host"].partition(":")[0]
                answer = internet._answer(Request(self.command, host, self.path, dict(self.headers), body))
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    if name.lower() not in ("content-length", "transfer-encoding", "connection", "server", "date"):
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

            def log_message(self, *_: Any) -> None: ...

        for method in ("GET", "POST", "PUT", "DELETE"):
            setattr(Handler, f"do_{method}", Handler.serve)
        return Handler


def certify(authority: Path, server: Path) -> None:
    """Write the certificate of an authority, and a server's certificate by it, with the server's key."""
    root_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    root_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "The test's authority")])
    now = datetime.now(UTC)

    def certificate(name: x509.Name, public: Any, ca: bool) -> x509.CertificateBuilder:
        usage = dict.fromkeys(
            ("content_commitment", "data_encipherment", "key_agreement", "encipher_only", "decipher_only"), False
        )
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(root_name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(root_key.public_key()), critical=False)
            .add_extension(
                x509.KeyUsage(digital_signature=True, key_encipherment=False, key_cert_sign=ca, crl_sign=ca, **usage),
                critical=True,
            )
        )

    root = certificate(root_name, root_key.public_key(), True).sign(root_key, hashes.SHA256())
    leaf = (
        certificate(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, CERTIFIED[0])]), key.public_key(), False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in CERTIFIED]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(root_key, hashes.SHA256())
    )
    authority.write_bytes(root.public_bytes(serialization.Encoding.PEM))
    server.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + leaf.public_bytes(serialization.Encoding.PEM)
    )
