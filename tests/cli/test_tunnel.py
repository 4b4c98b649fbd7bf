"""The tunnel of `serve --tunnel`: its address becomes the service's, and connected numbers follow it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
import pytest
from flask import Flask
from number_apis import OURS, TwilioNumbers

from voiceapi.calls import number_setup
from voiceapi.cli.tunnel import Times, Tunnel
from voiceapi.config import Settings, names
from voiceapi.http_client import Reply
from voiceapi.opening import open_service
from voiceapi.service import Service
from voiceapi.store.base import insert
from voiceapi.store.fields import now
from voiceapi.store.telephony import Tunnel as StoredTunnel
from voiceapi.workflows import versions

ONE, TWO = "https://one-two.trycloudflare.com", "https://three-four.trycloudflare.com"
QUICK = Times(address=30, reached=30, look=0.02, pauses=(0.05,), too_many=0.2, note=0.05, end=10)
BOX = "echo '2026 INF |  {url}  |' >&2"
STUB = """#!/bin/sh
cd "{folder}"
number=$(($(cat count 2>/dev/null || echo 0) + 1))
echo $number > count
echo "$@" > arguments
echo $$ > pid
. ./$number
"""


class Stub:
    """A cloudflared: what it does at each start."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        program = folder / "cloudflared"
        program.write_text(STUB.format(folder=folder), encoding="utf-8")
        program.chmod(0o755)

    def does(self, *scripts: str) -> None:
        for number, script in enumerate(scripts, 1):
            (self.folder / str(number)).write_text(f"{script}\n", encoding="utf-8")

    @property
    def starts(self) -> int:
        return int((self.folder / "count").read_text() or 0)

    @property
    def is_running(self) -> bool:
        try:
            os.kill(int((self.folder / "pid").read_text()), 0)
        except ProcessLookupError:
            return False
        return True


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stub:
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    return Stub(folder)


class World:
    """A service with a number at a carrier, and what its tunnel says."""

    def __init__(self, service: Service) -> None:
        self.service, self.lines = service, []  # type: ignore[var-annotated]
        self.twilio = TwilioNumbers()
        self.reached = True
        object.__setattr__(service, "http", self.twilio.client(self.health))

    def health(self, method: str, url: str, **_: Any) -> Reply:
        said = {"status": "ok", "backend_api_endpoint": self.service.settings.public_url}
        return Reply(200 if self.reached else 530, {}, json.dumps(said if self.reached else {}).encode(), 0.0)

    def goes_to(self, url: str) -> bool:
        return self.twilio.goes_to(OURS)[0].startswith(f"{url}/api/v1/telephony/inbound/2")


@pytest.fixture
def world(app: Flask, service: Service, talk: Callable[..., Any]) -> World:
    world = World(service)
    with service.store.session():
        agent = versions.create(service.vault, 1, "First call", talk())[0].id
        service.reach_at("https://voice.example.org")
        account = number_setup.open_account(service, 1, "twilio", world.twilio.given())
        number_setup.carry_out(service, number_setup.plan(service, account, OURS, agent))
        service.reach_at(None)
    return world


@pytest.fixture
def opened(world: World) -> Iterator[Callable[..., Tunnel]]:
    tunnels = []

    def open_tunnel(times: Times = QUICK) -> Tunnel:
        tunnels.append(Tunnel(world.service, "http://127.0.0.1:8000", world.lines.append, times))
        tunnels[-1].start()
        return tunnels[-1]

    yield open_tunnel
    for tunnel in tunnels:
        tunnel.stop()


def wait_for(true: Callable[[], object]) -> None:
    until = time.monotonic() + 60
    while not true():
        assert time.monotonic() < until
        time.sleep(0.01)


def stored(service: Service) -> list[str]:
    with service.store.session():
        return [each.url for each in StoredTunnel.select()]


def test_its_address_is_the_services_until_it_ends(
    stub: Stub, world: World, opened: Callable[..., Tunnel], monkeypatch: pytest.MonkeyPatch
) -> None:
    stub.does(f"{BOX.format(url=ONE)}\nexec sleep 300")
    tunnel = opened()
    wait_for(lambda: f"Tunnel: Calls to {OURS} come to {ONE}." in world.lines)
    assert world.lines[0] == f"Tunnel: {ONE}"
    assert world.goes_to(ONE)
    assert world.service.base_url == ONE
    arguments = (stub.folder / "arguments").read_text().split()
    assert arguments == ["tunnel", "--no-autoupdate", "--grace-period", "5s", "--url", "http://127.0.0.1:8000"]
    # A command that is started meanwhile, by another process, knows it, unless another address is set.
    with world.service.store.session():
        others = world.service.worker.replace(f"{os.getpid()}-", f"{os.getppid()}-")
        StoredTunnel.update(worker=others).execute()
    settings = dict.fromkeys(names()) | {"VOICEAPI_DATABASE": world.service.settings.database}
    settings["VOICEAPI_SECRET"] = world.service.vault.secret.decode()
    for given, expected in ((None, ONE), (TWO, TWO)):
        other = open_service(Settings.read({**settings, "VOICEAPI_PUBLIC_URL": given}))
        assert other.settings.public_url == expected
        other.close()
    wait_for(lambda: len(stored(world.service)) == 2)  # noted again
    tunnel.stop()
    assert not stub.is_running
    with world.service.store.session():
        assert [each.worker for each in StoredTunnel.select()] == [others]


