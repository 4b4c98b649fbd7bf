"""Schemas of recordings."""

from __future__ import annotations

from .base import QuerySchema, ResponseSchema
from .fields import Flag, Integer, Items, Model, Object, Text, Time


class RecordingQuerySchema(QuerySchema):
    workflow_id = Integer()
    tts_provider = Text()
    tts_model = Text()
    tts_voice_id = Text()


class RecordingSchema(ResponseSchema):
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


class RecordingListSchema(ResponseSchema):
    recordings = Items(Model(RecordingSchema), required=True)
    total = Integer(required=True)
