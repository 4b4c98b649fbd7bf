"""The full-text index of passages on SQLite: FTS5, which triggers keep."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from .database import execute

SCHEMA = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS passage_words USING fts5("
    "text, content='passage', content_rowid='id', tokenize='porter unicode61 remove_diacritics 2')",
    "CREATE TRIGGER IF NOT EXISTS passage_added AFTER INSERT ON passage BEGIN "
    "INSERT INTO passage_words (rowid, text) VALUES (new.id, new.text); END",
    "CREATE TRIGGER IF NOT EXISTS passage_removed AFTER DELETE ON passage BEGIN "
    "INSERT INTO passage_words (passage_words, rowid, text) VALUES ('delete', old.id, old.text); END",
)
# Without the texts: all matches are sorted, but few are returned.
SEARCH = (
    "SELECT p.id, d.id, d.retrieval_mode = 'full_document', bm25(passage_words) AS score FROM passage_words "
    "JOIN passage p ON p.id = passage_words.rowid JOIN document d ON d.id = p.document_id "
    "WHERE passage_words MATCH ? AND d.organization_id = ? AND d.processing_status = 'completed'{among} "
    "ORDER BY score, p.id"
)
IN_DOCUMENTS = " AND d.document_uuid IN (SELECT value FROM json_each(?))"
CONTAINED = (
    "SELECT count(*) FROM json_each(?) AS word "
    "WHERE EXISTS (SELECT 1 FROM passage_words WHERE passage_words MATCH word.value AND rowid = ?)"
)


def create(database: Any) -> None:
    """Create the index and its triggers."""
    for statement in SCHEMA:
        database.execute_sql(statement)


def search(
    organization: int, query: Sequence[str], documents: Sequence[str] | None, limit: int
) -> tuple[list[tuple[int, float]], float]:
    """The best passages that contain a word of the query, each with its BM25; and the share of them in the best one.

    :param documents: the uuids of the documents to search; None for all of the organization.
    """
    # Quoted, so that none is read as FTS5 syntax.
    phrases = [f'"{word}"' for word in query]
    among, values = ("", []) if documents is None else (IN_DOCUMENTS, [json.dumps(documents)])
    found = execute(SEARCH.format(among=among), " OR ".join(phrases), organization, *values)
    best: dict[tuple[int, int | None], tuple[int, float]] = {}
    for passage, document, whole, score in found.fetchall():
        best.setdefault((document, None if whole else passage), (passage, -score))
        if len(best) == limit:
            break
    if not best:
        return [], 0.0
    first, _ = next(iter(best.values()))
    return list(best.values()), execute(CONTAINED, json.dumps(phrases), first).fetchone()[0] / len(phrases)
