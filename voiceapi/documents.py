"""Use cases of the knowledge base: documents that agents look things up in. Indexed as they are uploaded."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from typing import Any
from uuid import uuid4

from .errors import Invalid, Missing, Refused, TooLarge, value_error
from .passages import split
from .store import passages
from .store.database import bound_path, write
from .store.find import need
from .store.models import Document

# Bytes of a file.
LARGEST = 5 * 1024 * 1024
MODES = ("chunked", "full_document")
# Passages that an agent is given.
TOP = 3
NOT_FOUND = "Document not found"
SILENT = ("script", "style", "template", "noscript")
BLOCKS = (
    "p",
    "div",
    "br",
    "li",
    "tr",
    "table",
    "ul",
    "ol",
    "section",
    "article",
    "header",
    "footer",
    "pre",
    "blockquote",
    "title",
)


class Page(HTMLParser):
    """The words of an HTML page; headings become Markdown's, for the passages to begin at."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.silent: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self.silent is None and tag in SILENT:
            self.silent = tag
        elif tag in ("h1", "h2", "h3", "h4", "h5", "h6"):
            self.parts.append(f"\n\n{'#' * int(tag[1])} ")
        elif tag in BLOCKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == self.silent:
            self.silent = None
        elif tag in BLOCKS or tag[:1] == "h":
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if self.silent is None:
            self.parts.append(data)


def read_html(text: str) -> str:
    page = Page()
    page.feed(text)
    page.close()
    return "".join(page.parts)


def read_csv(text: str) -> str:
    """A row becomes a paragraph of `header: value` lines; empty values are left out."""
    try:
        rows = list(csv.reader(io.StringIO(text), strict=False))
    except csv.Error as error:
        raise Invalid([value_error(["body", "file"], f"the CSV can't be read: {error}")]) from None
    header, *others = rows or [[]]
    return "\n\n".join(
        "\n".join(f"{name}: {value}" for name, value in zip(header, row, strict=False) if value.strip())
        for row in others
    )


# By the ending of a file's name: its media type, and what makes plain text of it.
KINDS: dict[str, tuple[str, Callable[[str], str]]] = {
    "txt": ("text/plain", str),
    "md": ("text/markdown", str),
    "markdown": ("text/markdown", str),
    "html": ("text/html", read_html),
    "htm": ("text/html", read_html),
    "csv": ("text/csv", read_csv),
}


def upload(organization: int, name: str, content: bytes, mode: str, metadata: dict[str, Any]) -> Document:
    """Store a document and index it, in one transaction.

    :raises TooLarge: above 5 MiB.
    :raises Invalid: for a kind of file that isn't known, and for one that holds no text.
    :raises Refused: when the database is not SQLite.
    """
    if bound_path() is None:
        raise Refused("Documents need SQLite's full-text index; this service runs on another database.")
    if len(content) > LARGEST:
        raise TooLarge(f"A document may have at most {LARGEST} bytes.")
    kind = KINDS.get(name.rpartition(".")[2].lower())
    if kind is None:
        raise Invalid([value_error(["body", "file"], f"the file's name must end in one of: .{', .'.join(KINDS)}")])
    text = kind[1](_decode(content)).strip()
    if not text:
        raise Invalid([value_error(["body", "file"], "the file holds no text")])
    texts = split(text)
    with write():
        document: Document = Document.create(
            organization=organization,
            document_uuid=str(uuid4()),
            filename=name,
            mime_type=kind[0],
            content=content,
            text=text,
            file_hash=hashlib.sha256(content).hexdigest(),
            file_size_bytes=len(content),
            total_chunks=len(texts),
            retrieval_mode=mode,
            custom_metadata=metadata,
        )
        passages.add(document, texts)
    return document


def _decode(content: bytes) -> str:
    """UTF-8, or UTF-16 by its mark, else Windows' Western letters. Line ends become newlines; NUL is left out."""
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        text = content.decode("cp1252", "replace")
    return text.replace("\0", "").replace("\r\n", "\n").replace("\r", "\n")


def page(organization: int, status: str | None, limit: int, offset: int) -> list[Document]:
    """The documents of the organization, newest first. All are `completed`: a file that can't be read is refused."""
    if status not in (None, "", "completed"):
        return []
    chosen = Document.select().where(Document.organization == organization)
    return list(chosen.order_by(Document.id.desc()).limit(limit).offset(offset))


def get(organization: int, document_uuid: str) -> Document:
    """:raises Missing: when the organization has no such document."""
    return need(Document, NOT_FOUND, document_uuid=document_uuid, organization=organization)


def delete(organization: int, document_uuid: str) -> None:
    """Remove a document, its passages and their words.

    :raises Missing: when the organization has no such document.
    """
    with write():
        if (
            not Document.delete()
            .where(Document.organization == organization, Document.document_uuid == document_uuid)
            .execute()
        ):
            raise Missing(NOT_FOUND)


def search(organization: int, query: str, documents: Sequence[str] | None, limit: int = TOP) -> dict[str, Any]:
    """What the documents say about `query`, best first; of a document in full-document mode, all of it, once."""
    found = passages.search(organization, query, documents, limit)
    records = {record.id: record for record in Document.select().where(Document.id.in_([row[0] for row in found]))}
    chunks: dict[tuple[int, int], dict[str, Any]] = {}
    for id, number, text, similarity in found:
        record = records.get(id)
        if record is None:
            continue
        whole = record.retrieval_mode == "full_document"
        chunk = {"text": record.text if whole else text, "filename": record.filename, "similarity": similarity}
        chunks.setdefault((id, 0 if whole else number), {**chunk, "chunk_index": 0 if whole else number})
    return {"chunks": list(chunks.values()), "query": query, "total_results": len(chunks)}
