"""Schemas of the knowledge base."""

from __future__ import annotations

from .base import BodySchema, QuerySchema, ResponseSchema
from .fields import Flag, Integer, Items, Length, Model, Number, Object, Range, Text, Time


class DocumentQuerySchema(QuerySchema):
    status = Text(metadata={"description": "processing status: pending, processing, completed or failed"})
    limit = Integer(load_default=100, validate=Range(min=1, max=100))
    offset = Integer(load_default=0, validate=Range(min=0))


class DocumentSchema(ResponseSchema):
    id = Integer(required=True)
    document_uuid = Text(required=True)
    filename = Text(required=True)
    file_size_bytes = Integer(required=True)
    file_hash = Text(required=True)
    mime_type = Text(required=True)
    processing_status = Text(required=True)
    processing_error = Text(required=True, allow_none=True)
    total_chunks = Integer(required=True)
    retrieval_mode = Text(required=True)
    custom_metadata = Object(required=True)
    docling_metadata = Object(required=True)
    source_url = Text(required=True, allow_none=True)
    created_at = Time(required=True)
    updated_at = Time(required=True)
    organization_id = Integer(required=True)
    created_by = Integer(required=True)
    is_active = Flag(required=True)


class DocumentListSchema(ResponseSchema):
    documents = Items(Model(DocumentSchema), required=True)
    total = Integer(required=True)
    limit = Integer(required=True)
    offset = Integer(required=True)


class SearchBodySchema(BodySchema):
    query = Text(required=True, validate=Length(min=1, max=1000))
    document_uuids = Items(Text(), load_default=None, allow_none=True, validate=Length(max=100))
    limit = Integer(load_default=3, validate=Range(min=1, max=20))


class ChunkSchema(ResponseSchema):
    text = Text(required=True)
    filename = Text(required=True)
    similarity = Number(required=True)
    chunk_index = Integer(required=True)


class FoundSchema(ResponseSchema):
    chunks = Items(Model(ChunkSchema), required=True)
    query = Text(required=True)
    total_results = Integer(required=True)
