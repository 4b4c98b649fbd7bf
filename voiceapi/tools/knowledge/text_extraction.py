"""Makes plain text of an uploaded file.

What a stranger can make slow or huge (HTML, PDF) is read in a process of its own, which has a time and a memory limit:
a call that goes on meanwhile isn't held up, and a file that would take for ever, or unpack to gigabytes, ends as a
sentence.
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
from html.parser import HTMLParser
from itertools import zip_longest

# Seconds and bytes that the other process has.
SECONDS, MEMORY = 20, 1024**3
# Characters of a document's text, and pages of a PDF.
LONGEST, MOST_PAGES = 5 * 1024 * 1024, 2000

NO_TEXT = "The file holds no text."
TOO_LONG = f"The file holds more than {LONGEST} characters of text; split it."


class NotReadable(Exception):
    """A file that no text can be made of; the message is a sentence for whoever uploaded it."""


def decode(content: bytes) -> str:
    """UTF-8 with or without a mark, UTF-16 by its mark, else Windows' Western letters. Line ends become newlines."""
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
    """A row becomes a paragraph of `column: value` lines; empty values are left out."""
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
        # Also the line breaks within a value: a blank line is the border between two rows.
        name, value = " ".join(column.split()), " ".join(value.split())
        if value:
            yield f"{name}: {value}" if name else value


# -- HTML

SILENT = ("script", "style", "template", "noscript", "svg")
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
BLOCKS = (
    *("address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "fieldset", "figcaption", "footer"),
    *("form", "header", "hr", "li", "main", "nav", "ol", "option", "p", "pre", "section", "summary", "table", "title"),
    *("tr", "ul", *HEADINGS),
)
CELLS = ("td", "th")


class Page(HTMLParser):
    """The words of an HTML page; headings become Markdown's, for the passages to begin at."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.silent: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self.silent is None and tag in SILENT:
            self.silent = tag
        elif tag in HEADINGS:
            self.parts.append(f"\n\n{'#' * int(tag[1])} ")
        elif tag in BLOCKS or tag in CELLS:
            self.parts.append("\n" if tag in BLOCKS else " ")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in SILENT:
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag == self.silent:
            self.silent = None
        elif tag in BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if self.silent is None:
            self.parts.append(re.sub(r"\s+", " ", data))


def read_html(content: bytes) -> str:
    page = Page()
    page.feed(decode(content))
    page.close()
    lines = (line.strip() for line in "".join(page.parts).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))


# -- PDF


def read_pdf(content: bytes) -> str:
    """The text layer of every page."""
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    try:
        reader = PdfReader(io.BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise NotReadable("The PDF is encrypted; upload it without a password.")
        if len(reader.pages) > MOST_PAGES:
            raise NotReadable(f"The PDF has {len(reader.pages)} pages; at most {MOST_PAGES} are read. Split it.")
        pages: list[str] = []
        for page in reader.pages:
            pages.append(page.extract_text())
            if sum(map(len, pages)) > LONGEST:
                raise NotReadable(TOO_LONG)
    except (PyPdfError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        # A broken file makes the library stumble anywhere.
        raise NotReadable(f"The PDF is broken: {' '.join(str(error).split())[:200] or type(error).__name__}.") from None
    text = "\n\n".join(pages)
    if not text.strip():
        raise NotReadable("The PDF holds no text: it may be scanned. Upload one with recognized text.")
    return text


# -- every kind


@dataclass(frozen=True)
class Kind:
    """A kind of file: its media type, what reads it, and whether that needs a process of its own."""

    media_type: str
    read: Callable[[bytes], str]
    apart: bool = False


# By the ending of a file's name.
KINDS: Mapping[str, Kind] = {
    "txt": Kind("text/plain", decode),
    "md": Kind("text/markdown", decode),
    "markdown": Kind("text/markdown", decode),
    "csv": Kind("text/csv", read_csv),
    "html": Kind("text/html", read_html, apart=True),
    "htm": Kind("text/html", read_html, apart=True),
    "pdf": Kind("application/pdf", read_pdf, apart=True),
}


def read(ending: str, content: bytes) -> str:
    """The text of a file of a known kind, fit to be stored; at most LONGEST characters.

    :raises NotReadable: when there is none, too much of it, or getting it takes too long.
    """
    kind = KINDS[ending]
    text = _apart(ending, content) if kind.apart else kind.read(content)
    text = text.replace("\0", "").encode("utf-8", "ignore").decode().strip()
    if not text:
        raise NotReadable(NO_TEXT)
    if len(text) > LONGEST:
        raise NotReadable(TOO_LONG)
    return text


def _apart(ending: str, content: bytes) -> str:
    command = [sys.executable, "-m", __name__, ending]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    try:
        done = subprocess.run(
            command, input=content, capture_output=True, timeout=SECONDS, env=environment, check=False
        )
        outcome: dict[str, str] = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        raise NotReadable(f"Reading the file took longer than {SECONDS} seconds.") from None
    except (OSError, ValueError):
        raise NotReadable("The file can't be read: the process that reads it failed.") from None
    if "error" in outcome:
        raise NotReadable(outcome["error"])
    return outcome["text"]


def main(ending: str) -> None:
    """Read a file from standard input; write its text, or why there is none, as JSON."""
    _limit()
    try:
        outcome = {"text": KINDS[ending].read(sys.stdin.buffer.read())}
    except NotReadable as error:
        outcome = {"error": str(error)}
    except MemoryError:
        outcome = {"error": f"Reading the file needs more than {MEMORY // 1024**2} MB of memory."}
    sys.stdout.write(json.dumps(outcome))


def _limit() -> None:
    try:
        import resource
    except ImportError:
        # Windows has no such limits; the time limit of the other side holds there.
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    # Also when the other side is gone.
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


if __name__ == "__main__":
    main(sys.argv[1])
