from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

TOOLS = "/api/v1/tools/"
CREDENTIALS = "/api/v1/credentials/"
RECORDINGS = "/api/v1/workflow-recordings/"
DOCUMENTS = "/api/v1/knowledge-base/documents"
NOT_AN_INTEGER = "Input should be a valid integer, unable to parse string as an integer"


@pytest.mark.parametrize(
    ("url", "body"),
    [
        (RECORDINGS, {"recordings": [], "total": 0}),
        (f"{RECORDINGS}?workflow_id=5&tts_provider=a&tts_model=b&tts_voice_id=c", {"recordings": [], "total": 0}),
        (DOCUMENTS, {"documents": [], "total": 0, "limit": 100, "offset": 0}),
        (f"{DOCUMENTS}?status=completed&limit=5&offset=7", {"documents": [], "total": 0, "limit": 5, "offset": 7}),
    ],
)
def test_empty_listings(client: FlaskClient, url: str, body: Any) -> None:
    answer = client.get(url)
    assert (answer.status_code, answer.get_json()) == (200, body)


@pytest.mark.parametrize(
    ("url", "name", "msg", "type"),
    [
        (f"{RECORDINGS}?workflow_id=x", "workflow_id", NOT_AN_INTEGER, "int_parsing"),
        (
            f"{DOCUMENTS}?limit=0",
            "limit",
            "Input should be greater than or equal to 1",
            "greater_than_equal",
        ),
        (f"{DOCUMENTS}?limit=101", "limit", "Input should be less than or equal to 100", "less_than_equal"),
        (
            f"{DOCUMENTS}?offset=-1",
            "offset",
            "Input should be greater than or equal to 0",
            "greater_than_equal",
        ),
    ],
)
def test_what_is_refused(client: FlaskClient, url: str, name: str, msg: str, type: str) -> None:
    answer = client.get(url)
    assert (answer.status_code, answer.get_json()) == (
        422,
        {"detail": [{"loc": ["query", name], "msg": msg, "type": type}]},
    )


@pytest.mark.parametrize("url", [TOOLS, CREDENTIALS, RECORDINGS, DOCUMENTS])
def test_without_a_key(bare: FlaskClient, url: str) -> None:
    answer = bare.get(url)
    assert (answer.status_code, answer.get_json()) == (401, {"detail": "Authorization header required"})
