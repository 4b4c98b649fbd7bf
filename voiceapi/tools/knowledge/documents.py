"""Use cases of the knowledge base: upload, list, delete and search documents, and the lookup that agents are offered.

A document is searched once all its passages are stored: a long one is stored in several transactions, so that nobody
else waits long to write. A document whose text can't be extracted is stored as failed, with the reason, and so is one
whose process stopped before all was stored.
"""

from __future__ import annotations

import hashlib
import logging
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from ...engine.actions import Function, RunTool
from ...engine.graph import Graph
from ...engine.validation.graph_rules import LOOKUP
from ...engine.validation.outline import Outline, attached_documents
from ...errors import Conflict, FieldError, InvalidFields, RecordNotFound, SizeExceeded
from ...service import Service
from ...store import knowledge
from ...store.base import update
from ...store.database import ConcurrentUpdate, write
from ...store.fields import now
from ...store.knowledge import Document
from ...store.locks import NO_LOCK, document_lock
from .text_extraction import FILE_TYPES, NotReadable, read

log = logging.getLogger("voiceapi")

# Bytes of a file; passages of a document; characters of a document in full-document mode, all of which a model reads.
MAX_BYTES, MAX_PASSAGES, MAX_WHOLE_LENGTH = 5 * 1024 * 1024, 10_000, 50_000
CHUNKED, WHOLE = MODES = ("chunked", "full_document")
# How many passages a lookup finds for an agent, and how many documents the description of the lookup names.
DEFAULT_LIMIT, MAX_NAMES = 3, 20
NOT_FOUND = "Document not found"

# Bytes of a text file that is read at once. Of all others one is read at a time.
SHORT = 64 * 1024
# A long document is stored by so many passages, with a pause after each; how long all of it may take.
BATCH, PAUSE_SECONDS, STORING = 200, 0.005, timedelta(minutes=10)
INTERRUPTED = "The service stopped before all of the document was stored. Delete it, and upload it again."

QUERY = {"type": "string", "description": "What to look for: the telling words, in the language of the documents."}
PARAMETERS = {"type": "object", "properties": {"query": QUERY}, "required": ["query"]}
MAX_LENGTH = 1200
OVERLAP = 150

HEADING = re.compile(r"\n(?=#{1,6} )")
BREAKS = (HEADING, re.compile(r"\n\s*\n"), re.compile(r"\n"), re.compile(r"[.!?]\s"), re.compile(r"\s"))


def upload(
    service: Service, organization: int, name: str, content: bytes, mode: str, metadata: Mapping[str, Any]
) -> Document:
    """Extract the text of a file, and store and index it; without usable text the document is stored as failed.

    :param name: the file's name; its extension chooses the file type.
    :param mode: one of MODES: a lookup finds passages of the document, or all of its text.
    :raises SizeExceeded: above 5 MiB.
    :raises InvalidFields: at `file`, for an unknown file type.
    :raises Conflict: when the document is deleted before all of it is stored.
    :raises OutOfService: when too many slow requests are in progress; nothing is stored then.
    """
    if len(content) > MAX_BYTES:
        raise SizeExceeded(f"A document may have at most {MAX_BYTES} bytes.")
    extension = name.rpartition(".")[2].lower()
    if extension not in FILE_TYPES:
        raise InvalidFields([FieldError(("file",), f"the file's name must end in one of: .{', .'.join(FILE_TYPES)}")])
    columns: dict[str, Any] = {
        "organization": organization,
        "document_uuid": str(uuid4()),
        "filename": name,
        "mime_type": FILE_TYPES[extension].media_type,
        "file_hash": hashlib.sha256(content).hexdigest(),
        "file_size_bytes": len(content),
        "retrieval_mode": mode,
        "custom_metadata": metadata,
    }
    is_quick = not FILE_TYPES[extension].in_subprocess and len(content) <= SHORT
    with nullcontext() if is_quick else service.bulkhead.slow(organization, "documents"):
        try:
            text = read(extension, content)
            texts = _passages(text, extension, mode)
        except NotReadable as error:
            texts = []
            columns |= {"processing_status": "failed", "processing_error": str(error)}
        else:
            columns |= {"text": text, "total_chunks": len(texts)}
        return _store(columns, texts)


