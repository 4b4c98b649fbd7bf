"""Judges every regular expression of the package: a search in four times the text takes about four times as long.

Python's `re` holds the interpreter while it searches, so a quadratic pattern lets everybody wait for one long text.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, product
from pathlib import Path
from re import _compiler as compiler  # type: ignore[attr-defined]
from re import _constants as op
from re import _parser as parser  # type: ignore[attr-defined]
from types import ModuleType
from typing import Any

import phonenumbers
import pytest

import voiceapi
from voiceapi.llm.understanding import edge_choice, spoken_values, yes_no, yes_no_tables
from voiceapi.rehearsal import saved_case
from voiceapi.rehearsal.callers import defects

Pattern = re.Pattern[Any]

METHODS: dict[str, Callable[[Pattern, Any], object]] = {
    "search": lambda pattern, text: pattern.search(text),
    "match": lambda pattern, text: pattern.match(text),
    "fullmatch": lambda pattern, text: pattern.fullmatch(text),
    "sub": lambda pattern, text: pattern.sub(text[:0], text),
    "split": lambda pattern, text: pattern.split(text),
    "finditer": lambda pattern, text: sum(1 for _ in pattern.finditer(text)),
    "findall": lambda pattern, text: pattern.findall(text),
}
# How patterns are used that stand in a table or are passed on, where no call of a method names them.
ELSEWHERE: dict[str, tuple[str, ...]] = {
    "api.multipart.HEADER_NAME": ("fullmatch",),
    "api.schemas.base.RepeatableSchema": ("fullmatch",),
    "api.schemas.campaigns.": ("fullmatch",),
    "engine.validation.secret_rules._NOTHING": ("fullmatch",),
    "engine.validation.secret_rules._OF_CONFIGURATIONS": ("fullmatch",),
    "llm.speakable._BULLET": ("match",),
    "llm.speakable._HEADING": ("match",),
    "llm.understanding.yes_no._SHORT": ("sub",),
    "rehearsal.strict_yaml.RESOLVERS": ("match",),
    "tools.knowledge.documents.BREAKS": ("finditer",),
    "tools.knowledge.documents.HEADING": ("finditer",),
}


def numbering_plans() -> Iterator[str]:
    for code, regions in phonenumbers.COUNTRY_CODE_TO_REGION_CODE.items():
        plan: Any = phonenumbers.PhoneMetadata.metadata_for_region_or_calling_code(code, regions[0])
        if plan.national_prefix_for_parsing:
            yield plan.national_prefix_for_parsing


# The patterns of functions that put them together when they are called, and the method that searches with them.
MADE: dict[str, tuple[str, Callable[[], Iterable[str]]]] = {
    "llm.chat_completions._hidden": ("sub", lambda: [r"(?<!\w)sk\-0123456789(?!\w)"]),
    "llm.chat_completions._names": ("search", lambda: [r"(?<!\w)reasoning_effort(?!\w)"]),
    "llm.understanding.edge_choice._echoed": (
        "search",
        lambda: [
            rf"\b{subject} {edge_choice._ADVERBS}(?:(?:{auxiliary})\b ?)?{edge_choice._ADVERBS}(?P<negation>not\b ?)?"
            rf"(?:$|{edge_choice._BEFORE_FIRST}(?:any|some)thing\b)"
            for subject, auxiliary in (("i", "can"), ("it", "is"))
        ],
    ),
    "api.errors.install_routing": ("fullmatch", lambda: [r"/voice(/.*)?", r"/api(/?|/v[0-9]+(/.*)?)"]),
    "llm.understanding.spoken_values._kind": (
        "search",
        lambda: [rf"\b(?:{words})\b" for words in spoken_values._WORDS_OF_KIND.values()],
    ),
    "llm.understanding.spoken_values._matching": (
        "finditer",
        lambda: [rf"(?<![\w.])(?:{pattern})" for pattern in (spoken_values._DATE, spoken_values._TIME)],
    ),
    "llm.understanding.yes_no._phrases_of_language": (
        "findall",
        lambda: [yes_no._phrases_of_language(language)[0].pattern for language in yes_no_tables.OTHER_LANGUAGES],
    ),
    "rehearsal.callers.defects.values": ("search", lambda: [rf"\b(?:{pattern})" for pattern, _ in defects._VALUES]),
    "rehearsal.saved_case._written": (
        "sub",
        lambda: [saved_case._written(["12025550123", "sip:ada@example.com"]).pattern],
    ),
    "relay.simulated._ending": ("search", lambda: [r"(?<!\w)yes\ please(?!\w)"]),
    "store.forgetting.is_in": ("search", lambda: ["(?<![0-9])12025550123(?![0-9])"]),
    "telephony.numbers._numbering_plan": ("match", numbering_plans),
}
# The longest texts of patterns that aren't linear; the code that searches shortens or refuses longer ones.
BOUNDS: dict[str, int] = {
    # yes_no.LONGEST
    "llm.understanding.spoken_values._SPOKEN_EMAIL": 2000,
    # A plus sign and numbers._DIGITS
    "telephony.numbers._numbering_plan": 16,
}

# Lengths of texts; the time for the longest is compared with that for a quarter of it.
SHORT, LONG, LONGEST = 1024, 4096, 16384
GROWTH = 8
MOST_TEXTS = 400
# CPU seconds: a search through LONG characters that is surely linear; one that is stopped; and the most for a text
# whose length has a bound.
QUICK, ENDLESS, BOUNDED = 0.0001, 3.0, 0.02


@dataclass(frozen=True)
class Use:
    """A pattern, the name or function that it stands in, and the method by which it searches."""

    place: str
    pattern: Pattern
    method: str

    @property
    def bound(self) -> int | None:
        return BOUNDS.get(self.place)


def uses() -> list[Use]:
    """Every use of every pattern of the package.

    :raises AssertionError: for a pattern that isn't found with a use, and for an entry of the tables that finds none.
    """
    found: dict[Pattern, str] = {}
    seen: dict[Pattern, set[str]] = {}
    made: set[str] = set()
    for module in (
        importlib.import_module(each.name) for each in pkgutil.walk_packages(voiceapi.__path__, "voiceapi.")
    ):
        short = module.__name__.removeprefix("voiceapi.")
        for name, value in vars(module).items():
            for pattern in held(value):
                found.setdefault(pattern, f"{short}.{name}")
        tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
        for inside, function, call in calls(tree):
            of_re = isinstance(function.value, ast.Name) and function.value.id == "re"
            if not of_re:
                for pattern in held(named(function.value, module)):
                    seen.setdefault(pattern, set()).add(function.attr)
                continue
            try:
                pattern = compiled(call, module)
            except NameError:  # it depends on what the function is given, or on what a comprehension goes through
                made |= {f"{short}.{inside}"} if inside else set()
                continue
            found.setdefault(pattern, f"{short}.{inside}")
            if function.attr != "compile":
                seen.setdefault(pattern, set()).add(function.attr)
    for pattern, place in found.items():
        seen.setdefault(pattern, set()).update(ELSEWHERE.get(place, ()))
    assert not {place: pattern.pattern for pattern, place in found.items() if not seen[pattern]}, "Name their methods."
    assert made == MADE.keys(), "Say what these functions make."
    assert ELSEWHERE.keys() | BOUNDS.keys() <= {*found.values(), *made}
    of_functions = [
        Use(place, re.compile(pattern, re.IGNORECASE), method)
        for place, (method, patterns) in MADE.items()
        for pattern in patterns()
    ]
    return [
        Use(found[pattern], pattern, method) for pattern in found for method in sorted(seen[pattern])
    ] + of_functions


def held(value: Any, depth: int = 3) -> Iterator[Pattern]:
    """The patterns in a value, within containers too."""
    if isinstance(value, re.Pattern):
        yield value
    elif depth and isinstance(value, dict):
        yield from chain.from_iterable(held(item, depth - 1) for item in value.values())
    elif depth and isinstance(value, list | tuple | set | frozenset):
        yield from chain.from_iterable(held(item, depth - 1) for item in value)


def named(node: ast.expr, module: ModuleType) -> Any:
    """What a name of a module stands for, or one of another module that it imports; of an item, its table."""
    if isinstance(node, ast.Subscript):
        return named(node.value, module)
    if isinstance(node, ast.Attribute):
        owner = named(node.value, module)
        return vars(owner).get(node.attr) if isinstance(owner, ModuleType | type) else None
    return vars(module).get(node.id) if isinstance(node, ast.Name) else None


def calls(tree: ast.Module) -> Iterator[tuple[str, ast.Attribute, ast.Call]]:
    """Every call of a method that a pattern has, with the name of the function or class that it stands in."""

    def walk(node: ast.AST, inside: str) -> Iterator[tuple[str, ast.Attribute, ast.Call]]:
        for child in ast.iter_child_nodes(node):
            function = child.func if isinstance(child, ast.Call) else None
            if isinstance(function, ast.Attribute) and function.attr in {*METHODS, "compile"}:
                yield inside, function, child
            yield from walk(child, child.name if isinstance(child, ast.FunctionDef | ast.ClassDef) else inside)

    return walk(tree, "")


def compiled(call: ast.Call, module: ModuleType) -> Pattern:
    """The pattern of a call of `re`, whose arguments are constants of the module.

    :raises NameError: if they aren't.
    """

    def value(node: ast.expr) -> Any:
        return eval(compile(ast.Expression(node), module.__name__, "eval"), dict(vars(module)))

    others = [*call.args[1:], *(each.value for each in call.keywords)]
    flags = [value(each) for each in others if ast.unparse(each).startswith("re.")]
    return re.compile(value(call.args[0]), *flags)


# Characters of every category, and some that hardly any class has.
USUAL = "a5 -\n_.é\x00"
REPEATS = {op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT}
Node = tuple[Any, Any]


class Texts:
    """Texts on which a search may take long, made of the pattern's own parse tree.

    :ivar alphabet: a few characters of each of its classes, and all of its literals.
    :ivar pumps: what to repeat: characters, pairs of them, and texts that parts of the pattern match.
    :ivar inner: for each repetition of the pattern, a text that what stands before it matches, and what to repeat.
    """

    def __init__(self, pattern: Pattern) -> None:
        source = pattern.pattern
        self.tree = parser.parse(source, pattern.flags & ~re.DEBUG)
        self._flags = pattern.flags
        self._members: dict[str, str] = {}
        literals = "".join(self._literals(self.tree))
        self._candidates = "".join(dict.fromkeys(USUAL + literals))
        used = (self._of(node) for node in self._nodes(self.tree) if node[0] in (op.IN, op.ANY, op.NOT_LITERAL))
        self.alphabet = "".join(dict.fromkeys("".join(each[:3] for each in used) + literals))[:14]
        self.inner: list[tuple[str, list[str]]] = []
        found = [*self.alphabet]
        self._walk("", list(self.tree), found)
        found += ["".join(pair) for pair in product(self.alphabet, repeat=2)]
        self.pumps = list(dict.fromkeys(text for text in found if text and len(text) <= 200))

    def __iter__(self) -> Iterator[tuple[str, str, str]]:
        """A beginning, what to repeat and an end that lets the match fail."""
        found = [*self._all()]
        # Of the patterns with many words only every second, third or later text.
        return iter(found[:: 1 + len(found) // MOST_TEXTS])

    def _all(self) -> Iterator[tuple[str, str, str]]:
        for pump in self.pumps:
            for end in ("", self._stranger(pump)):
                yield "", pump, end
        for before, pumps in self.inner:
            for pump in pumps:
                for end in dict.fromkeys(("", "\x00", self._stranger(pump))):
                    yield before, pump, end

    def _stranger(self, pump: str) -> str:
        return next((each for each in "\n\x00!" + self.alphabet if each not in pump), "~")

    def _nodes(self, sequence: Iterable[Node]) -> Iterator[Node]:
        for node in sequence:
            yield node
            for inside in parts(node):
                yield from self._nodes(inside)

    def _literals(self, sequence: Iterable[Node]) -> Iterator[str]:
        for code, value in self._nodes(sequence):
            if code in (op.LITERAL, op.NOT_LITERAL):
                yield chr(value)
            elif code is op.IN:
                for kind, item in value:
                    if kind is op.LITERAL:
                        yield chr(item)
                    elif kind is op.RANGE:
                        yield chr(item[0])

    def _of(self, node: Node) -> str:
        """The candidates that a node of one character matches."""
        if (key := str(node)) not in self._members:
            one = parser.SubPattern(self.tree.state, [node])
            accepts = compiler.compile(one, self._flags & (re.IGNORECASE | re.ASCII | re.DOTALL)).match
            self._members[key] = "".join(each for each in self._candidates if accepts(each))
        return self._members[key]

    def sample(self, sequence: Iterable[Node], variant: int) -> str:
        """A text that a part of the pattern matches, but for what lookarounds and anchors demand."""
        return "".join(self._sampled(node, variant) for node in sequence)

    def _sampled(self, node: Node, variant: int) -> str:
        code, value = node
        if code is op.LITERAL:
            return chr(value)
        if code in (op.IN, op.ANY, op.NOT_LITERAL):
            found = self._of(node) or "~"
            return found[variant % len(found)]
        if code in REPEATS:
            least, most, inside = value
            return self.sample(inside, variant) * max(least, min(most, variant % 2))
        if code is op.BRANCH:
            return self.sample(value[1][variant % len(value[1])], variant)
        if code is op.GROUPREF:
            return "a"
        if code in (op.ASSERT, op.ASSERT_NOT):
            return ""
        return "".join(self.sample(inside, variant) for inside in parts(node))

    def _walk(self, before: str, sequence: list[Node], found: list[str]) -> None:
        for start, node in enumerate(sequence):
            for end in {start + 1, start + 2, start + 3, len(sequence)}:
                found += [self.sample(sequence[start:end], variant) for variant in range(4)]
            ahead = before + self.sample(sequence[:start], 1)
            if node[0] in REPEATS:
                inside = node[1][2]
                pumps = [self.sample(inside, variant) for variant in range(6)]
                self.inner.append((ahead, [each for each in dict.fromkeys(pumps) if each]))
            for inside in parts(node):
                self._walk(ahead, list(inside), found)


def parts(node: Node) -> list[Any]:
    """The sequences within a node of a parse tree."""
    code, value = node
    if code in REPEATS:
        return [value[2]]
    if code is op.BRANCH:
        return list(value[1])
    if code is op.SUBPATTERN:
        return [value[3]]
    if code is op.ATOMIC_GROUP:
        return [value]
    if code in (op.ASSERT, op.ASSERT_NOT):
        return [value[1]]
    return []


class Endless(Exception):
    pass


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `Endless` in a search that takes longer: `re` handles signals while it searches."""

    def end(*_: object) -> None:
        raise Endless

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def spent(use: Use, text: str, times: int = 1) -> float:
    """Seconds of this thread's CPU, the least of a few searches."""
    subject: Any = text.encode("latin-1", "replace") if isinstance(use.pattern.pattern, bytes) else text
    taken = []
    for _ in range(times):
        began = time.thread_time()
        METHODS[use.method](use.pattern, subject)
        taken.append(time.thread_time() - began)
    return min(taken)


