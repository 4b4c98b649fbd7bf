"""The plugin for pytest: collects files of conversation cases, each case as a test, and helps to test a host's app.

It is loaded in every run of pytest where voiceapi is installed, so what it needs is imported when that is the case.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

import pytest

import voiceapi

if TYPE_CHECKING:
    from ..engine.actions import LanguageModel
    from ..rehearsal.cases import Case, CaseResult
    from ..service import Service
    from .app_fixture import Databases, VoiceTest
    from .case_sets import CaseSet

# Those of rehearsal.case_file.
ENDINGS = (".cases.yaml", ".cases.yml", ".cases.json")
# The attribute of a test's report with what its conversation passed; it may come from another process.
PASSED = "voiceapi_passed"
_SERVICE = pytest.StashKey["Service"]()
_DATABASES = pytest.StashKey["Databases"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("voiceapi").addoption(
        "--voiceapi-coverage",
        action="store_true",
        help="tell which nodes, edges and variables of voice agents their conversation cases cover",
    )


def pytest_configure(config: pytest.Config) -> None:
    """From now on apps that name no database get a copy of a prepared one, and nothing is in an instance folder."""
    before = voiceapi.settings_in_tests
    voiceapi.settings_in_tests = lambda app, given: _databases(config).settings(app, given)
    config.add_cleanup(lambda: setattr(voiceapi, "settings_in_tests", before))
    # pytest marks all modules of a plugin's distribution, to rewrite their assertions. Ours have none, and to look for
    # them takes as long again as half of the import. Where pytest keeps the marks elsewhere, it goes on doing so.
    marked: set[str] = getattr(config.pluginmanager.rewrite_hook, "_must_rewrite", set())
    marked.discard("voiceapi")


def _databases(config: pytest.Config) -> Databases:
    from .app_fixture import Databases

    if _DATABASES not in config.stash:
        # In pytest's own folder; where it can't be had like this, in the system's.
        factory = getattr(config, "_tmp_path_factory", None)
        make = (lambda: Path(mkdtemp())) if factory is None else partial(factory.mktemp, "voiceapi")
        found = config.stash[_DATABASES] = Databases(make)
        # What was imported stays. pytest looks through all objects for garbage several times, last at its end, which
        # takes as long again as the import.
        gc.freeze()
        config.add_cleanup(found.close)
    return config.stash[_DATABASES]


@pytest.fixture(name="voiceapi")
def voiceapi_of_the_app(request: pytest.FixtureRequest) -> Iterator[VoiceTest]:
    """The Flask app of the fixture `app`, which has voiceapi: with simulated calls, a clock, and no threads.

    It has a database of its own, unless its VOICEAPI_DATABASE is set.
    """
    from .app_fixture import opened

    try:
        app = request.getfixturevalue("app")
    except pytest.FixtureLookupError as error:
        if error.argname != "app":
            raise
        raise pytest.UsageError("The fixture `voiceapi` needs one named `app`, which returns your Flask app.") from None
    if "voiceapi" not in getattr(app, "extensions", ()):
        raise pytest.UsageError("The fixture `app` returns no Flask app with voiceapi: VoiceAPI().init_app(app).")
    with opened(app, _databases(request.config)) as found:
        yield found


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
        from .case_sets import model_for

        if _SERVICE not in self.config.stash:
            # That of the settings, since it says which model is configured.
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(voiceapi, "settings_in_tests", None)
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
        from .chat import dialogue

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
    from ..rehearsal.cases import CaseResult
    from .case_sets import read_set
    from .coverage import by_agent

    results: dict[str, list[CaseResult]] = {}
    for each in passed:
        result = CaseResult("", (), (), each["nodes"], each["edges"], each["extracted"])
        results.setdefault(each["file"], []).append(result)
    sets = [(read_set(Path(file), lambda _: None), found) for file, found in results.items()]
    for agent in by_agent(sets):
        yield from agent.text()
