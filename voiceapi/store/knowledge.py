"""The tables of the knowledge base, documents and their passages, with the full-text search."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from peewee import ForeignKeyField, IntegerField, TextField

from . import base, fts5, tsvector
from .base import Record, in_batches
from .database import Store, bound_path, execute
from .fields import Instant, JSONText, ShortText, now
from .organizations import Organization


class Document(Record):
    """A file of the knowledge base as plain text, or the error if it could not be processed."""

    organization_id: int
    organization = ForeignKeyField(Organization, on_delete="CASCADE")
    document_uuid = ShortText(36, unique=True)
    filename = TextField()
    mime_type = TextField()
    text = TextField(default="")
    file_hash = ShortText(64)
    file_size_bytes = IntegerField()
    processing_status = TextField(default="completed")
    processing_error = TextField(null=True)
    total_chunks = IntegerField(default=0)
    retrieval_mode = TextField()
    custom_metadata = JSONText(default=dict)
    created_at = Instant(default=now)


# What is known of a document but its text, which may have megabytes.
DESCRIPTION = [field for field in Document._meta.sorted_fields if field is not Document.text]
# The status of a document while its passages are stored, and while they are deleted: then it is shown nowhere.
PROCESSING, DELETED = "processing", "deleted"


class Passage(Record):
    document = ForeignKeyField(Document, on_delete="CASCADE")
    number = IntegerField()
    text = TextField()


# English words that most questions contain, whatever they are about.
STOP_WORDS = """
    a about am an and any are as at be been but by can could did do does for from get had has have he her him his how i
    if in is it its just know like may me my need not of on or our please she should so tell than that the their them
    then there these they this those to us want was we were what when where which who whom whose why will with would
    you your
"""
# The most characters of a query that are read, and the most words that are searched for.
LONGEST_QUERY, MOST_WORDS = 1000, 32


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that was found; `similarity` is above 0 and at most 1, and falls with the rank.

    :param document: its id, filename and mode only.
    """

    document: Document
    passage: Passage
    similarity: float


def create(store: Store) -> None:
    """Create the full-text index."""
    (tsvector if store.path is None else fts5).create(store.database)


def with_hash(organization: int, file_hash: str) -> Document | None:
    """A document of the organization that was made of this file and can be searched; its text isn't read."""
    found: Document | None = (
        Document.select(*DESCRIPTION)
        .where(Document.organization == organization, Document.file_hash == file_hash)
        .where(Document.processing_status == "completed")
        .order_by(Document.id)
        .first()
    )
    return found


def add(document: Document, texts: Sequence[str], first: int = 0) -> None:
    """Store and index passages of a document, numbered from `first`, within the caller's transaction."""
    if bound_path() is None:
        tsvector.add(document.id, texts, first)
        return
    rows = [{"document": document.id, "number": number, "text": text} for number, text in enumerate(texts, first)]
    for start in range(0, len(rows), 300):
        Passage.insert_many(rows[start : start + 300]).execute()


def index_missing(limit: int) -> int:
    """Index passages that were stored without their words, as a copy of the tables does, at most `limit`.

    :returns: how many; 0 on SQLite, where triggers index every passage.
    """
    return tsvector.add_missing(limit) if bound_path() is None else 0


def is_processing(document: Document) -> bool:
    """Whether passages of a document are still to be stored: it may have been deleted."""
    return bool(base.scalar(Document, "processing_status", id=document.id) == PROCESSING)


def unfinished(moment: datetime) -> list[Document]:
    """The documents created before `moment` that aren't stored with all their passages."""
    begun = (Document.processing_status == PROCESSING, Document.created_at < moment)
    return list(Document.select(*DESCRIPTION).where(*begun))


def undeleted() -> list[Document]:
    """The documents whose deletion has begun."""
    return list(Document.select(*DESCRIPTION).where(Document.processing_status == DELETED))


def delete_passages(document: Document, limit: int) -> int:
    """Delete passages of a document and their index, at most `limit`; returns how many."""
    some = Passage.select(Passage.id).where(Passage.document == document.id).order_by(Passage.id).limit(limit)
    return int(Passage.delete().where(Passage.id.in_(some)).execute())