def slowness(use: Use, before: str, pump: str, after: str) -> str | None:
    """The text that shows that a pattern takes too long, as Python writes it."""

    def text(length: int) -> str:
        return before + pump * (length // len(pump)) + after

    def is_slow() -> bool:
        if use.bound:
            return spent(use, text(use.bound)) > BOUNDED and spent(use, text(use.bound), 25) > BOUNDED
        for short in (16, 32, 64):  # where it is exponential, this ends sooner
            spent(use, text(short))
        long = spent(use, text(LONG))
        if long < QUICK or long < spent(use, text(SHORT)) * GROWTH / 2:
            return False
        # A busy machine may disturb one comparison, and it takes many to disturb all.
        return all(spent(use, text(LONGEST), 5) > GROWTH * spent(use, text(LONG), 5) for _ in range(10))

    try:
        with limited(ENDLESS):
            return f"{before!r} + {pump!r} * n + {after!r}" if is_slow() else None
    except Endless:
        return f"{before!r} + {pump!r} * n + {after!r}"


def slow(uses: Iterable[Use]) -> Iterator[str]:
    for use in uses:
        shown = next(filter(None, (slowness(use, *text) for text in Texts(use.pattern))), None)
        if shown:
            yield f"{use.place}: {use.method} in {shown}: {use.pattern.pattern!r}"


@pytest.mark.long
def test_every_pattern_is_linear_or_its_text_has_a_bound() -> None:
    assert [*slow(uses())] == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"\s+$", "search"),
        (r"^\W*role", "search"),
        (r"(a+)+b", "match"),
        (r"(\w+(?: \w+)?(?:, \w+)+ or \w+)", "findall"),
        (rb'"[^"]*(?:\\.[^"]*)*"|x', "finditer"),
    ],
)
def test_a_pattern_that_is_not_is_found(pattern: str, method: str) -> None:
    assert [*slow([Use("here", re.compile(pattern, re.MULTILINE), method)])] != []
