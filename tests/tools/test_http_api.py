"""http_api: the request built from the model's and the author's values, and its result for the model."""

from __future__ import annotations

from typing import Any

import pytest

from voiceapi.http_client import RequestFailed
from voiceapi.tools.http_api import HttpApi

CITY = {"name": "city", "type": "string", "description": "The city.", "required": True}
LIST = {"name": "list", "type": "array", "description": "A list.", "required": False}
TENANT = {"name": "tenant", "type": "number", "value_template": "{{tenant_id}}", "required": True}


def tool(description: str | None = None, **config: Any) -> HttpApi:
    defaults = {
        "method": "POST",
        "url": "https://example.com",
        "headers": None,
        "credential_uuid": None,
        "parameters": [CITY, LIST],
        "preset_parameters": None,
        "timeout_ms": 5000,
        "customMessage": None,
        "customMessageType": None,
        "body_template": None,
    }
    return HttpApi("0123456789", "Look up!", description, {**defaults, **config})


def sent(post: Any, made: HttpApi, request: Any) -> dict[str, Any]:
    made.run(request, post.context())
    [found] = post.sent
    return dict(found)


def test_what_the_model_is_offered() -> None:
    function = tool().function()
    assert (function.name, function.description, function.tool_uuid, function.speech, function.label) == (
        "look_up",
        "Execute Look up! tool",
        "0123456789",
        "",
        None,
    )
    assert list(function.parameters["properties"]) == ["city", "list"]
    spoken = tool("Finds a city.", customMessage="One moment.", customMessageType="text").function()
    assert (spoken.description, spoken.speech) == ("Finds a city.", "One moment.")
    assert tool(customMessage="One moment.", customMessageType="audio").function().speech == ""
    assert (
        HttpApi("0123456789", "\u0413\u043e\u0440\u043e\u0434", None, tool().config).function().name == "tool_01234567"
    )


@pytest.mark.parametrize(
    ("config", "request_part"),
    [
        (
            {},
            {
                "method": "POST",
                "url": "https://example.com",
                "headers": {},
                "params": None,
                "json": {"city": "Rome", "list": [1, True]},
                "timeout": 5.0,
            },
        ),
        ({"method": "PATCH", "parameters": None}, {"json": {}, "params": None}),
        ({"method": "GET"}, {"json": None, "params": {"city": "Rome", "list": "[1, true]"}}),
        ({"method": "DELETE", "parameters": [CITY]}, {"json": None, "params": {"city": "Rome"}}),
        ({"timeout_ms": 250}, {"timeout": 0.25}),
        ({"timeout_ms": None}, {"timeout": 5.0}),
        ({"timeout_ms": 600000}, {"timeout": 60.0}),
        (
            {"headers": {"X-A": "{{city}}", "authorization": "mine"}, "credential_uuid": "known"},
            {"headers": {"X-A": "{{city}}", "Authorization": "Bearer s3cret"}},
        ),
        ({"credential_uuid": "gone"}, {"headers": {}}),
        ({"preset_parameters": [TENANT]}, {"json": {"tenant": 9, "city": "Rome", "list": [1, True]}}),
        ({"preset_parameters": [{**TENANT, "name": "city"}], "parameters": [CITY]}, {"json": {"city": "Rome"}}),
        (
            {
                "body_template": {
                    "{{city}}": ["{{list}}", "in {{city}}", "{{ gone }}", 5, "{{initial_context.tenant_id}}"]
                }
            },
            {"json": {"Rome": [[1, True], "in Rome", "", 5, 9]}},
        ),
        ({"body_template": {"a": "{{tenant_id}}"}}, {"json": {"a": ""}}),
        ({"body_template": {"a": "{{ gone | 7 }}"}}, {"json": {"a": "7"}}),
        ({"url": "https://example.com/{{city}}?t={{ tenant_id }}"}, {"url": "https://example.com/Rome?t=9"}),
        ({"url": "https://example.com/{{where}}"}, {"url": "https://example.com/a%2Fb%3F%C3%BC%26"}),
        ({"url": "https://example.com/{{vip}}/{{gathered_context.vip}}"}, {"url": "https://example.com/true/true"}),
        ({"url": "https://example.com/{{tier}}"}, {"url": "https://example.com/gold"}),
        ({"url": "https://example.com/{{gone | none}}"}, {"url": "https://example.com/none"}),
    ],
)
def test_the_request(post: Any, request_of: Any, config: Any, request_part: Any) -> None:
    arguments = {"city": "Rome", "list": [1, True], "account": "not asked for"}
    initial = {"tenant_id": 9, "where": "a/b?\u00fc&", "tier": "old"}
    found = sent(post, tool(**config), request_of(arguments, initial, {"vip": True, "tier": "gold"}))
    assert {name: found[name] for name in request_part} == request_part


