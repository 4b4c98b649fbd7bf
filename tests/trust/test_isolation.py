"""Every operation of the API document with the ids of another organization: not found, and nothing changed.

The operations and their ids are read from the document, so a new one fails here until it has its row.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.trust.world import LIST, Asked, World, http_tool, transfer_tool
from voiceapi.engine.actions import RunTool
from voiceapi.http_client import OWNER_OPERATOR, HTTPClient, Reply
from voiceapi.llm import selection
from voiceapi.llm.chat_completions import ChatCompletions
from voiceapi.llm.configuration import OPERATOR
from voiceapi.organizations import api_keys, credentials
from voiceapi.postcall import delivery
from voiceapi.security import encrypt_json
from voiceapi.store.fields import now
from voiceapi.store.postcall import Delivery
from voiceapi.store.telephony import TelephonyConfiguration
from voiceapi.telephony import connect
from voiceapi.tools import catalog
from voiceapi.tools.tool import ToolContext

DOCUMENT = json.loads((Path(__file__).parents[2] / "schemas" / "openapi.json").read_text(encoding="utf-8"))
METHODS = ("get", "post", "put", "patch", "delete")
OPERATIONS = {
    f"{method.upper()} {path.removeprefix('/api/v1')}": {**item[method], "shared": item.get("parameters", [])}
    for path, item in DOCUMENT["paths"].items()
    for method in METHODS
    if method in item
}

# Operations that need no key, and why.
OPEN = {
    "GET /health": "says that the service is there, and nothing about an organization",
    "GET /health/ready": "says whether the service can work, and nothing about an organization",
    "GET /openapi.json": "the document of the API, the same for everybody",
    "GET /public/download/workflow/{token}/{artifact_type}": "the token is the credential",
    "GET /s3/files/{token}": "the address is signed, and expires",
    "PUT /s3/files/{token}": "the address is signed, and expires",
}
# They are no part of the document. The run's token in the path and the carrier's signature admit them.
WEBHOOKS = {
    "/telephony/calls/<token>/turns/<int(max=9999):number>": "token and signature",
    "/telephony/calls/<token>/turns/<int(max=9999):number>/parts/<int(max=9999):part>": "token and signature",
    "/telephony/calls/<token>/turns/<int(max=9999):number>/<any(transfer, silence, wait):step>": "token and signature",
    "/telephony/calls/<token>/status": "token and signature",
    "/telephony/calls/<token>/machine": "token and signature",
    "/telephony/calls/<token>/relay": "token and signature",
    "/telephony/inbound/<int(max=9223372036854775807):config_id>": "the signature",
    "/telephony/inbound/workflow/<workflow_uuid>": "the signature",
    "/telephony/inbound/<int(max=9223372036854775807):config_id>/status": "the signature",
}
# They check their key after the header and the body, so one without a key is told so as a missing header.
TRIGGERS = [operation for operation in OPERATIONS if operation.startswith("POST /public/agent/")]

# Parameters of paths that name no record of an organization.
NO_RECORDS = {
    "name": "a type of node, the same for everybody",
    **dict.fromkeys(("version_id", "first_id", "second_id"), "the number of a version, counted by its workflow"),
}
# A member of a body or a query that may name a record: by its name, the record of `World` that it names.
LIKE_AN_ID = re.compile(r"(.*(_|^)(ids?|uuids?|sid|keys?|filters)|.*Id)")
RECORDS = {
    "workflow_id": "workflow_id",
    "inbound_workflow_id": "workflow_id",
    "workflow_run_id": "run_id",
    "run_id": "chat_id",
    "campaign_id": "campaign_id",
    "source_id": "file_key",
    "key": "file_key",
    "telephony_configuration_id": "config_id",
    "telephony_trunk_id": "config_id",
    "from_phone_number_id": "phone_number_id",
    "credential_uuid": "credential_uuid",
    "document_uuids": "document_uuid",
    "cursor_turn_id": "turn_id",
    "case_ids": "case_id",
    "run_ids": "run_id",
}
NOT_OURS = {
    "filters": "see test_filters_find_nothing_of_another_organization",
    "api_key": "a key of another service",
    **dict.fromkeys(
        ("account_sid", "application_id", "application_sid", "auth_id", "connection_id", "domain_id", "project_id"),
        "an id at the carrier",
    ),
    "signing_key": "a secret of the carrier's",
    "private_key": "a secret of the carrier's",
    "webhook_public_key": "a key of the carrier's",
    "end_keys": "a phrase",
    "do_not_call.key": "a key of the telephone",
    "audioRecordingId": "there are no recordings",
    "customMessageRecordingId": "there are no recordings",
    "id": "of a node or an edge in a definition of the same body",
    "is_default_caller_id": "true or false",
    "tool_uuid": "by which nodes of the same body attach a tool; it gets a new one",
    "tts_voice_id": "a voice of a speech service; there are no recordings",
}

ACCOUNT = {"provider": "cloudonix", "credentials": {"bearer_token": "key", "domain_id": "example"}}
# What asks a carrier before it is accepted; tests/api/test_connected_numbers.py has records of one's own.
ASKS_CARRIERS = "/organizations/connected-numbers"
# The body of each operation that takes one: it is carried out when all its ids are the caller's own.
CALL = {"phone_number": "+12025550123"}
BODIES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "POST /campaign/create": lambda ids: {
        "name": "x",
        "source_type": "csv",
        "workflow_id": ids["workflow_id"],
        "source_id": ids["file_key"],
    },
    "POST /campaign/check/csv": lambda ids: {"workflow_id": ids["workflow_id"]},
    "POST /campaign/simulate/csv": lambda ids: {"name": "x", "workflow_id": ids["workflow_id"]},
    "POST /campaign/create/csv": lambda ids: {"name": "x", "workflow_id": ids["workflow_id"]},
    "PATCH /campaign/{campaign_id}": lambda ids: {"name": "x"},
    "POST /campaign/{campaign_id}/redial": lambda ids: {},
    "POST /campaign/{campaign_id}/simulate": lambda ids: {},
    "PUT /credentials/{credential_uuid}": lambda ids: {"name": "x"},
    "POST /organizations/connected-numbers": lambda ids: {
        **ACCOUNT,
        "number": "+12025550188",
        "workflow_id": ids["workflow_id"],
    },
    "POST /organizations/connected-numbers/available": lambda ids: ACCOUNT,
    "POST /organizations/connected-numbers/undo": lambda ids: {
        "telephony_configuration_id": ids["config_id"],
        "number": "+12025550188",
    },
    "POST /knowledge-base/search": lambda ids: {"query": "opens at nine"},
    "PUT /organizations/telephony-configs/{config_id}": lambda ids: {"name": "x"},
    "POST /organizations/telephony-configs/{config_id}/phone-numbers": lambda ids: {"address": "+12025550188"},
    "PUT /organizations/telephony-configs/{config_id}/phone-numbers/{phone_number_id}": lambda ids: {"label": "x"},
    **dict.fromkeys(TRIGGERS, lambda ids: CALL),
    "POST /telephony/initiate-call": lambda ids: {**CALL, "workflow_id": ids["workflow_id"]},
    "POST /telephony/simulated-call": lambda ids: {"workflow_id": ids["workflow_id"], "lines": []},
    "POST /tools/": lambda ids: {"name": "x", "definition": http_tool()},
    "PUT /tools/{tool_uuid}": lambda ids: {"name": "x", "definition": http_tool()},
    "POST /tools/{tool_uuid}/test": lambda ids: {},
    "POST /lint": lambda ids: {
        "workflow_definition": {},
        "workflow_id": ids["workflow_id"],
        "tools": [{"tool_uuid": "coming", "name": "x", "definition": http_tool()}],
    },
    "POST /workflow/create/definition": lambda ids: {
        "name": "x",
        "workflow_definition": {},
        "tools": [{"tool_uuid": "coming", "name": "x", "definition": http_tool()}],
    },
    "POST /workflow/graph": lambda ids: {"workflow_definition": {}},
    "POST /workflow/validate": lambda ids: {"workflow_definition": {}, "workflow_id": ids["workflow_id"]},
    "PUT /workflow/{workflow_id}": lambda ids: {"name": "x"},
    "POST /workflow/{workflow_id}/cases": lambda ids: {"run_id": ids["chat_id"]},
    "POST /workflow/{workflow_id}/cases/file": lambda ids: {"file": "cases: [{name: x}]"},
    "PUT /workflow/{workflow_id}/cases/{case_id}": lambda ids: {"name": "x"},
    "POST /workflow/{workflow_id}/rehearsal": lambda ids: {"conversations": 2},
    "POST /workflow/{workflow_id}/replay": lambda ids: {"run_ids": [ids["run_id"]]},
    "POST /workflow/{workflow_id}/test": lambda ids: {},
    "POST /workflow/{workflow_id}/runs": lambda ids: {"name": "x", "mode": "simulator"},
    "PUT /workflow/{workflow_id}/status": lambda ids: {"status": "archived"},
    "POST /workflow/{workflow_id}/text-chat/sessions": lambda ids: {},
    "POST /workflow/{workflow_id}/text-chat/sessions/{run_id}/end": lambda ids: {},
    "POST /workflow/{workflow_id}/text-chat/sessions/{run_id}/messages": lambda ids: {"text": "Yes"},
    "POST /workflow/{workflow_id}/text-chat/sessions/{run_id}/messages/stream": lambda ids: {"text": "Yes"},
    "POST /workflow/{workflow_id}/text-chat/sessions/{run_id}/rewind": lambda ids: {},
    # It names no record; tests/workflows/test_describing.py has the tools of others.
    "POST /workflow/describe": lambda ids: {"description": "Take messages."},
    # They name no record, and make or replace something of the caller's own organization.
    **dict.fromkeys(
        (
            "POST /credentials/",
            "POST /do-not-call",
            "POST /do-not-call/csv",
            "POST /knowledge-base/documents",
            "PUT /organizations/model-configurations/v2",
            "PUT /organizations/preferences",
            "POST /organizations/telephony-configs",
            "POST /s3/presigned-upload-url",
            "POST /user/api-keys",
            "POST /workflow/create/template",
        ),
        lambda ids: {},
    ),
}
# Operations that make or change something without a body and without an id: of the caller's own organization.
WITHOUT_IDS = {"POST /organizations/webhook-secrets/retire", "POST /organizations/webhook-secrets/rotate"}


@pytest.fixture(scope="module")
def world(
    tmp_path_factory: pytest.TempPathFactory, database_at: Callable[[Path], str], talk: Callable[..., Any]
) -> Iterator[World]:
    world = World(database_at(tmp_path_factory.mktemp("world") / "voice.db"), talk)
    yield world
    world.close()


def parameters(operation: str) -> list[str]:
    """The ids in the path."""
    return [name for name in re.findall(r"{(\w+)}", operation) if name not in NO_RECORDS]


def ids_of(operation: str, ids: dict[str, Any], path: tuple[str, ...] = ()) -> dict[str, Any]:
    """The ids as this operation names them: the run of a text chat is a chat, that of a delivery has ended.

    :param path: a member of the body, which only a tool for transfers may have.
    """
    chat, delivery = "text-chat" in operation, "deliver" in operation
    run_id = ids["chat_id"] if chat else ids["ended_run_id"] if delivery and "ended_run_id" in ids else ids["run_id"]
    tool_uuid = ids["transfer_uuid" if "resolver" in path else "tool_uuid"]
    numbers = dict.fromkeys(("version_id", "first_id", "second_id"), 1)
    return {"delivery_uuid": "none", "name": "startCall", **numbers, **ids, "run_id": run_id, "tool_uuid": tool_uuid}


def takes_body(operation: str) -> bool:
    return "requestBody" in OPERATIONS[operation]


def sent(operation: str, body: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a request with that body."""
    if not takes_body(operation) or operation in OPEN:
        return {}
    if operation.endswith("/csv"):
        return {"data": {**{name: str(value) for name, value in body.items()}, "file": (io.BytesIO(LIST), "x.csv")}}
    return {"json": body}


