"""The errors of the functions that a host's app calls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from .. import errors


class VoiceAPIError(Exception):
    """What was asked for isn't done, and the reason.

    :param detail: a sentence.
    :param retry_after: seconds after which the same may succeed; None if time alone doesn't help.
    :param status: the HTTP status that the API answers in such a case.
    """

    default_status: ClassVar[int] = 400

    def __init__(self, detail: str, retry_after: int | None = None, status: int | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.retry_after = retry_after
        self.status = self.default_status if status is None else status


class AgentNotFound(VoiceAPIError):
    """There is no such agent in the organization, more than one, or it is archived."""

    default_status = 404


class InvalidNumber(VoiceAPIError):
    """The number can't be dialed, its country isn't allowed, or it is on the do-not-call list."""

    default_status = 422


class LimitReached(VoiceAPIError):
    """The organization has as many calls as it may have, or the carrier takes no more for now."""

    default_status = 429


class KeyConflict(VoiceAPIError):
    """The key belongs to a call with other arguments of the last 24 hours."""

    default_status = 409


class CallRefused(VoiceAPIError):
    """Nothing is wrong with the number and no limit is reached, yet no call was placed; the reason says why."""


# The status of any other error is that of the first of its classes that is here.
STATUS: dict[type[errors.ServiceError], int] = {
    errors.RecordNotFound: 404,
    errors.Conflict: 409,
    errors.InvalidInput: 422,
    errors.OutOfService: 503,
    errors.ServiceError: 400,
}


def _sentence(error: errors.ServiceError) -> str:
    """The detail of an error as text; of an agent that isn't valid, all that is wrong with it."""
    detail = error.detail
    if not isinstance(detail, dict) or "errors" not in detail:
        return str(detail)
    parts = (" ".join(filter(None, (each["kind"], each["id"], each["field"]))) for each in detail["errors"])
    texts = (f"{each['message']} ({part})" for each, part in zip(detail["errors"], parts, strict=True))
    return f"The agent isn't valid: {' '.join(texts)}"


@contextmanager
def translated(kind: type[VoiceAPIError] = VoiceAPIError) -> Iterator[None]:
    """Raise errors of use cases as those of this module, as `kind` where none is closer."""
    try:
        yield
    except errors.LimitReached as error:
        raise LimitReached(_sentence(error), error.retry_after) from error
    except errors.InvalidFields as error:
        is_number = any(each.path == ("phone_number",) for each in error.errors)
        raise (InvalidNumber if is_number else kind)(_sentence(error), status=422) from error
    except errors.ServiceError as error:
        status = next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)
        raise kind(_sentence(error), error.retry_after, status) from error
