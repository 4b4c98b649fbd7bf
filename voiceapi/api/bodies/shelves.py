"""Shapes of recordings and documents (API contract, I.4)."""

from __future__ import annotations

from .base import Answer, Query
from .fields import Flag, Integer, Items, Model, Object, Range, Text, Time


class RecordingQuery(Query):
    workflow_id = Integer()
    tts_provider = Text()
    tts_model = Text()
    tts_voice_id = Text()


class Recording(Answer):
    id = Integer(required=True)
    recording_id = Text(required=True)
    workflow_id = Integer(required=True, allow_none=True)
    organization_id = Integer(required=True)
    tts_provider = Text(required=True, allow_none=True)
    tts_model = Text(required=True, allow_none=True)
    tts_voice_id = Text(required=True, allow_none=True)
    transcript = Text(required=True)
    storage_key = Text(required=True)
    storage_backend = Text(required=True)
    metadata = Object(required=True)
    created_by = Integer(required=True)
    created_at = Time(required=True)
    is_active = Flag(required=True)


class RecordingList(Answer):
    recordings = Items(Model(Recording), required=True)
    total = Integer(required=True)


class DocumentQuery(Query):
    status = Text(metadata={"description": "processing status: pending, processing, completed or failed"})
    limit = Integer(load_default=100, validate=Range(min=1, max=100))
    offset = Integer(load_default=0, validate=Range(min=0))


class Document(Answer):
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


class DocumentList(Answer):
    documents = Items(Model(Document), required=True)
    total = Integer(required=True)
    limit = Integer(required=True)
    offset = Integer(required=True)
