"""Extracts the plain text of an uploaded file.

HTML and PDF files can be made to take very long or to unpack to gigabytes. They are read in a subprocess with a time
and a memory limit, so calls in progress aren't slowed down; a file that exceeds a limit is refused with a reason.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from html import unescape
from itertools import zip_longest

from ...strict_json import storable

# Limits of the subprocess: seconds and bytes of memory.
MAX_SECONDS, MAX_MEMORY = 20, 1024**3
# Characters of a document's text, and pages of a PDF.
MAX_LENGTH, MAX_PAGES = 5 * 1024 * 1024, 2000

# Stands for a character that can't be stored.
REPLACED = "\ufffd"
NO_TEXT = "The file holds no text."
TOO_LONG = f"The file holds more than {MAX_LENGTH} characters of text; split it."
HIDDEN = ("script", "style", "template", "noscript", "svg")
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
BLOCKS = (
    *("address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "fieldset", "figcaption", "footer"),
    *("form", "header", "hr", "li", "main", "nav", "ol", "option", "p", "pre", "section", "summary", "table", "title"),
    *("tr", "ul", *HEADINGS),
)
CELLS = ("td", "th")
_MARKUP = re.compile(r"<[a-zA-Z/!?]")
# A tag, as HTML says where it ends: a ">" within quotes counts only behind a "=". Nothing is tried twice, because
# Python's own parser takes the square of the length for 500 kB of "<a ".
_VALUE = r"(?:\"[^\"]*+\"|'[^']*+'|[^ \t\n\f>\"'][^ \t\n\f>]*+)?+"
_TAG = re.compile(
    r"<(?P<end>/?)(?P<name>[a-zA-Z][^ \t\n\f/>]*+)"
    rf"(?:[ \t\n\f/]++|[^ \t\n\f/>][^ \t\n\f/>=]*+(?:[ \t\n\f]*+=[ \t\n\f]*+{_VALUE})?+)*+>"
)
_NAME = re.compile("[a-zA-Z]")
_END_OF_COMMENT = re.compile("--!?>")
# Elements whose content has no tags.
_END_OF_RAW = {name: re.compile(rf"</{name}(?=[ \t\n\f/>])", re.IGNORECASE) for name in ("script", "style")}
# The number of no character; Python refuses to read thousands of digits.
_NO_CHARACTER = re.compile(r"&#(?:[0-9]{11,}|[xX][0-9a-fA-F]{11,});?")


class NotReadable(Exception):
    """The text of a file can't be extracted; the message is a sentence for the person who uploaded it."""


def decode(content: bytes) -> str:
    """The text of bytes in UTF-8, in UTF-16 with a byte order mark, or else in Windows-1252; line ends become newlines.

    :raises NotReadable: when there are zero bytes.
    """
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = content.decode("utf-16", "replace")
    elif b"\0" in content:
        raise NotReadable("The file is not text: it holds zero bytes.")
    else:
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = content.decode("cp1252", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


# -- CSV


def read_csv(content: bytes) -> str:
    """The rows as paragraphs of `column: value` lines; empty values are left out."""
    text = decode(content)
    heading = text.lstrip("\n").partition("\n")[0]
    reader = csv.reader(io.StringIO(text), delimiter=max(",;\t", key=heading.count))
    try:
        columns, *rows = [row for row in reader if any(map(str.strip, row))] or [[]]
    except csv.Error as error:
        raise NotReadable(f"Line {reader.line_num} can't be read as a row of CSV: {error}.") from None
    return "\n\n".join("\n".join(_cells(columns, row)) for row in rows)


def _cells(columns: list[str], row: list[str]) -> Iterator[str]:
    for column, value in zip_longest(columns[: len(row)], row, fillvalue=""):
        # Line breaks within a value go, too: a blank line separates two rows.
        name, value = " ".join(column.split()), " ".join(value.split())
        if value:
            yield f"{name}: {value}" if name else value


# -- HTML


class HTMLPage:
    """The visible text of an HTML page; headings become Markdown's, because passages begin at those.

    What isn't closed at the end of the page, such as a tag or a comment, is left out.
    """

    def __init__(self, html: str) -> None:
        self._html = html
        self._parts: list[str] = []
        # The tag, one of HIDDEN, whose content is being skipped.
        self._hidden_by: str | None = None

    def text(self) -> str:
        place = 0
        while place < len(self._html):
            found = _MARKUP.search(self._html, place)
            self._add(self._html[place : found.start() if found else len(self._html)])
            place = self._end_of_markup(found.start()) if found else len(self._html)
        return "".join(self._parts)

    def _end_of_markup(self, start: int) -> int:
        """Read the tag or comment at `start`; where the text goes on."""
        html = self._html
        if html.startswith("<!--", start):
            comment = _END_OF_COMMENT.search(html, start + 2)
            return comment.end() if comment else len(html)
        if html[start + 1] in "!?" or (html[start + 1] == "/" and not _NAME.match(html, start + 2)):
            return html.find(">", start) + 1 or len(html)
        tag = _TAG.match(html, start)
        if tag is None:
            return len(html)
        name = tag["name"].lower()
        if tag["end"]:
            self._end(name)
            return tag.end()
        closes_itself = tag[0].endswith("/>")
        self._begin(name, closes_itself)
        if name in _END_OF_RAW and not closes_itself:
            end = _END_OF_RAW[name].search(html, tag.end())
            return end.start() if end else len(html)
        return tag.end()

    def _begin(self, tag: str, closes_itself: bool) -> None:
        if tag in HIDDEN:
            if self._hidden_by is None and not closes_itself:
                self._hidden_by = tag
        elif tag in HEADINGS:
            self._parts.append(f"\n\n{'#' * int(tag[1])} ")
        elif tag in BLOCKS or tag in CELLS:
            self._parts.append("\n" if tag in BLOCKS else " ")

    def _end(self, tag: str) -> None:
        if tag == self._hidden_by:
            self._hidden_by = None
        elif tag in BLOCKS:
            self._parts.append("\n")

    def _add(self, text: str) -> None:
        if self._hidden_by is None:
            self._parts.append(re.sub(r"\s+", " ", unescape(_NO_CHARACTER.sub(REPLACED, text))))


def read_html(content: bytes) -> str:
    """The visible text of a page, without blank lines in a row."""
    lines = (line.strip() for line in HTMLPage(decode(content)).text().split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))


