"""Reads a multipart form strictly: what Werkzeug would drop or replace is an error that names the part."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from flask import Request
from werkzeug.datastructures import Headers
from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.http import parse_options_header
from werkzeug.sansio.multipart import Data, Epilogue, Field, File, MultipartDecoder, NeedData

from ..errors import FieldError, InvalidFields, SizeExceeded
from ..strict_json import NUL
from .blueprint import refuse_encoded

BINARY = {"type": "string", "format": "binary"}
# In bytes: what the fields of a form have together besides its file, the headers of one part, and what is read at once.
FIELDS_SIZE = 256 * 1024
HEADERS_SIZE = 32 * 1024
CHUNK = 16 * 1024
MOST_PARTS = 100
# RFC 2046 allows 70 characters, but some clients take more.
LONGEST_BOUNDARY = 200
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
CHARSETS = ("utf-8", "us-ascii", "ascii", "iso-8859-1")
UNENCODED = ("", "7bit", "8bit", "binary")


@dataclass(slots=True)
class Form:
    """A form as it was sent: its text fields, and the name and the bytes of its part `file`, None without one."""

    fields: dict[str, str] = field(default_factory=dict)
    file_name: str = ""
    file: bytes | None = None


@dataclass(slots=True)
class FormPart:
    """One part of a form; `number` counts from 1, `file_name` is None for a text field."""

    number: int
    name: str | None
    file_name: str | None
    headers: Headers
    content: bytearray = field(default_factory=bytearray)

    @property
    def path(self) -> tuple[str]:
        """Where its error is."""
        return (str(self.name)[:100],)


def read_form(request: Request, largest: int, file: str) -> Form:
    """The form of a request, whose part `file` is its only file.

    :param largest: the most bytes that the file may have.
    :param file: what the file is, for the error about its size.
    :raises InvalidFields: for a body that is no multipart form, and for each part that can't be read or used.
    :raises SizeExceeded: for a file, fields or headers that are too large, and for more than 100 parts.
    :raises UnsupportedEncoding: for a body that is compressed.
    """
    form, errors, size = Form(), list[FieldError](), 0
    names = set[str]()
    for part in _parts(request, largest + FIELDS_SIZE):
        if len(part.content) > largest:
            raise SizeExceeded(f"{file} may have at most {largest} bytes.")
        error = _refusal(part)
        if error is None and part.name in names:
            error = FieldError(part.path, f"part {part.number} of the form has the name of an earlier part")
        if error is None and part.file_name is None:
            size += len(part.content)
            error = _read_text(part, form)
        elif error is None and (part.file_name or part.content):
            # A browser sends an empty file without a name where none was chosen.
            form.file_name, form.file = part.file_name or "", bytes(part.content)
        names.add(part.name or "")
        if error is not None:
            errors.append(error)
        if size > FIELDS_SIZE:
            raise SizeExceeded(f"The fields of a form may have at most {FIELDS_SIZE} bytes.")
    if errors:
        raise InvalidFields(errors)
    return form


def _refusal(part: FormPart) -> FieldError | None:
    """Why a part can't be used, if it can't, whatever it contains."""
    where = f"part {part.number} of the form"
    if not part.name or not part.name.isprintable() or "\ufffd" in part.name:
        return FieldError((), f'{where} has no name that can be read; write Content-Disposition: form-data; name="..."')
    if "\ufffd" in (part.file_name or "") or not all(map(HEADER_NAME.fullmatch, part.headers.keys())):
        return FieldError(part.path, f"the headers of {where} can't be read; they must be UTF-8 text")
    if part.headers.get("content-type", "").lower().startswith("multipart/"):
        return FieldError(part.path, f"{where} is a form itself; send each file and field as a part of its own")
    if part.headers.get("content-transfer-encoding", "").strip().lower() not in UNENCODED:
        return FieldError(part.path, f"{where} has a Content-Transfer-Encoding; send its bytes unencoded")
    if part.name == "file" and part.file_name is None:
        return FieldError(("file",), f"{where} must be a file; give it a filename")
    if part.name != "file" and part.file_name is not None:
        return FieldError(part.path, f"{where} is a file; only the part file may have a filename")
    return None


def _read_text(part: FormPart, form: Form) -> FieldError | None:
    """Add a text field to the form; returns the error, if its bytes are no text."""
    charset = parse_options_header(part.headers.get("content-type"))[1].get("charset", "utf-8").lower()
    if charset not in CHARSETS:
        return FieldError(part.path, f"part {part.number} of the form has a charset that is not known; send UTF-8")
    try:
        text = part.content.decode(charset)
    except UnicodeDecodeError:
        return FieldError(part.path, f"part {part.number} of the form is not text in {charset.upper()}")
    if "\0" in text:
        return FieldError(part.path, NUL)
    form.fields[str(part.name)] = text
    return None


def _parts(request: Request, largest: int) -> Iterator[FormPart]:
    """The parts of a form, each when all of it has been read."""
    number, part = 0, None
    for event in _events(request, largest):
        if isinstance(event, Field | File):
            number += 1
            if number > MOST_PARTS:
                raise SizeExceeded(f"A form may have at most {MOST_PARTS} parts.")
            part = FormPart(number, event.name, getattr(event, "filename", None), event.headers)
        elif isinstance(event, Data) and part is not None:
            part.content += event.data
            if not event.more_data:
                yield part


def _events(request: Request, largest: int) -> Iterator[object]:
    """What Werkzeug's decoder finds in the body: a Field or a File at the head of each part, then its Data."""
    decoder = MultipartDecoder(_boundary(request), max_form_memory_size=HEADERS_SIZE)
    begun, chunk = 0, None
    try:
        for chunk in _chunks(request, largest):
            decoder.receive_data(chunk)
            while not isinstance(event := decoder.next_event(), NeedData | Epilogue):
                begun += isinstance(event, Field | File)
                yield event
    except RequestEntityTooLarge:
        raise SizeExceeded(f"The headers of a part may have at most {HEADERS_SIZE} bytes.") from None
    except UnicodeDecodeError:
        raise _broken(f"the headers of part {begun + 1} of the form can't be read; they must be UTF-8 text") from None
    except ValueError:
        if chunk is None:
            raise _broken("the form ends before the closing boundary that its Content-Type announces") from None
        raise _broken(f"part {begun + 1} of the form has no Content-Disposition") from None


def _chunks(request: Request, largest: int) -> Iterator[bytes | None]:
    """The body, as Werkzeug's decoder takes it: chunks, and None at the end.

    :raises SizeExceeded: for more than `largest` bytes.
    """
    too_large = SizeExceeded(f"A form may have at most {largest} bytes here, its file included.")
    # Werkzeug silently cuts off a body without Content-Length at its limit: with one byte more, it can be noticed.
    request.max_content_length = largest + 1
    if (request.content_length or 0) > largest:
        raise too_large
    read = 0
    while chunk := request.stream.read(CHUNK):
        read += len(chunk)
        if read > largest:
            raise too_large
        yield chunk
    yield None


def _boundary(request: Request) -> bytes:
    refuse_encoded(request)
    if request.mimetype != "multipart/form-data":
        raise _broken("the body must be a form; send it as multipart/form-data")
    boundary = request.mimetype_params.get("boundary", "")
    if not 0 < len(boundary) <= LONGEST_BOUNDARY or not boundary.isascii():
        raise _broken(f"the Content-Type needs a boundary of at most {LONGEST_BOUNDARY} ASCII characters")
    return boundary.encode()


def _broken(message: str) -> InvalidFields:
    return InvalidFields([FieldError((), message)])
