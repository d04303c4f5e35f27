"""What was spent on a day by all runs: pages `ledger/<UTC date>/<run_id>.<mark>.json`.

Each process of a run writes a page of its own and no other, so nothing is locked and nothing is
lost between them. A page is there before the first request is sent, and counts the requests in the
order in which they came to an end. So the first `requests` of them are in it, and of a process that
was killed, the trace tells the others: each request bears its place, `<date>/<run_id>.<mark>#<n>`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from types import TracebackType
from typing import Any, cast

from promptchain_dagster.errors import StoreError
from promptchain_dagster.models.base import Usage
from promptchain_dagster.models.budget import NOTHING_SPENT, Budget, Spent
from promptchain_dagster.reattempt import Sleep
from promptchain_dagster.store import Store

log = logging.getLogger(__name__)

EVERY_SECONDS = 5.0
_LEDGER = "ledger/"


def utc_today() -> str:
    """The date in UTC, as 2026-11-30."""
    return datetime.now(timezone.utc).date().isoformat()


@dataclass(frozen=True)
class Day:
    """What each run spent on `date`, by its id, and all of them together."""

    date: str
    runs: Mapping[str, Spent]
    total: Spent


@dataclass(frozen=True)
class Page:
    """What one process of the run `run_id` spent on `date`; `ended` where it came to its end, and
    so is whole. `name` begins the places of its requests."""

    name: str
    date: str
    run_id: str
    spent: Spent
    ended: bool


def read_pages(store: Store, date: str) -> list[Page]:
    """The pages for the UTC `date` (2026-11-30); none is no error.

    A damaged one counts nothing, as if it had not ended, and is warned of. Raises `StoreError`.
    """
    pages: list[Page] = []
    for key in store.list(_folder(date)):
        held = _read(store, key) or _Entry(NOTHING_SPENT, ended=False)
        name = key.removeprefix(_LEDGER).removesuffix(".json")
        pages.append(Page(name, date, _run_of(name), held.spent, held.ended))
    return pages


def read_day(store: Store, date: str) -> Day:
    """What the pages for the UTC `date` come to; raises `StoreError`."""
    runs: dict[str, Spent] = {}
    for page in read_pages(store, date):
        if page.spent.requests:
            runs[page.run_id] = runs.get(page.run_id, NOTHING_SPENT) + page.spent
    return Day(date, runs, sum(runs.values(), NOTHING_SPENT))


class Ledger:
    """One process' page in the ledger, and what the others have spent today.

    To be entered for as long as the run makes calls: `async with Ledger(...) as ledger`. The page
    is written at the start, then every `every_seconds` at most, in a thread, and once more at the
    end, where one on which nothing was spent goes again; with a `day_budget` the others' pages are
    read at the start and as often.

    Entering raises `StoreError` where the ledger can't be read or written. A later failure is
    warned of, and tried again.
    """

    def __init__(
        self,
        store: Store,
        run_id: str,
        *,
        day_budget: Budget | None = None,
        every_seconds: float = EVERY_SECONDS,
        sleep: Sleep = asyncio.sleep,
        today: Callable[[], str] = utc_today,
    ) -> None:
        self.day_budget = day_budget or Budget()
        self._store, self._name = store, f"{run_id}.{secrets.token_hex(4)}"
        self._every, self._sleep, self._today = every_seconds, sleep, today
        self._own: dict[str, Spent] = {}
        self._written: dict[str, Spent] = {}
        self._others = (today(), NOTHING_SPENT)
        self._ended: dict[str, Spent] = {}
        self._writing = threading.Lock()
        self._syncing: asyncio.Task[None] | None = None

    def add(self, spent: Spent) -> str:
        """Count what one request of this run took, for today; its place."""
        today = self._today()
        own = self._own[today] = self._own.get(today, NOTHING_SPENT) + spent
        return f"{today}/{self._name}#{own.requests}"

    def spent_today(self) -> Spent:
        """What all runs have spent today, as far as it is known here."""
        today = self._today()
        date, others = self._others
        own = self._own.get(today, NOTHING_SPENT)
        return own + others if date == today else own

    async def __aenter__(self) -> Ledger:
        await asyncio.to_thread(self._begin)
        self._syncing = asyncio.ensure_future(self._sync_for_ever())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._syncing is not None
        self._syncing.cancel()
        # Not in a thread: a second cancellation must not lose what was spent.
        try:
            self._write(ended=True)
        except StoreError as error:
            log.error("what this run spent is not in the ledger: %s", error)
        await asyncio.gather(self._syncing, return_exceptions=True)

    async def _sync_for_ever(self) -> None:
        while True:
            await self._sleep(self._every)
            try:
                await asyncio.to_thread(self._sync)
            except StoreError as error:
                log.warning("the ledger is behind: %s", error)

    def _begin(self) -> None:
        self._own[self._today()] = NOTHING_SPENT
        self._sync()

    def _sync(self) -> None:
        self._write(ended=False)
        self._read_others()

    def _write(self, *, ended: bool) -> None:
        # What is written is looked up under the lock, so that a late thread writes nothing old.
        with self._writing:
            for date, spent in list(self._own.items()):
                key = f"{_folder(date)}{self._name}.json"
                if ended and not spent.requests:
                    self._store.delete(key)
                elif ended or self._written.get(date) != spent:
                    self._store.write(key, _Entry(spent, ended).to_json())
                    self._written[date] = spent

    def _read_others(self) -> None:
        if not self.day_budget:
            return
        today = self._today()
        if today != self._others[0]:
            self._ended.clear()
        total = NOTHING_SPENT
        for key in self._store.list(_folder(today)):
            if key != f"{_folder(today)}{self._name}.json":
                total += self._ended.get(key) or self._read_other(key)
        self._others = (today, total)

    def _read_other(self, key: str) -> Spent:
        entry = _read(self._store, key)
        if entry is None:
            return NOTHING_SPENT
        if entry.ended:
            self._ended[key] = entry.spent
        return entry.spent


@dataclass(frozen=True)
class _Entry:
    spent: Spent
    ended: bool

    def to_json(self) -> bytes:
        return json.dumps({**asdict(self.spent), "ended": self.ended}, indent=2).encode()


def _read(store: Store, key: str) -> _Entry | None:
    data = store.read(key)
    if data is None:
        return None
    try:
        page = cast("dict[str, Any]", json.loads(data))
        ended = bool(page.pop("ended"))
        usage = Usage(**page.pop("usage"))
        return _Entry(Spent(**page, usage=usage) + NOTHING_SPENT, ended)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        log.warning("%s is damaged and counts nothing: %s", store.url_of(key), error)
        return None


def _folder(date: str) -> str:
    return f"{_LEDGER}{date}/"


def _run_of(name: str) -> str:
    return name.rpartition("/")[2].rpartition(".")[0]
