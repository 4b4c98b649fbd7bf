"""Shapes of tools, credentials and recordings (API contract, I.2 to I.4)."""

from __future__ import annotations

from .base import Answer, Query
from .fields import Flag, Integer, Items, Model, Object, Text, Time


class ToolQuery(Query):
    status = Text(load_default="", metadata={"description": "one or a comma list of active, archived, draft"})
    category = Text(load_default="", metadata={"description": "kind of tool, such as http_api"})


class ToolAuthor(Answer):
    id = Integer(required=True)
    provider_id = Text(required=True)


class Tool(Answer):
    id = Integer(required=True)
    tool_uuid = Text(required=True)
    name = Text(required=True)
    description = Text(required=True, allow_none=True)
    category = Text(required=True)
    icon = Text(required=True, allow_none=True)
    icon_color = Text(required=True, allow_none=True)
    status = Text(required=True)
    definition = Object(required=True)
    created_at = Time(required=True)
    updated_at = Time(required=True, allow_none=True)
    created_by = Model(ToolAuthor, required=True, allow_none=True)


class Credential(Answer):
    uuid = Text(required=True)
    name = Text(required=True)
    description = Text(required=True, allow_none=True)
    credential_type = Text(required=True)
    created_at = Time(required=True)
    updated_at = Time(required=True, allow_none=True)


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
