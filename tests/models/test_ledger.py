"""What all runs of a day have spent: one page for each run, read by the others."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path

import pytest

from promptchain_dagster.errors import InvalidInput, StoreError
from promptchain_dagster.models import Budget, Calls, Completion, Ledger, Problem, Usage
from promptchain_dagster.models.base import UNKNOWN_USAGE
from promptchain_dagster.models.budget import Spent
from promptchain_dagster.models.ledger import read_day, read_pages
from promptchain_dagster.store import Store, open_store
from promptchain_dagster.testing import ScriptedChatModel
from tests.support.memory_store import MemoryStore

DAY = "2026-11-30"
NEXT_DAY = "2026-12-01"
ONE = Spent(1, 10, 0.25, Usage(6, 4, 0.25))
PAGE = f"ledger/{DAY}/a.json"


class Ticks:
    """A sleep that ends when the test says so; `pass_one` returns when the next one has begun."""

    def __init__(self) -> None:
        self._over = asyncio.Semaphore(0)
        self._begun = asyncio.Semaphore(0)
        self.asked: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.asked.append(seconds)
        self._begun.release()
        await self._over.acquire()

    async def begun(self) -> None:
        await self._begun.acquire()

    async def pass_one(self) -> None:
        self._over.release()
        await self._begun.acquire()


def today() -> str:
    return DAY


def spend(store: Store, run_id: str, times: int = 1, *, date: str = DAY) -> None:
    """A whole run that spends `times` as much as `ONE`."""

    async def main() -> None:
        async with Ledger(store, run_id, today=lambda: date) as ledger:
            for _ in range(times):
                ledger.add(ONE)

    asyncio.run(main())


def test_each_run_has_a_page_of_its_own_and_a_day_adds_them_up(tmp_path: Path) -> None:
    """On disk, under the date; another day's are not counted."""
    store = open_store(str(tmp_path))
    spend(store, "a", 2)
    spend(store, "b")
    spend(store, "c", date=NEXT_DAY)
    pages = list((tmp_path / "ledger" / DAY).iterdir())
    assert sorted(page.name.partition(".")[0] for page in pages) == ["a", "b"]
    day = read_day(store, DAY)
    assert day.runs == {"a": ONE + ONE, "b": ONE}
    assert day.total == Spent(3, 30, 0.75, Usage(18, 12, 0.75))
    assert read_day(store, "2020-01-01").total == Spent()


def test_unknown_usage_stays_unknown_in_the_ledger() -> None:
    """Beside the estimate that the budgets count."""
    store = MemoryStore()

    async def main() -> None:
        async with Ledger(store, "a", today=today) as ledger:
            ledger.add(Spent(1, 50, 0.1, UNKNOWN_USAGE))

    asyncio.run(main())
    assert read_day(store, DAY).total == Spent(1, 50, 0.1, UNKNOWN_USAGE)


def test_a_run_that_spends_nothing_leaves_nothing() -> None:
    """The page with which it began is gone again."""
    store = MemoryStore()
    spend(store, "a", 0)
    assert store.objects == {}
    assert store.lists == 0


def test_the_page_is_there_before_anything_is_spent_and_has_the_first_so_many_requests() -> None:
    """So what a killed run spent after its last writing is told by the places of its requests."""
    store = MemoryStore()
    places: list[str] = []

    async def main() -> None:
        ticks = Ticks()
        async with Ledger(store, "a", today=today, sleep=ticks.sleep) as ledger:
            (begun,) = read_pages(store, DAY)
            assert (begun.run_id, begun.spent, begun.ended) == ("a", Spent(), False)
            places.extend(ledger.add(ONE) for _ in range(2))
            await ticks.begun()
            await ticks.pass_one()
            places.append(ledger.add(ONE))
            (page,) = read_pages(store, DAY)
            assert (page.spent.requests, page.ended) == (2, False)
            assert places == [f"{page.name}#{number}" for number in (1, 2, 3)]

    asyncio.run(main())
    (page,) = read_pages(store, DAY)
    assert (page.spent.requests, page.ended) == (3, True)


def test_a_page_is_written_at_intervals_only_where_something_was_spent() -> None:
    """And in full at the end, however the run ends."""
    store = MemoryStore()
    writes: list[int] = []

    async def main() -> None:
        ticks = Ticks()
        async with Ledger(store, "a", today=today, sleep=ticks.sleep) as ledger:
            await ticks.begun()
            for spent in (3, 0, 1):
                for _ in range(spent):
                    ledger.add(ONE)
                await ticks.pass_one()
                writes.append(store.writes)
            ledger.add(ONE)
            assert set(ticks.asked) == {5.0}
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert writes == [2, 2, 3], "the first is the page with which it began"
    assert read_day(store, DAY).total.requests == 5
    (page,) = store.objects.values()
    assert json.loads(page)["ended"] is True


