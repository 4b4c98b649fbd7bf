"""The knowledge base: upload, list and remove documents, and search them."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from flask import request

from ..errors import Invalid, item, value_error
from ..store.knowledge import Document
from ..strict_json import parse
from ..tools.knowledge import documents
from .auth import organization
from .blueprint import Blueprint
from .schemas.base import Done, ErrorBody
from .schemas.documents import Document as DocumentAnswer
from .schemas.documents import DocumentList, DocumentQuery, Found, SearchBody

blueprint = Blueprint("documents", __name__, url_prefix="/knowledge-base")

FORM = {
    "type": "object",
    "required": ["file"],
    "properties": {
        "file": {"type": "string", "format": "binary"},
        "retrieval_mode": {"type": "string", "enum": list(documents.MODES), "default": "chunked"},
        "custom_metadata": {"type": "string", "description": "a JSON object"},
    },
}


@blueprint.get("/documents")
@blueprint.arguments(DocumentQuery, location="query")
@blueprint.response(200, DocumentList)
def list_documents(query: dict[str, Any]) -> dict[str, Any]:
    """List the documents that agents look things up in."""
    limit, offset = query["limit"], query["offset"]
    found = [_shown(record) for record in documents.page(organization(), query.get("status"), limit, offset)]
    return {"documents": found, "total": len(found), "limit": limit, "offset": offset}


@blueprint.post("/documents")
@blueprint.doc(requestBody={"required": True, "content": {"multipart/form-data": {"schema": FORM}}})  # type: ignore[untyped-decorator]
@blueprint.alt_response(400, schema=ErrorBody)
@blueprint.alt_response(413, schema=ErrorBody, description="The file is larger than 5 MiB")
@blueprint.response(200, DocumentAnswer)
def upload_document() -> dict[str, Any]:
    """Upload a text, Markdown, HTML, PDF or CSV document and index it; one that can't be read is kept as failed."""
    # Room for the other fields and the borders of the parts.
    request.max_content_length = documents.MAX_BYTES + 64 * 1024
    file = request.files.get("file")
    if file is None or not file.filename:
        raise Invalid([item(["body", "file"], "Field required", "missing")])
    mode = request.form.get("retrieval_mode") or documents.MODES[0]
    if mode not in documents.MODES:
        raise Invalid([item(["body", "retrieval_mode"], "Input should be 'chunked' or 'full_document'", "enum")])
    metadata = parse(request.form.get("custom_metadata") or "{}", ("body", "custom_metadata"))
    if not isinstance(metadata, dict):
        raise Invalid([item(["body", "custom_metadata"], "Input should be a valid dictionary", "dict_type")])
    # Some clients send the whole path.
    name = file.filename.rpartition("/")[2][-255:]
    if not name.isprintable():
        raise Invalid([value_error(["body", "file"], "the file's name may hold printable characters only")])
    with closing(file):
        content = file.read()
    return _shown(documents.upload(organization(), name, content, mode, metadata))


@blueprint.get("/documents/<document_uuid>")
@blueprint.response(200, DocumentAnswer)
def get_document(document_uuid: str) -> dict[str, Any]:
    """Show a document."""
    return _shown(documents.get(organization(), document_uuid))


@blueprint.delete("/documents/<document_uuid>")
@blueprint.response(200, Done)
def delete_document(document_uuid: str) -> dict[str, Any]:
    """Remove a document; agents no longer find it."""
    documents.delete(organization(), document_uuid)
    return {"message": "Document deleted"}


@blueprint.post("/search")
@blueprint.arguments(SearchBody)
@blueprint.alt_response(400, schema=ErrorBody, description="The database is not SQLite")
@blueprint.response(200, Found)
def search_documents(body: dict[str, Any]) -> dict[str, Any]:
    """Search documents as an agent does."""
    return documents.search(organization(), body["query"], body["document_uuids"], body["limit"])


def _shown(record: Document) -> dict[str, Any]:
    return {
        **record.columns(),
        "docling_metadata": {},
        "source_url": None,
        "updated_at": record.created_at,
        "organization_id": record.organization_id,
        "created_by": record.organization_id,
        "is_active": True,
    }
