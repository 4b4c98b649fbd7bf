"""Replays the runs of a test on what they were held with, and runs their cases: nothing may be different."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace

from voiceapi.errors import NotPossible
from voiceapi.rehearsal import case_file, saved_case
from voiceapi.rehearsal import recording as recordings
from voiceapi.rehearsal.conduct import run_case
from voiceapi.rehearsal.recording import GONE, NO_CONVERSATION, NO_STEPS, NOTHING_YET, Recording
from voiceapi.rehearsal.replay import itself
from voiceapi.rehearsal.subject import Subject
from voiceapi.service import Service
from voiceapi.store import runs
from voiceapi.store.failures import DatabaseUnavailable
from voiceapi.store.runs import Run

READINGS, SECONDS_BETWEEN = 5, 0.4
# Why there is nothing to replay.
NOTHING = (NOTHING_YET, NO_CONVERSATION, NO_STEPS, GONE)
# Why a run that can be replayed makes no case.
NO_CASE = (saved_case.NOT_BEGUN, saved_case.FETCHING, saved_case.LONGER)
# Tests whose runs can't be repeated, because they change what a run is held with while it goes on, or what is stored.
EXEMPT = {
    "test_a_chat_goes_on_with_the_documents_as_they_are_now",
    "test_a_chat_goes_on_with_the_tools_as_they_are_now",
    "test_a_chat_whose_workflow_was_edited_meanwhile_is_not_replayed",
    "test_a_checkpoint_that_cannot_be_read_lets_the_chat_end",
    "test_a_database_of_version_6_is_migrated",
    # A case knows no configuration, by whose country the number was read.
    "test_a_destination_is_read_as_the_calls_configuration_reads_numbers",
    "test_a_draft_may_be_edited_in_the_middle_of_a_chat",
    "test_a_run_is_stored_however_deep_its_context_is",
    "test_insights_need_a_permit_for_many_runs_long_logs_or_a_large_graph",
    "test_runs_that_cannot_be_replayed_say_why",
    "test_the_tables_of_models_tools_and_what_is_gone",
    "test_what_is_gone_from_the_graph_is_listed_last_and_only_conversations_pass_nodes",
    "test_words_of_a_dead_process_are_kept_when_the_workflow_was_edited_meanwhile",
}
# Tests whose many runs are rows alone, which were never held.
WITHOUT_CONVERSATIONS = "tests/store/test_plans_postgresql.py"


def check_runs(service: Service) -> None:
    """Fail if a run of the current test goes another way when it is replayed, or fails as a case."""
    path, _, test = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0].partition("::")
    if path == WITHOUT_CONVERSATIONS or test.partition("[")[0] in EXEMPT:
        return
    found: list[str] = []
    # A simulated call may go on while its run is read, statement by statement. What is really different stays so.
    for _ in range(READINGS):
        try:
            with service.store.session():
                found = [f"run {run.id}: {problem}" for run in Run.select() for problem in problems(service, run)]
        except DatabaseUnavailable:
            return
        if not found:
            return
        time.sleep(SECONDS_BETWEEN)
    raise AssertionError("\n".join(found))


def problems(service: Service, run: Run) -> Iterator[str]:
    """What is different when a run is replayed, or run as a case."""
    try:
        recording = recordings.of_run(service, run)
    except NotPossible as error:
        if error.detail not in NOTHING:
            yield str(error.detail)
        return
    if run.mode != "textchat":  # the recording of a chat is made from its log
        yield from differing_log(run, recording)
    found = itself(recording)
    if found.divergence is not None:
        yield f"another way: {found.divergence}"
    yield from (f"difference: {difference}" for difference in found.differences)
    yield from failed_case(service, run, recording)


def differing_log(run: Run, recording: Recording) -> Iterator[str]:
    """What the run's log has that the engine doesn't record again."""
    recorded = [(record.type, dict(record.payload)) for exchange in recording.exchanges for record in exchange.records]
    kinds = {type for type, _ in recorded}
    # What was said while a reply was awaited is the service's, not the engine's.
    entries = [entry for entry in runs.events(run) if not (entry.payload and entry.payload.get("filler"))]
    logged = [(entry.type, entry.payload) for entry in entries if entry.node_id and entry.type in kinds]
    if logged != recorded:
        yield f"the log has {logged}, and not {recorded}"


def failed_case(service: Service, run: Run, recording: Recording) -> Iterator[str]:
    """What isn't as expected when the case of a run is run on what it was held with."""
    try:
        case = case_file.read_case(saved_case.case_of(service, run))
    except NotPossible as error:
        if error.detail not in NO_CASE:
            yield str(error.detail)
        return
    setup = recording.state.setup
    now = Subject.of_organization(service, run.organization_id, recording.definition, setup.configurations)
    result = run_case(replace(now, functions=setup.functions), case)
    yield from (f"its case: {mismatch}" for mismatch in result.mismatches)