def places(operation: str) -> Iterator[tuple[str, ...]]:
    """The path of each member of the operation's body, through lists and alternatives."""
    for content in OPERATIONS[operation].get("requestBody", {}).get("content", {}).values():
        yield from _places(content["schema"], (), frozenset())


def _places(schema: dict[str, Any], path: tuple[str, ...], seen: frozenset[str]) -> Iterator[tuple[str, ...]]:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name not in seen:
            yield from _places(DOCUMENT["components"]["schemas"][name], path, seen | {name})
        return
    for kind in ("oneOf", "anyOf", "allOf"):
        for alternative in schema.get(kind, []):
            yield from _places(alternative, path, seen)
    for name, member in schema.get("properties", {}).items():
        yield (*path, name)
        yield from _places(member, (*path, name), seen)
    if "items" in schema:
        yield from _places(schema["items"], path, seen)


def ids_in(names: Iterator[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Those that name a record of an organization."""
    found = {path for path in names if LIKE_AN_ID.fullmatch(path[-1]) and ".".join(path[-2:]) not in NOT_OURS}
    unknown = {path for path in found if path[-1] not in RECORDS and path[-1] not in NOT_OURS}
    assert unknown == set(), "Say in RECORDS which record these name, or in NOT_OURS why they name none."
    return sorted(path for path in found if path[-1] in RECORDS)


def queries(operation: str) -> Iterator[tuple[str, ...]]:
    every = [*OPERATIONS[operation].get("parameters", []), *OPERATIONS[operation]["shared"]]
    return ((parameter["name"],) for parameter in every if parameter.get("in") == "query")


GUARDED = [operation for operation in OPERATIONS if operation not in OPEN]
BY_PATH = [operation for operation in GUARDED if parameters(operation)]
BY_BODY = [(operation, path) for operation in GUARDED for path in ids_in(places(operation))]
BY_QUERY = [(operation, path[0]) for operation in GUARDED for path in ids_in(queries(operation))]
LISTS = [operation for operation in GUARDED if operation.startswith("GET ") and not parameters(operation)]


def test_every_operation_is_covered() -> None:
    assert set(OPEN) == {name for name, operation in OPERATIONS.items() if operation["security"] == []}
    assert set(BODIES) == {operation for operation in GUARDED if takes_body(operation)}, "Give each body its row."
    covered = {*OPEN, *BY_PATH, *LISTS, *BODIES, *WITHOUT_IDS}
    assert set(OPERATIONS) - covered == set(), "Say what these do with the ids of another organization."
    assert {operation for operation in WITHOUT_IDS if parameters(operation) or takes_body(operation)} == set()


# -- ids in paths


def mixtures(operation: str, theirs: dict[str, Any], mine: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The ids of a path that belong together in part only: my workflow with their run, and the reverse."""
    names = [name for name in parameters(operation) if name != "row_id"]  # counts the rows of each campaign
    for at in range(1, len(names)):
        yield {**theirs, **{name: mine[name] for name in names[:at]}}
        yield {**theirs, **{name: mine[name] for name in names[at:]}}


@pytest.mark.parametrize("login", [False, True], ids=["key", "login"])
def test_a_record_of_another_organization_is_not_found(world: World, login: bool) -> None:
    client = world.client(None if login else "beta")
    if login:
        client.environ_base["HTTP_X_LOGIN"] = "beta"
    before = world.dump()
    for operation in BY_PATH:
        if login and operation in TRIGGERS:
            continue  # only a key admits there

        def asked(ids: dict[str, Any], operation: str = operation) -> Asked:
            body = BODIES[operation](world.mine) if takes_body(operation) else {}
            named = (ids[name] for name in parameters(operation))
            return world.ask(client, operation, ids, *named, **sent(operation, body))

        theirs = ids_of(operation, world.theirs)
        answer = asked(theirs)
        assert (answer.status, list(json.loads(answer.text))) == (404, ["detail"]), operation
        if not login:  # how the caller was let in makes no difference here
            # To the letter what is answered about a record that isn't there at all.
            assert answer == asked(ids_of(operation, world.unknown)), operation
            for ids in mixtures(operation, theirs, ids_of(operation, world.mine)):
                assert asked(ids).status == 404, (operation, ids)
        assert world.dump() == before, f"{operation} changed something"


# -- ids in bodies and queries


def put(body: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """The body with that value at that path, in the first item of each list."""
    name, *rest = path
    match body.get(name):
        case [dict(first)] if rest:
            return {**body, name: [put(first, tuple(rest), value)]}
    return {**body, name: put(body.get(name) or {}, tuple(rest), value) if rest else value}


def naming(operation: str, path: tuple[str, ...], ids: dict[str, Any], mine: dict[str, Any]) -> dict[str, Any]:
    """The body of an operation, that names one record by its id."""
    body = BODIES[operation](mine)
    if "resolver" in path:
        body = put(body, path[: path.index("definition") + 1], transfer_tool())
    value = ids[RECORDS[path[-1]]]
    return put(body, path, [value] if path[-1].endswith("s") else value)


@pytest.mark.parametrize(
    ("operation", "path"), BY_BODY, ids=lambda value: value if isinstance(value, str) else value[-1]
)
def test_a_body_that_names_another_organizations_record_is_refused(
    world: World, operation: str, path: tuple[str, ...]
) -> None:
    client, record = world.client("beta"), RECORDS[path[-1]]
    mine = ids_of(operation, world.mine, path)
    before = world.dump()

    def asked(ids: dict[str, Any]) -> Asked:
        return world.ask(client, operation, mine, ids[record], **sent(operation, naming(operation, path, ids, mine)))

    answer = asked(world.theirs)
    assert answer == asked(world.unknown)
    assert world.dump() == before
    if path == ("document_uuids",):
        assert json.loads(answer.text)["chunks"] == []
    else:
        assert answer.status in (400, 404), answer


# What can be named by the caller itself, so that the refusals above are about the id and nothing else. There are no
# trunks, and the caller's only run isn't called twice.
@pytest.mark.parametrize(
    ("operation", "path"),
    [
        (operation, path)
        for operation, path in BY_BODY
        if path[-1] != "telephony_trunk_id" and ASKS_CARRIERS not in operation
    ],
    ids=lambda value: value if isinstance(value, str) else value[-1],
)
def test_a_body_that_names_a_record_of_ones_own_is_accepted(
    world: World, operation: str, path: tuple[str, ...]
) -> None:
    client, mine = world.client("beta"), ids_of(operation, world.mine, path)
    body = naming(operation, path, mine, mine)
    if path == ("telephony_configuration_id",) or path == ("from_phone_number_id",):
        body |= {"telephony_configuration_id": mine["config_id"]}
    if "address" in body:
        body["address"] = "+12025550189"
    answer = world.send(client, operation, mine, **sent(operation, body))
    assert answer.status_code == 200, answer.text
    if path == ("document_uuids",):
        assert len(answer.get_json()["chunks"]) == 1
    world.settle()
    if "{tool_uuid}" not in operation and "tool" in operation:
        assert world.send(client, "DELETE /tools/{tool_uuid}", answer.get_json()).status_code == 200
    assert world.photo <= world.dump()


@pytest.mark.parametrize(("operation", "name"), BY_QUERY)
def test_a_query_that_names_another_organizations_record_finds_nothing(world: World, operation: str, name: str) -> None:
    client, record = world.client("beta"), RECORDS[name]
    before = world.dump()
    answer = world.ask(client, operation, world.mine, world.theirs[record], query_string={name: world.theirs[record]})
    unknown = world.unknown[record]
    assert answer == world.ask(client, operation, world.mine, unknown, query_string={name: unknown})
    assert answer.status == 404 or json.loads(answer.text) == {"recordings": [], "total": 0}
    assert world.dump() == before


def test_a_transcript_of_another_organization_has_no_address(world: World) -> None:
    client = world.client("beta")
    answers = [
        world.ask(client, "GET /s3/signed-url", {}, run_id, query_string={"key": f"transcripts/{run_id}.txt"})
        for run_id in (world.theirs["ended_run_id"], world.unknown["run_id"])
    ]
    assert answers[0] == answers[1]
    assert (answers[0].status, answers[0].text) == (404, '{"detail":"File not found"}\n')


FILTERED = [operation for operation in GUARDED if ("filters",) in queries(operation)]


@pytest.mark.parametrize("operation", FILTERED)
def test_filters_find_nothing_of_another_organization(world: World, operation: str) -> None:
    mine = ids_of(operation, world.mine)
    theirs = {"runId": "ended_run_id", "workflowId": "workflow_id", "campaignId": "campaign_id"}
    named: list[dict[str, Any]] = [
        *({"attribute": name, "value": {"value": world.theirs[record]}} for name, record in theirs.items()),
    ]
    if not parameters(operation):  # of a workflow of their own, they may have called it as well
        named.append({"attribute": "calledNumber", "value": {"value": "2025550123"}})
    for criterion in named:
        found = world.send(
            world.client("gamma" if not parameters(operation) else "beta"),
            operation,
            mine,
            query_string={"filters": json.dumps([criterion])},
        )
        if found.status_code == 422:  # not an attribute of this list
            continue
        if found.mimetype == "text/csv":
            rows = len(found.text.splitlines()) - 1
        else:
            answer = found.get_json()
            rows = answer["runs"]["found"] if "insights" in operation else answer["total_count"]
        assert (found.status_code, rows) == (200, 0), found.text


# -- lists and counters


def comparable(answer: Any) -> Any:
    """An answer without ids, times and secrets."""
    if isinstance(answer, list):
        return [comparable(member) for member in answer]
    if isinstance(answer, str):
        return re.sub(r"^configuration \d+ ", "configuration ", answer)
    if not isinstance(answer, dict):
        return answer
    varying = re.compile(r"(.*_)?id|.*_at|key_prefix|secret")
    return {name: None if varying.fullmatch(name) else comparable(member) for name, member in answer.items()}


def test_a_list_is_that_of_a_database_without_other_organizations(world: World, client: FlaskClient) -> None:
    """Counters and totals too: what a new organization is told doesn't depend on who else is there."""
    kind = {"name": "startCall"}
    for operation in LISTS:
        theirs = world.send(world.client("gamma"), operation, kind)
        alone = world.send(client, operation, kind)
        assert (theirs.status_code, comparable(theirs.get_json())) == (alone.status_code, comparable(alone.get_json()))
        world.ask(world.client("gamma"), operation, kind)


# -- keys, logins and names


def test_without_a_key_and_with_an_archived_one_nobody_is_let_in(world: World) -> None:
    before = world.dump()
    for operation in GUARDED:
        ids = ids_of(operation, world.theirs)
        body = sent(operation, BODIES[operation](world.theirs)) if takes_body(operation) else {}
        bare = world.send(world.client(), operation, ids, **body)
        if operation in TRIGGERS:
            missing = {"loc": ["header", "X-API-Key"], "msg": "Field required", "type": "missing"}
            assert (bare.status_code, bare.get_json()) == (422, {"detail": [missing]}), operation
        else:
            assert (bare.status_code, bare.get_json()) == (401, {"detail": "Authorization header required"}), operation
        body = sent(operation, BODIES[operation](world.theirs)) if takes_body(operation) else {}
        archived = world.send(world.client(key=world.archived_key), operation, ids, **body)
        detail = "Invalid API key" if operation in TRIGGERS else "Invalid or expired API key"
        assert (archived.status_code, archived.get_json()) == (401, {"detail": detail}), operation
    assert world.dump() == before


def test_what_needs_no_key_is_not_opened_by_a_guess(world: World) -> None:
    before = world.dump()
    for operation in OPEN:
        if not parameters(operation):
            continue
        answers = [
            world.ask(
                client,
                operation,
                {"token": token, "artifact_type": "transcript"},
                token,
                data=LIST * ("PUT" in operation),
            )
            for client in (world.client(), world.client("beta"))
            for token in (world.theirs["run_token"], world.theirs["file_key"].rpartition("/")[2], "none")
        ]
        assert {answer.status for answer in answers} <= {403, 404}
        assert len(set(answers)) == 1
    assert world.dump() == before


def test_the_webhooks_of_carriers_are_admitted_by_token_and_signature(world: World) -> None:
    rules = {
        rule.rule.removeprefix("/api/v1")
        for rule in world.app.url_map.iter_rules()
        if rule.endpoint.startswith("voiceapi.call_webhooks.")
    }
    assert rules == set(WEBHOOKS), "Say what admits a carrier there."
    before = world.dump()
    for rule in rules:
        path = re.sub(r"<int\(max=9999\):\w+>", "0", rule).replace("<any(transfer, silence, wait):step>", "silence")
        for workflow_uuid, config_id, token in (
            (world.theirs["workflow_uuid"], world.theirs["config_id"], "none"),
            (world.unknown["workflow_uuid"], world.unknown["config_id"], world.theirs["workflow_uuid"]),
        ):
            url = path.replace("<token>", token).replace("<workflow_uuid>", workflow_uuid)
            url = re.sub(r"<int.*:config_id>", str(config_id), url)
            for client in (world.client(), world.client("beta")):
                answer = client.post(f"/api/v1{url}", data={"CallSid": "CA1", "To": "+12025550150"})
                assert answer.status_code in (403, 404), url
    assert world.dump() == before


def test_an_idempotency_key_is_another_one_in_another_organization(world: World) -> None:
    client = world.client("beta")
    again = {"json": {**CALL, "initial_context": {"first_name": "Beta"}}, "headers": {"Idempotency-Key": "order-4711"}}
    answer = world.send(client, "POST /public/agent/{uuid}", world.mine, **again)
    assert (answer.status_code, "Idempotent-Replayed" in answer.headers) == (200, False)
    world.settle()
    assert world.photo <= world.dump()


@pytest.mark.parametrize("name", ["Alpha", "alpha ", " alpha", "alph\u0430", "alpha\0", "1", "%", "alpha' OR '1'='1"])
def test_a_login_reaches_the_organization_of_exactly_its_name(world: World, name: str) -> None:
    client = world.client()
    for organization, found in (("alpha", 1), (name, 0)):
        headers = {"environ_overrides": {"HTTP_X_LOGIN": organization}}
        answer = client.get("/api/v1/workflow/count", **headers)
        assert (answer.status_code, answer.get_json()["total"]) == (200, found)


# -- records that a definition names


def test_a_definition_cannot_use_another_organizations_records(world: World, talk: Callable[..., Any]) -> None:
    """Tools, documents and credentials in a definition are those of its organization, or nothing."""
    client = world.client("beta")

    def told(ids: dict[str, Any], number: int) -> list[Any]:
        definition = talk(
            tool_uuids=[ids["tool_uuid"]],
            document_uuids=[ids["document_uuid"]],
            pre_call_fetch_mode="always",
            pre_call_fetch_url="http://127.0.0.1:1/",
            pre_call_fetch_credential_uuid=ids["credential_uuid"],
        )
        webhook = {"name": "Hook", "endpoint_url": "http://127.0.0.1:1/", "credential_uuid": ids["credential_uuid"]}
        definition["nodes"][0]["data"]["call"] = {"tool": ids["tool_uuid"], "save_as": "found"}
        definition["nodes"].append({"id": "w", "type": "webhook", "position": {"x": 0, "y": 0}, "data": webhook})
        named = [ids[name] for name in ("tool_uuid", "document_uuid", "credential_uuid")]
        body = {"name": f"Beta {number}", "workflow_definition": definition}
        made = world.send(client, "POST /workflow/create/definition", {}, json=body).get_json()
        workflow = {"workflow_id": made["id"]}
        checked = world.ask(client, "POST /workflow/{workflow_id}/validate", workflow, *named)
        linted = world.ask(client, "GET /workflow/{workflow_id}/lint", workflow, *named)
        chats = "POST /workflow/{workflow_id}/text-chat/sessions"
        chat = world.send(client, chats, workflow, json={}).get_json()
        return [checked, linted, chat["session_data"]["turns"][0]["assistant_message"]["text"]]

    assert told(world.theirs, 1) == told(world.unknown, 2)
    assert world.photo <= world.dump()


# Members of a node that name a record of the organization: those that the test above names.
OF_NODES = {"tool_uuids", "document_uuids", "pre_call_fetch_credential_uuid", "credential_uuid"}
OF_OTHER_SERVICES = re.compile(r"(tuner|paygent|noveum|qa)_.*|key|greeting_recording_id")


def test_every_member_of_a_node_that_names_a_record_is_covered() -> None:
    def members(value: Any) -> Iterator[str]:
        if isinstance(value, dict) and isinstance(value.get("name"), str):
            yield value["name"]
        for below in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from members(below)

    types = json.loads((Path(__file__).parents[2] / "schemas" / "node_types.json").read_text(encoding="utf-8"))
    found = {name for name in members(types) if LIKE_AN_ID.fullmatch(name)}
    assert {name for name in found if not OF_OTHER_SERVICES.fullmatch(name)} == OF_NODES


def test_a_tool_and_a_document_of_another_organization_are_never_used(world: World) -> None:
    """Even in a conversation whose definition names them, as one that was made before they were removed."""
    uuid, document = world.theirs["tool_uuid"], world.theirs["document_uuid"]
    with world.service.store.session():
        alpha, beta = (api_keys.require_organization(name).id for name in ("alpha", "beta"))
        called = RunTool(0.0, 1, "1", "c", "look", uuid, {})
        looked_up = RunTool(0.0, 1, "1", "c", "look", None, {"query": "opens"}, document_uuids=(document,))
        for organization, there in ((alpha, True), (beta, False)):
            context = ToolContext(lambda *_args, **_options: Reply(200, {}, b"{}", 0.0), lambda _uuid: {})
            assert (catalog.run(organization, called, context).result["status"] == "success") is there
            assert (catalog.run(organization, looked_up, context).result["total_results"] == 1) is there


def test_a_credential_of_another_organization_is_never_sent(world: World) -> None:
    """Tools, fetches and webhooks all take their header from `credentials.header`, for the organization of the run."""
    uuid = world.theirs["credential_uuid"]
    with world.service.store.session():
        alpha, beta = (api_keys.require_organization(name).id for name in ("alpha", "beta"))
        assert credentials.header(world.service, alpha, uuid) == {"Authorization": "Bearer Alpha-secret"}
        assert credentials.header(world.service, beta, uuid) == {}
        assert credentials.uuids(beta) == {world.mine["credential_uuid"]}


def test_what_carries_an_organizations_credentials_shares_a_connection_with_no_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner of each request that leaves the service; only the operator's own model is asked for everybody."""
    owners: list[Any] = []

    def send(_: HTTPClient, method: str, url: str, *, owner: Any = None, **_options: Any) -> Reply:
        owners.append(owner)
        return Reply(200, {}, b'{"choices": [{"message": {"content": "Yes."}}]}', 0.0)

    monkeypatch.setattr(HTTPClient, "send", send)
    settings = replace(world.service.settings, llm_url="https://model.example/v1", llm_key="the operator's")
    service = replace(world.service, settings=settings)
    for name, ids in (("alpha", world.theirs), ("beta", world.mine)):
        tried = world.send(world.client(name), "POST /tools/{tool_uuid}/test", ids, json={})
        assert tried.status_code == 200, tried.text
        with service.store.session():
            id = api_keys.require_organization(name).id
            catalog.context_for(service, id).send("GET", "https://tool.example")
            due = {"organization_id": id, "run_id": 1, "delivery_uuid": "1", "url": "https://hook.example"}
            delivery.send(service, Delivery(**due, headers=encrypt_json(service.vault, {})), now())
            twilio = {
                "provider": "twilio",
                "credentials": encrypt_json(service.vault, {"account_sid": "AC1", "auth_token": "t"}),
            }
            connect.connect(service, TelephonyConfiguration(organization=id, **twilio)).hang_up("CA1")
            for key in ({"provider": "openai", "api_key": "k"}, {"provider": OPERATOR, "api_key": "k"}, {}):
                model = selection.from_configuration(service, {"provider": OPERATOR, "model": "m", **key}, id)
                assert isinstance(model, ChatCompletions)
                model.complete("", "Hello?")
        assert owners == [id] * 6 + [OWNER_OPERATOR]
        owners.clear()


def test_what_is_taken_across_organizations_does_not_say_by_whom(world: World, talk: Callable[..., Any]) -> None:
    """A trigger path is an organization's for good, and so is a number at an account; nothing else is shared."""
    client = world.client("beta")
    body = {"name": "Beta", "workflow_definition": talk(world.theirs["uuid"])}
    before = world.dump()
    taken = world.ask(client, "POST /workflow/create/definition", {}, world.theirs["uuid"], json=body)
    assert taken.status == 409
    body["workflow_definition"] = talk(world.mine["uuid"])
    # The same as of a path of the caller's own.
    assert taken == world.ask(client, "POST /workflow/create/definition", {}, world.mine["uuid"], json=body)
    assert world.dump() == before
