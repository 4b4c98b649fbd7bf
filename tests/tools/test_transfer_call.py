"""transfer_call: destinations, and the reasons of failed transfers."""

from __future__ import annotations

from typing import Any

import pytest

from voiceapi.http_client import RequestFailed
from voiceapi.tools import transfer_call
from voiceapi.tools.tool import ToolError
from voiceapi.tools.transfer_call import TransferCall

NUMBER = "+12025550123"
WHO = {"name": "who", "type": "string", "description": "Whom.", "required": True}


def transfer(source: str = "static", **config: Any) -> TransferCall:
    defaults = {
        "destination_source": source,
        "destination": NUMBER,
        "messageType": "none",
        "customMessage": "Hold on, {{name}}.",
        "timeout": 20,
        "parameters": None,
        "resolver": None,
        "context_mapping": None,
    }
    return TransferCall("u", "Put through", None, {**defaults, **config})


def resolver(**config: Any) -> TransferCall:
    asked = {
        "type": "http",
        "url": "https://example.com/who",
        "headers": {"X-A": "a"},
        "credential_uuid": None,
        "timeout_ms": 3000,
        "wait_message": "I look who is there.",
        "parameters": [WHO],
        "preset_parameters": None,
    }
    return transfer("dynamic", resolver={**asked, **config})


def mapping(*rules: tuple[str, dict[str, str]], fallback: str | None = None, single: bool = False) -> TransferCall:
    made = [
        {
            "context_path": path,
            "routes": [{"context_value": value, "destination": to} for value, to in routes.items()],
        }
        for path, routes in rules
    ]
    found: dict[str, Any] = (
        {"rules": None, **made[0]} if single else {"rules": made, "context_path": None, "routes": None}
    )
    return transfer("context_mapping", context_mapping={**found, "fallback_destination": fallback})


@pytest.mark.parametrize(
    ("tool", "destination", "speech"),
    [
        (transfer(), NUMBER, ""),
        (transfer(messageType="custom"), NUMBER, "Hold on, Ann."),
        (transfer(messageType="audio"), NUMBER, ""),
        (transfer(destination=" {{desk}} "), "+12025550199", ""),
        (transfer(destination="{{gathered_context.desk}}"), "+12025550111", ""),
        (mapping(("tier", {"silver": "1", "GOLD ": "2"})), "2", ""),
        (mapping(("tier", {"gold": "2"}), single=True), "2", ""),
        (mapping(("tier", {"iron": "1"}), ("vip", {"true": "{{desk}}"})), "+12025550199", ""),
        (mapping(("product.id", {"7": "3"})), "3", ""),
        (mapping(("initial_context.tier", {"old": "4", "gold": "5"})), "4", ""),
        (mapping(("name", {"ann": "6"})), "6", ""),
        (mapping(("gone", {"a": "1"}), fallback="9"), "9", ""),
    ],
)
def test_the_destination_of_a_transfer(
    post: Any, request_of: Any, tool: TransferCall, destination: str, speech: str
) -> None:
    initial = {"name": "Ann", "tier": "old", "desk": "+12025550199", "product": {"id": 7}}
    gathered = {"tier": "gold", "desk": "+12025550111", "extracted_variables": {"vip": True}}
    answer = tool.run(request_of({}, initial, gathered), post.context())
    assert (answer.transfer_to, answer.transfer_timeout, answer.speech) == (destination, 20.0, speech)
    assert post.sent == []


@pytest.mark.parametrize(
    "config", [{"destination": "{{large}}"}, {"messageType": "custom", "customMessage": "{{large}}"}]
)
def test_a_text_that_is_too_large_is_an_error(post: Any, request_of: Any, config: Any) -> None:
    with pytest.raises(ToolError, match="A text of the tool is larger than 64 KiB"):
        transfer(**config).run(request_of({}, {"large": "x" * 70_000}), post.context())


def test_a_server_is_asked_for_the_destination(post: Any, request_of: Any) -> None:
    preset = [{"name": "who", "type": "string", "value_template": "{{name}}", "required": True}]
    tool = resolver(preset_parameters=preset, credential_uuid="known")
    post.body = {"transfer_context": {"destination": NUMBER, "custom_message": "To {{Bob}}."}}
    answer = tool.run(request_of({"who": "Bob"}, {"name": "Ann"}), post.context())
    assert (answer.transfer_to, answer.speech) == (NUMBER, "To {{Bob}}.")
    [asked] = post.sent
    assert asked == {
        "method": "POST",
        "url": "https://example.com/who",
        "headers": {"X-A": "a", "Authorization": "Bearer s3cret"},
        "json": {"who": "Ann"},
        "timeout": 3.0,
        "max_bytes": 65536,
    }
    function = tool.function()
    assert (list(function.parameters["properties"]), function.speech) == (["who"], "I look who is there.")
    assert transfer(parameters=[WHO]).function().parameters["properties"] == {}


@pytest.mark.parametrize(
    ("tool", "post_members", "no_transfer", "reason"),
    [
        (transfer(destination="  "), {}, "", "no_destination"),
        (transfer(destination="{{gone}}"), {}, "", "no_destination"),
        (transfer(), {}, "textchat_not_supported", "textchat_not_supported"),
        (mapping(("gone", {"a": "1"})), {}, "", "no_context_mapping_match"),
        (mapping(("gone", {"": "1"})), {}, "", "no_context_mapping_match"),
        (resolver(credential_uuid="gone"), {}, "", "credential_not_found"),
        (
            resolver(preset_parameters=[{"name": "a", "type": "string", "value_template": "", "required": True}]),
            {},
            "",
            "preset_parameter_error",
        ),
        (resolver(parameters=[{**WHO, "name": "day"}]), {}, "", "missing_parameter"),
        (resolver(), {"fails": RequestFailed("timeout", "late")}, "", "resolver_timeout"),
        (resolver(), {"fails": RequestFailed("address", "private")}, "", "resolver_request_failed"),
        (resolver(), {"status": 302}, "", "resolver_http_error"),
        (resolver(), {"status": 500}, "", "resolver_http_error"),
        (resolver(), {"body": b"no json"}, "", "invalid_resolver_response"),
        (resolver(), {"body": []}, "", "invalid_resolver_response"),
        (resolver(), {"body": {"transfer_context": {"destination": " "}}}, "", "invalid_resolver_response"),
        (resolver(), {"body": {"transfer_context": {"destination": "1" * 256}}}, "", "no_destination"),
        (
            resolver(),
            {"body": {"transfer_context": {"destination": NUMBER, "custom_message": 5}}},
            "",
            "invalid_custom_message",
        ),
    ],
)
def test_reasons_of_a_failed_transfer(
    post: Any, request_of: Any, tool: TransferCall, post_members: Any, no_transfer: str, reason: str
) -> None:
    for name, value in post_members.items():
        setattr(post, name, value)
    answer = tool.run(request_of({"who": "Bob"}), post.context(no_transfer))
    assert (answer.transfer_to, answer.speech) == ("", "")
    assert (answer.result["status"], answer.result["reason"]) == ("transfer_failed", reason)
    assert answer.result["message"].startswith(transfer_call.FAILURES[reason])
