"""The requests of the examples: a walk through every operation of the API, in an order in which each succeeds."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from voiceapi.store.database import write
from voiceapi.store.telephony import note_rejected

EXAMPLES = Path(__file__).parent.parent / "examples"
CALLEE = {"first_name": "Ada", "simulated_callee": ["Yes, I can.", "Two people."]}
NUMBER = "+12025550123"
CONTACTS = "phone_number,first_name\n+12025550171,Ada\n+12025550102,Grace\n2025550173,Barbara\n"


def walk(at: Any) -> None:
    """Walk through all operations. `at` is a `recorded_examples.Walk`."""
    service(at)
    organization(at)
    tools(at)
    documents(at)
    workflow = workflows(at)
    calls(at, workflow)
    chats(at, workflow)
    campaigns(at, workflow)
    telephony(at, workflow)
    keys(at)
    at.do("ready")


def until(ask: Callable[[], Any]) -> Any:
    """Ask again until the answer is true."""
    deadline = time.monotonic() + 60
    while not (answer := ask()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return answer


def service(at: Any) -> None:
    at.do("health")
    at.do("list_node_types")
    at.do("get_node_type", name="trigger")
    at.do("get_node_type", name="nothing", status=404)


def organization(at: Any) -> None:
    at.do("get_preferences")
    at.do(
        "set_preferences",
        {
            "test_phone_number": NUMBER,
            "timezone": "America/New_York",
            "calling_hours": {"start": "09:00", "end": "20:00"},
            "max_attempts_per_day": 3,
            "allowed_countries": ["US"],
            "max_calls_a_day": 500,
        },
    )
    at.do("set_preferences", {"timezone": "Mars/Olympus"}, status=422)
    # Calling hours would let the campaign of the walk call nobody at night.
    at.do("set_preferences", {"test_phone_number": NUMBER})
    at.do("list_disposition_codes")
    at.do("examine_organization")
    shown = at.do("get_model_configuration")["configuration"]
    at.do("set_model_configuration", shown)
    at.do("get_campaign_defaults")
    at.do("list_webhook_secrets")
    at.do("rotate_webhook_secret")
    at.do("rotate_webhook_secret")
    at.do("rotate_webhook_secret", status=409)
    at.do("retire_webhook_secret")


def tools(at: Any) -> None:
    secret = {"header_name": "X-API-Key", "api_key": "example-0123456789"}
    credential = at.do(
        "create_credential",
        {
            "name": "Calendar",
            "description": "our calendar's key",
            "credential_type": "api_key",
            "credential_data": secret,
        },
    )["uuid"]
    same = {"name": "Calendar", "credential_type": "api_key", "credential_data": secret}
    at.do("create_credential", same, status=409)
    at.do("create_credential", {**same, "name": "Other", "credential_data": {}}, status=400)
    at.do("list_credentials")
    at.do("get_credential", credential_uuid=credential)
    at.do("update_credential", {"description": "the calendar of the practice"}, credential_uuid=credential)
    at.do("delete_credential", credential_uuid=credential)
    at.do("get_credential", credential_uuid=credential, status=404)
    definition = {
        "schema_version": 1,
        "type": "http_api",
        "config": {
            "method": "POST",
            "url": f"{at.receiver}/free",
            "parameters": [
                {"name": "day", "type": "string", "description": "The day that the caller wants.", "required": True}
            ],
        },
    }
    body = {"name": "Free on", "description": "Whether there is time on a day.", "definition": definition}
    tool = at.do("create_tool", body)["tool_uuid"]
    at.do("create_tool", {"name": "Free on"}, status=422)
    at.do("list_tools", query={"status": "active"})
    at.do("get_tool", tool_uuid=tool)
    at.do("update_tool", {"description": "Whether there is time on a day, and when."}, tool_uuid=tool)
    at.do("test_tool", {"llm_params": {"day": "Thursday"}}, tool_uuid=tool)
    at.do("archive_tool", tool_uuid=tool)
    at.do("unarchive_tool", tool_uuid=tool)
    at.do("get_tool", tool_uuid="00000000-0000-4000-8000-000000000000", status=404)
    at.do("list_recordings")


def documents(at: Any) -> None:
    text = "# Opening hours\n\nThe practice is open from Monday to Friday, from 8 to 17.\n"
    document = at.do("upload_document", form={"file": ("hours.md", text), "custom_metadata": '{"year": 2026}'})
    uuid = document["document_uuid"]
    at.do("list_documents", query={"limit": 10})
    at.do("get_document", document_uuid=uuid)
    at.do("search_documents", {"query": "When are you open on Friday?", "limit": 3})
    at.do("delete_document", document_uuid=uuid)
    at.do("get_document", document_uuid=uuid, status=404)


def workflows(at: Any) -> dict[str, Any]:
    """Make the workflow that is called and talked to; returns it."""
    body = json.loads((EXAMPLES / "appointment.json").read_text())
    webhook = {
        "name": "Report",
        "endpoint_url": f"{at.receiver}/report",
        "payload_template": {"run": "{{workflow_run_id}}"},
    }
    with_webhook = {**body["workflow_definition"]}
    node = {"id": "report", "type": "webhook", "position": {"x": 960, "y": 0}, "data": webhook}
    with_webhook["nodes"] = [*with_webhook["nodes"], node]
    workflow = at.do("create_from_definition", body)
    id = workflow["id"]
    at.do("create_from_definition", body, status=409)
    at.do("validate_definition", {"workflow_definition": {"nodes": [], "edges": []}})
    at.do("lint_definition", {"workflow_definition": {"nodes": [], "edges": []}})
    at.do("draw_definition", {"workflow_definition": body["workflow_definition"], "name": "Appointment reminder"})
    template = {
        "call_type": "outbound",
        "use_case": "Table",
        "activity_description": "Ask whether the guest will come.",
    }
    at.do("create_from_template", template)
    at.do("list_examples")
    described = {
        "description": "It calls our patients a day before, and asks whether they come. It looks up the time itself.",
        "language": "en-US",
    }
    at.do("describe_workflow", described, status=422)
    with at.written_by_a_model(body["workflow_definition"], ["It can't look up times: add a tool for that."]):
        at.do("describe_workflow", described)
    at.do("list_workflows", query={"status": "active"})
    at.do("summarize_workflows")
    at.do("count_workflows")
    at.do("fetch_workflow", workflow_id=id)
    at.do("fetch_workflow", workflow_id=99, status=404)
    at.do("create_draft", workflow_id=id)
    change = {"name": "Reminder", "workflow_definition": with_webhook}
    at.do("update_workflow", change, workflow_id=id)
    at.do("update_workflow", change, workflow_id=id, headers={"If-Match": '"0123"'}, status=412)
    at.do("update_workflow", {"name": 5}, workflow_id=id, status=422)
    at.do("validate_workflow", workflow_id=id)
    at.do("lint_workflow", workflow_id=id)
    at.do("publish_workflow", workflow_id=id)
    at.do("publish_workflow", workflow_id=id, status=400)
    at.do("draw_workflow", workflow_id=id)
    versions = at.do("list_versions", workflow_id=id)
    newest, first = versions[0]["version_number"], versions[-1]["version_number"]
    at.do("compare_versions", workflow_id=id, first_id=first, second_id=newest)
    at.do("restore_version", workflow_id=id, version_id=first)
    at.do("update_workflow", change, workflow_id=id)
    at.do("publish_workflow", workflow_id=id)
    case = {
        "name": "The patient comes with two others",
        "turns": [
            {"caller": "Yes, I can come.", "says": "How many", "node": "Companions"},
            {"caller": "Two people.", "edges": ["Answered"]},
        ],
        "expect": {"variables": {"companions": 2}},
    }
    stored = at.do("create_case", {"case": case}, workflow_id=id)["id"]
    at.do("create_case", {"case": case}, workflow_id=id, status=409)
    at.do("create_case", {"case": {"turns": [{"says": "Hello"}]}}, workflow_id=id, status=422)
    file = 'cases:\n  - name: Nobody comes\n    turns:\n      - {caller: "No.", edges: ["No"]}\n'
    at.do("import_cases", {"file": file}, workflow_id=id)
    at.do("import_cases", {"file": file}, workflow_id=id, status=409)
    at.do("import_cases", {"file": "cases:\n  - turns: []\n"}, workflow_id=id, status=422)
    at.do("list_cases", workflow_id=id)
    at.do("get_case", workflow_id=id, case_id=stored)
    at.do("change_case", {"name": "Two others come along"}, workflow_id=id, case_id=stored)
    at.do("test_workflow", {"case_ids": [stored]}, workflow_id=id)
    at.do("rehearse_workflow", {"conversations": 20, "seed": 1}, workflow_id=id)
    at.do("rehearse_workflow", {"caller": "in a hurry, changes the day once"}, workflow_id=id, status=400)
    at.do("duplicate_workflow", workflow_id=id)
    at.do("delete_case", workflow_id=id, case_id=stored)
    at.do("update_workflow_status", {"status": "archived"}, workflow_id=2)
    return dict(workflow)


def calls(at: Any, workflow: dict[str, Any]) -> None:
    id, uuid = workflow["id"], workflow["workflow_uuid"]
    body = {"phone_number": NUMBER, "initial_context": CALLEE}
    run = at.do("trigger_agent", body, uuid="appointment")["workflow_run_id"]
    at.do("trigger_agent", body, uuid="nothing", status=404)
    at.do("trigger_agent", {"phone_number": "12"}, uuid="appointment", status=422)
    at.do("trigger_workflow", body, workflow_uuid=uuid)
    at.do("trigger_agent_test", body, uuid="appointment")
    at.do("trigger_workflow_test", body, workflow_uuid=uuid)
    at.do("initiate_call", {"workflow_id": id, "phone_number": NUMBER})
    at.do("initiate_call", {"workflow_id": 99}, status=404)
    at.do("simulate_call", {"workflow_id": id, "from_number": NUMBER, "lines": ["Yes, I can.", "Two people."]})
    at.do("create_run", {"mode": "simulator", "name": "By hand"}, workflow_id=id)
    # Each of the six calls sends its webhook when it has ended.
    sent = {"state": "succeeded"}
    until(lambda: at.do("list_webhook_deliveries", recorded=False, query=sent)["total_count"] == 6)
    shown = at.do("get_run", workflow_id=id, run_id=run)
    at.do("get_run", workflow_id=id, run_id=999, status=404)
    at.do("replay_runs", {"last": 2}, workflow_id=id)
    at.do("replay_runs", {"run_ids": [999]}, workflow_id=id, status=404)
    at.do("get_case_of_run", workflow_id=id, run_id=run)
    token = shown["transcript_public_url"].split("/")[-2]
    at.do("download_artifact", token=token, artifact_type="transcript")
    at.do("download_artifact", token="unknown", artifact_type="transcript", status=404)
    at.do("list_runs", workflow_id=id, query={"limit": 1, "sort_by": "id", "sort_order": "asc"})
    at.do("list_runs", workflow_id=id, query={"sort_by": "colour"}, status=422)
    at.do("list_usage", query={"limit": 1, "sort_by": "id", "sort_order": "asc"})
    at.do("get_totals")
    at.do("get_insights", workflow_id=id)
    at.do("get_insights", workflow_id=id, query={"version": 99}, status=404)
    at.do("get_insights", workflow_id=id, query={"filters": "all"}, status=422)
    at.do("download_report", workflow_id=id)
    at.do("download_usage_report")
    at.do("end_run", workflow_id=id, run_id=run)
    deliveries = at.do("list_deliveries", workflow_id=id, run_id=run)["deliveries"]
    at.do("list_webhook_deliveries", query=sent)
    at.do("redeliver", workflow_id=id, run_id=run, delivery_uuid=deliveries[0]["delivery_uuid"])


def chats(at: Any, workflow: dict[str, Any]) -> None:
    id = workflow["id"]
    chat = at.do("create_chat", {"initial_context": {"first_name": "Ada"}}, workflow_id=id)
    run, turn = chat["workflow_run_id"], chat["session_data"]["turns"][0]["id"]
    at.do("send_message", {"text": "Yes, I can.", "expected_revision": 2}, workflow_id=id, run_id=run)
    at.do("send_message", {"text": "Two.", "expected_revision": 2}, workflow_id=id, run_id=run, status=409)
    at.do("get_chat", workflow_id=id, run_id=run)
    at.do("rewind_chat", {"cursor_turn_id": turn}, workflow_id=id, run_id=run)
    at.do("stream_message", {"text": "Yes, I can."}, workflow_id=id, run_id=run)
    at.do("end_chat", {}, workflow_id=id, run_id=run)
    at.do("send_message", {"text": "Hello?"}, workflow_id=id, run_id=run, status=400)
    at.do("get_chat", workflow_id=id, run_id=999, status=404)


def campaigns(at: Any, workflow: dict[str, Any]) -> None:
    id = workflow["id"]
    at.do("check_list", form={"file": ("contacts.csv", CONTACTS), "workflow_id": str(id)})
    at.do("simulate_list", form={"file": ("contacts.csv", CONTACTS), "name": "Autumn", "workflow_id": str(id)})
    slot = at.do("prepare_upload", {"file_name": "contacts.csv", "file_size": len(CONTACTS)})
    at.do("put_file", text=CONTACTS, token=slot["upload_url"].rpartition("/")[2])
    at.do("put_file", text=CONTACTS, token="expired", status=403)
    signed = at.do("sign_address", query={"key": slot["file_key"]})
    at.do("get_file", token=signed["url"].rpartition("/")[2].partition("?")[0])
    body: dict[str, Any] = {
        "name": "Autumn",
        "workflow_id": id,
        "source_type": "csv",
        "source_id": slot["file_key"],
        "max_concurrency": 3,
        "retry_config": {"enabled": False},
        # Not today, so that it can be paused before it has ended.
        "schedule_config": {
            "enabled": True,
            "timezone": "America/New_York",
            "slots": [
                {"day_of_week": (datetime.now(UTC).weekday() + 3) % 7, "start_time": "09:00", "end_time": "17:00"}
            ],
        },
    }
    campaign = at.do("create_campaign", body)["id"]
    at.do("create_campaign", {**body, "source_id": "campaigns/1/nothing.csv"}, status=400)
    at.do(
        "create_campaign_with_list", form={"file": ("contacts.csv", CONTACTS), "name": "Winter", "workflow_id": str(id)}
    )
    at.do("list_campaigns")
    at.do("get_campaign", campaign_id=campaign)
    at.do("get_campaign", campaign_id=99, status=404)
    at.do("update_campaign", {"name": "Autumn reminders"}, campaign_id=campaign)
    at.do("simulate_campaign", {"seed": 1, "days": 4}, campaign_id=campaign)
    at.do("start_campaign", campaign_id=campaign)
    at.do("start_campaign", campaign_id=campaign, status=400)
    at.do("pause_campaign", campaign_id=campaign)
    at.do("resume_campaign", campaign_id=campaign)
    at.do("update_campaign", {"schedule_config": {**body["schedule_config"], "enabled": False}}, campaign_id=campaign)
    until(lambda: at.do("get_campaign", recorded=False, campaign_id=campaign)["state"] == "completed")
    at.do("get_campaign_progress", campaign_id=campaign)
    at.do("get_campaign_outcomes", campaign_id=campaign)
    at.do("list_contacts", campaign_id=campaign, query={"limit": 2})
    at.do("get_contact", campaign_id=campaign, row_id=2)
    at.do("list_campaign_runs", campaign_id=campaign, query={"limit": 1})
    at.do("download_campaign_report", campaign_id=campaign)
    at.do("download_contacts", campaign_id=campaign)
    at.do("get_source_download_url", campaign_id=campaign)
    at.do("redial_campaign", {"name": "Autumn, once more"}, campaign_id=campaign)
    at.do("add_numbers_not_to_call", {"phone_numbers": [NUMBER], "reason": "asked for it"})
    at.do("add_list_not_to_call", text="phone_number\n+12025550199\n")
    at.do("list_numbers_not_to_call")
    at.do("remove_number_not_to_call", phone_number=NUMBER)
    at.do("remove_number_not_to_call", phone_number=NUMBER, status=404)


def telephony(at: Any, workflow: dict[str, Any]) -> None:
    at.do("list_carriers")
    config = {"provider": "twilio", "account_sid": "AC0123456789", "auth_token": "example-token-Q123"}
    twilio = at.do("create_configuration", {"name": "Main", "config": config})["id"]
    at.do("create_configuration", {"name": "Main", "config": config}, status=409)
    at.do("list_configurations")
    at.do("get_configuration", config_id=twilio)
    at.do("get_configuration", config_id=99, status=404)
    at.do("update_configuration", {"name": "Main account"}, config_id=twilio)
    body = {"address": "+12025550188", "label": "Front desk", "inbound_workflow_id": workflow["id"]}
    number = at.do("create_number", body, config_id=twilio)["id"]
    at.do("create_number", body, config_id=twilio, status=409)
    at.do("list_numbers", config_id=twilio)
    called = {"from_number": NUMBER, "to_number": "+12025550187", "reason": "PHONE_NUMBER_NOT_CONFIGURED"}
    with at.client.application.extensions["voiceapi"].store.session(), write():
        note_rejected(twilio, None, "CA1", **called)
    at.do("list_rejected_calls", config_id=twilio)
    at.do("get_number", config_id=twilio, phone_number_id=number)
    at.do("update_number", {"label": "Reception"}, config_id=twilio, phone_number_id=number)
    at.do("set_default_caller", config_id=twilio, phone_number_id=number)
    at.do("set_default_outbound", config_id=twilio)
    at.do("reactivate_configuration", config_id=twilio)
    at.do("delete_number", config_id=twilio, phone_number_id=number)
    at.do("delete_configuration", config_id=1, status=409)
    at.do("delete_configuration", config_id=twilio)
    account = {"provider": "cloudonix", "credentials": {"bearer_token": "example-0123456789", "domain_id": "example"}}
    at.do("list_available", account)
    body = {**account, "number": "+12025550188", "workflow_id": workflow["id"]}
    at.do("connect_number", body, status=400)
    service = at.client.application.extensions["voiceapi"]
    service.reach_at("https://voice.example.org")
    connected = at.do("connect_number", body)["telephony_configuration_id"]
    at.do("list_connected")
    at.do("undo_connection", {"telephony_configuration_id": connected, "number": "+12025550188"})
    service.reach_at(None)


def keys(at: Any) -> None:
    key = at.do("create_key", {"name": "robot"})["id"]
    at.do("create_key", {}, status=422)
    at.do("list_keys", query={"include_archived": "true"})
    at.do("archive_key", api_key_id=key)
    at.do("reactivate_key", api_key_id=key)
    at.do("archive_key", api_key_id=99, status=404)
