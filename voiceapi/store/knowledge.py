"""The tables of the knowledge base, documents and their passages, with the full-text search.

The search is the database's own: FTS5 of SQLite, tsvector of PostgreSQL. Both get words that are prepared alike, stem
the English ones, and rank. The language of a text isn't known, so a longer word also finds those that begin like it,
whatever their endings are.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from peewee import ForeignKeyField, IntegerField, TextField

from . import base
from .base import Record, in_batches
from .database import Store, execute, sql
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
# The most characters of a word that are kept; PostgreSQL takes 2046 bytes.
LONGEST_WORD = 255
# A word of so many letters may have an ending, of so many; and how short what is left of it may be.
SHORTEST_WITH_ENDING, LONGEST_ENDING, SHORTEST_BEGINNING = 5, 3, 4
ACCENTS = re.compile("(?<=[a-z])[\u0300-\u036f]+")
# Characters of languages that have no blanks between words: of Japanese, and of Chinese.
UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]+")
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


# The index keeps the words of a passage, which FTS5 needs to remove it.
IN_SQLITE = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS passage_words USING fts5("
    "words, tokenize=\"porter unicode61 remove_diacritics 0 categories 'L* N* Co M*'\")",
    "CREATE TRIGGER IF NOT EXISTS passage_removed AFTER DELETE ON passage BEGIN "
    "DELETE FROM passage_words WHERE rowid = old.id; END",
)
# PostgreSQL's own configuration `english` leaves out words that a query may consist of.
IN_POSTGRESQL = (
    "CREATE TEXT SEARCH DICTIONARY voiceapi_stem (TEMPLATE = snowball, LANGUAGE = english)",
    "CREATE TEXT SEARCH CONFIGURATION voiceapi (COPY = simple)",
    "ALTER TEXT SEARCH CONFIGURATION voiceapi ALTER MAPPING FOR asciiword, word WITH voiceapi_stem",
    # Uncompressed, because a search that ranks a passage reads its words.
    "CREATE TABLE passage_words (rowid bigint PRIMARY KEY REFERENCES passage (id) ON DELETE CASCADE, "
    "words tsvector NOT NULL) WITH (toast_tuple_target = 8160)",
    "ALTER TABLE passage_words ALTER words SET STORAGE EXTERNAL",
    "CREATE INDEX passage_words_words ON passage_words USING gin (words)",
)
ADD_IN_SQLITE = """INSERT INTO passage_words (rowid, words)
    SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?)"""
ADD_IN_POSTGRESQL = """INSERT INTO passage_words (rowid, words)
    SELECT (row ->> 0)::bigint, to_tsvector('voiceapi', row ->> 1) FROM json_array_elements(?::json) AS row"""
# Passages that were stored without their words, as a copy of the tables does: all that follow the last one with them.
MISSING = """SELECT id, text FROM passage
    WHERE id > coalesce((SELECT rowid FROM passage_words ORDER BY rowid DESC LIMIT 1), 0) ORDER BY id LIMIT ?"""
SEARCHED = "passage_words JOIN passage p ON p.id = passage_words.rowid JOIN document d ON d.id = p.document_id"
# The passages that match, each with its score, for BEST.
RANKED_IN_SQLITE = f"""WITH ranked AS MATERIALIZED (
        SELECT p.id, d.id AS document, d.retrieval_mode = 'full_document' AS whole, -bm25(passage_words) AS score
        FROM {SEARCHED} WHERE passage_words MATCH ?{{where}})"""
# A term counts the more the fewer of these passages have it, which ranks of PostgreSQL don't know.
RANKED_IN_POSTGRESQL = f"""WITH term AS MATERIALIZED (
        SELECT place, to_tsquery('voiceapi', value) AS query
        FROM json_array_elements_text(?::json) WITH ORDINALITY AS term (value, place)
    ), matching AS MATERIALIZED (
        SELECT place, p.id, d.id AS document, d.retrieval_mode = 'full_document' AS whole,
            ts_rank('{{{{1, 1, 1, 1}}}}', words, query, 1) AS rank
        FROM term, {SEARCHED} WHERE words @@ query AND words @@ to_tsquery('voiceapi', ?){{where}}
    ), weight AS (
        SELECT place, ln(1 + (SELECT sum(total_chunks)::float8 FROM document) / count(*)) AS weight
        FROM matching GROUP BY place
    ), ranked AS MATERIALIZED (
        SELECT id, document, whole, sum(rank * weight) AS score FROM matching JOIN weight USING (place)
        GROUP BY id, document, whole)"""
# Of a document that is shown whole, the best passage only.
BEST = """ SELECT id, score FROM (
        SELECT id, score, row_number() OVER (
            PARTITION BY CASE WHEN whole THEN -document ELSE id END ORDER BY score DESC, id) AS place FROM ranked
    ) AS best WHERE place = 1 ORDER BY score DESC, id LIMIT ?"""


def create(store: Store) -> None:
    """Create the full-text index."""
    for statement in store.backend.sql(sqlite=IN_SQLITE, postgresql=IN_POSTGRESQL):
        store.database.execute_sql(statement)


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
    rows = [{"document": document.id, "number": number, "text": text} for number, text in enumerate(texts, first)]
    for start in range(0, len(rows), 300):
        Passage.insert_many(rows[start : start + 300]).execute()
    stored = "SELECT id, text FROM passage WHERE document_id = ? AND number >= ? AND number < ?"
    _index(execute(stored, document.id, first, first + len(rows)).fetchall())


def index_missing(limit: int) -> int:
    """Index passages that were stored without their words, at most `limit`; returns how many."""
    found = execute(MISSING, limit).fetchall()
    _index(found)
    return len(found)


def _index(passages: Iterable[tuple[int, str]]) -> None:
    execute(sql(ADD_IN_SQLITE, ADD_IN_POSTGRESQL), json.dumps([(id, prepared(text)) for id, text in passages]))


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


def prepared(text: str) -> str:
    """The words of a text as both databases index them: in lower case, without accents, between blanks.

    What Chinese and Japanese write without blanks is each pair of neighbouring characters.
    """
    text = text.lower()
    if not text.isascii():
        text = unicodedata.normalize("NFC", ACCENTS.sub("", unicodedata.normalize("NFKD", text).lower()))
        text = UNSPACED.sub(_pairs, text)
    # A mark belongs to its word, as a vowel of Hindi does.
    spaced = "".join(char if char.isalnum() or unicodedata.category(char)[0] == "M" else " " for char in text)
    return " ".join(word[:LONGEST_WORD] for word in spaced.split() if any(map(str.isalnum, word)))


def _pairs(run: re.Match[str]) -> str:
    text = run[0]
    return f" {' '.join(map(''.join, pairwise(text)) if len(text) > 1 else text)} "


def words_of(query: str) -> list[str]:
    """The words of `query` to search for, each once. Stop words are searched for only if there are no others."""
    words = list(dict.fromkeys(prepared(query[:LONGEST_QUERY]).split()))
    stop_words = STOP_WORDS.split()
    return ([word for word in words if word not in stop_words] or words)[:MOST_WORDS]


def _beginning(word: str) -> str | None:
    """What a word begins with whatever its ending is; None if it is too short to have one."""
    shortest = SHORTEST_WITH_ENDING - (not word.isascii())  # words of other scripts are shorter
    return word[: max(SHORTEST_BEGINNING, len(word) - LONGEST_ENDING)] if len(word) >= shortest else None


def _terms(words: Sequence[str], where: str, values: Sequence[Any]) -> list[str]:
    """What words are searched by: themselves, or their beginning if no passage that is searched has them."""
    whole = {word: sql(sqlite=f'"{word}"', postgresql=f"'{word}'") for word in words}
    held = _held(whole.values(), where, values)
    terms = []
    for word, term in whole.items():
        if term not in held and (beginning := _beginning(word)):
            term = sql(sqlite=f'"{beginning}" *', postgresql=f"'{beginning}':*")
        terms.append(term)
    return terms


def _held(terms: Iterable[str], where: str, values: Sequence[Any]) -> set[str]:
    """Those of the terms that a passage has for which a condition holds."""
    matches = sql(sqlite="passage_words MATCH ?", postgresql="words @@ to_tsquery('voiceapi', ?)")
    statement = f"SELECT 1 FROM {SEARCHED} WHERE {matches}{where} LIMIT 1"
    return {term for term in terms if execute(statement, term, *values).fetchone()}


def search(organization: int, query: str, documents: Iterable[str] | None, limit: int) -> list[Hit]:
    """The best passages that contain a word of `query`, best first; of a `full_document` document only the best one.

    The first one's similarity is the share of the words that it contains; that of the others falls with their rank.
    (The rank itself is no measure for a reader: it is next to 0 when there are few passages.)

    :param documents: the uuids of the documents to search; None for all of the organization.
    """
    words = words_of(query)
    if not words:
        return []
    where = " AND d.organization_id = ? AND d.processing_status = 'completed'"
    values: list[Any] = [organization]
    if documents is not None:
        each = sql(sqlite="value FROM json_each(?)", postgresql="json_array_elements_text(?::json)")
        where += f" AND d.document_uuid IN (SELECT {each})"
        values.append(json.dumps([*documents]))
    terms = _terms(words, where, values)
    ranked = sql(sqlite=RANKED_IN_SQLITE, postgresql=RANKED_IN_POSTGRESQL)
    wanted = sql(sqlite=(" OR ".join(terms),), postgresql=(json.dumps(terms), " | ".join(terms)))
    found = execute(ranked.format(where=where) + BEST, *wanted, *values, limit).fetchall()
    if not found:
        return []
    best, highest = found[0]
    share = len(_held(terms, " AND p.id = ?", [best])) / len(terms)
    names = (Document.id, Document.filename, Document.retrieval_mode)
    chosen = Passage.select(Passage, *names).join(Document).where(Passage.id.in_([id for id, _ in found]))
    passages = {passage.id: passage for passage in chosen}
    # A document may have been removed between the two queries.
    kept = [(passages[id], score) for id, score in found if id in passages]
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
