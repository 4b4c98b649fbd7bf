from __future__ import annotations

import pytest
from flask.testing import FlaskClient

from voiceapi.workflows import node_types

NODE_TYPES = "/api/v1/node-types"


def test_the_whole_catalogue(client: FlaskClient) -> None:
    answer = client.get(NODE_TYPES)
    assert (answer.status_code, answer.get_json()) == (
        200,
        {"spec_version": "1.0.0", "node_types": node_types.node_types()},
    )
    names = [spec["name"] for spec in answer.get_json()["node_types"]]
    assert names == sorted(names)
    assert {"startCall", "agentNode", "endCall", "globalNode", "trigger", "webhook", "qa"} <= set(names)


@pytest.mark.parametrize("name", [spec["name"] for spec in node_types.node_types()])
def test_one_node_type(client: FlaskClient, name: str) -> None:
    answer = client.get(f"{NODE_TYPES}/{name}")
    assert (answer.status_code, answer.get_json()) == (200, node_types.by_name()[name])


@pytest.mark.parametrize(
    ("name", "shown"), [("agentnode", "'agentnode'"), ("it%27s", '"it\'s"'), ("%F0%9F%93%9E", "'📞'")]
)
def test_an_unknown_node_type(client: FlaskClient, name: str, shown: str) -> None:
    answer = client.get(f"{NODE_TYPES}/{name}")
    assert (answer.status_code, answer.get_json()) == (404, {"detail": f"Unknown node type: {shown}"})


def test_a_name_with_nul(client: FlaskClient) -> None:
    answer = client.get(f"{NODE_TYPES}/a%00b")
    assert (answer.status_code, answer.get_json()) == (
        422,
        {
            "detail": [
                {
                    "loc": ["path", "name"],
                    "msg": "Value error, text may not hold the NUL character",
                    "type": "value_error",
                }
            ]
        },
    )


@pytest.mark.parametrize("path", ["", "/trigger", "/unknown"])
def test_without_a_key(bare: FlaskClient, path: str) -> None:
    answer = bare.get(NODE_TYPES + path)
    assert (answer.status_code, answer.get_json()) == (401, {"detail": "Authorization header required"})
