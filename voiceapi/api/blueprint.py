"""The blueprint class of all resources: flask-smorest's, but it reads requests and writes answers itself.

All errors of a request are collected, path first, then query, headers and body, and answered together. A path
parameter whose name ends in `_id` is a whole number. The innermost decorator of an endpoint is `response`.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial, wraps
from typing import Any, cast

import flask_smorest
from flask import Response, current_app, g, request
from flask_smorest.utils import resolve_schema_instance
from marshmallow import Schema, ValidationError

from ..strict_json import NUL
from .errors import InvalidRequest, Message, item, items
from .json_response import json_response
from .request_body import ABSENT, read_json
from .schemas.base import ErrorBodySchema
from .schemas.fields import MODEL, REQUIRED, Integer

Decorator = Callable[[Any], Any]
ORDER = ("path", "query", "header", "body")
# What errors call the places that flask-smorest names otherwise.
PLACES = {"json": "body", "query": "query", "headers": "header"}
PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")
# Options of every route: it is served with and without a slash at its end, and never answered with a redirect, which
# many clients don't follow with a POST.
SERVED_AS_ASKED = {"strict_slashes": False, "merge_slashes": False}
WHOLE = Integer()
# An id that needs no schema to be read.
USUAL_ID = re.compile("[0-9]{1,18}", re.ASCII)


# Declared on every guarded endpoint; neither is required, because either is enough.
CREDENTIALS = [
    {"in": "header", "name": name, "required": False, "schema": {"type": ["string", "null"]}}
    for name in ("authorization", "X-API-Key")
]


class Arguments:
    """Loads one place of requests through a schema; errors are collected instead of raised.

    :param place: "query", "header" or "body".
    """

    def __init__(self, schema: Schema, place: str) -> None:
        self.schema = schema
        self.place = place
        self.names = [field.data_key or name for name, field in schema.load_fields.items()]

    @cached_property
    def defaults(self) -> Mapping[str, Any] | None:
        """What is loaded if the query or the headers have none of the names; None if one of them is required."""
        try:
            return cast(Mapping[str, Any], self.schema.load({}))
        except ValidationError:
            return None

    def load(self) -> Any:
        """The loaded values; empty if there are errors."""
        try:
            if self.place == "body":
                return self.schema.load(self._body())
            sent = self._sent()
            if nul := [name for name, text in sent.items() if "\0" in text]:
                raise ValidationError({name: [Message(f"Value error, {NUL}", "value_error")] for name in nul})
            if not sent and self.defaults is not None:
                return dict(self.defaults)
            return self.schema.load(sent)
        except ValidationError as error:
            gather(items(error.messages, (self.place,)))
            return {}

    def _sent(self) -> dict[str, str]:
        """The parameters of the query, of each the last one, or those headers that the schema names."""
        if self.place == "query":
            return {name: values[-1] for name, values in request.args.lists() if name in self.names}
        headers = request.headers
        return {name: value for name in self.names if (value := headers.get(name)) is not None}

    @staticmethod
    def _body() -> dict[str, Any]:
        body = json_body()
        if body is ABSENT or body is None:
            raise ValidationError([REQUIRED])
        if not isinstance(body, dict):
            raise ValidationError([MODEL])
        return body


def json_body() -> Any:
    """The parsed body of this request, read once; see `read_json` for what it raises."""
    if "voiceapi_body" not in g:
        g.voiceapi_body = read_json(request, current_app.extensions["voiceapi"].settings.max_body)
    return g.voiceapi_body


def gather(found: Iterable[dict[str, Any]]) -> None:
    """Collect error items of this request; they are raised together once all of it has been read."""
    g.setdefault("voiceapi_errors", []).extend(found)


def raise_gathered() -> None:
    """Raise the errors collected so far, if any: of the path first, then of query, headers and body."""
    found = g.pop("voiceapi_errors", None)
    if found:
        raise InvalidRequest(sorted(found, key=lambda error: ORDER.index(error["loc"][0])))


class Blueprint(flask_smorest.Blueprint):  # type: ignore[misc]
    """The endpoints of one resource. Their functions' names are the operation ids of the document.

    :param public: its endpoints need no key.
    :param headers: whether the key may come in X-API-Key or in Authorization; if not, in X-API-Key only.
    :param tag: the tag of its operations in the document; by default its name.
    """

    def __init__(
        self,
        name: str,
        import_name: str,
        *,
        public: bool = False,
        headers: bool = True,
        tag: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name, import_name, **kwargs)
        self._undocumented: list[Callable[[], None]] = []
        self._documenting = threading.Lock()
        self.public = public
        self.tag = tag or name.replace("_", " ")
        self.headers = CREDENTIALS if headers and not public else []
        schemes = () if public else ("apiKey", "bearer") if headers else ("apiKey",)
        self.security: list[dict[str, list[str]]] = [{scheme: []} for scheme in schemes]

    def arguments(self, schema: Any, *, location: str = "json", **kwargs: Any) -> Decorator:
        """Give the function one more argument: what `schema` loads from the body, the query or the headers."""
        schema = resolve_schema_instance(schema)
        document = super().arguments(schema, location=location, **kwargs)
        arguments = Arguments(schema, PLACES[location])

        def decorator(func: Any) -> Any:
            @wraps(func)
            def with_arguments(*args: Any, **kwargs: Any) -> Any:
                return func(*args, arguments.load(), **kwargs)

            decorated: Any = with_arguments
            decorated._apidoc = document(func)._apidoc
            if location == "json":
                # Read by `auth.authenticate`, since malformed JSON is answered before a missing key.
                decorated.takes_body = True
                for status in (400, 413, 415):
                    _document_error(decorated, status)
            return decorated

        return decorator

    def response(self, status_code: int, schema: Any = None, **kwargs: Any) -> Decorator:
        """Answer what the function returns, as JSON with this status; `schema` documents it.

        The function returns a Response, or the answer itself: JSON values and instants. The tests hold every answer to
        its schema, so nothing is converted or left out here.
        """
        document = super().response(status_code, schema, **kwargs)

        def decorator(func: Any) -> Any:
            @wraps(func)
            def answered(*args: Any, **kwargs: Any) -> Response:
                path = _read_path(kwargs)
                raise_gathered()
                answer = func(*args, **path)
                return answer if isinstance(answer, Response) else json_response(answer, status_code)

            decorated: Any = answered
            decorated._apidoc = document(func)._apidoc
            for status in () if self.public else (401, 404, 422, 429):
                _document_error(decorated, status)
            return decorated

        return decorator

    def get(self, rule: str, **options: Any) -> Decorator:
        return self._typed(super().get(rule, **options))

    def post(self, rule: str, **options: Any) -> Decorator:
        return self._typed(super().post(rule, **options))

    def put(self, rule: str, **options: Any) -> Decorator:
        return self._typed(super().put(rule, **options))

    def patch(self, rule: str, **options: Any) -> Decorator:
        return self._typed(super().patch(rule, **options))

    def delete(self, rule: str, **options: Any) -> Decorator:
        return self._typed(super().delete(rule, **options))

    def alt_response(self, status_code: int, **options: Any) -> Decorator:
        """Document another answer: by default an error of that status."""
        if status_code >= 400:
            options.setdefault("schema", ErrorBodySchema)
        options.setdefault("description", DESCRIPTIONS.get(status_code))
        document = super().alt_response(status_code, **options)

        def decorator(func: Any) -> Any:
            func._apidoc = document(func)._apidoc
            return func

        return decorator

    @staticmethod
    def _typed(decorator: Any) -> Decorator:
        """flask-smorest is untyped; here its decorators get a type."""
        return cast(Decorator, decorator)

    def add_url_rule(self, rule: str, endpoint: str | None = None, view_func: Any = None, **options: Any) -> None:
        names = PARAMETER.findall(f"{self.url_prefix or ''}{rule}")
        options["parameters"] = [
            {"in": "path", "name": name, "required": True, "schema": {"type": _path_type(name)}} for name in names
        ] + self.headers
        options["tags"] = [self.tag]
        described = view_func._apidoc.setdefault("manual_doc", {})
        described |= {"operationId": view_func.__name__, "security": self.security}
        if self.headers and not set(options["methods"]) <= {"GET", "HEAD"}:
            # A change that a host's login lets in and another site's page sent: see `auth`.
            _document_error(view_func, 403)
        super().add_url_rule(rule, endpoint, view_func, **SERVED_AS_ASKED, **options)

    def _store_endpoint_docs(self, *args: Any, **options: Any) -> None:
        """Put off to `store_docs` what flask-smorest does here, which copies all that the decorators have noted."""
        self._undocumented.append(partial(super()._store_endpoint_docs, *args, **options))

    def store_docs(self) -> None:
        """Store what the API document says of the endpoints, once."""
        with self._documenting:
            for store in self._undocumented:
                store()
            self._undocumented.clear()


def _path_type(name: str) -> str:
    return "integer" if name.endswith("_id") else "string"


def _read_path(view_args: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, text in view_args.items():
        if "\0" in text:
            gather([item(["path", name], f"Value error, {NUL}", "value_error")])
        elif _path_type(name) == "string":
            values[name] = text
        elif USUAL_ID.fullmatch(text):
            values[name] = int(text)
        else:
            try:
                values[name] = WHOLE.deserialize(text)
            except ValidationError as error:
                gather(items(error.messages, ("path", name)))
    return values


def _document_error(func: Any, status: int) -> None:
    """Document an error status of an endpoint, unless it does so itself."""
    responses = func._apidoc.setdefault("response", {}).setdefault("responses", {})
    responses.setdefault(
        status, [{"schema": ErrorBodySchema, "description": DESCRIPTIONS[status], "content_type": None}]
    )


DESCRIPTIONS = {
    400: "What was asked can't be done",
    401: "The credential is missing or not valid",
    403: "Not allowed",
    404: "There is no such record",
    409: "In conflict with what is stored",
    412: "The record was changed since it was read",
    413: "The body is too large",
    415: "The body's charset or encoding is unknown",
    422: "The request breaks a rule",
    429: "Too many wrong keys from this address",
    503: "Too many slow requests are in progress; send it again after Retry-After seconds",
}
