"""Every token and dollar is counted once: the sum of the parts is the total, killed runs too."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from promptchain_dagster.chain.trace import read_trace, recorder
from promptchain_dagster.library.usage import DayUsage, RunUsage, usage_between
from promptchain_dagster.models import Call, CallError, Calls, Completion, Ledger, Problem, Usage
from promptchain_dagster.models.base import NO_USAGE, UNKNOWN_USAGE
from promptchain_dagster.models.budget import Spent
from promptchain_dagster.models.ledger import read_pages
from promptchain_dagster.refine.checkpoints import Checkpoints
from promptchain_dagster.refine.collection import summarize_collection
from promptchain_dagster.refine.documents import Document
from promptchain_dagster.refine.outcome import DocumentOutcome, Stopped, Summarized
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.refine.source import Source
from promptchain_dagster.store import Store
from promptchain_dagster.testing import ScriptedChatModel
from promptchain_dagster.tokens import get_encoder
from tests.support.folding import no_wait
from tests.support.memory_store import MemoryStore

DAY = date(2026, 11, 30)
SETTINGS = RefineSettings(chunk_tokens=12, max_words=6)
LONG = "This summary has far more words than the cap allows for."


class PhotographedStore(MemoryStore):
    """Keeps what a process would have left that was killed at the write `dies_at`."""

    left: dict[str, bytes] | None = None

    def write(self, key: str, data: bytes) -> None:
        at, self.dies_at = self.dies_at, None
        before = dict(self.objects)
        super().write(key, data)
        self.dies_at = at
        if self.writes == at:
            self.left = dict(self.objects) if self.after_write else before


class Work:
    """One run over some documents, answered by `replies`, and what its parts say of its cost."""

    def __init__(self, replies: Sequence[Any], store: MemoryStore, *, stop_at: int = 0) -> None:
        self.store, self.stop_at = store, stop_at
        self.documents: dict[str, DocumentOutcome] = {}
        self.most_in_flight = 3
        given = iter([*replies, *["S"] * 500])
        asked = 0

        async def reply(prompt: str) -> Any:
            nonlocal asked
            asked += 1
            if asked == self.stop_at:
                await asyncio.Event().wait()
            await asyncio.sleep(0)
            return next(given)

        self.model = ScriptedChatModel(reply)
        self.calls: Calls | None = None

    def run(self, run_id: str = "run") -> None:
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(self._work(run_id))

    async def _work(self, run_id: str) -> None:
        work = asyncio.ensure_future(self._summarize(run_id))
        while self.stop_at and not work.done():
            if len(self.model.prompts) >= self.stop_at:
                work.cancel()
            await asyncio.wait({work}, timeout=0.01)
        await work

    async def _summarize(self, run_id: str) -> None:
        async def on_document(source: Source, outcome: DocumentOutcome) -> None:
            self.documents[source.key] = outcome

        async with Ledger(self.store, run_id, today=DAY.isoformat) as ledger:
            self.calls = Calls(
                self.model, max_in_flight=self.most_in_flight, ledger=ledger, sleep=no_wait
            )
            await summarize_collection(
                [self._source(name) for name in "abcd"],
                SETTINGS,
                self.calls,
                Checkpoints(self.store),
                get_encoder(),
                on_document=on_document,
                on_left=lambda source, left: self.documents.update({source.key: left}),
                record=lambda source, index: recorder(
                    self.store, run_id, f"{source.key}/{index:06}"
                ),
            )

    def _source(self, name: str) -> Source:
        text = "\n\n".join(f"Paragraph {n} of {name} tells of {n} ships." for n in range(3))
        return Source(name, lambda: Document(f"{name}.md", name, text, ()))

    @property
    def total(self) -> tuple[int, Usage]:
        """By the calls of the run."""
        assert self.calls is not None
        return self.calls.requests, self.calls.usage

    def by_documents(self) -> tuple[int, Usage]:
        folded = [one for one in self.documents.values() if isinstance(one, Summarized | Stopped)]
        calls = sum(one.model_calls for one in folded)
        return calls, sum((one.usage for one in folded), NO_USAGE)


def by_attempts(store: Store, run_id: str = "run") -> tuple[int, Usage]:
    attempts = read_trace(store, run_id)
    for one in attempts:
        paid = sum((Usage(**request["usage"]) for request in one["paid"]), NO_USAGE)
        assert (len(one["paid"]), paid) == (one["requests"], Usage(**one["usage"]))
    usage = sum((Usage(**one["usage"]) for one in attempts), NO_USAGE)
    return sum(one["requests"] for one in attempts), usage


def by_day(store: Store, day: date = DAY) -> tuple[int, Usage]:
    (found,) = usage_between(store, day, day) or [DayUsage(day.isoformat(), ())]
    return found.model_calls, found.usage


def usages(cost: float | None) -> st.SearchStrategy[Usage]:
    return st.builds(
        Usage, st.integers(0, 50), st.integers(0, 50), st.just(cost), st.just(0)
    ) | st.just(UNKNOWN_USAGE)


# Costs are eighths of a dollar, whose sums are exact in any order.
some_usage = st.sampled_from([None, 0.125, 2.0]).flatmap(usages)
texts = st.sampled_from(["S", LONG, "", "<think>nothing else"])
some_reply = st.one_of(
    st.builds(Completion, texts, st.just("m"), st.just("stop"), some_usage),
    st.builds(Completion, texts, st.just("m"), st.just("length"), some_usage),
    st.builds(CallError, st.just(Problem.UNAVAILABLE), st.just("HTTP 500"), usage=some_usage),
    st.just(CallError(Problem.REFUSED, "no")),
)
quick = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


@quick
@given(st.lists(some_reply, max_size=40))
def test_attempts_documents_run_and_day_have_the_same_sum(replies: list[Any]) -> None:
    """Compressions, retries, failed and refused calls, replies that tell no usage."""
    work = Work(replies, MemoryStore())
    work.run()
    assert by_attempts(work.store) == work.by_documents() == work.total == by_day(work.store)
    assert all(page.ended for page in read_pages(work.store, DAY.isoformat()))


@settings(quick, max_examples=30)
@given(st.lists(some_reply, max_size=20), st.integers(1, 15))
def test_so_they_have_where_a_run_is_cancelled(replies: list[Any], stop_at: int) -> None:
    """A request whose reply nobody waited for has an attempt too: its usage is not known."""
    work = Work(replies, MemoryStore(), stop_at=stop_at)
    work.run()
    assert work.total[1].calls_without_usage >= 1 or work.total[0] < stop_at
    assert by_attempts(work.store) == work.by_documents() == work.total == by_day(work.store)
    for attempt in read_trace(work.store, "run"):
        if attempt["problem"] == "interrupted":
            assert attempt["paid"][-1]["usage"]["input_tokens"] is None


@settings(quick, max_examples=150)
@given(st.lists(some_reply, max_size=20), st.integers(1, 40), st.booleans())
def test_of_a_killed_run_every_attempt_is_counted_that_it_had_recorded(
    replies: list[Any], dies_at: int, after_write: bool
) -> None:
    """At any write: its trace tells what is not yet in the ledger, and nothing
    is counted twice where the next run goes on from there.
    """
    watched = PhotographedStore()
    watched.dies_at, watched.after_write = dies_at, after_write
    whole = Work(replies, watched)
    whole.run()
    if watched.left is None:  # it came to its end before
        return
    store = MemoryStore()
    store.objects = watched.left
    calls, usage = by_day(store)
    assert (calls, usage) == by_attempts(store)
    again = Work([], store)
    again.run("again")
    (day,) = usage_between(store, DAY, DAY) or [DayUsage(DAY.isoformat(), ())]
    assert day.model_calls == calls + again.total[0]
    assert by_attempts(store, "run")[0] + by_attempts(store, "again")[0] == day.model_calls
    runs = {run.run_id: run for run in day.runs}
    if "run" in runs and runs["run"].ended:  # killed after its very last write
        assert (calls, usage) == whole.total
    assert "again" not in runs or runs["again"] == RunUsage("again", *again.total, ended=True)


def spend(store: Store, run_id: str, day: date, *usages: Usage, killed: bool = False) -> None:
    """A process of a run; a killed one wrote its last requests down in the trace alone."""

    async def main() -> None:
        async with Ledger(store, run_id, today=day.isoformat) as ledger:
            for usage in usages:
                ledger.add(Spent(1, 0, 0.0, usage))

    asyncio.run(main())


def test_days_and_runs_are_told_apart_and_a_run_of_several_processes_is_one() -> None:
    """Only days on which something was spent, within the period."""
    store = MemoryStore()
    one = Usage(6, 4, 0.25)
    spend(store, "b", DAY, one)
    spend(store, "a", DAY, one)
    spend(store, "a", DAY, UNKNOWN_USAGE)
    spend(store, "c", DAY - timedelta(days=2), one)
    spend(store, "d", DAY + timedelta(days=1), one)
    spend(store, "e", DAY)
    days = usage_between(store, DAY - timedelta(days=5), DAY)
    assert days == [
        DayUsage("2026-11-28", (RunUsage("c", 1, one, True),)),
        DayUsage(
            "2026-11-30",
            (
                RunUsage("a", 2, Usage(6, 4, 0.25, 1), True),
                RunUsage("b", 1, one, True),
            ),
        ),
    ]
    assert (days[1].model_calls, days[1].usage) == (3, Usage(12, 8, 0.5, 1))


def test_a_run_killed_right_after_midnight_is_on_the_new_day_though_its_page_is_not() -> None:
    """Its requests bear the day on which each came to an end."""
    store = MemoryStore()
    today = [DAY]
    one = Usage(6, 4, 0.25)

    async def main() -> None:
        async with Ledger(store, "run", today=lambda: today[0].isoformat()) as ledger:
            calls = Calls(
                ScriptedChatModel(lambda _: Completion("S", "m", usage=one)), ledger=ledger
            )
            today[0] = DAY + timedelta(days=1)
            call = await calls.complete("x")
            await recorder(store, "run")(_attempt(call))
            killed.objects = dict(store.objects)

    killed = MemoryStore()
    asyncio.run(main())
    assert usage_between(killed, DAY, DAY) == []
    (day,) = usage_between(killed, today[0], today[0])
    assert day == DayUsage("2026-12-01", (RunUsage("run", 1, one, False),))


def _attempt(call: Call) -> Any:
    from promptchain_dagster.chain.outcome import Attempt

    return Attempt(
        "refine", 1, "2026-12-01", requests=call.requests, usage=call.usage, paid=call.paid
    )


@pytest.mark.parametrize("data", [b"", b"{", b'{"tokens": "many"}'])
def test_a_damaged_page_is_made_up_for_by_the_trace(data: bytes) -> None:
    """As that of a killed run is."""
    work = Work([], MemoryStore())
    work.run()
    (page,) = read_pages(work.store, DAY.isoformat())
    work.store.write(f"ledger/{page.name}.json", data)
    assert by_day(work.store) == work.total


def test_requests_of_one_attempt_that_the_ledger_has_in_part_are_counted_once() -> None:
    """Half of a call's requests are before the last writing of its page, half after."""
    rng = random.Random(7)
    work = Work(
        [CallError(Problem.UNAVAILABLE, "HTTP 500", usage=UNKNOWN_USAGE), "S"] * 9, MemoryStore()
    )
    work.run()
    (page,) = read_pages(work.store, DAY.isoformat())
    key = f"ledger/{page.name}.json"
    requests = [paid for one in read_trace(work.store, "run") for paid in one["paid"]]
    by_number = {int(one["entry"].partition("#")[2]): Usage(**one["usage"]) for one in requests}
    assert sorted(by_number) == list(range(1, work.total[0] + 1))
    for _ in range(5):
        written = rng.randrange(work.total[0])
        usage = sum((by_number[number] for number in range(1, written + 1)), NO_USAGE)
        work.store.write(key, _page(written, usage))
        assert by_day(work.store) == work.total


def _page(requests: int, usage: Usage) -> bytes:
    import dataclasses
    import json

    spent = dataclasses.asdict(Spent(requests, 0, 0.0, usage))
    return json.dumps({**spent, "ended": False}).encode()
