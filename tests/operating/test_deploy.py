"""The files to deploy with: as far as they can be checked without Docker and without systemd."""

from __future__ import annotations

import configparser
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.serving import make_server

from voiceapi.cli.serve import FORCED_STOP_SECONDS
from voiceapi.config import Settings, names
from voiceapi.service import Service

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
UNIT = (ROOT / "deploy" / "voiceapi.service").read_text(encoding="utf-8")
COMPOSE = (ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8")


@pytest.fixture
def port(app: Flask) -> Iterator[int]:
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_image_is_healthy_while_the_service_is_ready(port: int, service: Service) -> None:
    found = re.search(r"HEALTHCHECK .*?CMD (\[.*?\])$", DOCKERFILE, re.DOTALL | re.MULTILINE)
    assert found
    _, *arguments = json.loads(found[1])
    command, env = [sys.executable, *arguments], {**os.environ, "VOICEAPI_PORT": str(port)}
    assert subprocess.run(command, env=env).returncode == 0
    service.workers.stopping.set()
    assert subprocess.run(command, env=env, stderr=subprocess.DEVNULL).returncode == 1


def test_the_image_runs_as_nobody_special_on_a_volume() -> None:
    assert "\nUSER voiceapi\n" in DOCKERFILE
    assert "\nVOLUME /data\n" in DOCKERFILE
    assert "VOICEAPI_DATABASE=/data/" in DOCKERFILE
    assert DOCKERFILE.index("\nUSER voiceapi") < DOCKERFILE.index('\nCMD ["voiceapi", "serve"]')


def test_the_image_holds_what_a_wheel_is_made_of() -> None:
    kept = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    folders = {line.split(" = ")[1] for line in setup["options"]["package_dir"].strip().splitlines()}
    assert {"setup.cfg", "pyproject.toml", "README.md", *folders} <= set(kept)
    assert all((ROOT / each).exists() for each in kept)


def test_settings_that_are_named_exist() -> None:
    for text in (DOCKERFILE, UNIT, COMPOSE, (ROOT / "deploy" / "cloudflared.yml").read_text()):
        assert set(re.findall(r"VOICEAPI_[A-Z_]+", text)) <= set(names())


def test_compose_has_the_settings_of_a_model_and_the_way_to_one_on_the_machine() -> None:
    service = yaml.safe_load(COMPOSE)["services"]["voiceapi"]
    assert service["extra_hosts"] == ["host.docker.internal:host-gateway"]
    models = {name: value for name, value in service["environment"].items() if "LLM" in name or "PRIVATE" in name}
    assert models == {name: f"${{{name}:-}}" for name in models}
    assert {"VOICEAPI_LLM_URL", "VOICEAPI_LLM_MODEL", "VOICEAPI_ALLOW_PRIVATE_URLS"} <= models.keys()
    # What isn't set is an empty text in the container.
    assert Settings.read(dict.fromkeys(models, "")) == Settings()


def test_a_stop_has_the_time_that_it_may_take() -> None:
    assert float(re.findall(r"TimeoutStopSec=([0-9]+)", UNIT)[0]) > FORCED_STOP_SECONDS
    assert float(re.findall(r"stop_grace_period: ([0-9]+)s", COMPOSE)[0]) > FORCED_STOP_SECONDS


def test_systemd_can_read_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze isn't here")
    file = tmp_path / "voiceapi.service"
    file.write_text(UNIT.replace("/opt/voiceapi/bin/voiceapi", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", str(file)], capture_output=True, text=True)
    assert "voiceapi.service" not in done.stderr


def test_the_probe_of_the_image_is_a_route(client: FlaskClient) -> None:
    assert client.get("/api/v1/health/ready").status_code == 200