def test_each_process_of_a_run_has_a_page_of_its_own() -> None:
    """The next step of the same run adds to what the first one spent, be it at the same time."""
    store = MemoryStore()

    async def main() -> int:
        budget = Budget(max_tokens=1000)
        async with (
            Ledger(store, "a", today=today) as one,
            Ledger(store, "a", today=today, day_budget=budget) as other,
        ):
            one.add(ONE)
            other.add(ONE)
        await asyncio.to_thread(spend, store, "a", 3)
        async with Ledger(store, "a", today=today, day_budget=budget) as last:
            return last.spent_today().requests

    assert asyncio.run(main()) == 5
    assert read_day(store, DAY).runs == {"a": ONE + ONE + ONE + ONE + ONE}


def test_at_midnight_utc_a_new_page_begins() -> None:
    """And the day's spending is nothing again, the others' too."""
    store = MemoryStore()
    spend(store, "b", 4)
    date = [DAY]

    async def main() -> tuple[int, int]:
        budget = Budget(max_tokens=1000)
        async with Ledger(store, "a", day_budget=budget, today=lambda: date[0]) as ledger:
            ledger.add(ONE)
            before = ledger.spent_today().requests
            date[0] = NEXT_DAY
            ledger.add(ONE)
            return before, ledger.spent_today().requests

    assert asyncio.run(main()) == (5, 1)
    assert read_day(store, DAY).runs["a"] == ONE
    assert read_day(store, NEXT_DAY).runs == {"a": ONE}


def said() -> Completion:
    return Completion("ok", "stub", usage=Usage(6, 4, 0.0))


def test_a_day_s_budget_counts_what_earlier_runs_spent() -> None:
    """Nothing is sent once they have spent it; the error names the day and the limit."""
    store = MemoryStore()
    spend(store, "b", 9)
    model = ScriptedChatModel(lambda _: said())

    async def main() -> Calls:
        async with Ledger(store, "a", day_budget=Budget(max_tokens=100), today=today) as ledger:
            calls = Calls(model, ledger=ledger)
            for _ in range(5):
                await calls.complete("x")
            return calls

    calls = asyncio.run(main())
    assert len(model.prompts) == 1
    assert calls.ended_by is not None
    assert calls.ended_by.problem is Problem.BUDGET
    assert "all runs of this UTC day" in str(calls.ended_by)
    assert "max_tokens is 100; 100 spent" in str(calls.ended_by)
    assert read_day(store, DAY).runs["a"].tokens == 10


def test_a_run_learns_within_one_interval_what_another_spends_meanwhile() -> None:
    """Two runs at once: the one sees the other's page at its next reading."""
    store = MemoryStore()
    model = ScriptedChatModel(lambda _: said())
    budget = Budget(max_tokens=100)

    async def main() -> None:
        ticks = Ticks()
        async with Ledger(store, "a", day_budget=budget, today=today, sleep=ticks.sleep) as ledger:
            await ticks.begun()
            calls = Calls(model, ledger=ledger)
            assert (await calls.complete("x")).error is None
            await asyncio.to_thread(spend, store, "b", 9)
            await ticks.pass_one()
            assert (await calls.complete("x")).error is not None

    asyncio.run(main())
    assert len(model.prompts) == 1


def test_a_run_s_calls_are_in_the_ledger_without_any_budget() -> None:
    """As they are in the run's own sum."""
    store = MemoryStore()

    async def main() -> Calls:
        async with Ledger(store, "a", today=today) as ledger:
            calls = Calls(ScriptedChatModel(lambda _: said()), ledger=ledger, max_in_flight=3)
            await asyncio.gather(*(calls.complete("x") for _ in range(20)))
            return calls

    calls = asyncio.run(main())
    total = read_day(store, DAY).total
    assert (total.requests, total.tokens, total.usage) == (20, 200, calls.usage)
    assert store.lists == 1


def test_a_day_s_cost_budget_for_a_model_without_a_price_is_refused() -> None:
    """As for a run's."""

    async def main() -> None:
        ledger = Ledger(MemoryStore(), "a", day_budget=Budget(max_cost_usd=1.0))
        Calls(ScriptedChatModel([], name="no-such-model"), ledger=ledger)

    with pytest.raises(InvalidInput, match="'no-such-model'"):
        asyncio.run(main())


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b'{"tokens": "many"}', b"\xff\x00"])
def test_a_damaged_page_is_warned_of_and_counts_nothing(
    data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """The others' pages count as ever."""
    store = MemoryStore()
    spend(store, "b")
    store.write(PAGE, data)
    with caplog.at_level(logging.WARNING):
        assert read_day(store, DAY).runs == {"b": ONE}
    assert PAGE in caplog.text


class FailingStore(MemoryStore):
    """Can't be written while `broken`."""

    broken = False

    def write(self, key: str, data: bytes) -> None:
        if self.broken:
            raise StoreError(f"{key} can't be written: no space")
        super().write(key, data)


def test_a_page_that_can_t_be_written_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    """The run goes on, and says so."""
    store = FailingStore()

    async def main() -> None:
        ticks = Ticks()
        async with Ledger(store, "a", today=today, sleep=ticks.sleep) as ledger:
            await ticks.begun()
            store.broken = True
            ledger.add(ONE)
            await ticks.pass_one()
            assert store.writes == 1
            store.broken = False
            await ticks.pass_one()
            assert store.writes == 2

    asyncio.run(main())
    assert "no space" in caplog.text
    assert read_day(store, DAY).total == ONE
