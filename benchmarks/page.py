"""docs/performance.md: the ratios that it states, whether they still hold, and the section that is written into it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .processes import ROOT

PAGE = ROOT / "docs" / "performance.md"
# Pages that show some of its figures, in tables of two columns.
SHOWING = (ROOT / "README.md", ROOT / "docs" / "scaling.md")
SECTION = "## Measured"
RATIOS = "### Ratios to a bare Flask route"
NOW = "now"
# A row of a table of two columns.
ROW = re.compile(r"\| ([^|]+) \| ([^|]+) \|\n")
# A ratio has fallen when it is below this share of what the page states.
LEAST_SHARE = 2 / 3


class PageError(ValueError):
    """The page doesn't have what is looked for; its text says what."""


def stated_ratios(text: str) -> dict[str, float]:
    """The ratios of the page's table by case.

    :raises PageError: when there is no such table, a row has no number, or there is no row.
    """
    _, heading, rest = text.partition(f"\n{RATIOS}\n")
    table = [line for line in re.split(r"\n#", rest)[0].splitlines() if line.startswith("|")]
    if not heading or len(table) < 3:
        raise PageError(f"The page has no table under {RATIOS!r}.")
    names, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in table)
    if NOW not in names:
        raise PageError(f"The table under {RATIOS!r} has no column {NOW!r}.")
    found = {}
    for row in rows:
        try:
            found[row[0]] = float(row[names.index(NOW)])
        except (ValueError, IndexError):
            raise PageError(f"The table under {RATIOS!r} has no number for {row[0]!r}.") from None
    return found


def fallen(stated: Mapping[str, float], measured: Mapping[str, float]) -> list[str]:
    """A sentence for each case whose ratio is below `LEAST_SHARE` of the stated one, or wasn't measured."""
    broken = []
    for name, value in stated.items():
        if name not in measured:
            broken.append(f"{name}: the page states a ratio of {value:g}, but there is no such case.")
        elif measured[name] < LEAST_SHARE * value:
            least = LEAST_SHARE * value
            broken.append(f"{name}: a ratio of {measured[name]:.3f} is below {least:.3f}, two thirds of {value:g}.")
    broken += [f"{name}: the page states no ratio of this case." for name in measured if name not in stated]
    return broken


def with_section(text: str, section: str) -> str:
    """The page with another text under SECTION, up to the next heading of its level.

    :raises PageError: when the page has no such section.
    """
    before, heading, rest = text.partition(f"\n{SECTION}\n")
    if not heading:
        raise PageError(f"The page has no section {SECTION!r}.")
    _, following, after = rest.partition("\n## ")
    return f"{before}{heading}\n{section.strip()}\n{following}{after}"


def with_figures(text: str, values: Mapping[str, str]) -> str:
    """A text whose tables of two columns have these values, by the names in the first column; other rows stay."""
    lines = []
    for line in text.splitlines(keepends=True):
        found = ROW.fullmatch(line)
        lines.append(f"| {found[1]} | {values[found[1]]} |\n" if found and found[1] in values else line)
    return "".join(lines)


def read() -> str:
    return PAGE.read_text(encoding="utf-8")


def write(section: str, values: Mapping[str, str]) -> None:
    """Replace the section that the benchmark writes, and the figures of the pages that show some of them.

    :param values: the figures as they are shown, by their labels.
    """
    PAGE.write_text(with_section(read(), section), encoding="utf-8")
    for path in SHOWING:
        path.write_text(with_figures(path.read_text(encoding="utf-8"), values), encoding="utf-8")
