"""Serves the API's document as a page, by Swagger UI, whose files are those of the package flask-swagger-ui.

Like the document itself, the page needs no key; who tries a request out enters one there. Nothing of the package is
read before the page is asked for. The headers are the console's.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from flask import Blueprint, Flask, Response, request
from werkzeug.exceptions import HTTPException, NotFound

from ..api.answers import compress, not_modified, set_tag
from ..api.blueprint import SERVED_AS_ASKED
from ..api.errors import answer_http_exception, answer_service_error
from ..errors import RecordNotFound
from .pages import FOLDER, HEADERS

OWN = Path(__file__).parent / "api_docs"
PACKAGE = "flask_swagger_ui"
# The files of the page by their names: where each is, and what it is.
FILES = {
    "page.js": (OWN, "text/javascript"),
    "page.css": (OWN, "text/css"),
    "icon.svg": (FOLDER, "image/svg+xml"),
    "swagger-ui-bundle.js": (None, "text/javascript"),
    "swagger-ui.css": (None, "text/css"),
}
MISSING = (
    "The page of the API's documents needs the package flask-swagger-ui, which isn't installed here. The document "
    "itself is at openapi.json, beside this address."
)
blueprint = Blueprint("voiceapi_documents", __name__)


@blueprint.get("/docs", **SERVED_AS_ASKED)
def page() -> Response:
    """The page. Its links are relative, so it works under any prefix of a proxy, with a slash at its end too."""
    if _folder() is None:
        return answer_service_error(RecordNotFound(MISSING))
    content = (OWN / "index.html").read_bytes()
    if request.path.endswith("/"):
        content = content.replace(b'"docs/', b'"').replace(b'"openapi.json"', b'"../openapi.json"')
    return _answer(content, "text/html")


@blueprint.get("/docs/<name>")
def file(name: str) -> Response:
    """A script, a style sheet or a picture of the page."""
    found = FILES.get(name)
    folder = found and (found[0] or _folder())
    if not found or not folder:
        raise NotFound
    return _answer(_content(folder / name), found[1])


def _folder() -> Path | None:
    """Where Swagger UI's files are; None without the package."""
    package = find_spec(PACKAGE)
    return (
        Path(package.submodule_search_locations[0], "dist") if package and package.submodule_search_locations else None
    )


@cache
def _content(path: Path) -> bytes:
    """What a file holds: of Swagger UI's, a megabyte and a half, read when the first one asks."""
    return path.read_bytes()


@cache
def _tag(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def _answer(content: bytes, mimetype: str) -> Response:
    """The content with its tag, compressed if it is worth it; 304 if the browser has it."""
    tag = _tag(content)
    return not_modified(tag) or set_tag(compress(Response(content, mimetype=mimetype)), tag)


@blueprint.errorhandler(HTTPException)
def refuse(error: HTTPException) -> Response:
    """An error as the API answers it."""
    return answer_http_exception(error)


@blueprint.after_request
def secure(response: Response) -> Response:
    response.headers.update(HEADERS)
    return response


def register(app: Flask, prefix: str) -> None:
    """Mount the page beside the API's document, at `prefix`/api/v1/docs."""
    app.register_blueprint(blueprint, url_prefix=f"{prefix}/api/v1")
