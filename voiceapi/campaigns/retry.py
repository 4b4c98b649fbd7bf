"""Decides after a call if its contact is completed, retried or failed, and when the circuit breaker trips. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ..timestamps import write_time

# The outcomes of an attempt, each with the beginning of the sentence that states it.
OUTCOMES: Mapping[str, str] = {
    "answered": "The call was answered",
    "busy": "The line was busy",
    "no_answer": "Nobody answered",
    "voicemail": "An answering machine answered",
    "failed": "The call failed",
    "refused": "The carrier refused the call",
    "canceled": "The call was canceled",
    "lost": "The carrier never reported how the call ended",
    "unknown": "The carrier didn't confirm the call, so the phone may have rung",
}
# Which flag of a retry configuration lets an outcome be followed by another attempt.
RETRY_FLAGS: Mapping[str, str] = {
    "busy": "retry_on_busy",
    "no_answer": "retry_on_no_answer",
    "voicemail": "retry_on_voicemail",
}
# Failures of the carrier or of this service: the circuit breaker counts them.
FAILURES = ("failed", "refused", "lost", "unknown")


@dataclass(frozen=True, slots=True)
class Retry:
    """How often, after which outcomes and how much later a contact is retried; `most` excludes the first attempt."""

    most: int
    delay: timedelta
    outcomes: frozenset[str]

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> Retry:
        """Read the `retry_config` of a campaign."""
        return cls(
            config["max_retries"] if config["enabled"] else 0,
            timedelta(seconds=config["retry_delay_seconds"]),
            frozenset(outcome for outcome, flag in RETRY_FLAGS.items() if config[flag]),
        )


@dataclass(frozen=True, slots=True)
class Breaker:
    """When a campaign is paused: if this share of the calls that ended within a sliding window failed."""

    enabled: bool
    threshold: float
    window: timedelta
    least: int

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> Breaker:
        """Read the `circuit_breaker` of a campaign."""
        return cls(
            config["enabled"],
            config["failure_threshold"],
            timedelta(seconds=config["window_seconds"]),
            config["min_calls_in_window"],
        )

    def trips(self, ended: int, failed: int) -> bool:
        """True if `failed` of the `ended` calls in the window are too many; never without a failure."""
        return self.enabled and failed > 0 and ended >= self.least and failed >= self.threshold * ended


@dataclass(frozen=True, slots=True)
class Verdict:
    """The contact's new state, when it is due if that is `retry`, and why."""

    state: str
    due_at: datetime | None
    code: str
    reason: str


def after_call(outcome: str, attempts: int, ended_at: datetime, retry: Retry) -> Verdict:
    """The state of a contact whose attempt number `attempts`, counted from 1, had this `outcome`."""
    text = OUTCOMES[outcome]
    if outcome == "answered":
        return Verdict("completed", None, outcome, f"{text}.")
    if outcome == "unknown":
        return Verdict("unknown", None, outcome, f"{text}; nobody is called again for that.")
    if outcome not in retry.outcomes or not retry.most:
        return Verdict("failed", None, outcome, f"{text}; that is not followed by another attempt.")
    if attempts > retry.most:
        return Verdict("failed", None, outcome, f"{text}; that was the last of {attempts} attempts.")
    due_at = ended_at + retry.delay
    return Verdict("retry", due_at, outcome, f"{text}; the next attempt is due at {write_time(due_at, 'seconds')}.")