def test_one_that_ends_is_started_again_and_the_numbers_follow(
    stub: Stub, world: World, opened: Callable[..., Tunnel]
) -> None:
    stub.does(
        f"{BOX.format(url=ONE)}\nwhile [ ! -f die ]; do sleep 0.02; done\necho 'ERR it is over' >&2\nexit 1",
        f"{BOX.format(url=TWO)}\nexec sleep 300",
    )
    opened()
    wait_for(lambda: world.goes_to(ONE))
    (stub.folder / "die").touch()
    wait_for(lambda: f"Tunnel: Calls to {OURS} come to {TWO}." in world.lines)
    assert world.goes_to(TWO)
    (ended,) = [line for line in world.lines if "has ended" in line]
    assert ended == (
        "Tunnel: cloudflared has ended, and said at last: ERR it is over. No carrier reaches this service now; another "
        "one is opened in 0.05 s."
    )
    assert (stored(world.service), world.service.base_url) == ([TWO], TWO)


def test_one_that_gets_another_address_while_it_runs(stub: Stub, world: World, opened: Callable[..., Tunnel]) -> None:
    stub.does(
        f"{BOX.format(url=ONE)}\nwhile [ ! -f change ]; do sleep 0.02; done\n{BOX.format(url=TWO)}\nexec sleep 300"
    )
    opened()
    wait_for(lambda: world.goes_to(ONE))
    (stub.folder / "change").touch()
    wait_for(lambda: world.goes_to(TWO))
    assert stub.starts == 1


def test_one_that_never_answers(stub: Stub, world: World, opened: Callable[..., Tunnel]) -> None:
    stub.does("exec sleep 300", f"{BOX.format(url=ONE)}\nexec sleep 300")
    opened(Times(address=0.2, reached=30, look=0.02, pauses=(0.05,), end=10))
    wait_for(lambda: world.goes_to(ONE))
    assert world.lines[0].startswith("Tunnel: cloudflared gave no address within 0.2 s. No carrier reaches")


def test_too_many_tunnels(stub: Stub, world: World, opened: Callable[..., Tunnel]) -> None:
    """The address in such an error isn't one of a tunnel."""
    error = "ERR POST https://api.trycloudflare.com/tunnel: status 429, error code: 1015"
    stub.does(f"echo '{error}' >&2\nexit 1", f"{BOX.format(url=ONE)}\nexec sleep 300")
    opened()
    wait_for(lambda: world.goes_to(ONE))
    assert world.lines[0].endswith(f"{error}. No carrier reaches this service now; another one is opened in 0.2 s.")


def test_an_address_at_which_the_service_is_not_reached(
    stub: Stub, world: World, opened: Callable[..., Tunnel]
) -> None:
    """It may be reached from elsewhere, so the numbers are sent there all the same."""
    world.reached = False
    stub.does(f"{BOX.format(url=ONE)}\nexec sleep 300")
    opened(Times(address=30, reached=0.1, look=0.02, pauses=(0.05,), end=10))
    wait_for(lambda: world.goes_to(ONE))
    assert f"Tunnel: the service isn't reached at {ONE} from here. Something else than this service answers there." in (
        world.lines
    )


def test_it_is_not_installed(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(click.ClickException, match="cloudflared isn't installed"):
        Tunnel(service, "http://127.0.0.1:8000", print)


@pytest.mark.parametrize(("worker", "seconds"), [(f"{2**22 + 1}-t-{{host}}", 0), ("1-t-elsewhere", 91)])
def test_a_tunnel_that_a_killed_process_has_left(service: Service, worker: str, seconds: int) -> None:
    """It doesn't count; nor does that of another host, which has noted nothing for long."""
    host = service.worker.rpartition("-")[2]
    with service.store.session():
        insert(StoredTunnel, url=ONE, worker=worker.format(host=host), seen_at=now() - timedelta(seconds=seconds))
    settings = dict.fromkeys(names()) | {"VOICEAPI_DATABASE": service.settings.database}
    other = open_service(Settings.read({**settings, "VOICEAPI_SECRET": service.vault.secret.decode()}))
    assert other.settings.public_url is None
    other.close()
