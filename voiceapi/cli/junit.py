"""Results of conversation cases as JUnit's XML, in the shape that pytest writes and CI servers read."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from xml.etree import ElementTree

from ..store.fields import now
from .case_runs import TimedResult
from .case_sets import CaseSet
from .dialogue import dialogue

# What XML 1.0 can't hold, not even escaped.
_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write(path: Path, found: Iterable[tuple[CaseSet, list[TimedResult]]], began: datetime | None = None) -> None:
    """Write a file with a suite for each set of cases.

    :raises OSError: when it can't be written.
    """
    root = ElementTree.Element("testsuites", name="voiceapi test")
    for cases, results in found:
        root.append(_suite(cases, results, began or now()))
    ElementTree.indent(root)
    path.write_bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n")


def _suite(cases: CaseSet, results: list[TimedResult], began: datetime) -> ElementTree.Element:
    suite = ElementTree.Element(
        "testsuite",
        name=_text(cases.source),
        errors="0",
        failures=str(sum(not each.result.passed for each in results)),
        skipped="0",
        tests=str(len(results)),
        time=_seconds(sum(each.seconds for each in results)),
        timestamp=began.isoformat(),
        hostname=_text(platform.node()),
    )
    for index, (result, seconds) in enumerate((each.result, each.seconds) for each in results):
        named = {"classname": _text(cases.source), "name": _text(result.name), "time": _seconds(seconds)}
        if cases.lines:
            named |= {"file": _text(cases.source), "line": str(cases.lines[index])}
        case = ElementTree.SubElement(suite, "testcase", named)
        if not result.passed:
            first, *others = result.mismatches
            more = f" (and {len(others)} more)" if others else ""
            failure = ElementTree.SubElement(case, "failure", message=_text(f"{first}{more}"))
            failure.text = _text("\n".join(dialogue(result)))
    return suite


def _seconds(value: float) -> str:
    return f"{value:.3f}"


def _text(text: str) -> str:
    return _NOT_IN_XML.sub("\ufffd", text)
