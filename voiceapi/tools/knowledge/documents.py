"""Use cases of the knowledge base: documents that agents look things up in.

A document is read, cut and indexed before it is stored, all of it in one transaction: a crash leaves it whole or not
at all, never half processed. One that can't be read is kept as failed, with the reason.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import uuid4

from ...engine.actions import Function, RunTool
from ...engine.graph import Graph, objects
from ...engine.validation.graph_rules import LOOKUP, attached_documents
from ...errors import FieldError, InvalidFields, NotPossible, RecordNotFound, SizeExceeded
from ...store import knowledge
from ...store.base import require
from ...store.database import write
from ...store.knowledge import Document
from .splitting import split
from .text_extraction import KINDS, NotReadable, read

log = logging.getLogger("voiceapi")

# Bytes of a file, passages of a document, and characters of one that is given whole: a model has to read them all.
LARGEST, MOST_PASSAGES, LONGEST_WHOLE = 5 * 1024 * 1024, 10_000, 50_000
CHUNKED, WHOLE = MODES = ("chunked", "full_document")
# Passages that an agent is given, and documents whose names it is told.
TOP, MOST_NAMED = 3, 20
NOT_FOUND = "Document not found"
NO_INDEX = "Documents need SQLite's full-text index; this service runs on another database."

QUERY = {"type": "string", "description": "What to look for: the telling words, in the language of the documents."}
PARAMETERS = {"type": "object", "properties": {"query": QUERY}, "required": ["query"]}


def upload(organization: int, name: str, content: bytes, mode: str, metadata: Mapping[str, Any]) -> Document:
    """Store a document and index it; one that no text can be made of, or too much, is stored as failed.

    :param mode: one of MODES: whether agents are given passages of it, or all of it.
    :raises SizeExceeded: above 5 MiB.
    :raises InvalidFields: at `file`, for a kind of file that isn't known.
    :raises NotPossible: when the database is not SQLite.
    """
    _need_index()
    if len(content) > LARGEST:
        raise SizeExceeded(f"A document may have at most {LARGEST} bytes.")
    ending = name.rpartition(".")[2].lower()
    if ending not in KINDS:
        raise InvalidFields([FieldError(("file",), f"the file's name must end in one of: .{', .'.join(KINDS)}")])
    columns: dict[str, Any] = {
        "organization": organization,
        "document_uuid": str(uuid4()),
        "filename": name,
        "mime_type": KINDS[ending].media_type,
        "file_hash": hashlib.sha256(content).hexdigest(),
        "file_size_bytes": len(content),
        "retrieval_mode": mode,
        "custom_metadata": metadata,
    }
    try:
        text = read(ending, content)
        texts = _cut(text, ending, mode)
    except NotReadable as error:
        texts = []
        columns |= {"processing_status": "failed", "processing_error": str(error)}
    else:
        columns |= {"text": text, "total_chunks": len(texts)}
    with write():
        document: Document = Document.create(**columns)
        knowledge.add(document, texts)
    return document


def _cut(text: str, ending: str, mode: str) -> list[str]:
    if mode == WHOLE and len(text) > LONGEST_WHOLE:
        raise NotReadable(
            f"The file holds {len(text)} characters of text. A document in the mode {WHOLE} is given to the model as "
            f"a whole and may have at most {LONGEST_WHOLE}; upload it in the mode {CHUNKED}."
        )
    # A row of a table is an answer by itself.
    parts = text.split("\n\n") if ending == "csv" else [text]
    texts = [passage for part in parts for passage in split(part)]
    if len(texts) > MOST_PASSAGES:
        raise NotReadable(f"The file makes {len(texts)} passages; at most {MOST_PASSAGES} are possible. Split it.")
    return texts


def page(organization: int, status: str | None, limit: int, offset: int) -> list[Document]:
    """The documents of the organization, newest first."""
    chosen = Document.select().where(Document.organization == organization)
    if status:
        chosen = chosen.where(Document.processing_status == status)
    return list(chosen.order_by(Document.id.desc()).limit(limit).offset(offset))


def get(organization: int, document_uuid: str) -> Document:
    """:raises RecordNotFound: when the organization has no such document."""
    return require(Document, NOT_FOUND, document_uuid=document_uuid, organization=organization)


def delete(organization: int, document_uuid: str) -> None:
    """Remove a document, its passages and their words.

    :raises RecordNotFound: when the organization has no such document.
    """
    owned = (Document.organization == organization, Document.document_uuid == document_uuid)
    with write():
        if not Document.delete().where(*owned).execute():
            raise RecordNotFound(NOT_FOUND)


def search(organization: int, query: str, documents: Sequence[str] | None, limit: int = TOP) -> dict[str, Any]:
    """What the documents say about `query`, best first; of a document in full-document mode, all of it, once.

    :param documents: uuids to look in; None is all documents of the organization.
    :raises NotPossible: when the database is not SQLite.
    """
    _need_index()
    chunks = []
    for hit in knowledge.search(organization, query, documents, limit):
        whole = hit.document.retrieval_mode == WHOLE
        chunks.append(
            {
                "text": hit.document.text if whole else hit.passage.text,
                "filename": hit.document.filename,
                "similarity": hit.similarity,
                "chunk_index": 0 if whole else hit.passage.number,
            }
        )
    return {"chunks": chunks, "query": query, "total_results": len(chunks)}


def _need_index() -> None:
    if not knowledge.exists():
        raise NotPossible(NO_INDEX)


# -- what a workflow makes of them


def functions(organization: int | None, graph: Graph) -> dict[str, tuple[Function, ...]]:
    """The lookup that the model is offered at each node with documents, by node id; an edge of its name goes first."""
    attached = {
        id: tuple(dict.fromkeys(attached_documents({"data": node.data})))
        for id, node in graph.nodes.items()
        if graph.edge_called(id, LOOKUP) is None
    }
    names = {
        uuid: name
        for uuid, name, error in _described(organization, (uuid for uuids in attached.values() for uuid in uuids))
        if error is None
    }
    return {id: (_lookup(uuids, names),) for id, uuids in attached.items() if uuids}


def _lookup(uuids: tuple[str, ...], names: Mapping[str, str]) -> Function:
    known = ", ".join([names[uuid] for uuid in uuids if uuid in names][:MOST_NAMED])
    description = "Look something up in the documents of this agent" + (f": {known}." if known else ".")
    return Function(LOOKUP, description, PARAMETERS, document_uuids=uuids)


def answer(organization: int | None, request: RunTool) -> dict[str, Any]:
    """What a lookup finds in the documents of the node that it was offered at. A failure is an answer, too."""
    query = request.arguments.get("query")
    if not isinstance(query, str) or not query.strip():
        return _nothing("", "The query must be a text that says what to look for.")
    try:
        return search(organization or 0, query, request.document_uuids)
    except NotPossible as refused:
        return _nothing(query, str(refused))
    except Exception as problem:
        log.exception("The knowledge base could not be searched")
        return _nothing(query, f"The documents could not be searched: {type(problem).__name__}.")


def _nothing(query: str, error: str) -> dict[str, Any]:
    return {"error": error, "chunks": [], "query": query, "total_results": 0}


def remarks(organization: int, definition: object) -> dict[str, str]:
    """The documents that a definition attaches, by uuid, each with what its author should know of it, or nothing."""
    attached = (uuid for node in objects(definition, "nodes") for uuid in attached_documents(node))
    return {uuid: _remark(name, error) for uuid, name, error in _described(organization, attached)}


def _remark(name: str, error: str | None) -> str:
    return "" if error is None else f'The document "{name}" is not searched, since it could not be read: {error}'


def _described(organization: int | None, uuids: Iterable[str]) -> list[tuple[str, str, str | None]]:
    """Uuid, name and error of those of the organization's documents that are among `uuids`."""
    wanted = set(uuids)
    if not wanted or organization is None:
        return []
    columns = (Document.document_uuid, Document.filename, Document.processing_error)
    # A definition may name more uuids than a query has room for.
    return [
        (each.document_uuid, each.filename, each.processing_error)
        for each in Document.select(*columns).where(Document.organization == organization)
        if each.document_uuid in wanted
    ]
