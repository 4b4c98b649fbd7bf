"""Where signed addresses lead: put a contact list, fetch a file. The address itself is the credential."""

from __future__ import annotations

from typing import Any

from flask import Response, request

from ..runs import files
from .auth import service
from .blueprint import Blueprint
from .request_body import read_bytes
from .schemas.files import StoredFileSchema

blueprint = Blueprint("uploads", __name__, tag="files", url_prefix="/s3", public=True)

EXPIRED = "The address is not valid, or has expired"
BYTES = {"schema": {"type": "string", "format": "binary"}}


@blueprint.put("/files/<token>")
@blueprint.doc(requestBody={"content": {"text/csv": BYTES}})  # type: ignore[untyped-decorator]
@blueprint.alt_response(403, description=EXPIRED)
@blueprint.alt_response(409, description="A campaign uses the file already")
@blueprint.alt_response(413, description="The file is larger than 10 MiB")
@blueprint.alt_response(422)
@blueprint.response(200, StoredFileSchema)
def put_file(token: str) -> dict[str, Any]:
    """Put a contact list at its signed address; again, until a campaign uses it."""
    content = read_bytes(request, files.LARGEST, "A contact list")
    return {"file_key": files.receive(service(), token, content), "file_size": len(content)}


@blueprint.get("/files/<token>")
@blueprint.alt_response(403, description=EXPIRED)
@blueprint.alt_response(404, description="There is no such file")
@blueprint.alt_response(422)
@blueprint.alt_response(200, schema=BYTES["schema"], content_type="text/plain", description="A transcript")
@blueprint.response(200, BYTES["schema"], content_type="text/csv", description="A contact list")
def get_file(token: str) -> Response:
    """Fetch a file from its signed address."""
    file = files.fetch(service(), token)
    response = Response(file.content, mimetype=file.media_type)
    response.headers["Content-Disposition"] = f"{'inline' if file.inline else 'attachment'}; filename={file.name}"
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response
