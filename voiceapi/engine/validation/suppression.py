"""What the author of a workflow doesn't want to be told: `lint_ignore`, a list of codes, at a node or an edge."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from ..graph import data_of
from .field_types import IGNORE
from .finding import Finding
from .lint_rules import RULES
from .outline import Outline

# Kind and id of what the codes belong to; the workflow has no id.
_Owner = tuple[str, str | None]
_WORKFLOW: _Owner = ("workflow", None)


def suppressed(
    outline: Outline, configurations: Mapping[str, Any], found: Iterable[Finding], unchecked: Collection[str] = ()
) -> tuple[list[Finding], int]:
    """Return the findings that aren't ignored, with those about the lists of codes themselves; and how many are.

    The configurations' codes count for the whole workflow. What prevents publishing can't be ignored.

    :param unchecked: the codes whose rules weren't asked, so that ignoring one isn't reported as having no effect.
    """
    lists = list(_lists(outline, configurations))
    ignored: dict[_Owner, set[str]] = {}
    for owner, _, codes in lists:
        ignored.setdefault(owner, set()).update(code for code in codes if can_be_ignored(code))
    kept: list[Finding] = []
    used: set[tuple[_Owner, str]] = set()
    count = 0
    # Which codes nothing is found for is known after the others.
    for finding in chain(found, _about(lists, used, {*unchecked, "unused-ignore"})):
        owners = [each for each in ((finding.kind, finding.id), _WORKFLOW) if finding.code in ignored.get(each, ())]
        used.update((owner, finding.code) for owner in owners)
        if owners:
            count += 1
        else:
            kept.append(finding)
    return kept, count


def _lists(outline: Outline, configurations: Mapping[str, Any]) -> Iterator[tuple[_Owner, str, list[str]]]:
    """Yield each list of codes: whose it is, the field that it is in, and the codes; what isn't text is skipped."""
    for kind, items in (("node", outline.by_id.values()), ("edge", outline.edges)):
        for item in items:
            if isinstance(codes := data_of(item).get(IGNORE), list) and isinstance(id := item.get("id"), str):
                yield (kind, id), f"data.{IGNORE}", [each for each in codes if isinstance(each, str)]
    if isinstance(codes := configurations.get(IGNORE), list):
        field = f"workflow_configurations.{IGNORE}"
        yield _WORKFLOW, field, [each for each in codes if isinstance(each, str)]


def can_be_ignored(code: str) -> bool:
    """Return whether `lint_ignore` may name a code: that of a rule which doesn't prevent publishing."""
    return code in RULES and not RULES[code].prevents_publishing


def _about(
    lists: Iterable[tuple[_Owner, str, list[str]]], used: Collection[tuple[_Owner, str]], excused: Collection[str]
) -> Iterator[Finding]:
    """Yield what is wrong with the lists of codes."""
    for owner, field, codes in lists:
        kind: Any = owner[0]
        for index, code in enumerate(codes):
            place = f"{field}.{index}"
            if code not in RULES:
                text = f'There is no rule "{code[:60]}".'
                yield Finding(kind, owner[1], place, text, "unknown-ignored-code")
            elif RULES[code].prevents_publishing:
                text = f'"{code}" prevents publishing and can\'t be ignored.'
                yield Finding(kind, owner[1], place, text, "unknown-ignored-code")
            elif (owner, code) not in used and code not in excused:
                yield Finding(kind, owner[1], place, f'Nothing is found here for "{code}".', "unused-ignore")
