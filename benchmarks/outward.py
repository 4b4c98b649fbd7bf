"""What an https request to another server takes of the processor: on a kept connection, and on a new one each time."""

from __future__ import annotations

import http.server
import ssl
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from .processes import ROOT

TIMES = 200


@dataclass(frozen=True, slots=True)
class Outward:
    """Medians of the processor's milliseconds for one request, all threads of the client's process together."""

    kept_ms: float
    new_ms: float


def measure_outward(folder: Path, times: int = TIMES) -> Outward:
    """Send so many requests of each kind, one after the other, to a server in another process."""
    with _server(folder) as (port, authority):
        from requests import utils

        from voiceapi import connections
        from voiceapi.http_client import OWNER_OPERATOR, HTTPClient

        usual, utils.DEFAULT_CA_BUNDLE_PATH = utils.DEFAULT_CA_BUNDLE_PATH, str(authority)
        connections.tls_context.cache_clear()
        client = HTTPClient(allow_private=True)

        def send(owner: str | None) -> Callable[[], Any]:
            return lambda: client.send(
                "POST", f"https://127.0.0.1:{port}/", json={"model": "m"}, timeout=10, owner=owner
            )

        try:
            return Outward(_median_ms(send(OWNER_OPERATOR), times), _median_ms(send(None), times))
        finally:
            client.close()
            utils.DEFAULT_CA_BUNDLE_PATH = usual
            connections.tls_context.cache_clear()


def _median_ms(send: Callable[[], Any], times: int) -> float:
    send()
    found = []
    for _ in range(times):
        began = time.process_time()
        send()
        found.append(time.process_time() - began)
    return statistics.median(found) * 1000


@contextmanager
def _server(folder: Path) -> Iterator[tuple[int, Path]]:
    """A server with a certificate of its own; its port, and the file of the certificate."""
    certificate, key = folder / "server.pem", folder / "server.key"
    _certify(certificate, key)
    command = [sys.executable, "-m", "benchmarks.outward", str(certificate), str(key)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline()), certificate
        finally:
            process.terminate()


def _certify(certificate: Path, key: Path) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    private, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    made = (
        x509.CertificateBuilder(name, name, private.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(private, hashes.SHA256())
    )
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key.write_bytes(
        private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        answer = b'{"choices": [{"message": {"content": "Good morning."}}]}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None: ...


def serve(certificate: str, key: str) -> None:
    """Print the port, and answer until the process is terminated."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    # The handshake is made when the connection's own thread first reads.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    print(server.server_port, flush=True)
    threading.Thread(target=server.serve_forever).start()


if __name__ == "__main__":
    serve(*sys.argv[1:])
