"""The console's words: plain ones for every code of the service, and those of the glossary on every page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import voiceapi
from voiceapi.campaigns.attempts import NOT_CONNECTED as OUTCOME_OF
from voiceapi.campaigns.attempts import OPT_OUTS
from voiceapi.campaigns.dialer import eligibility, plan
from voiceapi.campaigns.retry import OUTCOMES
from voiceapi.llm import scripted
from voiceapi.organizations.preferences import END_REASONS, NOT_CONNECTED
from voiceapi.rehearsal.callers import defects
from voiceapi.rehearsal.cases import TRANSFER_OUTCOMES
from voiceapi.rehearsal.replays import OUTCOMES as REPLAYED
from voiceapi.runs import lifecycle
from voiceapi.store.campaigns import FINAL, OPEN
from voiceapi.telephony.carriers import events
from voiceapi.tools import calculator

PACKAGE = Path(voiceapi.__file__).parent
WORDS = PACKAGE / "console" / "static" / "parts" / "words.js"
# Codes as they are written where a conversation or call ends, or where a campaign notes what it decided.
WRITTEN = re.compile(
    r"""(?x) \.end\(\s*"([\w-]+)" | \b(?:end_reason|disposition)="([\w-]+)" | \bFinish\("([\w-]+)"
    | \brecord_outcome\([^"()]*"([\w-]+)" | \brequest_hang_up\([^"()]*"([\w-]+)"
    | \bstop\(campaign,\s"\w+",\s"([\w-]+)" | \bnote_hold\(campaign,\s"([\w-]+)" | \bHold\("([\w-]+)"
    | \bBlock\(\w+,\s"([\w-]+)" | \bdecide(?:_all)?\(\s*\(?contact,\s"([\w-]+)"
    """
)


def worded() -> dict[str, str]:
    """What the console says for each code."""
    return dict(re.findall(r'(?m)^  "?([\w-]+)"?: "([^"]+)",$', WORDS.read_text(encoding="utf-8")))


def written() -> Iterator[str]:
    for path in PACKAGE.rglob("*.py"):
        for found in WRITTEN.findall(path.read_text(encoding="utf-8")):
            yield from filter(None, found)


@pytest.mark.parametrize(
    "codes",
    [
        pytest.param([*END_REASONS, *NOT_CONNECTED, *lifecycle.DISPOSITIONS, *OPT_OUTS], id="results"),
        pytest.param([calculator.DISPOSITION, scripted.GAVE_UP, *OUTCOME_OF, *TRANSFER_OUTCOMES], id="other results"),
        pytest.param([*OUTCOMES, *events.PROGRESS, *events.FINAL, *lifecycle.SHOWN.values()], id="calls"),
        pytest.param([*plan.STATES, "running", *OPEN, *FINAL], id="campaigns and contacts"),
        pytest.param([*eligibility.POSTPONED, plan.CALLS_A_DAY, plan.ORGANIZATION_LIMIT], id="why nobody is called"),
        pytest.param(["active", "archived", "draft", "published"], id="agents, versions and tools"),
        pytest.param(["pending", "succeeded", "dead_letter", "not_sent", "processing", "failed"], id="deliveries"),
        pytest.param([*defects.CODES, *REPLAYED], id="tests"),
        pytest.param([*written()], id="written in the code"),
    ],
)
def test_every_code_of_the_service_has_words(codes: list[str]) -> None:
    assert len(codes) > 3
    assert sorted({*codes} - {*worded()}) == []


def test_the_words_are_words() -> None:
    """No code is shown as it is, and none with a comma, which stands between several in a filter."""
    found = worded()
    assert len(found) > 70
    assert [words for words in found.values() if re.search(r"[_,]", words)] == []


def test_the_glossary_has_the_words_as_the_console_shows_them() -> None:
    """Those that aren't just the code with spaces."""
    page = (PACKAGE.parent / "docs" / "concepts.md").read_text(encoding="utf-8").partition("## Results and states")[2]
    listed = {
        code: words
        for codes, words in re.findall(r"(?m)^\| (`.*`) \| (.*) \|$", page)
        for code in re.findall(r"`([^`]+)`", codes)
    }
    shown = worded()
    assert {code: shown[code] for code in listed} == listed
    assert [code for code, words in shown.items() if code not in listed and words != code.replace("_", " ")] == []


# -- what pages say

STATIC = WORDS.parents[1]
# A text that people read, unlike a name, a path or a selector: it begins with a capital, or has two words in a row.
TEXT = re.compile(r"^[\s(“]*[A-Z]|[a-z,.:] [a-z]")
NO_TEXT = re.compile(r"^[\w-]*[.#]\w|\w\(|^M-?\d|^(?:node type-|voiceapi nodes)")
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`')
# Words of the API and of earlier releases, which docs/concepts.md replaces; what a page shows has none of them.
REPLACED = re.compile(
    r"\b(?:[Nn]odes?|[Ee]dges?|[Cc]ame out|[Ww]ays? on|[Ww]hat it found|[Ll]eave out|[Dd]ispositions?|LLM"
    r"|[Oo]utbound|[Ii]nbound|[Pp]layed callers|[Pp]ersonas?|[Ss]eed|[Tt]elephony configurations?|[Qq]ueued runs?)\b"
)


def texts(script: str) -> Iterator[str]:
    """What a script may show: its literals without what is computed in them, names in quotes and JSON."""
    code = re.sub(r"(?m)^\s*(?://|\*|/\*).*$|\s// .*$|^(?:import|export) .* from .*$", "", script)
    for plain, template in LITERAL.findall(code):
        text = re.sub(r"\$\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}", "…", plain or template)
        if TEXT.search(text) and not NO_TEXT.search(text):
            yield text


def test_pages_use_the_words_of_the_glossary() -> None:
    wrong = [
        f"{path.relative_to(STATIC)}: {text}"
        for path in sorted(STATIC.rglob("*.js"))
        for text in texts(path.read_text(encoding="utf-8"))
        if REPLACED.search(text)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("script", "shown"),
    [
        ('field("Node", control)', ["Node"]),
        ('h("p", {}, `Edges that no ${who} takes`)', ["Edges that no … takes"]),
        ('// No node here.\nconst kind = "node"; find(\'.node\'); go("/agents");', []),
        ('view.querySelector("g.node, g.edge")', []),
    ],
)
def test_what_a_script_shows_is_found(script: str, shown: list[str]) -> None:
    assert [text for text in texts(script) if REPLACED.search(text)] == shown
