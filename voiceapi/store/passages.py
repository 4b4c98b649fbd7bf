"""The index of passages: SQLite's FTS5, ranked by BM25. This is SQLite's own SQL; another database has no index.

Tokenizer: `unicode61` folds case and accents of any script, `porter` lets "opening" find "open" in English.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .database import bound
from .models import Document, Passage

SCHEMA = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS passage_words USING fts5("
    "text, content='passage', content_rowid='id', tokenize='porter unicode61 remove_diacritics 2')",
    "CREATE TRIGGER IF NOT EXISTS passage_added AFTER INSERT ON passage BEGIN "
    "INSERT INTO passage_words (rowid, text) VALUES (new.id, new.text); END",
    "CREATE TRIGGER IF NOT EXISTS passage_removed AFTER DELETE ON passage BEGIN "
    "INSERT INTO passage_words (passage_words, rowid, text) VALUES ('delete', old.id, old.text); END",
)
SEARCH = (
    "SELECT d.id, p.number, p.text, bm25(passage_words) AS score FROM passage_words "
    "JOIN passage p ON p.id = passage_words.rowid JOIN document d ON d.id = p.document_id "
    "WHERE passage_words MATCH ? AND d.organization_id = ?{among} ORDER BY score, p.id LIMIT ?"
)
STOP_WORDS = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "at",
        "be",
        "can",
        "could",
        "do",
        "does",
        "for",
        "from",
        "has",
        "have",
        "how",
        "i",
        "in",
        "is",
        "it",
        "me",
        "my",
        "of",
        "on",
        "or",
        "please",
        "tell",
        "that",
        "the",
        "there",
        "this",
        "to",
        "was",
        "we",
        "what",
        "when",
        "where",
        "which",
        "who",
        "will",
        "with",
        "would",
        "you",
        "your",
    ]
)
MOST_WORDS = 32


def index_exists() -> bool:
    return bool(bound().table_exists("passage_words"))


def add(document: Document, texts: Sequence[str]) -> None:
    """Store and index the passages of a document, within the caller's transaction."""
    # Here and not with the other tables, which another database must be able to make.
    for statement in SCHEMA:
        bound().execute_sql(statement)
    rows = [{"document": document.id, "number": number, "text": text} for number, text in enumerate(texts)]
    for start in range(0, len(rows), 300):
        Passage.insert_many(rows[start : start + 300]).execute()


def expression(query: str) -> str | None:
    """The FTS5 expression for a passage that holds any word of `query`; None when it holds none.

    Every word is quoted, so nothing that a caller says is read as syntax. Stop words count only when all words are.
    """
    words = list(dict.fromkeys(re.findall(r"[^\W_]+", query.lower())))
    telling = [word for word in words if word not in STOP_WORDS] or words
    return " OR ".join(f'"{word}"' for word in telling[:MOST_WORDS]) or None


def search(organization: int, query: str, documents: Sequence[str] | None, limit: int) -> list[tuple[Any, ...]]:
    """The best passages as (document id, number, text, similarity), best first.

    :param documents: uuids to look in; None is all documents of the organization.

    Similarity is s / (1 + s) of BM25's s: from 0 to 1, in the order of the ranking.
    """
    words = expression(query)
    if words is None or documents == [] or not index_exists():
        return []
    among = "" if documents is None else f" AND d.document_uuid IN ({', '.join('?' * len(documents))})"
    values = (words, organization, *(documents or ()), limit)
    rows = bound().execute_sql(SEARCH.format(among=among), values).fetchall()
    return [(*row, max(0.0, -score) / (1 + max(0.0, -score))) for *row, score in rows]
