"""Log lines on standard error, as text or as JSON, and one for each request if they are wanted."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import click

from ..config import Settings
from ..security import OneLine

log = logging.getLogger("voiceapi")

# What every record of a log has; other attributes are fields that its caller gave it.
USUAL = frozenset((*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"))
TEXT = "%(asctime)s %(levelname)s %(message)s"
# The id of a record: more digits may be a telephone number.
ID = re.compile("[0-9]{1,8}")
LONGEST_METHOD = 20
PARAMETER = re.compile(r"<(?:[^:<>]*:)?(\w+)>")


class JSONLines(logging.Formatter):
    """A record as one line of JSON: time, level, message, the fields that it was given, and a traceback if it has one.

    A host app may use it for its own handlers.
    """

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {
            "time": f"{time.removesuffix('+00:00')}Z",
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **{name: value for name, value in vars(record).items() if name not in USUAL and value is not None},
        }
        if record.exc_info:
            # `OneLine` may have formatted it for a log of text.
            line["traceback"] = record.exc_text or self.formatException(record.exc_info)
        if record.name != "voiceapi":
            line["logger"] = record.name
        return json.dumps(line, default=str)


def log_to_stderr(settings: Settings) -> None:
    """Write the log of this process, with the start and end of each call, to standard error.

    A host's own logging stays as it is.
    """
    if log.hasHandlers():
        return
    handler = logging.StreamHandler()
    handler.setFormatter(JSONLines() if settings.log == "json" else logging.Formatter(TEXT))
    # Libraries log here as well; their lines must not be forged either.
    handler.addFilter(OneLine())
    logging.getLogger().addHandler(handler)
    log.setLevel(logging.INFO)


def say(settings: Settings, line: str) -> None:
    """Write a line about this process to standard error: for people, or as a line of the log if that is JSON."""
    if settings.log == "json":
        log.info("%s", line)
    else:
        click.echo(line, err=True)


class RequestLog:
    """Logs each request of a WSGI app when its answer is made.

    A path is logged as its route, with the ids of records in it, because the other parts may be secret tokens or
    telephone numbers.

    :param app: the app; while it answers, its environment holds Flask's request.
    """

    def __init__(self, app: Callable[..., Iterable[bytes]]) -> None:
        self._app = app

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        began = time.perf_counter()
        status, request = "500", None

        def start(answered: str, *args: Any) -> Any:
            nonlocal status, request
            # Flask takes its request out of the environment again.
            status, request = answered[:3], environ.get("werkzeug.request")
            return start_response(answered, *args)

        try:
            return self._app(environ, start)
        finally:
            rule, given = getattr(request, "url_rule", None), getattr(request, "view_args", None) or {}
            path = "an unknown path" if rule is None else _shown(rule.rule, given)
            method = environ["REQUEST_METHOD"]
            method = method if method.isalpha() and len(method) <= LONGEST_METHOD else "?"
            seconds = time.perf_counter() - began
            fields = {
                "event": "request",
                "method": method,
                "path": path,
                "status": int(status),
                "seconds": round(seconds, 6),
                "run": int(given["run_id"]) if ID.fullmatch(str(given.get("run_id"))) else None,
            }
            log.info("%s %s: %s in %.1f ms", method, path, status, 1000 * seconds, extra=fields)


def _shown(rule: str, given: dict[str, Any]) -> str:
    """A route with the numbers that were given for its parameters; other parameters stay names."""

    def parameter(match: re.Match[str]) -> str:
        value = given.get(match[1])
        is_id = (isinstance(value, int) or match[1].endswith("_id")) and ID.fullmatch(str(value))
        return str(value) if is_id else f"<{match[1]}>"

    return PARAMETER.sub(parameter, rule)