@pytest.mark.parametrize(
    ("config", "error"),
    [
        ({"parameters": [{**CITY, "name": "day"}]}, "The parameter 'day' is required."),
        ({"preset_parameters": [TENANT]}, "Preset parameter 'tenant' resolved to an empty value"),
        ({"url": "https://example.com/{{gone}}"}, "URL template rendering failed: gone has no value."),
        ({"url": "https://example.com/{{empty}}"}, "URL template rendering failed: empty has no value."),
        ({"url": "https://example.com/{{list}}"}, "URL template rendering failed: list is a list or an object."),
        ({"url": "https://example.com/{{up}}/x"}, "URL template rendering failed: up would change the path."),
        (
            {"url": "https://example.com/{{a b}}"},
            "URL template rendering failed: there are braces that hold no variable.",
        ),
        ({"url": "{{site}}/a"}, "URL template rendering failed: it must begin with http:// or https://."),
    ],
)
def test_what_can_not_be_sent_is_an_error_for_the_model(post: Any, request_of: Any, config: Any, error: str) -> None:
    initial = {"empty": "", "up": "..", "site": "https://example.com"}
    answer = tool(**config).run(request_of({"city": "Rome", "list": []}, initial), post.context())
    assert answer.result == {"status": "error", "error": error}
    assert post.sent == []


@pytest.mark.parametrize(
    ("status", "body", "result"),
    [
        (200, {"a": [1]}, {"status": "success", "status_code": 200, "data": {"a": [1]}}),
        (
            404,
            {"no": 1},
            {"status": "error", "status_code": 404, "error": "The server answered 404.", "data": {"no": 1}},
        ),
        (
            500,
            b"Oh",
            {
                "status": "error",
                "status_code": 500,
                "error": "The server answered 500.",
                "data": {"raw_response": "Oh"},
            },
        ),
        (
            302,
            b"",
            {
                "status": "error",
                "status_code": 302,
                "error": "The server answered 302, and redirects are not followed.",
                "data": {"raw_response": ""},
            },
        ),
        (204, b"", {"status": "success", "status_code": 204, "data": {"raw_response": ""}}),
        (
            200,
            b"plain \xff\0",
            {"status": "success", "status_code": 200, "data": {"raw_response": "plain \ufffd\ufffd"}},
        ),
        (200, b'{"a": NaN}', {"status": "success", "status_code": 200, "data": {"raw_response": '{"a": NaN}'}}),
        (200, b"\xef\xbb\xbf7", {"status": "success", "status_code": 200, "data": 7}),
    ],
)
def test_the_result_of_a_reply(post: Any, request_of: Any, status: int, body: Any, result: Any) -> None:
    post.status, post.body = status, body
    assert tool().run(request_of({"city": "Rome"}), post.context()).result == result


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (RequestFailed("timeout", "late"), "Request timed out after 5 seconds"),
        (
            RequestFailed("connection", "https://example.com broke off."),
            "Request failed: https://example.com broke off.",
        ),
    ],
)
def test_the_result_without_a_reply(post: Any, request_of: Any, failure: Any, error: str) -> None:
    post.fails = failure
    assert tool().run(request_of({"city": "Rome"}), post.context()).result == {"status": "error", "error": error}
    assert len(post.sent) == 1
