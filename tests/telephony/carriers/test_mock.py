"""Our requests against a mock server that is run from the carriers' own OpenAPI files.

`VOICEAPI_TEST_CARRIERS` names the folder that holds them; npx fetches the mock server.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from voiceapi.http_client import HTTPClient
from voiceapi.telephony.carriers.base import Account, OutboundCall
from voiceapi.telephony.carriers.rest import CarrierRefused
from voiceapi.telephony.carriers.webhook import CallbackURLs
from voiceapi.telephony.connect import CARRIERS

PRISM = "@stoplight/prism-cli@5.14.2"
URLS = CallbackURLs("https://voice.example.org/api/v1/telephony/calls", "tok")
CALL = OutboundCall(URLS, "+12025550123", "+12025550199", 60, 1200, {})
SID = "AC0123456789abcdef0123456789abcdef"
UUID = "2531329f-fb09-4ef7-887e-84e648214436"
CALL_SID = "CA0123456789abcdef0123456789abcdef"

# The file, what its paths are put behind, the credentials, the id of a call, and credentials that it refuses.
MOCKED: dict[str, tuple[str, str, dict[str, Any], str, dict[str, Any]]] = {
    "twilio": (
        "twilio-calls.openapi.json",
        "",
        {"account_sid": SID, "auth_token": "secret", "amd_enabled": True},
        CALL_SID,
        {"account_sid": "not a SID"},
    ),
    "jambonz": (
        "jambonz.openapi.yaml",
        "",
        {"account_sid": UUID, "api_key": "secret", "amd_enabled": True},
        UUID,
        {"api_key": ""},
    ),
}

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif("VOICEAPI_TEST_CARRIERS" not in os.environ, reason="VOICEAPI_TEST_CARRIERS names no folder"),
    pytest.mark.skipif(shutil.which("npx") is None, reason="Node is not installed"),
]


@contextmanager
def mock(file: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["npx", "--yes", PRISM, "mock", "-h", "127.0.0.1", "-p", str(port), "--errors", str(file)]
    quiet = {"SCARF_ANALYTICS": "false", "npm_config_ignore_scripts": "true"}
    with subprocess.Popen(
        command,
        env={**os.environ, **quiet},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            deadline = time.monotonic() + 120
            while time.monotonic() < deadline:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    assert process.poll() is None, "the mock server could not be started"
                    time.sleep(0.2)
            yield f"http://127.0.0.1:{port}"
        finally:
            os.killpg(process.pid, signal.SIGTERM)


@pytest.fixture(scope="module", params=MOCKED)
def carrier(request: pytest.FixtureRequest) -> Iterator[tuple[Callable[..., Any], str]]:
    """Makes the carrier, with credentials of its own or others; and the id of a call."""
    file, base, credentials, call_id, _ = MOCKED[request.param]
    path = Path(os.environ["VOICEAPI_TEST_CARRIERS"], file)
    if not path.is_file():
        pytest.skip(f"{path.name} is not in the folder")
    with mock(path) as url:
        make = CARRIERS[request.param]
        yield lambda **others: make(Account({**credentials, **others}, HTTPClient().send, url + base)), call_id


def test_a_new_call_is_accepted(carrier: Any) -> None:
    make, _ = carrier
    assert make().place_call(CALL)


def test_a_call_is_ended_and_looked_up(carrier: Any) -> None:
    make, call_id = carrier
    for end in (make().cancel, make().stop_ringing, make().hang_up):
        end(call_id)
    make().look_up(call_id)


def test_numbers_are_listed(carrier: Any, request: pytest.FixtureRequest) -> None:
    if request.node.callspec.params["carrier"] == "twilio":
        pytest.skip("Twilio's file describes its calls only")
    make, _ = carrier
    number = "+12025550199"
    # The numbers of the mock are samples.
    assert make().check([number]) == [f"{number} is not a number of this jambonz account."]
    assert make().inbound_route(number) is None


def test_the_mock_does_refuse(carrier: Any, request: pytest.FixtureRequest) -> None:
    make, _ = carrier
    wrong = MOCKED[request.node.callspec.params["carrier"]][4]
    with pytest.raises(CarrierRefused, match="answered 4"):
        make(**wrong).place_call(CALL)
