"""Signed addresses for contact lists and transcripts; `uploads` is what they lead to."""

from __future__ import annotations

from typing import Any

from ..runs import files
from .auth import organization, service
from .blueprint import Blueprint
from .schemas.files import AddressQuerySchema, DownloadAddressSchema, NewUploadSchema, UploadAddressSchema

blueprint = Blueprint("files", __name__, url_prefix="/s3")


@blueprint.post("/presigned-upload-url")
@blueprint.arguments(NewUploadSchema)
@blueprint.response(200, UploadAddressSchema)
def prepare_upload(body: dict[str, Any]) -> dict[str, Any]:
    """Get an address to PUT the contact list of a campaign at."""
    key, url = files.prepare(service(), organization(), body["file_name"])
    return {"upload_url": url, "file_key": key, "expires_in": files.UPLOAD_LASTS}


@blueprint.get("/signed-url")
@blueprint.alt_response(400, description="The key is none of ours")
@blueprint.alt_response(403, description="The file is another organization's")
@blueprint.arguments(AddressQuerySchema, location="query")
@blueprint.response(200, DownloadAddressSchema)
def sign_address(query: dict[str, Any]) -> dict[str, Any]:
    """Get an address to fetch a contact list or a transcript from, without a key."""
    expires_in = query["expires_in"]
    url = files.address(service(), organization(), query["key"], expires_in, inline=query["inline"])
    return {"url": url, "expires_in": expires_in}
