"""What was spent, by day and by run: from the ledger, and of a killed run from its trace too."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from promptchain_dagster.chain.trace import read_trace
from promptchain_dagster.models.base import NO_USAGE, Usage
from promptchain_dagster.models.ledger import Page, read_pages
from promptchain_dagster.store import Store


@dataclass(frozen=True, slots=True)
class RunUsage:
    """What a run spent on a day. `ended` is False where it is under way, or was killed: requests
    that were in flight then are not counted."""

    run_id: str
    model_calls: int
    usage: Usage
    ended: bool


@dataclass(frozen=True, slots=True)
class DayUsage:
    """What was spent on a UTC day (2026-11-30), by run."""

    date: str
    runs: tuple[RunUsage, ...]

    @property
    def model_calls(self) -> int:
        return sum(run.model_calls for run in self.runs)

    @property
    def usage(self) -> Usage:
        return sum((run.usage for run in self.runs), NO_USAGE)


def usage_between(store: Store, since: date, until: date) -> list[DayUsage]:
    """The days from `since` to `until` on which anything was spent, each with its runs.

    A run that came to its end is told by the ledger; what a killed one, or one under way, had not
    yet written there is told by its trace. Raises `StoreError`.
    """
    # One day more: a run that was killed right after midnight left its page on the day before.
    days = (until - since).days + 1
    dates = [(since + timedelta(days=n)).isoformat() for n in range(-1, days)]
    pages = {page.name: page for day in dates for page in read_pages(store, day)}
    told: dict[str, dict[str, _Sum]] = {day: {} for day in dates[1:]}
    for page in pages.values():
        if page.date in told:
            _sum(told, page.date, page.run_id).add_page(page)
    for run_id in sorted({page.run_id for page in pages.values() if not page.ended}):
        for name, paid in _not_in_ledger(store, run_id, pages):
            day = name.partition("/")[0]
            if day in told:
                _sum(told, day, run_id).add_request(Usage(**paid["usage"]))
    found = [
        DayUsage(day, tuple(one.of(run_id) for run_id, one in sorted(runs.items()) if one.requests))
        for day, runs in told.items()
    ]
    return [day for day in found if day.runs]


@dataclass
class _Sum:
    requests: int = 0
    usage: Usage = field(default_factory=lambda: NO_USAGE)
    ended: bool = True

    def add_page(self, page: Page) -> None:
        self.requests += page.spent.requests
        self.usage += page.spent.usage
        self.ended = self.ended and page.ended

    def add_request(self, usage: Usage) -> None:
        self.requests += 1
        self.usage += usage
        self.ended = False

    def of(self, run_id: str) -> RunUsage:
        return RunUsage(run_id, self.requests, self.usage, self.ended)


def _sum(told: dict[str, dict[str, _Sum]], day: str, run_id: str) -> _Sum:
    return told[day].setdefault(run_id, _Sum())


def _not_in_ledger(
    store: Store, run_id: str, pages: dict[str, Page]
) -> Iterable[tuple[str, dict[str, Any]]]:
    """The requests that the trace has and the page that they belong to has not, with its name."""
    for attempt in read_trace(store, run_id):
        for paid in attempt["paid"]:
            name, _, number = str(paid["entry"]).partition("#")
            page = pages.get(name)
            if number and (page is None or int(number) > page.spent.requests):
                yield name, paid