def _store(columns: Mapping[str, Any], texts: Sequence[str]) -> Document:
    """Store a document and its passages: a few in one transaction, many in several."""
    is_long = len(texts) > BATCH
    with write(NO_LOCK):
        status = {"processing_status": knowledge.PROCESSING} if is_long else {}
        document: Document = Document.create(**columns, **status)
        knowledge.add(document, texts[:BATCH])
    if is_long:
        try:
            _store_others(document, texts)
        except Exception as error:
            with suppress(Exception):
                _delete(document)
            if isinstance(error, ConcurrentUpdate):
                raise Conflict("The document was deleted while it was being stored.") from None
            raise
    return document


def _store_others(document: Document, texts: Sequence[str]) -> None:
    """Store the passages of a long document after the first BATCH of them."""
    for first in range(BATCH, len(texts), BATCH):
        # Others who wait to write are woken too late to get their turn without a pause.
        time.sleep(PAUSE_SECONDS)
        with write(document_lock(document.id)):
            _require_processing(document)
            knowledge.add(document, texts[first : first + BATCH], first)
    with write(document_lock(document.id)):
        _require_processing(document)
        document.processing_status = "completed"
        update(document, Document.processing_status)


def _require_processing(document: Document) -> None:
    if not knowledge.is_processing(document):
        raise ConcurrentUpdate("The document was deleted, or given up.")


def end_interrupted(service: Service, moment: datetime | None = None) -> None:
    """Mark documents as failed whose process stopped before all of them was stored; delete the rest of deleted ones.

    :param moment: now, unless given.
    """
    with service.store.session():
        for document in knowledge.unfinished((moment or now()) - STORING):
            # It may have been deleted, or marked by another process.
            with suppress(ConcurrentUpdate):
                _fail(document)
        for document in knowledge.undeleted():
            _delete(document)


def _fail(document: Document) -> None:
    """Delete what is stored of a document's passages, in several transactions; the last one marks it as failed."""
    while True:
        with write(document_lock(document.id)):
            _require_processing(document)
            if knowledge.delete_passages(document, BATCH) < BATCH:
                document.processing_status, document.processing_error = "failed", INTERRUPTED
                update(document, Document.processing_status, Document.processing_error)
                return
        time.sleep(PAUSE_SECONDS)


def _passages(text: str, extension: str, mode: str) -> list[str]:
    if mode == WHOLE and len(text) > MAX_WHOLE_LENGTH:
        raise NotReadable(
            f"The file holds {len(text)} characters of text. A document in the mode {WHOLE} is given to the model as "
            f"a whole and may have at most {MAX_WHOLE_LENGTH}; upload it in the mode {CHUNKED}."
        )
    # Each row of a table becomes a passage of its own.
    parts = text.split("\n\n") if extension == "csv" else [text]
    texts = [passage for part in parts for passage in split(part)]
    if len(texts) > MAX_PASSAGES:
        raise NotReadable(f"The file makes {len(texts)} passages; at most {MAX_PASSAGES} are possible. Split it.")
    return texts


def page(organization: int, status: str | None, limit: int, offset: int) -> list[Document]:
    """A page of the organization's documents, newest first; without a status of all."""
    return knowledge.of_organization(organization, status, limit, offset)


def get(organization: int, document_uuid: str) -> Document:
    """A document of the organization, without its text.

    :raises RecordNotFound: when the organization has no such document.
    """
    document = knowledge.find(organization, document_uuid)
    if document is None:
        raise RecordNotFound(NOT_FOUND)
    return document


def delete(organization: int, document_uuid: str) -> None:
    """Delete a document with its passages and their index: a long one in several transactions, gone since the first.

    :raises RecordNotFound: when the organization has no such document.
    """
    with write(document_lock(get(organization, document_uuid).id)):
        document = get(organization, document_uuid)
        is_deleted = knowledge.delete_part(document, BATCH)
    if not is_deleted:
        time.sleep(PAUSE_SECONDS)
        _delete(document)


def _delete(document: Document) -> None:
    """Delete what is left of a document, in several transactions."""
    while True:
        with write(document_lock(document.id)):
            if knowledge.delete_part(document, BATCH):
                return
        time.sleep(PAUSE_SECONDS)


