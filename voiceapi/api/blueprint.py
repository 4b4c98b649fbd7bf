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
from flask import Request, Response, current_app, g, request
from flask_smorest.utils import resolve_schema_instance
from marshmallow import Schema, ValidationError

from ..errors import FieldError, InvalidFields, NotPossible, SizeExceeded
from ..strict_json import NUL, UnstorableValues, parse, storable
from .answers import json_response
from .errors import InvalidRequest, UnsupportedEncoding, field_item, item, items
from .schemas import fields
from .schemas.base import ErrorBodySchema

Decorator = Callable[[Any], Any]
ORDER = ("path", "query", "header", "body")
# What errors call the places that flask-smorest names otherwise.
PLACES = {"json": "body", "query": "query", "headers": "header"}
PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")
# Options of every route: it is served with and without a slash at its end, and never answered with a redirect, which
# many clients don't follow with a POST.
SERVED_AS_ASKED = {"strict_slashes": False, "merge_slashes": False}
WHOLE = fields.Integer()
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

    def __init__(self, schema: Any, place: str) -> None:
        self._schema = schema
        self.place = place

    @cached_property
    def schema(self) -> Schema:
        """The schema, made when it is first needed: three hundred would take a tenth of the start."""
        return cast(Schema, resolve_schema_instance(self._schema))

    @cached_property
    def names(self) -> list[str]:
        return [field.data_key or name for name, field in self.schema.load_fields.items()]

    @cached_property
    def defaults(self) -> Mapping[str, Any] | None:
        """What is loaded if the query or the headers have none of the names; None if one of them is required."""
        try:
            return cast(Mapping[str, Any], self.schema.load({}))
        except ValidationError:
            return None

    def load(self) -> Any:
        """The loaded values; empty if there are errors. The last value of a parameter in the query counts."""
        try:
            if self.place == "body":
                body = json_body()
                if body is ABSENT or body is None:
                    raise ValidationError([fields.REQUIRED])
                if not isinstance(body, dict):
                    raise ValidationError([fields.MODEL])
                return self.schema.load(body)
            if self.place == "query":
                sent = {name: values[-1] for name, values in request.args.lists() if name in self.names}
            else:
                sent = {name: value for name in self.names if (value := request.headers.get(name)) is not None}
            if nul := [name for name, text in sent.items() if "\0" in text]:
                gather(item([self.place, name], f"Value error, {NUL}", "value_error") for name in nul)
                sent = storable(sent)
            if not sent and self.defaults is not None:
                return dict(self.defaults)
            return self.schema.load(sent)
        except ValidationError as error:
            gather(items(error.messages, (self.place,)))
            return {}


def gather(found: Iterable[dict[str, Any]]) -> None:
    """Collect error items of this request; they are raised together once all of it has been read.

    Of a value that has an error already, such as one that can't be stored, its schema's errors are left out.
    """
    known = g.setdefault("voiceapi_errors", [])
    places = [each["loc"] for each in known]
    known.extend(each for each in found if each["loc"] not in places)


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
        document = partial(super().arguments, schema, location=location, **kwargs)
        arguments = Arguments(schema, PLACES[location])

        def decorator(func: Any) -> Any:
            func.notes.append(partial(_document, func, document, (400, 413, 415) if location == "json" else ()))
            func.arguments = [arguments, *func.arguments]
            if location == "json":
                # Read by `auth.authenticate`, since malformed JSON is answered before a missing key.
                func.takes_body = True
            return func

        return decorator

    def response(self, status_code: int, schema: Any = None, **kwargs: Any) -> Decorator:
        """Answer what the function returns, as JSON with this status; `schema` documents it.

        The function returns a Response, or the answer itself: JSON values and instants. The tests hold every answer to
        its schema, so nothing is converted or left out here.
        """
        document = partial(super().response, status_code, schema, **kwargs)

        def decorator(func: Any) -> Any:
            func.arguments, func.status, func._apidoc = [], status_code, {}
            # What `store_docs` adds to `_apidoc`, in this order: flask-smorest's decorators make schemas, and copies.
            func.notes = [partial(_document, func, document, () if self.public else (401, 404, 422, 429))]
            return func

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
        return self._noted(partial(super().alt_response, status_code, **options))

    def doc(self, **described: Any) -> Decorator:
        """Document what nothing else says of an endpoint."""
        return self._noted(partial(super().doc, **described))

    @staticmethod
    def _noted(document: Callable[[], Decorator]) -> Decorator:
        def decorator(func: Any) -> Any:
            func.notes.append(partial(_document, func, document))
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
        # A change that a host's login lets in and another site's page sent: see `auth`.
        may_be_forged = self.headers and not set(options["methods"]) <= {"GET", "HEAD"}
        view_func.notes.append(partial(self._describe, view_func, (403,) if may_be_forged else ()))
        super().add_url_rule(rule, endpoint, _view(view_func), **SERVED_AS_ASKED, **options)

    def _describe(self, func: Any, errors: Iterable[int]) -> None:
        """Note the name of an endpoint, what it demands, and errors that depend on the blueprint."""
        described = func._apidoc.setdefault("manual_doc", {})
        described |= {"operationId": func.__name__, "security": self.security}
        for status in errors:
            _document_error(func, status)

    def _store_endpoint_docs(self, endpoint: str, obj: Any, *args: Any, **options: Any) -> None:
        """Put off to `store_docs` what flask-smorest does here, which copies all that the decorators have noted."""
        self._undocumented += [*obj.notes, partial(super()._store_endpoint_docs, endpoint, obj, *args, **options)]
        obj.notes.clear()

    def store_docs(self) -> None:
        """Store what the API document says of the endpoints, once."""
        with self._documenting:
            for store in self._undocumented:
                store()
            self._undocumented.clear()


