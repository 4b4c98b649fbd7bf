"""Files: signed addresses for contact lists and transcripts, what these lead to, and downloads by a run's token.

The endpoints of `public` need no key: the address itself is the credential.
"""

from __future__ import annotations

from typing import Any

from flask import Response, request

from ..errors import NotPossible, RecordNotFound
from ..runs import files
from ..runs.files import LARGEST
from ..store import runs
from ..store.base import require
from ..store.runs import Run
from .answers import compress
from .auth import base_url, organization, service
from .blueprint import Blueprint, read_file
from .schemas import fields
from .schemas.base import BodySchema, QuerySchema, ResponseSchema

blueprint = Blueprint("files", __name__, url_prefix="/s3")
public = Blueprint("public_files", __name__, tag="files", public=True)

EXPIRED = "The address is not valid, or has expired"
BYTES = {"schema": {"type": "string", "format": "binary"}}
ARTIFACTS = ("recording", "transcript", "user_recording", "bot_recording")


# -- schemas


class NewUploadSchema(BodySchema):
    file_name = fields.Text(required=True, validate=fields.Pattern(r".*\.csv$"))
    file_size = fields.Integer(
        required=True, validate=fields.Range(min=0, min_inclusive=False, max=LARGEST), description="bytes"
    )
    content_type = fields.Text(load_default="text/csv")


class UploadAddressSchema(ResponseSchema):
    upload_url = fields.Text(required=True, description="where to PUT the bytes; no key is needed there")
    file_key = fields.Text(required=True, description="the source_id of a campaign")
    expires_in = fields.Integer(required=True, description="seconds")


class AddressQuerySchema(QuerySchema):
    key = fields.Text(required=True)
    expires_in = fields.Integer(
        load_default=3600, validate=fields.Range(min=1, max=7 * 24 * 3600), description="seconds"
    )
    inline = fields.Flag(load_default=False)
    storage_backend = fields.Text(load_default=None, description="there is one storage; any name means it")


class DownloadAddressSchema(ResponseSchema):
    url = fields.Text(required=True)
    expires_in = fields.Integer(required=True, description="seconds")


class StoredFileSchema(ResponseSchema):
    file_key = fields.Text(required=True)
    file_size = fields.Integer(required=True, description="bytes")


class DownloadQuerySchema(QuerySchema):
    inline = fields.Flag(load_default=False, description="show it in the browser instead of saving it")


@blueprint.post("/presigned-upload-url")
@blueprint.arguments(NewUploadSchema)
@blueprint.response(200, UploadAddressSchema)
def prepare_upload(body: dict[str, Any]) -> dict[str, Any]:
    """Get an address to PUT the contact list of a campaign at."""
    key, url = files.prepare(service(), base_url(), organization(), body["file_name"])
    return {"upload_url": url, "file_key": key, "expires_in": files.UPLOAD_SECONDS}


@blueprint.get("/signed-url")
@blueprint.alt_response(400, description="The key is none of ours")
@blueprint.arguments(AddressQuerySchema, location="query")
@blueprint.response(200, DownloadAddressSchema)
def sign_address(query: dict[str, Any]) -> dict[str, Any]:
    """Get an address to fetch a contact list or a transcript from, without a key."""
    key, expires_in, inline = query["key"], query["expires_in"], query["inline"]
    url = files.address(service(), base_url(), organization(), key, expires_in, inline=inline)
    return {"url": url, "expires_in": expires_in}


@public.put("/s3/files/<token>")
@public.doc(requestBody={"content": {"text/csv": BYTES}})
@public.alt_response(403, description=EXPIRED)
@public.alt_response(409, description="A campaign uses the file already")
@public.alt_response(413, description="The file is larger than 10 MiB")
@public.alt_response(415)
@public.alt_response(422)
@public.response(200, StoredFileSchema)
def put_file(token: str) -> dict[str, Any]:
    """Put a contact list at its signed address; again, until a campaign uses it."""
    content = read_file(request, files.LARGEST, "A contact list")
    return {"file_key": files.receive(service(), token, content), "file_size": len(content)}


@public.get("/s3/files/<token>")
@public.alt_response(403, description=EXPIRED)
@public.alt_response(404, description="There is no such file")
@public.alt_response(422)
@public.alt_response(200, schema=BYTES["schema"], content_type="text/plain", description="A transcript")
@public.response(200, BYTES["schema"], content_type="text/csv", description="A contact list")
def get_file(token: str) -> Response:
    """Fetch a file from its signed address."""
    file = files.fetch(service(), token)
    response = Response(file.content, mimetype=file.media_type)
    response.headers["Content-Disposition"] = f"{'inline' if file.inline else 'attachment'}; filename={file.name}"
    response.headers["X-Content-Type-Options"] = "nosniff"
    return compress(response)


@public.get("/public/download/workflow/<token>/<artifact_type>")
@public.alt_response(400, description="There is no such type of artifact")
@public.alt_response(404, description="The token is unknown, or the run has no such artifact")
@public.alt_response(422, description="The request breaks a rule")
@public.arguments(DownloadQuerySchema, location="query")
@public.response(200, {"type": "string"}, content_type="text/plain")
def download_artifact(query: dict[str, Any], token: str, artifact_type: str) -> Response:
    """Download the transcript of a run."""
    run = require(Run, "Invalid or expired token", public_access_token=token)
    if artifact_type not in ARTIFACTS:
        raise NotPossible("Unsupported artifact type")
    if artifact_type != "transcript" or not run.has_transcript:
        raise RecordNotFound(f"No {artifact_type} available for this workflow run")
    response = Response(runs.transcript(run), mimetype="text/plain")
    kind = "inline" if query["inline"] else "attachment"
    response.headers["Content-Disposition"] = f"{kind}; filename={run.id}.txt"
    return compress(response)
