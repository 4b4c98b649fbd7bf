"""Warning headers: what a request has too much or lacks is named in its answer."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote

from flask import Response, after_this_request, g

UNKNOWN_FIELDS = "fields not known here and passed over"
MISSING_VARIABLES = "variables that the greeting needs and initial_context lacks"
MODEL_NEEDS = "parts that need a language model, and none is configured"


def warn(text: str, names: Iterable[str]) -> None:
    """Name these in a Warning header of the answer: of all names for one text at most ten, each cut at 100 characters.

    :param text: one of the texts above.
    """
    if "voiceapi_warnings" not in g:
        g.voiceapi_warnings = {}
        after_this_request(_add_headers)
    g.voiceapi_warnings.setdefault(text, []).extend(names)


def _add_headers(response: Response) -> Response:
    for text, names in g.voiceapi_warnings.items():
        if names:
            named = ", ".join(quote(str(name)[:100], safe="") for name in dict.fromkeys(names[:10]))
            response.headers.add("Warning", f'199 voiceapi "{text}: {named}"')
    return response
