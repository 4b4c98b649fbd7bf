"""The tables of the knowledge base: documents, and the passages that they are cut into."""

from __future__ import annotations

from peewee import CharField, ForeignKeyField, IntegerField, TextField

from .fields import Instant, JSONText, now
from .models import Organization, Record


class Document(Record):
    """A file that agents look things up in, as the plain text that was made of it; of a failed one, why it failed."""

    organization_id: int
    organization = ForeignKeyField(Organization, on_delete="CASCADE")
    document_uuid = CharField(36, unique=True)
    filename = TextField()
    mime_type = TextField()
    text = TextField(default="")
    file_hash = CharField(64)
    file_size_bytes = IntegerField()
    processing_status = TextField(default="completed")
    processing_error = TextField(null=True)
    total_chunks = IntegerField(default=0)
    retrieval_mode = TextField()
    custom_metadata = JSONText(default=dict)
    created_at = Instant(default=now)


class Passage(Record):
    document = ForeignKeyField(Document, on_delete="CASCADE")
    number = IntegerField()
    text = TextField()


TABLES: tuple[type[Record], ...] = (Document, Passage)
