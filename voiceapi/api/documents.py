"""The knowledge base: upload, list and remove documents, and search them."""

from __future__ import annotations

from typing import Any

from flask import Request, request

from ..errors import FieldError, InvalidFields
from ..store.knowledge import Document
from ..strict_json import parse
from ..tools.knowledge import documents
from .answers import answer_of
from .auth import organization, service
from .blueprint import Blueprint
from .multipart import BINARY, read_form
from .schemas import fields
from .schemas.base import BodySchema, DoneSchema, QuerySchema, ResponseSchema

blueprint = Blueprint("documents", __name__, url_prefix="/knowledge-base")

FORM = {
    "type": "object",
    "required": ["file"],
    "properties": {
        "file": BINARY,
        "retrieval_mode": {"type": "string", "enum": list(documents.MODES), "default": "chunked"},
        "custom_metadata": {"type": "string", "description": "a JSON object"},
    },
}


# -- schemas


class DocumentQuerySchema(QuerySchema):
    status = fields.Text(description="processing status: pending, processing, completed or failed")
    limit = fields.Integer(load_default=100, validate=fields.Range(min=1, max=100))
    offset = fields.Integer(load_default=0, validate=fields.Range(min=0))


class DocumentSchema(ResponseSchema):
    id = fields.Integer(required=True)
    document_uuid = fields.Text(required=True)
    filename = fields.Text(required=True)
    file_size_bytes = fields.Integer(required=True)
    file_hash = fields.Text(required=True)
    mime_type = fields.Text(required=True)
    processing_status = fields.Text(required=True)
    processing_error = fields.Text(required=True, allow_none=True)
    total_chunks = fields.Integer(required=True)
    retrieval_mode = fields.Text(required=True)
    custom_metadata = fields.Object(required=True)
    docling_metadata = fields.Object(required=True)
    source_url = fields.Text(required=True, allow_none=True)
    created_at = fields.Time(required=True)
    updated_at = fields.Time(required=True)
    organization_id = fields.Integer(required=True)
    created_by = fields.Integer(required=True)
    is_active = fields.Flag(required=True)


class DocumentListSchema(ResponseSchema):
    documents = fields.Items(fields.Model(DocumentSchema), required=True)
    total = fields.Integer(required=True)
    limit = fields.Integer(required=True)
    offset = fields.Integer(required=True)


class SearchBodySchema(BodySchema):
    query = fields.Text(required=True, validate=fields.Length(min=1, max=1000))
    document_uuids = fields.Items(fields.Text(), load_default=None, validate=fields.Length(max=100))
    limit = fields.Integer(load_default=3, validate=fields.Range(min=1, max=20))


class ChunkSchema(ResponseSchema):
    text = fields.Text(required=True)
    filename = fields.Text(required=True)
    similarity = fields.Number(required=True)
    chunk_index = fields.Integer(required=True)


class FoundSchema(ResponseSchema):
    chunks = fields.Items(fields.Model(ChunkSchema), required=True)
    query = fields.Text(required=True)
    total_results = fields.Integer(required=True)


@blueprint.get("/documents")
@blueprint.arguments(DocumentQuerySchema, location="query")
@blueprint.response(200, DocumentListSchema)
def list_documents(query: dict[str, Any]) -> dict[str, Any]:
    """List the documents that agents look things up in."""
    limit, offset = query["limit"], query["offset"]
    found = [document_answer(record) for record in documents.page(organization(), query.get("status"), limit, offset)]
    return {"documents": found, "total": len(found), "limit": limit, "offset": offset}


@blueprint.post("/documents")
@blueprint.alt_response(503)
@blueprint.doc(requestBody={"required": True, "content": {"multipart/form-data": {"schema": FORM}}})
@blueprint.alt_response(400)
@blueprint.alt_response(413, description="The file is larger than 5 MiB")
@blueprint.alt_response(409, description="The document was deleted while it was being stored")
@blueprint.alt_response(415)
@blueprint.response(200, DocumentSchema)
def upload_document() -> dict[str, Any]:
    """Upload a text, Markdown, HTML, PDF or CSV document and index it; one that can't be read is kept as failed."""
    name, content, mode, metadata = read_upload(request)
    return document_answer(documents.upload(service(), organization(), name, content, mode, metadata))


@blueprint.get("/documents/<document_uuid>")
@blueprint.response(200, DocumentSchema)
def get_document(document_uuid: str) -> dict[str, Any]:
    """Show a document."""
    return document_answer(documents.get(organization(), document_uuid))


@blueprint.delete("/documents/<document_uuid>")
@blueprint.response(200, DoneSchema)
def delete_document(document_uuid: str) -> dict[str, Any]:
    """Remove a document; agents no longer find it."""
    documents.delete(organization(), document_uuid)
    return {"message": "Document deleted"}


@blueprint.post("/search")
@blueprint.arguments(SearchBodySchema)
@blueprint.alt_response(400, description="The database is not SQLite")
@blueprint.response(200, FoundSchema)
def search_documents(body: dict[str, Any]) -> dict[str, Any]:
    """Search documents as an agent does."""
    return documents.search(organization(), body["query"], body["document_uuids"], body["limit"])


def read_upload(request: Request) -> tuple[str, bytes, str, dict[str, Any]]:
    """The name and the bytes of the uploaded file, its mode of retrieval and its metadata.

    :raises InvalidFields: for the first part of the form that is missing or wrong; the other errors are `read_form`'s.
    """
    form = read_form(request, documents.MAX_BYTES, "A document")
    if form.file is None or not form.file_name:
        raise InvalidFields([FieldError(("file",), "Field required", "missing")])
    mode = form.fields.get("retrieval_mode") or documents.MODES[0]
    if mode not in documents.MODES:
        raise InvalidFields([FieldError(("retrieval_mode",), "Input should be 'chunked' or 'full_document'", "enum")])
    metadata = parse(form.fields.get("custom_metadata") or "{}", ("custom_metadata",))
    if not isinstance(metadata, dict):
        raise InvalidFields([FieldError(("custom_metadata",), "Input should be a valid dictionary", "dict_type")])
    # Some clients send the whole path.
    name = form.file_name.rpartition("/")[2][-255:]
    if not name.isprintable():
        raise InvalidFields([FieldError(("file",), "the file's name may hold printable characters only")])
    return name, form.file, mode, metadata


def document_answer(record: Document) -> dict[str, Any]:
    return answer_of(
        DocumentSchema,
        record,
        docling_metadata={},
        source_url=None,
        updated_at=record.created_at,
        created_by=record.organization_id,
        is_active=True,
    )
