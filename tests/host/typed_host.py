"""A host's app as the type checker sees it: mypy checks this file, and nothing runs it."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, Literal, assert_type

from voiceapi import Run, VoiceAPI, VoiceAPIError, VoiceTest

voice = VoiceAPI()


@voice.tool
def look_up(order: int) -> str:
    return str(order)


@voice.tool(timeout=5, organizations=["ada"])
def reserve(run: Run, day: date, people: int = 2) -> dict[str, str]:
    return {day.isoformat(): run.to or str(people)}


@voice.on_run_completed
def note(run: Run) -> None:
    assert_type(run.to, str | None)


@voice.on_run_completed  # type: ignore[type-var]
async def later(run: Run) -> None: ...


@voice.on_run_completed  # type: ignore[type-var]
def takes_more(run: Run, more: int) -> None: ...


def use() -> None:
    run = voice.call("Agent", "+12025550123", context={"order": 7}, key="order 7")
    assert_type(run, Run)
    assert_type((run.id, run.gathered, run.duration_seconds), tuple[int, dict[str, Any], float | None])
    assert_type([(turn.who, turn.time) for turn in run.turns], list[tuple[Literal["agent", "caller"], datetime]])
    assert_type(voice.run(run.id).is_completed, bool)
    assert_type(voice.chat(1).say("Hello."), str)
    assert_type(voice.chat(run=run.id).opening, str)
    assert_type(voice.publish("agent.json"), int)
    # The functions keep their own types.
    assert_type(look_up(7), str)
    assert_type(reserve(run, date.today()), dict[str, str])
    note(run)
    look_up("7")  # type: ignore[arg-type]
    voice.call("Agent")  # type: ignore[call-arg]
    voice.call(1.5, "+12025550123")  # type: ignore[arg-type]
    voice.chat()  # type: ignore[call-overload]
    voice.chat(1, run=2)  # type: ignore[call-overload]
    run.id = 8  # type: ignore[misc]


def refuse(error: VoiceAPIError, test: VoiceTest) -> tuple[str, int, int | None]:
    assert_type(test.finish(), list[Run])
    return error.detail, error.status, error.retry_after
