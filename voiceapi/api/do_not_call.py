"""The do-not-call list: numbers that no campaign of the organization calls."""

from __future__ import annotations

from typing import Any

from flask import request

from ..campaigns import do_not_call
from ..runs import files
from .auth import organization
from .blueprint import Blueprint
from .request_body import read_bytes
from .schemas.base import DoneSchema, PagingSchema
from .schemas.contacts import AddedListSchema, AddedSchema, ForbiddenPageSchema, ForbidSchema

blueprint = Blueprint("do_not_call", __name__, tag="campaigns", url_prefix="/do-not-call")

CSV = {"required": True, "content": {"text/csv": {"schema": {"type": "string"}}}}


@blueprint.get("")
@blueprint.arguments(PagingSchema, location="query")
@blueprint.response(200, ForbiddenPageSchema)
def list_numbers_not_to_call(query: dict[str, Any]) -> dict[str, Any]:
    """List the numbers that campaigns don't call, the newest first."""
    page, limit = query["page"], query["limit"]
    entries, total = do_not_call.listed(organization(), page, limit)
    paging = {"total_count": total, "page": page, "limit": limit, "total_pages": -(-total // limit)}
    return {**paging, "phone_numbers": entries}


@blueprint.post("")
@blueprint.arguments(ForbidSchema)
@blueprint.response(200, AddedSchema)
def add_numbers_not_to_call(body: dict[str, Any]) -> dict[str, Any]:
    """Put numbers on the do-not-call list."""
    numbers = body["phone_numbers"]
    added = do_not_call.add(organization(), numbers, body["reason"])
    return {"added": added, "already_listed": len(numbers) - added}


@blueprint.post("/csv")
@blueprint.doc(requestBody=CSV)  # type: ignore[untyped-decorator]
@blueprint.alt_response(400)
@blueprint.alt_response(413, description="The list is larger than 10 MiB")
@blueprint.response(200, AddedListSchema)
def add_list_not_to_call() -> dict[str, Any]:
    """Put the column phone_number of a CSV on the do-not-call list."""
    content = read_bytes(request, files.LARGEST, "A list")
    added, already, refused = do_not_call.add_list(organization(), content)
    named = [{"row": row, "reason": reason} for row, reason in refused[: do_not_call.MOST_REFUSED]]
    return {"added": added, "already_listed": already, "refused_count": len(refused), "refused": named}


@blueprint.delete("/<phone_number>")
@blueprint.response(200, DoneSchema)
def remove_number_not_to_call(phone_number: str) -> dict[str, Any]:
    """Take a number off the do-not-call list."""
    do_not_call.remove(organization(), phone_number)
    return {"message": "The number may be called again"}
