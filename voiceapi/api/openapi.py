"""The OpenAPI document, made from the endpoints themselves."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from threading import Lock
from typing import Any

import flask_smorest
from flask import Flask
from marshmallow.fields import Field

from .. import __version__
from ..strict_json import encode
from ..workflows.node_types import read as read_schema
from . import register
from .schemas import fields
from .schemas.base import ErrorBodySchema, ErrorItemSchema

OPTIONS = {
    "title": "voiceapi",
    "version": "v1",
    "openapi_version": "3.1.0",
    "info": {"description": "Build and run voice agents defined as workflows."},
    "components": {
        "securitySchemes": {
            "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            "bearer": {"type": "http", "scheme": "bearer"},
        }
    },
}
METHODS = ("get", "post", "put", "patch", "delete")
# Under this name in schemas/examples.json are the errors that operations share.
COMMON = "*"


class Api(flask_smorest.Api):  # type: ignore[misc]
    """flask-smorest's Api, with our error schema."""

    ERROR_SCHEMA = ErrorBodySchema
    DEFAULT_ERROR_RESPONSE_NAME = None

    def __init__(self, app: Flask) -> None:
        super().__init__(app, spec_kwargs=OPTIONS, config_prefix="VOICEAPI")
        self.ma_plugin.converter.add_attribute_function(exclusive_minimum)
        self.ma_plugin.converter.add_attribute_function(choice_of_schemas)
        self.spec.components.schema("ErrorItem", schema=ErrorItemSchema)

    def _register_pagination_header(self) -> None:
        """Do nothing: no answer here has flask-smorest's pagination header."""


def exclusive_minimum(_converter: Any, field: Field[Any], ret: dict[str, Any], **_kwargs: Any) -> dict[str, Any]:
    """apispec attribute function: `exclusiveMinimum` for a number that must be larger than its bound."""
    for rule in field.validators:
        if isinstance(rule, fields.Range) and not rule.min_inclusive:
            return {"exclusiveMinimum": ret.pop("minimum")}
    return {}


def choice_of_schemas(converter: Any, field: Field[Any], ret: dict[str, Any], **_kwargs: Any) -> dict[str, Any]:
    """apispec attribute function: `oneOf` with a discriminator for a Tagged field."""
    if not isinstance(field, fields.TaggedObject) or "oneOf" in field.metadata:
        return {}
    schemas = {tag: converter.resolve_nested_schema(schema) for tag, schema in field.schemas.items()}
    ret.pop("type", None)
    ret.pop("additionalProperties", None)
    return {
        "oneOf": [*schemas.values(), *([{"type": "null"}] if field.allow_none else [])],
        "discriminator": {
            "propertyName": field.tag,
            "mapping": {tag: schema["$ref"] for tag, schema in schemas.items()},
        },
    }


def text(prefix: str) -> Callable[[], str]:
    """Returns what gives the document as JSON, made once: others who ask while it is made wait for it.

    Anybody may ask for it. Making it takes a quarter of a second, and encoding it ten times as long as other answers.
    """
    lock = Lock()
    made = cache(lambda: encode(document(prefix), newline=True).decode())

    def read() -> str:
        with lock:
            return made()

    return read


def document(prefix: str = "") -> dict[str, Any]:
    """The whole document, in a steady order. Paths begin with /api/v1; the mount prefix is the server's address.

    It is made on a separate app, when it is asked for: documenting the endpoints takes three times as long as mounting
    them, and a host app isn't touched by flask-smorest.
    """
    api = Api(Flask("voiceapi", static_folder=None))
    register(api, "")
    found: dict[str, Any] = json.loads(json.dumps(api.spec.to_dict()))
    found["info"]["x-release"] = __version__
    found["servers"] = [{"url": prefix or "/"}]
    found["paths"] = dict(sorted(found["paths"].items()))
    operations = [item[method] for item in found["paths"].values() for method in METHODS if method in item]
    for operation in operations:
        operation["responses"] = dict(sorted(operation["responses"].items()))
    add_examples(found, read_schema("examples.json"))
    found["tags"] = [{"name": name} for name in sorted({tag for operation in operations for tag in operation["tags"]})]
    found["components"]["schemas"] = dict(sorted(found["components"]["schemas"].items()))
    return found


def add_examples(found: dict[str, Any], examples: Mapping[str, Any]) -> None:
    """Put the examples of each operation into the document: of its path, its request, its answer and its errors."""
    common = examples.get(COMMON, {}).get("errors", {})
    found["components"]["examples"] = {f"Error{status}": {"value": common[status]} for status in sorted(common)}
    for item in found["paths"].values():
        for operation in (item[method] for method in METHODS if method in item):
            example = examples.get(operation["operationId"], {})
            known = example.get("path", {}) | example.get("query", {})
            for parameter in (*item.get("parameters", ()), *operation.get("parameters", ())):
                if parameter["name"] in known and parameter["in"] == "path":
                    parameter["example"] = known[parameter["name"]]
            if "request" in example:
                (content,) = operation["requestBody"]["content"].values()
                content["example"] = example["request"]
            for status, response in operation["responses"].items():
                shown = example.get("errors", {}).get(status) if status >= "400" else example.get("answer")
                for content in response.get("content", {}).values():
                    if shown is not None:
                        content["example"] = shown
                    elif status in common:
                        content["examples"] = {"error": {"$ref": f"#/components/examples/Error{status}"}}
