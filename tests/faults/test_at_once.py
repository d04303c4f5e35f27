"""Two runs on the same documents at once, and a clock that jumps back.

Two runs that mark one document differently: `tests/library/test_state.py`. A retry after a killed
run: `tests/pipelines/test_summary_processes.py`.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from promptchain_dagster.models.budget import Budget, Spent
from promptchain_dagster.models.calls import Calls
from promptchain_dagster.models.ledger import Ledger, read_day
from promptchain_dagster.refine.checkpoints import Checkpoints
from promptchain_dagster.refine.fold import refine_document
from promptchain_dagster.refine.outcome import Stopped, Summarized
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.store import Store
from promptchain_dagster.testing import ScriptedChatModel
from tests.faults.documents import answer as whole_answer
from tests.support.chat_server import Answer, ChatServer, Request
from tests.support.folding import chunks_of, fold, index_sent, no_wait, summary_sent
from tests.support.memory_store import MemoryStore

ROOT = Path(__file__).parents[2]
CAP = RefineSettings(max_words=9)
FOUR = tuple(f"Part {n} tells of the year {n}." for n in range(1, 5))


class Steps:
    """Replies that name their run and come in a given order: `order` holds "a" and "b"."""

    def __init__(self, order: str) -> None:
        self._left = list(order)
        self._moved = asyncio.Condition()

    def of(self, run: str) -> Callable[[str], Awaitable[str]]:
        async def reply(prompt: str) -> str:
            async with self._moved:
                await self._moved.wait_for(lambda: self._left[:1] in ([run], []))
                self._left = self._left[1:]
                self._moved.notify_all()
            return f"{summary_sent(prompt)} {run}{index_sent(prompt)}".strip()

        return reply


def both(order: str, store: Store, generations: tuple[str | None, str | None]) -> list[str]:
    """The summaries of two runs over one document, their calls answered in that order."""

    async def one(steps: Steps, run: str, generation: str | None) -> Summarized | Stopped:
        calls = Calls(ScriptedChatModel(steps.of(run)), sleep=no_wait)
        return await refine_document(chunks_of(*FOUR), CAP, calls, Checkpoints(store, generation))

    async def main() -> tuple[Summarized | Stopped, Summarized | Stopped]:
        steps = Steps(order)
        a, b = generations
        return await asyncio.gather(one(steps, "a", a), one(steps, "b", b))

    return [outcome.summary for outcome in asyncio.run(main())]


ORDERS = ["abababab", "aabbaabb", "abbaabba", "aaabbbba", "bbbaabaa"]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("generations", [(None, None), ("one", "other"), ("one", None)])
def test_f24_two_runs_on_one_document_at_once_do_each_other_no_harm(
    order: str, generations: tuple[str | None, str | None]
) -> None:
    """Each has folded every chunk once, without a lock; what is kept is the summary of one."""
    store = MemoryStore()
    summaries = both(order, store, generations)
    assert summaries == ["a1 a2 a3 a4", "b1 b2 b3 b4"]
    later = fold(chunks_of(*FOUR), [], store, max_words=CAP.max_words)
    assert isinstance(later, Summarized)
    assert (later.summary in summaries, later.warnings) == (True, ())
    for key in store.list("checkpoints/"):
        summary = json.loads(store.objects[key])["summary"].split()
        assert [int(mark[1:]) for mark in summary] == list(range(1, len(summary) + 1))


def test_f24_two_processes_over_the_same_collection_at_once_both_succeed(tmp_path: Path) -> None:
    """Each of them pays; the summaries, the marks and the files are those of one."""
    for n in range(6):
        text = "\n\n".join(f"Part {p} of d{n} says that the boats were out." for p in (1, 2))
        (tmp_path / f"d{n}.txt").write_text(text, "utf-8")

    def answer(request: Request) -> Answer | str:
        return whole_answer(request.prompt)

    script = "from promptchain_dagster.cli import main; main()"
    with ChatServer(answer) as server:
        command = [sys.executable, "-c", script, "summarize", str(tmp_path), "--json"]
        command += ["--chunk-tokens", "14", "--max-words", "9", "--base-url", server.url]
        command += ["--model", "stub", "--home", str(tmp_path / "home")]
        started = [
            subprocess.Popen(
                command,
                cwd=tmp_path,
                env=environment(tmp_path / f"dagster-{n}"),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for n in range(2)
        ]
        said = [process.communicate(timeout=200) for process in started]
    for process, (out, err) in zip(started, said, strict=True):
        assert process.returncode == 0, err
        told = {one["path"][-6:]: one["summary"] for one in json.loads(out)["documents"]}
        assert told == {f"d{n}.txt": f"d{n}p1 d{n}p2" for n in range(6)}
    kept = [path.read_text("utf-8").strip() for path in (tmp_path / "home/summaries").iterdir()]
    assert sorted(kept) == [f"d{n}p1 d{n}p2" for n in range(6)]
    assert 12 <= len(server.requests) <= 24


def environment(dagster_home: Path) -> dict[str, str]:
    return {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(ROOT),
        "DAGSTER_HOME": str(dagster_home),
        "DAGSTER_DISABLE_TELEMETRY": "1",
    }


ONE = Spent(requests=1, tokens=100)


class Clock:
    """A date that can be turned back."""

    def __init__(self, date: str) -> None:
        self.date = date

    def today(self) -> str:
        return self.date


def spend(store: Store, run_id: str, clock: Clock, dates: str) -> None:
    """A run of which each request is counted on the date that its clock shows then."""

    async def main() -> None:
        async with Ledger(store, run_id, today=clock.today) as ledger:
            for day in dates:
                clock.date = f"2026-11-0{day}"
                ledger.add(ONE)

    asyncio.run(main())


def test_a_clock_that_jumps_back_over_midnight_counts_every_request_once() -> None:
    """In one process, and in a later one that goes on with the same run."""
    store = MemoryStore()
    clock = Clock("2026-11-01")
    spend(store, "run", clock, "12112")
    spend(store, "run", clock, "12")
    spend(store, "other", clock, "1")
    days = [read_day(store, f"2026-11-0{day}") for day in (1, 2)]
    assert [day.runs["run"].requests for day in days] == [4, 3]
    assert sum(day.total.requests for day in days) == 8


def test_a_clock_that_jumped_back_still_holds_the_day_s_budget() -> None:
    """What the run itself spent on the earlier date counts there."""
    store, clock = MemoryStore(), Clock("2026-11-01")

    async def main() -> list[int]:
        counted: list[int] = []
        budget = Budget(max_tokens=1000)
        async with Ledger(store, "run", day_budget=budget, today=clock.today) as ledger:
            for day in "121":
                clock.date = f"2026-11-0{day}"
                ledger.add(ONE)
                counted.append(ledger.spent_today().requests)
        return counted

    assert asyncio.run(main()) == [1, 1, 2]