def search(
    organization: int, query: str, documents: Sequence[str] | None, limit: int = DEFAULT_LIMIT
) -> dict[str, Any]:
    """The passages that match `query`, best first; a document in full-document mode comes once, with its whole text.

    :param documents: uuids of the documents to search; None searches all of the organization.
    :returns: `chunks` (each with `text`, `filename`, `similarity` and `chunk_index`), `query` and `total_results`.
    """
    chunks = []
    for hit in knowledge.search(organization, query, documents, limit):
        whole = hit.document.retrieval_mode == WHOLE
        chunks.append(
            {
                "text": knowledge.text(hit.document) if whole else hit.passage.text,
                "filename": hit.document.filename,
                "similarity": hit.similarity,
                "chunk_index": 0 if whole else hit.passage.number,
            }
        )
    return {"chunks": chunks, "query": query, "total_results": len(chunks)}


# -- the lookup


def lookups_for(organization: int | None, graph: Graph) -> dict[str, Function]:
    """The lookup function of each node with documents, by node id; absent where an edge has the function's name."""
    uuids = {uuid for node in graph.nodes.values() for uuid in attached_documents({"data": node.data})}
    documents = knowledge.with_uuids(organization, uuids)
    return lookups(graph, {each.document_uuid: each.filename for each in documents if each.processing_error is None})


def lookups(graph: Graph, names: Mapping[str, str]) -> dict[str, Function]:
    """The same for documents that needn't be stored.

    :param names: those of their files, by uuid, as far as they are known.
    """
    attached = {
        id: tuple(dict.fromkeys(attached_documents({"data": node.data})))
        for id, node in graph.nodes.items()
        if graph.edge_called(id, LOOKUP) is None
    }
    return {id: _lookup(uuids, names) for id, uuids in attached.items() if uuids}


def _lookup(uuids: tuple[str, ...], names: Mapping[str, str]) -> Function:
    known = ", ".join([names[uuid] for uuid in uuids if uuid in names][:MAX_NAMES])
    description = "Look something up in the documents of this agent" + (f": {known}." if known else ".")
    return Function(LOOKUP, description, PARAMETERS, document_uuids=uuids)


def answer(organization: int | None, request: RunTool) -> dict[str, Any]:
    """The result of a lookup in the documents of its node. It never raises: a failure is a result with `error`."""
    query = request.arguments.get("query")
    if not isinstance(query, str) or not query.strip():
        return _no_results("", "The query must be a text that says what to look for.")
    try:
        return search(organization or 0, query, request.document_uuids)
    except Exception as problem:
        log.exception("The knowledge base could not be searched")
        return _no_results(query, f"The documents could not be searched: {type(problem).__name__}.")


def _no_results(query: str, error: str) -> dict[str, Any]:
    return {"error": error, "chunks": [], "query": query, "total_results": 0}


def warnings(organization: int, outline: Outline) -> dict[str, str]:
    """The organization's documents that a definition attaches, by uuid, each with a warning for the author or ""."""
    return {each.document_uuid: _warning(each) for each in knowledge.with_uuids(organization, outline.documents)}


def _warning(document: Document) -> str:
    if document.processing_error is None:
        return ""
    return (
        f'The document "{document.filename}" is not searched, since it could not be read: {document.processing_error}'
    )


# -- passages of a text, cut at headings, else paragraphs, lines, sentences or words
# A passage is a slice of the text with at most MAX_LENGTH characters. The next one begins where it ends or, unless that
# is at a heading, up to OVERLAP characters earlier, so that a sentence at the border is whole in one of them.


def split(text: str) -> list[str]:
    """The passages of `text` in order, without blank ones."""
    return [text[start:end] for start, end in spans(text) if text[start:end].strip()]


def spans(text: str) -> Iterator[tuple[int, int]]:
    """The start and end of each passage; together they cover the text."""
    start = 0
    while len(text) - start > MAX_LENGTH:
        end, at_heading = _end(text, start)
        yield start, end
        start = end if at_heading else _overlap_start(text, end)
    yield start, len(text)


def _end(text: str, start: int) -> tuple[int, bool]:
    # Only in the second half of what is allowed: otherwise short paragraphs would make tiny passages.
    for pattern in BREAKS:
        ends = [match.end() for match in pattern.finditer(text, start + MAX_LENGTH // 2, start + MAX_LENGTH)]
        if ends:
            return ends[-1], pattern is HEADING
    return start + MAX_LENGTH, False


def _overlap_start(text: str, end: int) -> int:
    """The first start of a word within the overlap, or `end` when there is none."""
    blank = BREAKS[-1].search(text, end - OVERLAP, end)
    return blank.end() if blank else end
