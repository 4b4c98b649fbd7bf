"""Authentication: the key of a request or the host's login, and the organization that it acts for."""

from __future__ import annotations

from typing import cast
from urllib.parse import urlsplit

from flask import Response, after_this_request, current_app, g, request

from ..errors import NotAuthenticated, NotPermitted
from ..organizations import api_keys
from ..service import Service
from ..store.locks import REQUEST
from .blueprint import json_body

# Requests that change nothing; the answer to one from another site's page can't be read there.
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
# `none`: the user's own doing, such as a bookmark. No page of another site can send it.
TRUSTED_SITES = ("same-origin", "none")
# The members of `g` that belong to one request.
OF_A_REQUEST = ("voiceapi_body", "voiceapi_errors", "voiceapi_warnings")
DEFAULT_PORTS = {"http": 80, "https": 443}


def service() -> Service:
    """The parts of the app that this request reached."""
    return cast(Service, current_app.extensions["voiceapi"])


def origin() -> str:
    """The origin of the addresses in an answer: VOICEAPI_PUBLIC_URL, or else the one that this request asked.

    That is what its client says, so it goes back to that client only, and is neither stored nor signed.
    """
    return service().settings.public_url or f"{request.scheme}://{request.host}"


def base_url() -> str:
    """The URL before `/api/v1` in the addresses of an answer."""
    parts = service()
    return parts.base_url if parts.settings.public_url else request.root_url.rstrip("/") + parts.prefix


def organization() -> int:
    """The id of the organization that this request acts for."""
    return cast(int, g.voiceapi_organization)


def open_session() -> None:
    """Bind the models to this app's database for as long as the request lasts."""
    # The app's context may be older than the request, such as that of a test around several requests.
    for name in OF_A_REQUEST:
        g.pop(name, None)
    session = service().store.session(REQUEST)
    session.__enter__()
    g.voiceapi_session = session
    if request.method == "OPTIONS":
        after_this_request(drop_content_type)


def drop_content_type(response: Response) -> Response:
    """Take Flask's text/html from its automatic answer to OPTIONS, which has no content."""
    if not response.is_json:
        response.headers.pop("Content-Type")
    return response


def close_session(_error: BaseException | None = None) -> None:
    session = g.pop("voiceapi_session", None)
    if session is not None:
        session.__exit__(None, None, None)


def authenticate() -> None:
    """Let the request in: by its key, where X-API-Key wins over Authorization, or by the host's login if it has none.

    Malformed JSON is answered before an invalid key.

    :raises NotAuthenticated, LimitReached: as `api_keys.authenticate` for its key; NotAuthenticated also without one.
    :raises NotPermitted: when only the login lets it in, and a page of another site sent it.
    """
    view = current_app.view_functions.get(request.endpoint or "")
    if getattr(view, "takes_body", False):
        json_body()
    key = request.headers.get("X-API-Key") or ""
    if not key:
        authorization = request.headers.get("Authorization")
        if authorization is None:
            g.voiceapi_organization = _organization_of_login()
            return
        scheme, _, rest = authorization.strip().partition(" ")
        key = rest.strip() if scheme.lower() == "bearer" else authorization.strip()
        if not key:
            raise NotAuthenticated("Invalid authorization token")
    g.voiceapi_organization = api_keys.authenticate(service(), key, request.remote_addr).organization_id


def _organization_of_login() -> int:
    """The id of the organization that the host's login names, for a request without a key."""
    login = service().authenticate
    name = login() if login is not None else None
    if name is None:
        raise NotAuthenticated("Authorization header required")
    if request.method not in SAFE_METHODS and not _is_same_origin():
        raise NotPermitted(
            "Another site's page sent this request, and only a login lets it in. Send it from a page of this site, or "
            "with an API key."
        )
    found: int = api_keys.get_or_create_organization(service(), name).id
    return found


def _is_same_origin() -> bool:
    """False if a browser says that the request comes from a page of another origin; programs say nothing."""
    site = request.headers.get("Sec-Fetch-Site")
    if site:
        return site in TRUSTED_SITES
    origin = request.headers.get("Origin")
    if not origin:
        return True
    try:
        sent, own = urlsplit(origin), urlsplit(f"//{request.host}")
        default = DEFAULT_PORTS[sent.scheme]
        return (sent.hostname, sent.port or default) == (own.hostname or "", own.port or default)
    except (ValueError, KeyError):  # `null`, or no origin of a page
        return False