# -- PDF


def read_pdf(content: bytes) -> str:
    """The text layer of every page.

    :raises NotReadable: when the file is broken, encrypted, too long or has no text layer.
    """
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    try:
        reader = PdfReader(io.BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise NotReadable("The PDF is encrypted; upload it without a password.")
        if len(reader.pages) > MAX_PAGES:
            raise NotReadable(f"The PDF has {len(reader.pages)} pages; at most {MAX_PAGES} are read. Split it.")
        pages: list[str] = []
        for page in reader.pages:
            pages.append(page.extract_text())
            if sum(map(len, pages)) > MAX_LENGTH:
                raise NotReadable(TOO_LONG)
    except (PyPdfError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        # pypdf raises any of these for a broken file.
        raise NotReadable(f"The PDF is broken: {' '.join(str(error).split())[:200] or type(error).__name__}.") from None
    text = "\n\n".join(pages)
    if not text.strip():
        raise NotReadable("The PDF holds no text: it may be scanned. Upload one with recognized text.")
    return text


# -- all file types


@dataclass(frozen=True)
class FileType:
    """A type of file: its media type, the function that reads it, and whether that runs in a subprocess."""

    media_type: str
    read: Callable[[bytes], str]
    in_subprocess: bool = False


# By the extension of a file's name.
FILE_TYPES: Mapping[str, FileType] = {
    "txt": FileType("text/plain", decode),
    "md": FileType("text/markdown", decode),
    "markdown": FileType("text/markdown", decode),
    "csv": FileType("text/csv", read_csv),
    "html": FileType("text/html", read_html, in_subprocess=True),
    "htm": FileType("text/html", read_html, in_subprocess=True),
    "pdf": FileType("application/pdf", read_pdf, in_subprocess=True),
}


def read(extension: str, content: bytes) -> str:
    """The text of a file, at most MAX_LENGTH characters, with U+FFFD for those that can't be stored.

    :param extension: one of FILE_TYPES.
    :raises NotReadable: when there is no text or too much, or when the subprocess exceeds a limit.
    """
    file_type = FILE_TYPES[extension]
    text = _read_in_subprocess(extension, content) if file_type.in_subprocess else file_type.read(content)
    text = str(storable(text)).strip()
    if not text.strip(f"{REPLACED} \n"):
        raise NotReadable(NO_TEXT)
    if len(text) > MAX_LENGTH:
        raise NotReadable(TOO_LONG)
    return text


def _read_in_subprocess(extension: str, content: bytes) -> str:
    command = [sys.executable, "-m", __name__, extension]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    try:
        done = subprocess.run(
            command, input=content, capture_output=True, timeout=MAX_SECONDS, env=environment, check=False
        )
        outcome: dict[str, str] = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        raise NotReadable(f"Reading the file took longer than {MAX_SECONDS} seconds.") from None
    except (OSError, ValueError):
        raise NotReadable("The file can't be read: the process that reads it failed.") from None
    if "error" in outcome:
        raise NotReadable(outcome["error"])
    return outcome["text"]


def main(extension: str) -> None:
    """The subprocess: read a file from standard input, and write `{"text": ...}` or `{"error": ...}` as JSON."""
    _set_limits()
    try:
        outcome = {"text": FILE_TYPES[extension].read(sys.stdin.buffer.read())}
    except NotReadable as error:
        outcome = {"error": str(error)}
    except MemoryError:
        outcome = {"error": f"Reading the file needs more than {MAX_MEMORY // 1024**2} MB of memory."}
    sys.stdout.write(json.dumps(outcome))


def _set_limits() -> None:
    try:
        import resource
    except ImportError:
        # Windows has no resource limits; the timeout of the parent process still holds.
        return
    # The calls in progress come first, also on a machine with one core.
    os.nice(10)
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    # The parent has a timeout as well, but it may be killed.
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS))


if __name__ == "__main__":
    main(sys.argv[1])
