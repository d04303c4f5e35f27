"""Twenty documents over real HTTP while the server is away, or turns a third of the calls down."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from promptchain_dagster.library.state import failure_of
from promptchain_dagster.models import Calls, ModelSettings, connect
from promptchain_dagster.refine.checkpoints import Checkpoints
from promptchain_dagster.refine.collection import summarize_collection
from promptchain_dagster.refine.documents import Document
from promptchain_dagster.refine.outcome import DocumentOutcome, Stopped, Summarized
from promptchain_dagster.refine.source import Source
from promptchain_dagster.store import open_store
from promptchain_dagster.tokens import get_encoder
from tests.faults.documents import SETTINGS, answer, summary_of, text_of
from tests.support.chat_server import Answer, ChatServer, Request, error
from tests.support.folding import no_wait

NAMES = [f"d{n:02}" for n in range(20)]
CALLS = 2 * len(NAMES)
IN_FLIGHT = 4


def summarize(
    home: Path, url: str, sleep: Callable[[float], Awaitable[None]] = no_wait
) -> tuple[dict[str, DocumentOutcome], Calls]:
    """One run over the documents; what became of each, and what was asked."""
    outcomes: dict[str, DocumentOutcome] = {}

    async def keep(source: Source, outcome: DocumentOutcome) -> None:
        outcomes[source.key] = outcome

    async def main() -> Calls:
        async with connect(ModelSettings(model="stub", base_url=url)) as model:
            calls = Calls(model, max_in_flight=IN_FLIGHT, sleep=sleep)
            await summarize_collection(
                [source_of(name) for name in NAMES],
                SETTINGS,
                calls,
                Checkpoints(open_store(str(home))),
                get_encoder("o200k_base"),
                on_document=keep,
                documents_in_flight=2 * IN_FLIGHT,
            )
            return calls

    calls = asyncio.run(main())
    assert set(outcomes) == set(NAMES)
    return outcomes, calls


def source_of(name: str) -> Source:
    return Source(name, lambda: Document(f"/documents/{name}", name, text_of(name, 2), ()))


def kept(home: Path) -> int:
    return len(open_store(str(home)).list("checkpoints/"))


class Flaky:
    """A server that is gone, its port closed, from one request until the run has waited so often;
    for good where `back_after` is None."""

    def __init__(self, gone_at: int, back_after: int | None) -> None:
        self._gone_at, self._left = gone_at, back_after
        self.first, self.second = ChatServer(self._answer), None
        self.asked = 0

    def _answer(self, request: Request) -> Answer | str:
        self.asked += 1
        if self.asked == self._gone_at:
            self.first.__exit__(None, None, None)
        return answer(request.prompt)

    async def sleep(self, seconds: float) -> None:
        """Wait for nothing; the server counts it."""
        await asyncio.sleep(0)
        if not self.first.closing.is_set() or self._left is None:
            return
        self._left -= 1
        if self._left == 0:
            self.second = self.again()

    def again(self) -> ChatServer:
        """The server, back at the same address."""
        return ChatServer(self._answer, self.first.port).__enter__()


@pytest.mark.parametrize("gone_at", [1, 12, 33])
@pytest.mark.parametrize("back_after", [1, 3, None])
def test_a_server_that_goes_away_costs_no_reply_that_came_and_the_next_run_does_the_rest(
    gone_at: int, back_after: int | None, tmp_path: Path
) -> None:
    """Calls are tried once more, and their documents keep what they have; no run is ended by it."""
    server = Flaky(gone_at, back_after)
    with server.first:
        outcomes, calls = summarize(tmp_path, server.first.url, server.sleep)
    assert calls.ended_by is None
    for name, outcome in outcomes.items():
        assert isinstance(outcome, Summarized | Stopped), outcome
        chunks = outcome.failed_chunk - 1 if isinstance(outcome, Stopped) else 2
        assert outcome.summary == summary_of(name, chunks)
    had = kept(tmp_path)
    # What came on the wire as the server went is not kept, and asked for again.
    assert server.asked - IN_FLIGHT <= had <= server.asked
    back = server.second or server.again()
    again, more = summarize(tmp_path, back.url)
    back.__exit__(None, None, None)
    assert {name: one.summary for name, one in again.items() if isinstance(one, Summarized)} == {
        name: summary_of(name, 2) for name in NAMES
    }
    assert more.requests == CALLS - had


def test_an_endpoint_that_turns_a_third_of_the_calls_down_slows_a_run_and_fails_no_document(
    tmp_path: Path,
) -> None:
    """Each of these calls is made once more, all are counted, and every chunk is kept."""
    seen: set[str] = set()
    turned_down = 0

    def busy(request: Request) -> Answer | str:
        nonlocal turned_down
        first = request.prompt not in seen
        seen.add(request.prompt)
        if first and len(seen) % 3 == 0:
            turned_down += 1
            return error(429, headers={"retry-after-ms": "5"})
        return answer(request.prompt)

    with ChatServer(busy) as server:
        outcomes, calls = summarize(tmp_path, server.url)
    assert all(isinstance(outcome, Summarized) for outcome in outcomes.values())
    assert turned_down == CALLS // 3
    assert calls.requests == len(server.requests) == CALLS + turned_down
    assert kept(tmp_path) == CALLS


def test_an_endpoint_that_turns_everything_down_fails_the_documents_and_keeps_nothing_from_them(
    tmp_path: Path,
) -> None:
    """They are failed tries, to be made another time; the run tries each once more, and ends."""
    with ChatServer([error(429)]) as server:
        outcomes, calls = summarize(tmp_path, server.url)
        assert calls.requests == len(server.requests) <= 2 * len(NAMES)
    assert all(isinstance(outcome, Stopped) for outcome in outcomes.values())
    assert {failure_of(outcome) for outcome in outcomes.values()} == {"failed"}
    assert kept(tmp_path) == 0
    with ChatServer(lambda request: answer(request.prompt)) as server:
        again, _ = summarize(tmp_path, server.url)
        assert len(server.requests) == CALLS
    assert all(isinstance(outcome, Summarized) for outcome in again.values())
