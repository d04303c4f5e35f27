"""Tables in Markdown, and the fixed numbers beside what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

Row = Sequence[object]


@dataclass(frozen=True)
class Target:
    """A number that must be reached. `measured` is None where it was not measured."""

    what: str
    wanted: str
    measured: str | None
    reached: bool

    @classmethod
    def at_least(cls, what: str, least: float, measured: float | None, form: str = ".2f") -> Target:
        shown = None if measured is None else format(measured, form)
        return cls(what, f"≥ {least:g}", shown, measured is not None and measured >= least)

    @classmethod
    def at_most(
        cls, what: str, most: float, measured: float | None, form: str = ".2f", unit: str = ""
    ) -> Target:
        shown = None if measured is None else f"{measured:{form}}{unit}"
        return cls(what, f"≤ {most:g}{unit}", shown, measured is not None and measured <= most)

    @classmethod
    def holds(cls, what: str, wanted: str, holds: bool) -> Target:
        return cls(what, wanted, "yes" if holds else "no", holds)


@dataclass
class Section:
    """One table with a title, what there is to know of it, and the targets it decides."""

    title: str
    about: str
    columns: Sequence[str]
    rows: list[Row] = field(default_factory=list[Row])
    targets: list[Target] = field(default_factory=list[Target])

    def to_markdown(self) -> str:
        return f"### {self.title}\n\n{self.about}\n\n{table(self.columns, self.rows)}"


def targets_table(targets: Iterable[Target]) -> str:
    """Every fixed number, and whether it was reached."""
    rows: list[Row] = []
    for one in targets:
        reached = "–" if one.measured is None else "yes" if one.reached else "**no**"
        rows.append((one.what, one.wanted, one.measured or "not measured", reached))
    return table(("fixed number", "wanted", "measured", "reached"), rows)


def table(columns: Sequence[str], rows: Iterable[Row]) -> str:
    """A Markdown table; the first column is left, the others are right."""
    lines = [
        f"| {' | '.join(columns)} |",
        f"|---|{'---:|' * (len(columns) - 1)}",
        *(f"| {' | '.join(str(cell) for cell in row)} |" for row in rows),
    ]
    return "\n".join(lines)


def medians(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The median of each number over the repetitions."""
    return {name: median(run[name] for run in runs) for name in runs[0]}
