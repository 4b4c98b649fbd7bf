"""The plugin for pytest, `pytest agents/`: collects files of conversation cases, each case as a test.

It is loaded in every run of pytest where voiceapi is installed, so what runs cases is imported when there are some.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ..engine.ports import LanguageModel
    from ..rehearsal.cases import Case
    from ..rehearsal.result import CaseResult
    from ..service import Service
    from .case_sets import CaseSet

# Those of rehearsal.case_file.
ENDINGS = (".cases.yaml", ".cases.yml", ".cases.json")
# The attribute of a test's report with what its conversation passed; it may come from another process.
PASSED = "voiceapi_passed"
_SERVICE = pytest.StashKey["Service"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("voiceapi").addoption(
        "--voiceapi-coverage",
        action="store_true",
        help="tell which nodes, edges and variables of voice agents their conversation cases cover",
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> CasesFile | None:
    return CasesFile.from_parent(parent, path=file_path) if file_path.name.endswith(ENDINGS) else None


class CaseFailed(Exception):
    """A case whose conversation isn't as expected."""

    def __init__(self, result: CaseResult) -> None:
        super().__init__(str(result.mismatches[0]))
        self.result = result


class CasesFile(pytest.File):
    """A file of conversation cases."""

    def collect(self) -> Iterator[CaseItem]:
        found = self.cases()
        for case, line in zip(found.cases, found.lines, strict=True):
            yield CaseItem.from_parent(self, name=case.name, found=found, case=case, line=line)

    def cases(self) -> CaseSet:
        import click

        from .case_sets import read_set

        try:
            return read_set(self.path, self._configured_model)
        except click.UsageError as error:
            raise self.CollectError(error.message) from None

    def _configured_model(self, configurations: Mapping[str, Any]) -> LanguageModel | None:
        from .. import create_app
        from .stored_cases import model_for

        if _SERVICE not in self.config.stash:
            service: Service = create_app({"VOICEAPI_WORKER": "off"}).extensions["voiceapi"]
            self.config.stash[_SERVICE] = service
            self.config.add_cleanup(service.close)
        return model_for(self.config.stash[_SERVICE], configurations)


class CaseItem(pytest.Item):
    """One conversation case."""

    def __init__(self, *, found: CaseSet, case: Case, line: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._found = found
        self._case = case
        self._line = line
        self.result: CaseResult | None = None

    def runtest(self) -> None:
        from ..rehearsal.conduct import run_case

        self.result = run_case(self._found.subject, self._case)
        if not self.result.passed:
            raise CaseFailed(self.result)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any, **kwargs: Any) -> Any:
        if not isinstance(excinfo.value, CaseFailed):
            return super().repr_failure(excinfo, *args, **kwargs)
        from .dialogue import dialogue

        return "\n".join((str(excinfo.value), "", *dialogue(excinfo.value.result)))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self._line - 1, self.name


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    outcome: Any = yield
    if isinstance(item, CaseItem) and item.result is not None and item.config.getoption("--voiceapi-coverage"):
        found = item.result
        extracted = {id: list(names) for id, names in found.extracted.items()}
        passed = {"file": str(item.path), "nodes": list(found.nodes), "edges": list(found.edges)}
        setattr(outcome.get_result(), PASSED, {**passed, "extracted": extracted})


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if not config.getoption("--voiceapi-coverage"):
        return
    reports = (each for reports in terminalreporter.stats.values() for each in reports)
    passed = [getattr(each, PASSED) for each in reports if hasattr(each, PASSED) and each.when == "call"]
    if passed:
        terminalreporter.section("coverage of voice agents")
        for line in _coverage(passed):
            terminalreporter.write_line(line)


def _coverage(passed: list[dict[str, Any]]) -> Iterator[str]:
    from ..rehearsal.result import CaseResult
    from .case_sets import read_set
    from .coverage import by_agent

    results: dict[str, list[CaseResult]] = {}
    for each in passed:
        result = CaseResult("", (), (), each["nodes"], each["edges"], each["extracted"])
        results.setdefault(each["file"], []).append(result)
    sets = [(read_set(Path(file), lambda _: None), found) for file, found in results.items()]
    for agent in by_agent(sets):
        yield from agent.text()