def _view(func: Any) -> Any:
    """The view of an endpoint: reads the path and the arguments, calls the function, and writes its answer.

    :raises InvalidRequest: by the view, with all errors of a request: of the path first, then of query, headers and
        body.
    """

    arguments, status = func.arguments, func.status

    @wraps(func)
    def view(**parameters: str) -> Response:
        path = _read_path(parameters)
        loaded = [each.load() for each in arguments]
        if found := g.pop("voiceapi_errors", None):
            raise InvalidRequest(sorted(found, key=lambda error: ORDER.index(error["loc"][0])))
        answer = func(*loaded, **path)
        return answer if isinstance(answer, Response) else json_response(answer, status)

    return view


def _path_type(name: str) -> str:
    return "integer" if name.endswith("_id") else "string"


def _read_path(view_args: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, text in view_args.items():
        if "\0" in text:
            gather([item(["path", name], f"Value error, {NUL}", "value_error")])
        elif not name.endswith("_id"):
            values[name] = text
        elif USUAL_ID.fullmatch(text):
            values[name] = int(text)
        else:
            try:
                values[name] = WHOLE.deserialize(text)
            except ValidationError as error:
                gather(items(error.messages, ("path", name)))
    return values


def _document(func: Any, decorator: Callable[[], Decorator], errors: Iterable[int] = ()) -> None:
    """Note in `_apidoc` what a decorator of flask-smorest's says of an endpoint, and errors.

    The view has the same `_apidoc`.
    """
    func._apidoc |= decorator()(func)._apidoc
    for status in errors:
        _document_error(func, status)


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


# -- reads the body of a request: its size, its encoding, its charset and then its JSON


JSON_TYPE = re.compile(r"application/([\w.+-]+\+)?json", re.ASCII)
ABSENT = object()


def refuse_encoded(request: Request) -> None:
    """:raises UnsupportedEncoding: for a body that is compressed."""
    encoding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise UnsupportedEncoding(f"The content encoding {encoding[:40]!r} is not supported; send the body unencoded.")


def read_file(request: Request, largest: int, name: str) -> bytes:
    """The body of `request`, which is a file by itself.

    :raises InvalidFields: for a form.
    :raises UnsupportedEncoding: for a body that is compressed.
    :raises SizeExceeded: above `largest` bytes, naming it as `name`.
    """
    refuse_encoded(request)
    if request.mimetype.startswith("multipart/"):
        raise InvalidFields([FieldError((), "the body must be the file itself, not a form")])
    return read_bytes(request, largest, name)


def read_bytes(request: Request, largest: int, name: str = "The request body") -> bytes:
    """:raises SizeExceeded: for a body above `largest` bytes, naming it as `name`."""
    # Werkzeug silently cuts off a body without Content-Length at its limit: with one byte more, it can be noticed.
    request.max_content_length = largest + 1
    if (request.content_length or 0) > largest or len(content := request.get_data()) > largest:
        raise SizeExceeded(f"{name} may have at most {largest} bytes.")
    return content


def json_body() -> Any:
    """The parsed body of this request, read once; ABSENT when there is none, the raw text when its type isn't JSON.

    Errors of values that can't be stored are gathered, so that they are answered together with those of the schema.

    :raises SizeExceeded: above the bytes that VOICEAPI_MAX_BODY allows.
    :raises UnsupportedEncoding: for a charset or a content encoding that is unknown here.
    :raises NotPossible: when the bytes are not text in their charset.
    :raises InvalidFields: when the text is not JSON.
    """
    if "voiceapi_body" in g:
        return g.voiceapi_body
    refuse_encoded(request)
    raw = read_bytes(request, current_app.extensions["voiceapi"].settings.max_body)
    if not raw:
        g.voiceapi_body = ABSENT
        return ABSENT
    charset = request.mimetype_params.get("charset", "utf-8")
    try:
        text = raw.decode(charset)
    except UnicodeError:
        raise NotPossible("There was an error parsing the body") from None
    except (LookupError, ValueError):
        raise UnsupportedEncoding(f"The charset {charset[:40]!r} is not known; send UTF-8.") from None
    try:
        g.voiceapi_body = parse(text) if JSON_TYPE.fullmatch(request.mimetype) else text
    except UnstorableValues as refusal:
        gather(map(field_item, refusal.errors))
        g.voiceapi_body = refusal.value
    return g.voiceapi_body
