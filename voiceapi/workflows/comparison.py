"""The differences between two versions of a workflow, for programs and in words, with secrets masked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from difflib import Match, SequenceMatcher
from itertools import takewhile
from typing import Any

from ..engine.graph import data_of, objects
from ..llm.configuration import mask_override
from ..security import Vault
from ..store import secret_fields
from ..store.base import json_text
from ..store.workflows import WorkflowVersion
from ..strict_json import decode, encode
from . import node_types

# What follows the mask of a secret that differs from the one before it, when both have the same mask.
CHANGED = " (another one)"
# Pairs of equal words that may be looked at in all texts of two versions together, which takes 0.4 s. A text takes at
# most half of what is left, so that a short one after a long one still has some.
MOST_PAIRS = 5_000_000
# Members of nodes and edges in which no change counts: the id matches them, and editors store the rest for themselves.
_MATCHED = ("id", "data", "position")
_EDITORS = ("width", "height", "selected", "measured", "dragging", "positionAbsolute", "animated", "markerEnd")
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")

Part = dict[str, Any]
Key = tuple[str, int]


def compare_versions(vault: Vault, before: WorkflowVersion, after: WorkflowVersion) -> dict[str, Any]:
    """What differs between two versions, as `difference.compare` answers it."""
    old, new = (secret_fields.masked(vault, each.definition, secret_fields.in_definition) for each in (before, after))
    return compare(
        old,
        _with_changes_marked(vault, before.definition, after.definition, new),
        _configurations(vault, before),
        _configurations(vault, after),
        before.template_context_variables,
        after.template_context_variables,
    )


def _configurations(vault: Vault, version: WorkflowVersion) -> dict[str, Any]:
    shown: dict[str, Any] = decode(
        encode(mask_override(vault, json_text(version, WorkflowVersion.configurations))).decode()
    )
    return shown


def _with_changes_marked(
    vault: Vault, before: Mapping[str, Any], after: Mapping[str, Any], masked: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The masked definition, in which each secret whose mask doesn't show that it was changed says so."""
    old, new, shown = (
        {field.place: field for field in found}
        for found in (
            _clear(vault, before),
            _clear(vault, after),
            secret_fields.in_definition(masked),
        )
    )
    masks = {
        field.place: field.text
        for field in secret_fields.in_definition(secret_fields.masked(vault, before, secret_fields.in_definition))
    }
    result = deepcopy(masked)
    for place, field in new.items():
        if place in old and old[place].text != field.text and place in shown and masks.get(place) == shown[place].text:
            holder: Any = result
            for step in field.path[:-1]:
                holder = holder[step]
            holder[field.path[-1]] += CHANGED
    return result


def _clear(vault: Vault, definition: Mapping[str, Any]) -> Iterable[secret_fields.SecretField]:
    return secret_fields.in_definition(secret_fields.decrypted(vault, definition, secret_fields.in_definition))


