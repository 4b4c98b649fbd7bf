"""The full-text index of passages on PostgreSQL: their words as tsvector, and BM25 as SQLite's FTS5 computes it.

PostgreSQL's own ranks don't know how rare a word is. What BM25 needs besides the matching passages is kept: how many
words a passage has, and how many those of a document have together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import Any

from .database import execute
from .stemming import words

SCHEMA = (
    """CREATE TABLE IF NOT EXISTS passage_words (
        passage_id bigint PRIMARY KEY REFERENCES passage (id) ON DELETE CASCADE,
        document_id bigint NOT NULL, length integer NOT NULL, words tsvector NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS passage_words_words ON passage_words USING gin (words)",
    """CREATE TABLE IF NOT EXISTS document_words (
        document_id bigint PRIMARY KEY REFERENCES document (id) ON DELETE CASCADE, length bigint NOT NULL)""",
)
# Passages with their words, in one statement; and the words of passages that were stored without.
ADD = """WITH given AS (
        SELECT * FROM unnest(?::integer[], ?::text[], ?::integer[], ?::text[]) AS given (number, text, length, words)
    ), added AS (
        INSERT INTO passage (document_id, number, text) SELECT ?, number, text FROM given RETURNING id, number
    )
    INSERT INTO passage_words (passage_id, document_id, length, words)
    SELECT added.id, ?, given.length, given.words::tsvector FROM added JOIN given ON given.number = added.number"""
MISSING = """SELECT passage.id, passage.document_id, passage.text FROM passage
    LEFT JOIN passage_words ON passage_words.passage_id = passage.id
    WHERE passage_words.passage_id IS NULL ORDER BY passage.id LIMIT ?"""
ADD_MISSING = """INSERT INTO passage_words (passage_id, document_id, length, words)
    SELECT id, document, length, words::tsvector
    FROM unnest(?::bigint[], ?::bigint[], ?::integer[], ?::text[]) AS given (id, document, length, words)"""
ADD_LENGTH = """INSERT INTO document_words (document_id, length) VALUES (?, ?)
    ON CONFLICT (document_id) DO UPDATE SET length = document_words.length + excluded.length"""
# How often a word of the query is in a passage, which is 0 to MOST. Of a single word, whose places all weigh 1,
# ts_rank is the sum of 1 / n² for its n-th place, divided by what that sum tends to.
MOST, LIMIT = 100, 1.64493406685
_RANKS = [total / LIMIT for total in accumulate(1 / number**2 for number in range(1, MOST + 1))]
_BOUNDS = ", ".join(f"{(low + high) / 2:.9f}" for low, high in zip([0.0, *_RANKS], _RANKS, strict=False))
OCCURRENCES = f"width_bucket(ts_rank('{{1, 1, 1, 1}}', words, ?::tsquery)::float8, '{{{_BOUNDS}}}'::float8[])"
# The constants of BM25, and the least weight of a word that most passages contain, as FTS5 has them.
K, B, LEAST_WEIGHT = 1.2, 0.75, 1e-6


def create(database: Any) -> None:
    """Create the index."""
    for statement in SCHEMA:
        database.execute_sql(statement)


def add(document: int, texts: Sequence[str], first: int) -> None:
    """Store and index passages of a document, numbered from `first`."""
    found = [words(text) for text in texts]
    numbers, lengths = list(range(first, first + len(texts))), [len(each) for each in found]
    execute(ADD, numbers, list(texts), lengths, [_vector(each) for each in found], document, document)
    execute(ADD_LENGTH, document, sum(lengths))


def add_missing(limit: int) -> int:
    """Index passages that were stored without their words, at most `limit`; returns how many."""
    rows = execute(MISSING, limit).fetchall()
    found = [words(text) for _, _, text in rows]
    lengths = [len(each) for each in found]
    ids, documents = [id for id, _, _ in rows], [document for _, document, _ in rows]
    execute(ADD_MISSING, ids, documents, lengths, [_vector(each) for each in found])
    totals: Counter[int] = Counter()
    for document, length in zip(documents, lengths, strict=True):
        totals[document] += length
    for document, length in totals.items():
        execute(ADD_LENGTH, document, length)
    return len(rows)


def _vector(found: Sequence[str]) -> str:
    """A tsvector as text; the places of a word only say how often it is there."""
    return " ".join(f"'{word}':{','.join(map(str, range(1, number + 1)))}" for word, number in Counter(found).items())


def search(
    organization: int, query: Sequence[str], documents: Sequence[str] | None, limit: int
) -> tuple[list[tuple[int, float]], float]:
    """The best passages that contain a word of the query, each with its BM25; and the share of them in the best one.

    :param query: words, not yet as the index has them.
    :param documents: the uuids of the documents to search; None for all of the organization.
    """
    wanted = [f"'{word}'" for each in query for word in words(each)]
    if not wanted:
        return [], 0.0
    among: tuple[Any, ...] = () if documents is None else (list(documents),)
    values = (organization, *wanted, *among, " | ".join(wanted), organization, limit, limit)
    found = execute(_statement(len(wanted), documents is not None), *values).fetchall()
    share = found[0][2] / len(wanted) if found else 0.0
    return [(passage, score) for passage, score, _ in found], share


@cache
def _statement(number: int, in_documents: bool) -> str:
    """The search for so many words. How rare they are is counted in all of the organization's documents."""
    each = range(number)
    occurrences = ", ".join(f"{OCCURRENCES} AS n{i}" for i in each)
    counts = ", ".join(f"count(*) FILTER (WHERE n{i} > 0) AS c{i}" for i in each)
    weights = ", ".join(
        f"greatest(ln((greatest(passages - c{i}, 0) + 0.5) / (c{i} + 0.5)), {LEAST_WEIGHT}) * {K + 1} AS w{i}"
        for i in each
    )
    score = " + ".join(f"w{i} * n{i} / (n{i} + per_passage + per_word * length)" for i in each)
    contained = " + ".join(f"(n{i} > 0)::integer" for i in each)
    is_wanted = "document.document_uuid = ANY (?)" if in_documents else "true"
    return f"""
        WITH total AS (
            SELECT sum(total_chunks)::float8 AS passages, greatest(sum(length), 1)::float8 AS words
            FROM document JOIN document_words ON document_words.document_id = document.id
            WHERE document.organization_id = ? AND document.processing_status = 'completed'
        ), matching AS MATERIALIZED (
            SELECT passage_id, document.id AS document, document.retrieval_mode = 'full_document' AS whole,
                passage_words.length, {occurrences}, {is_wanted} AS is_wanted
            FROM passage_words JOIN document ON document.id = passage_words.document_id
            WHERE words @@ ?::tsquery AND document.organization_id = ? AND document.processing_status = 'completed'
        ), weight AS (
            SELECT {K * (1 - B)}::float8 AS per_passage, {K * B}::float8 * passages / words AS per_word, {weights}
            FROM total, (SELECT {counts} FROM matching) AS counted
        ), ranked AS MATERIALIZED (
            SELECT passage_id, document, whole, {score} AS score, {contained} AS contained
            FROM matching, weight WHERE is_wanted
        ), best AS (
            (SELECT passage_id, score, contained FROM ranked WHERE NOT whole ORDER BY score DESC, passage_id LIMIT ?)
            UNION ALL
            (SELECT DISTINCT ON (document) passage_id, score, contained FROM ranked WHERE whole
            ORDER BY document, score DESC, passage_id)
        )
        SELECT passage_id, score, contained FROM best ORDER BY score DESC, passage_id LIMIT ?"""
