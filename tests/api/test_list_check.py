"""`POST /campaign/check/csv`: what a contact list would make of a campaign, before anything is stored."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from flask.testing import FlaskClient

from voiceapi.campaigns import contacts

API = "/api/v1"
CHECK = f"{API}/campaign/check/csv"


@pytest.fixture
def send(client: FlaskClient, workflow: Callable[..., Any]) -> Callable[..., Any]:
    """Sends a list, to be checked or to make a campaign; the agent's greeting has the variables that it names."""
    made: dict[str, int] = {}

    def post(text: str, url: str = CHECK, greeting: str = "Hello {{first_name}} of {{city}}.", **fields: Any) -> Any:
        if greeting not in made:
            made[greeting] = workflow(greeting=greeting)["id"]
        form = {"workflow_id": str(made[greeting]), **fields}
        return client.post(url, data={**form, "file": (io.BytesIO(text.encode()), "contacts.csv")})

    return post


ROWS = "Phone_Number;first_name;city;note\n+12025550171;Ann;Bonn;new\n2025550172;Bob;;\n+12025550173;;Rome;\n"
NO_CODE = (
    "The number needs + and its country code, as in +12025550123, unless the telephony configuration names a country."
)


def test_a_list_is_checked_without_a_trace(client: FlaskClient, send: Any) -> None:
    answer = send(ROWS + "+12025550171;Ann;Bonn;\n")
    assert answer.status_code == 200, answer.text
    bob = {"row": 2, "phone_number": "2025550172", "skipped": NO_CODE}
    ann = {"row": 4, "phone_number": "+12025550171", "skipped": "The number is in row 1 already."}
    assert answer.get_json() == {
        "columns": ["phone_number", "first_name", "city", "note"],
        "variables": [
            {"name": "city", "is_column": True, "empty_rows": 0},
            {"name": "first_name", "is_column": True, "empty_rows": 1},
        ],
        "rows": 4,
        "skipped_count": 2,
        "skipped": [bob, ann],
        "preview": [
            {"row": row, "phone_number": number, "skipped": skipped, "values": values}
            for row, number, skipped, values in (
                (1, "+12025550171", None, record("+12025550171", "Ann", "Bonn", "new")),
                (2, "2025550172", NO_CODE, record("2025550172", "Bob", "", "")),
                (3, "+12025550173", None, record("+12025550173", "", "Rome", "")),
                (4, "+12025550171", ann["skipped"], record("+12025550171", "Ann", "Bonn", "")),
            )
        ],
        "refusal": "Template variable 'first_name' is empty in rows: 3. "
        "All template variables used in the workflow must have values in every row.",
    }
    assert client.get(f"{API}/campaign/").get_json() == {"campaigns": []}


def record(*cells: str) -> dict[str, str]:
    return dict(zip(("phone_number", "first_name", "city", "note"), cells, strict=True))


def test_another_column_has_the_numbers(client: FlaskClient, send: Any) -> None:
    text = "Phone,first_name,city\n+12025550171,Ann,Bonn\n12,Bob,Rome\n"
    found = send(text).get_json()
    assert (found["columns"], found["rows"], found["skipped_count"]) == (["phone", "first_name", "city"], 2, 2)
    assert found["refusal"].startswith(
        "Source must contain a 'phone_number' column. It has 'phone', 'first_name', 'city'."
    )
    found = send(text, phone_number_column="PHONE").get_json()
    assert (found["refusal"], found["skipped_count"], found["preview"][0]["phone_number"]) == (None, 1, "+12025550171")
    found = send(text, phone_number_column="mobile").get_json()
    assert found["refusal"].startswith("Source must contain a 'mobile' column.")
    numbers = {"data": text, "content_type": "text/csv"}
    added = client.post(f"{API}/do-not-call/csv?phone_number_column=Phone", **numbers).get_json()
    assert (added["added"], added["refused_count"]) == (1, 1)
    assert client.post(f"{API}/do-not-call/csv", **numbers).status_code == 400