def compare(
    before: object,
    after: object,
    configurations_before: Mapping[str, Any] | None = None,
    configurations_after: Mapping[str, Any] | None = None,
    variables_before: Mapping[str, Any] | None = None,
    variables_after: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What differs between two definitions, whatever their shapes, their configurations and template variables.

    :return: `nodes` and `edges`, each with `added`, `removed` and `changed`, and with `order`, the ids in their new
        order if it isn't that of those kept with those added behind them; `moved`, the nodes whose position alone or
        also differs; `configurations` and `variables` as lists of changed fields; `sentences`, all of it in words;
        `is_same`, true if there is none of it. What is added and removed is there whole, as `item`. Of a text with
        several words, `words` shows what was kept, added and removed; where that would take long, the whole text was.

    Applied to the definition before, it gives the one after, but for what editors store for themselves; a member that
    is null is the same as one that is missing.
    """
    by_word = _ByWord()
    nodes = _compare(_by_key(before, "nodes"), _by_key(after, "nodes"), _node, by_word)
    names_before, names_after = _names(before), _names(after)

    def edge(item: Mapping[str, Any]) -> Part:
        label = data_of(item).get("label")
        ends = {end: _shown_id(item.get(end)) for end in ("source", "target")}
        return {"id": _shown_id(item.get("id")), "label": label if isinstance(label, str) else "", **ends}

    edges = _compare(_by_key(before, "edges"), _by_key(after, "edges"), edge, by_word)
    moved = _moved(before, after)
    configurations = list(_fields(configurations_before or {}, configurations_after or {}, by_word))
    variables = list(_fields(variables_before or {}, variables_after or {}, by_word))
    sentences = [
        *_node_sentences(nodes),
        *_edge_sentences(edges, names_before, names_after),
        *_order_sentences(before, after),
        *_moved_sentence(moved),
        *_note_sentences(before, after),
        *(_set("The setting", change) for change in configurations),
        *(_set("The template variable", change) for change in variables),
    ]
    return {
        "is_same": not sentences,
        "sentences": sentences or ["Nothing differs."],
        "nodes": nodes,
        "edges": edges,
        "moved": moved,
        "configurations": configurations,
        "variables": variables,
    }


def _by_key(definition: object, list_name: str) -> dict[Key, Mapping[str, Any]]:
    """The nodes or edges by id; of several with one id, and of those without, the first, the second and so on."""
    seen: Counter[str] = Counter()
    found: dict[Key, Mapping[str, Any]] = {}
    for item in objects(definition, list_name):
        id = _shown_id(item.get("id")) or ""
        found[id, seen[id]] = item
        seen[id] += 1
    return found


def _shown_id(value: object) -> str | None:
    return value if isinstance(value, str) else None if value is None else str(value)[:100]


def _node(item: Mapping[str, Any]) -> Part:
    type, name = item.get("type"), data_of(item).get("name")
    id = _shown_id(item.get("id"))
    return {
        "id": id,
        "type": type if isinstance(type, str) else "",
        "name": name if isinstance(name, str) and name.strip() else id or "a node without a name",
    }


def _names(definition: object) -> dict[str | None, str]:
    return {node["id"]: node["name"] for node in map(_node, objects(definition, "nodes"))}


def _compare(
    before: dict[Key, Mapping[str, Any]], after: dict[Key, Mapping[str, Any]], part: Any, by_word: _ByWord
) -> Part:
    changed = []
    for key, new in after.items():
        old = before.get(key, new)
        fields = [
            *_fields(_envelope(old), _envelope(new), by_word),
            *_fields(data_of(old), data_of(new), by_word, "data."),
        ]
        if fields:
            changed.append({**part(new), "fields": fields})
    kept, added = [key for key in before if key in after], [key for key in after if key not in before]
    return {
        "added": [{**part(after[key]), "item": after[key]} for key in added],
        "removed": [{**part(item), "item": item} for key, item in before.items() if key not in after],
        "changed": changed,
        "order": None if [*kept, *added] == [*after] else [_shown_id(item.get("id")) for item in after.values()],
    }


def _envelope(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name not in _MATCHED and name not in _EDITORS}


def _fields(old: Mapping[str, Any], new: Mapping[str, Any], by_word: _ByWord, prefix: str = "") -> Iterator[Part]:
    """The members that differ; one that is missing is shown as null, and equals it."""
    for name in dict.fromkeys((*new, *old)):
        was, now = old.get(name), new.get(name)
        if _is_same(was, now):
            continue
        change: Part = {"field": f"{prefix}{name}", "old": was, "new": now}
        if isinstance(was, str) and isinstance(now, str):
            change["words"] = by_word.parts(was, now)
        yield change


def _is_same(old: Any, new: Any) -> bool:
    """True for equal JSON values; to Python, 1 and true are equal."""
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(_is_same(old[name], new[name]) for name in old)
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(_is_same, old, new))
    return bool(old == new) and isinstance(old, bool) == isinstance(new, bool)


class _TakesLong(Exception):
    """Comparing two texts by word looks at more pairs than it may."""


class _Matcher(SequenceMatcher[str]):
    """The matcher of the standard library, which takes up to the cube of the lengths, with a bound.

    :ivar pairs: how many pairs of equal words it may still look at.
    """

    pairs = 0
    a: list[str]
    b2j: dict[str, list[int]]

    def find_longest_match(self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None) -> Match:
        words = self.a[alo:ahi]
        self.pairs -= len(words) + sum(len(self.b2j.get(word, ())) for word in words)
        if self.pairs < 0:
            raise _TakesLong
        return super().find_longest_match(alo, ahi, blo, bhi)


class _ByWord:
    """Compares texts by word, within one bound for all of them."""

    def __init__(self) -> None:
        self._left = MOST_PAIRS

    def parts(self, old: str, new: str) -> list[Part]:
        """A text's change: parts that were kept, removed and added, in reading order."""
        was, now = _WORDS.findall(old), _WORDS.findall(new)
        # Most changes are at few places: what surrounds them all needs no search.
        start = _common(was, now)
        end = _common(was[start:][::-1], now[start:][::-1])
        was, after = was[start : len(was) - end], was[len(was) - end :]
        before, now = now[:start], now[start : len(now) - end]
        parts: list[Part] = []
        for change, text in (("kept", before), *self._changes(was, now), ("kept", after)):
            if text and parts and parts[-1]["change"] == change:
                parts[-1]["text"] += "".join(text)
            elif text:
                parts.append({"change": change, "text": "".join(text)})
        return parts

    def _changes(self, was: list[str], now: list[str]) -> Iterator[tuple[str, list[str]]]:
        matcher = _Matcher(None, was, now, autojunk=False)
        matcher.pairs = allowed = self._left // 2
        try:
            blocks = matcher.get_opcodes()
        except _TakesLong:
            blocks = [("replace", 0, len(was), 0, len(now))]
        self._left -= allowed - max(0, matcher.pairs)
        for what, a, b, c, d in blocks:
            if what == "equal":
                yield "kept", was[a:b]
            else:
                yield "removed", was[a:b]
                yield "added", now[c:d]


def _common(was: list[str], now: list[str]) -> int:
    """With how many equal words two lists begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(was, now, strict=False)))


def _moved(before: object, after: object) -> list[Part]:
    old, new = _by_key(before, "nodes"), _by_key(after, "nodes")
    return [
        {**_node(item), "old": old[key].get("position"), "new": item.get("position")}
        for key, item in new.items()
        if key in old and not _is_same(old[key].get("position"), item.get("position"))
    ]


def _node_sentences(nodes: Part) -> Iterator[str]:
    for word in ("added", "removed"):
        for node in nodes[word]:
            yield f"{word.capitalize()} the {_type(node['type'])} “{node['name']}”."
    for node in nodes["changed"]:
        spec = node_types.by_name().get(node["type"], {})
        titles = {f"data.{prop['name']}": prop["display_name"] for prop in spec.get("properties", ())}
        for change in node["fields"]:
            if change["field"] == "data.name":
                yield f"Renamed “{change['old']}” to “{change['new']}”."
            elif change["field"] == "type":
                old, new = _type(change["old"]), _type(change["new"])
                yield f"“{node['name']}” was of the type {old}, and is of the type {new} now."
            else:
                title = titles.get(change["field"], change["field"].removeprefix("data."))
                yield _set(f"“{node['name']}”:", {**change, "field": title})


def _type(name: object) -> str:
    spec = node_types.by_name().get(name) if isinstance(name, str) else None
    return str(spec["display_name"]) if spec else f"unknown “{name}”"


def _edge_sentences(edges: Part, before: dict[str | None, str], after: dict[str | None, str]) -> Iterator[str]:
    for word, names in (("added", after), ("removed", before)):
        for edge in edges[word]:
            yield f"{word.capitalize()} the edge {_edge_name(edge, names)}."
    for edge in edges["changed"]:
        name = _edge_name(edge, after)
        for change in edge["fields"]:
            field = change["field"].removeprefix("data.")
            if field in ("source", "target"):
                was = before.get(_shown_id(change["old"]), change["old"])
                word = "began at" if field == "source" else "led to"
                yield f"The edge {name} {word} “{was}” before."
            elif field == "label":
                yield f"The edge {name} was called “{change['old']}” before."
            else:
                yield _set(f"The edge {name}:", {**change, "field": field})


def _edge_name(edge: Part, names: dict[str | None, str]) -> str:
    source, target = (names.get(edge[end], edge[end]) for end in ("source", "target"))
    return f"“{edge['label']}” from “{source}” to “{target}”"


def _order_sentences(before: object, after: object) -> Iterator[str]:
    """Where the order of what was kept differs: a caller whose words fit two edges takes the first one."""
    for kind in ("nodes", "edges"):
        old, new = _by_key(before, kind), _by_key(after, kind)
        if [key for key in old if key in new] != [key for key in new if key in old]:
            yield f"The {kind} stand in another order."


def _moved_sentence(moved: list[Part]) -> Iterator[str]:
    if len(moved) == 1:
        yield f"Moved “{moved[0]['name']}” in the drawing."
    elif moved:
        yield f"Moved {len(moved)} nodes in the drawing."


def _note_sentences(before: object, after: object) -> Iterator[str]:
    if list(objects(before, "notes")) != list(objects(after, "notes")):
        yield "The notes on the canvas differ."


def _set(what: str, change: Part) -> str:
    """A change of a value as a sentence; a long value is only named."""
    old, new = (_value(change[each]) for each in ("old", "new"))
    was = "" if old is None else f", and was {old}"
    subject = f"{what} {change['field']}"
    if change["new"] is None:
        return f"{subject} was removed{was}."
    if change["old"] is None:
        return f"{subject} was added." if new is None else f"{subject} is {new} now."
    return f"{subject} was changed." if new is None else f"{subject} is {new} now{was}."


def _value(value: object) -> str | None:
    """A short value in words; None for one that is too long to be read in a sentence."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int | float):
        return f"{value:g}" if abs(value) < 1e15 else None
    if value == "":
        return "empty"
    if isinstance(value, str) and len(value) <= 60 and "\n" not in value:
        return f"“{value}”"
    return None
