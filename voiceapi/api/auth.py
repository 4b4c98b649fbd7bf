"""Authentication: the key of a request, and the organization that it acts for."""

from __future__ import annotations

from typing import cast

from flask import current_app, g, request

from ..errors import NotAuthenticated
from ..organizations import api_keys
from ..service import Service
from .blueprint import json_body


def service() -> Service:
    """The parts of the app that this request reached."""
    return cast(Service, current_app.extensions["voiceapi"])


def organization() -> int:
    """The id of the organization that this request acts for."""
    return cast(int, g.voiceapi_organization)


def open_session() -> None:
    """Bind the models to this app's database for as long as the request lasts."""
    session = service().store.session()
    session.__enter__()
    g.voiceapi_session = session


def close_session(_error: BaseException | None = None) -> None:
    session = g.pop("voiceapi_session", None)
    if session is not None:
        session.__exit__(None, None, None)


def authenticate() -> None:
    """Let the request in, or raise NotAuthenticated.

    X-API-Key wins over Authorization. Malformed JSON is answered before an invalid key.
    """
    view = current_app.view_functions.get(request.endpoint or "")
    if getattr(view, "takes_body", False):
        json_body()
    g.voiceapi_organization = _authenticated_organization()


def _authenticated_organization() -> int:
    """The id of the organization of the request's key, or of the host's own login when there is no key."""
    key = request.headers.get("X-API-Key") or ""
    if not key:
        authorization = request.headers.get("Authorization")
        if authorization is None:
            host = service().authenticate
            name = host() if host is not None else None
            if name is None:
                raise NotAuthenticated("Authorization header required")
            found: int = api_keys.get_or_create_organization(service(), name).id
            return found
        scheme, _, rest = authorization.strip().partition(" ")
        key = rest.strip() if scheme.lower() == "bearer" else authorization.strip()
        if not key:
            raise NotAuthenticated("Invalid authorization token")
    return api_keys.authenticate(key).organization_id