@pytest.mark.parametrize(
    "text",
    [
        ROWS,
        "phone_number,first_name\n+12025550171,Ann\n",
        "phone_number,first_name,city\n+12025550171,Ann,Bonn\n",
        "name,city\nAnn,Bonn\n",
        "phone_number\n",
        "",
    ],
    ids=["empty cells", "a column missing", "good", "no numbers", "no rows", "nothing"],
)
def test_a_check_says_what_creating_a_campaign_answers(send: Any, text: str) -> None:
    checked, made = send(text), send(text, f"{API}/campaign/create/csv", name="Spring")
    if checked.status_code == 200:
        assert checked.get_json()["refusal"] == made.get_json().get("detail")
    else:
        assert (checked.status_code, checked.get_json()) == (made.status_code, made.get_json())


def test_no_more_is_shown_than_people_read(send: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contacts, "MOST_SKIPPED", 2)
    monkeypatch.setattr(contacts, "PREVIEW_ROWS", 2)
    monkeypatch.setattr(contacts, "PREVIEW_COLUMNS", 2)
    monkeypatch.setattr(contacts, "LONGEST_CELL", 3)
    found = send("phone_number,a,b\n" + "12345,abcdef,b\n" * 4, greeting="Hello.").get_json()
    assert [found[name] for name in ("rows", "skipped_count", "columns")] == [4, 4, ["phone_number", "a", "b"]]
    assert [(each["row"], each["phone_number"]) for each in found["skipped"]] == [(1, "123"), (2, "123")]
    assert [each["values"] for each in found["preview"]] == [{"phone_number": "123", "a": "abc"}] * 2


def test_a_wrong_form_is_refused(client: FlaskClient, send: Any) -> None:
    answer = client.post(CHECK, data={"telephony_configuration_id": "x"}, content_type="multipart/form-data")
    assert (answer.status_code, [item["loc"] for item in answer.get_json()["detail"]]) == (
        422,
        [["body", "workflow_id"], ["body", "telephony_configuration_id"], ["body", "file"]],
    )
    for status, detail, fields in (
        (404, "Workflow not found", {"workflow_id": "99"}),
        (400, "telephony_configuration_not_found", {"telephony_configuration_id": "99"}),
    ):
        answer = send("phone_number\n+12025550171\n", **fields)
        assert (answer.status_code, answer.get_json()) == (status, {"detail": detail})


def test_a_campaign_is_simulated_before_it_is_made(client: FlaskClient, send: Any) -> None:
    """As the stored one is, but from now on; nothing is stored, and what would be refused is refused."""
    text = ROWS.replace("+12025550173;;Rome;", "+12025550173;Cy;Rome;")
    settings = {"name": "Spring", "max_concurrency": "1", "retry_config": json.dumps({"enabled": False})}
    found = send(text, f"{API}/campaign/simulate/csv", **settings)
    assert found.status_code == 200, found.text
    assert client.get(f"{API}/campaign/").get_json() == {"campaigns": []}
    made = send(text, f"{API}/campaign/create/csv", **settings).get_json()
    stored = client.post(f"{API}/campaign/{made['id']}/simulate", json={"starts_at": found.get_json()["starts_at"]})
    assert found.get_json() == stored.get_json()
    assert (found.get_json()["attempts"], found.get_json()["skipped_contacts"][0]["row"]) == (2, 2)
    slot = {"day_of_week": 0, "start_time": "09:30", "end_time": "10:00"}
    window = {"enabled": True, "timezone": "UTC", "slots": [slot]}
    monday = send(text, f"{API}/campaign/simulate/csv", **settings, schedule_config=json.dumps(window)).get_json()
    assert {datetime.fromisoformat(each["hour"]).weekday() for each in monday["timeline"]} == {0}
    assert monday["first_call_at"][11:] == "09:30:00Z"
    refused = send(ROWS, f"{API}/campaign/simulate/csv", name="Spring")
    assert (refused.status_code, "is empty in rows: 3" in refused.text) == (400, True)
