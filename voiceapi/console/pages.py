"""Serves the console's page and its files, with the headers that keep foreign code out of it.

It needs no key and no database: what the page shows, it asks the API for.
"""

from __future__ import annotations

import hashlib
from os.path import splitext
from pathlib import Path

from flask import Blueprint, Flask, Response, current_app, redirect, request
from werkzeug.exceptions import NotFound
from werkzeug.security import safe_join
from werkzeug.wrappers import Response as BaseResponse

from ..api.answers import compress, not_modified, set_tag
from ..api.auth import drop_content_type
from ..api.errors import answer_http_exception

FOLDER = Path(__file__).parent / "static"
# What is served, whatever the system thinks that the endings stand for; nothing else is.
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
# Scripts, styles, pictures, recordings and requests of the page's own origin only; nothing inline, no frame around it.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "media-src 'self' blob:",
        "connect-src 'self'",
        "form-action 'none'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    # A new release is there with the next reload; unchanged files are answered with 304.
    "Cache-Control": "no-cache",
}
# In the page: who lets its requests in. Where no host's login may, the page asks for a key before it sends any.
KEY_LOGIN, HOST_LOGIN = (f'<meta name="voiceapi-login" content="{login}">'.encode() for login in ("key", "host"))

ROOT, ROOT_ENDPOINT = "/", "voiceapi_console_at_root"

blueprint = Blueprint("voiceapi_console", __name__)


@blueprint.get("/console")
def page() -> Response:
    """The page. Its links are relative, so it works at `/`, at `/console`, and under any prefix of a proxy."""
    content = (FOLDER / "index.html").read_bytes()
    if current_app.extensions["voiceapi"].authenticate is not None:
        content = content.replace(KEY_LOGIN, HOST_LOGIN)
    return _answer(content, "text/html")


@blueprint.get("/console/")
def page_with_slash() -> BaseResponse:
    """To the page, because its relative links would lead elsewhere from here."""
    return redirect("../console", 308)


@blueprint.get("/console/<path:name>")
def file(name: str) -> Response:
    """A script, a style sheet or a picture of the page."""
    mimetype, path = TYPES.get(splitext(name)[1]), safe_join(str(FOLDER), name)
    if mimetype is None or path is None:
        raise NotFound
    try:
        content = Path(path).read_bytes()
    except (OSError, ValueError):  # there is no such file, or the system has no such name
        raise NotFound from None
    return _answer(content, mimetype)


def _answer(content: bytes, mimetype: str) -> Response:
    """The content with its tag, compressed if it is worth it; 304 if the browser has it."""
    tag = hashlib.sha256(content).hexdigest()[:32]
    return not_modified(tag) or set_tag(compress(Response(content, mimetype=mimetype)), tag)


@blueprint.errorhandler(NotFound)
def not_found(error: NotFound) -> Response:
    """The API's answer, not the page that a host shows to people."""
    return answer_http_exception(error)


@blueprint.after_request
def secure(response: Response) -> Response:
    response.headers.update(HEADERS)
    return drop_content_type(response) if request.method == "OPTIONS" else response


def path(app: Flask) -> str | None:
    """Where the console is in an app: ROOT, or a path such as /voice/console; None if it isn't served."""
    if ROOT_ENDPOINT in app.view_functions:
        return ROOT
    return f"{app.extensions['voiceapi'].prefix}/console" if blueprint.name in app.blueprints else None


def register(app: Flask, prefix: str) -> None:
    """Mount the console at `prefix`/console."""
    app.register_blueprint(blueprint, url_prefix=prefix)


def serve_at_root(app: Flask) -> None:
    """Serve the page at `/` too, of an app that is voiceapi and nothing else."""
    app.add_url_rule(ROOT, ROOT_ENDPOINT, lambda: secure(page()))
