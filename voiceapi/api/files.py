"""Signed addresses for contact lists and transcripts; `uploads` is what they lead to."""

from __future__ import annotations

from typing import Any

from ..runs import files
from .auth import organization, service
from .blueprint import Blueprint
from .schemas.base import ErrorBody
from .schemas.files import AddressQuery, DownloadAddress, NewUpload, UploadAddress

blueprint = Blueprint("files", __name__, url_prefix="/s3")


@blueprint.post("/presigned-upload-url")
@blueprint.arguments(NewUpload)
@blueprint.response(200, UploadAddress)
def prepare_upload(body: dict[str, Any]) -> dict[str, Any]:
    """Get an address to PUT the contact list of a campaign at."""
    key, url = files.prepare(service(), organization(), body["file_name"])
    return {"upload_url": url, "file_key": key, "expires_in": files.UPLOAD_SECONDS}


@blueprint.get("/signed-url")
@blueprint.alt_response(400, schema=ErrorBody, description="The key is none of ours")
@blueprint.alt_response(403, schema=ErrorBody, description="The file is another organization's")
@blueprint.arguments(AddressQuery, location="query")
@blueprint.response(200, DownloadAddress)
def sign_address(query: dict[str, Any]) -> dict[str, Any]:
    """Get an address to fetch a contact list or a transcript from, without a key."""
    expires_in = query["expires_in"]
    url = files.address(service(), organization(), query["key"], expires_in, inline=query["inline"])
    return {"url": url, "expires_in": expires_in}
