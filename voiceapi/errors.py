"""The errors that use cases raise. They know nothing of HTTP: `api.errors` gives each its status."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


class ServiceError(Exception):
    """A request that is refused, with the reason.

    :param detail: a sentence for the client, or an object where a sentence isn't enough.
    :param retry_after: seconds after which the same request may succeed; None if time alone doesn't help.
    """

    retry_after: int | None = None

    def __init__(self, detail: Any, retry_after: int | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        if retry_after is not None:
            self.retry_after = retry_after


class NotPossible(ServiceError):
    """The request can't be carried out in the present state."""


class NotAuthenticated(ServiceError):
    """The caller isn't authenticated, or its organization has no telephony configuration yet."""


class NotPermitted(ServiceError):
    """The caller may not do this, or its signature or signed address isn't valid."""


class RecordNotFound(ServiceError):
    """There is no such record. One of another organization counts as not there."""


class Conflict(ServiceError):
    """The request contradicts what is stored; repeating it doesn't help."""


class Outdated(ServiceError):
    """The client changes a record that was changed since the client read it."""


class SizeExceeded(ServiceError):
    """A file or a body has more bytes than are accepted."""


class InvalidInput(ServiceError):
    """The input can be read, but breaks a rule."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong with one field of the input.

    :param path: the names of members and the indexes of items that lead to the field; empty for the input as a whole.
    :param message: a phrase without a full stop.
    :param type: for machines: `missing`, `enum`, `int_type` and so on; `value_error` for rules of our own.
    """

    path: tuple[str | int, ...]
    message: str
    type: str = "value_error"


class InvalidFields(InvalidInput):
    """The input breaks rules at fields that can be named; `detail` is their messages, a line each."""

    def __init__(self, errors: Iterable[FieldError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(error.message for error in self.errors))


class LimitReached(ServiceError):
    """A limit is reached, such as that of calls in progress; later the request may succeed."""

    retry_after = 5


class OutOfService(ServiceError):
    """The service can't carry out such requests at the moment: it is stopping, or its disk is full."""

    retry_after = 5