def delete_part(document: Document, passages: int) -> bool:
    """Delete so many passages of a document, and the document with the last of them: True then.

    From the first part on it isn't found any more, whatever is left of it.
    """
    shown = (Document.id == document.id, Document.processing_status != DELETED)
    Document.update(processing_status=DELETED, text="").where(*shown).execute()
    if delete_passages(document, passages) == passages:
        return False
    Document.delete().where(Document.id == document.id).execute()
    return True


def words_of(query: str) -> list[str]:
    """The words of `query` to search for, each once: letters, digits and marks only.

    Stop words are searched for only if there are no others.
    """
    query = unicodedata.normalize("NFKC", query[:LONGEST_QUERY]).lower()
    spaced = "".join(char if char.isalnum() or unicodedata.category(char)[0] == "M" else " " for char in query)
    words = [word for word in dict.fromkeys(spaced.split()) if any(map(str.isalnum, word))]
    stop_words = STOP_WORDS.split()
    significant = [word for word in words if word not in stop_words] or words
    return significant[:MOST_WORDS]


def search(organization: int, query: str, documents: Iterable[str] | None, limit: int) -> list[Hit]:
    """The best passages that contain a word of `query`, best first; of a `full_document` document only the best one.

    The first one's similarity is the share of the words that it contains; that of the others falls with their BM25.
    (BM25 itself is no measure for a reader: it is next to 0 when there are few passages.)

    :param documents: the uuids of the documents to search; None for all of the organization.
    """
    words = words_of(query)
    if not words:
        return []
    index = tsvector if bound_path() is None else fts5
    best, share = index.search(organization, words, None if documents is None else list(documents), limit)
    if not best:
        return []
    _, highest = best[0]
    names = (Document.id, Document.filename, Document.retrieval_mode)
    chosen = Passage.select(Passage, *names).join(Document).where(Passage.id.in_([id for id, _ in best]))
    passages = {passage.id: passage for passage in chosen}
    # A document may have been removed between the two queries.
    kept = [(passages[id], score) for id, score in best if id in passages]
    return [Hit(passage.document, passage, share * score / highest) for passage, score in kept]


def of_organization(organization: int, status: str | None, limit: int, offset: int) -> list[Document]:
    """The organization's documents without their texts, newest first; those of every status if none is given."""
    chosen = _of(organization, DESCRIPTION)
    if status:
        chosen = chosen.where(Document.processing_status == status)
    return list(chosen.order_by(Document.id.desc()).limit(limit).offset(offset))


def text(document: Document) -> str:
    """The whole text of a document."""
    return str(base.scalar(Document, "text", id=document.id) or "")


def find(organization: int, document_uuid: str) -> Document | None:
    """A document of the organization without its text; None if there is no such document."""
    found: Document | None = _of(organization, DESCRIPTION).where(Document.document_uuid == document_uuid).get_or_none()
    return found


def with_uuids(organization: int | None, uuids: set[str]) -> list[Document]:
    """The organization's documents with these uuids, with their uuid, filename and processing error only.

    Empty if the organization is None.
    """
    if not uuids or organization is None:
        return []
    chosen = _of(organization, [Document.document_uuid, Document.filename, Document.processing_error])
    found: list[Document] = []
    for batch in in_batches(uuids):
        found.extend(chosen.where(Document.document_uuid.in_(batch)))
    return found


def _of(organization: int, columns: Iterable[Any]) -> Any:
    """These columns of the organization's documents, without those whose deletion has begun."""
    owned = (Document.organization == organization, Document.processing_status != DELETED)
    return Document.select(*columns).where(*owned)


def latest_change(organization: int) -> tuple[Any, ...]:
    """A value that differs after any change of the organization's documents, which are only added and deleted."""
    statement = "SELECT count(*), max(created_at) FROM document WHERE organization_id = ? AND processing_status != ?"
    return tuple(execute(statement, organization, DELETED).fetchone())
