from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from promptchain_dagster.errors import InvalidInput, StoreError
from promptchain_dagster.models.base import CallError, Completion, Problem
from promptchain_dagster.models.calls import Calls
from promptchain_dagster.refine.checkpoints import Checkpoints
from promptchain_dagster.refine.collection import OnDocument, summarize_collection
from promptchain_dagster.refine.documents import Document
from promptchain_dagster.refine.outcome import (
    ChunkFolded,
    DocumentOutcome,
    NoContent,
    NotStarted,
    Stopped,
    Summarized,
    Unreadable,
)
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.refine.source import Source
from promptchain_dagster.testing import Script, ScriptedChatModel
from promptchain_dagster.threads import in_thread
from promptchain_dagster.tokens import get_encoder
from tests.support.folding import PART, index_sent, no_wait
from tests.support.memory_store import MemoryStore

SETTINGS = RefineSettings(chunk_tokens=25)


def text_of(name: str, chunks: int) -> str:
    """A document of that many chunks, each with the name in it."""
    return "\n\n".join(
        f"{name} part {i}: " + "and so it went on " * 3 for i in range(1, chunks + 1)
    )


def source(key: str, text: str, warnings: tuple[str, ...] = ()) -> Source:
    return Source(key, lambda: Document(f"/docs/{key}", key, text, warnings))


class Run:
    """One run over a collection, and all that it told."""

    def __init__(self, model: ScriptedChatModel | Script, store: MemoryStore | None = None) -> None:
        self.model = model if isinstance(model, ScriptedChatModel) else ScriptedChatModel(model)
        self.store = store or MemoryStore()
        self.outcomes: dict[str, DocumentOutcome] = {}
        self.folded: list[tuple[str, int]] = []

    async def over(
        self,
        documents: Iterable[Source] | AsyncIterator[Source],
        max_in_flight: int | None = None,
        on_document: OnDocument | None = None,
        documents_in_flight: int = 64,
    ) -> None:
        calls = Calls(self.model, max_in_flight=max_in_flight, sleep=no_wait)

        async def on_chunk(source: Source, folded: ChunkFolded) -> None:
            self.folded.append((source.key, folded.index))

        await summarize_collection(
            documents,
            SETTINGS,
            calls,
            Checkpoints(self.store),
            get_encoder("o200k_base"),
            on_chunk=on_chunk,
            on_document=on_document or self.on_document,
            documents_in_flight=documents_in_flight,
        )

    async def on_document(self, source: Source, outcome: DocumentOutcome) -> None:
        assert source.key not in self.outcomes
        self.outcomes[source.key] = outcome


class Gate:
    """A model that holds its calls open until enough of them are there; then they go on."""

    def __init__(self, opens_at: int) -> None:
        self.opens_at, self.open, self.most = opens_at, 0, 0
        self.moved = asyncio.Event()

    async def reply(self, prompt: str) -> str:
        self.open += 1
        self.most = max(self.most, self.open)
        if self.open >= self.opens_at:
            self.moved.set()
        await self.moved.wait()
        await asyncio.sleep(0)
        self.open -= 1
        return f"S{index_sent(prompt)}"


def stub(prompt: str) -> str:
    return f"S{index_sent(prompt)}"


def test_every_document_is_told_once_with_its_own_outcome() -> None:
    """Summarized, without content and unreadable ones, each by its type."""

    def unreadable() -> Document:
        raise InvalidInput("'/docs/bad.pdf' is a PDF; allowed: .txt, .md")

    def gone() -> Document:
        raise FileNotFoundError(2, "No such file", "/docs/gone.txt")

    run = Run(stub)
    documents = [
        source("good", text_of("good", 3), ("good: read as cp1252",)),
        source("empty", "1\n\n2\n"),
        Source("bad", unreadable),
        Source("gone", gone),
        source("last", text_of("last", 2)),
    ]
    asyncio.run(run.over(documents))
    good, empty, bad, gone_ = (run.outcomes[key] for key in ("good", "empty", "bad", "gone"))
    assert isinstance(good, Summarized)
    assert (good.summary, good.chunks, good.warnings) == ("S3", 3, ("good: read as cp1252",))
    assert isinstance(empty, NoContent)
    assert isinstance(bad, Unreadable)
    assert "PDF" in bad.error
    assert isinstance(gone_, Unreadable)
    assert "/docs/gone.txt" in gone_.error
    assert isinstance(run.outcomes["last"], Summarized)


@pytest.mark.parametrize(
    "text", ["", "1\n\n2\n", "# Example Page", " \n ", "\u200b\u2060", "12 345 6789 10", "one two"]
)
def test_c9_d14_a_document_without_content_makes_no_call_and_no_checkpoint(text: str) -> None:
    """Fewer than 3 words that hold a letter."""
    run = Run([])
    asyncio.run(run.over([source("a", text), source("b", text)]))
    assert run.outcomes == {"a": NoContent(), "b": NoContent()}
    assert run.model.prompts == []
    assert run.store.objects == {}


def test_f23_one_document_that_fails_harms_no_other() -> None:
    """It is told with its reason and the summary so far; the others complete."""

    def reply(prompt: str) -> str | Completion:
        part = PART.search(prompt)
        assert part
        if "d3 part 2" in prompt:
            return Completion("", "m", refusal="I cannot help with that.")
        return f"S{part[1]}"

    run = Run(reply)
    asyncio.run(run.over([source(f"d{i}", text_of(f"d{i}", 3)) for i in range(8)]))
    failed = run.outcomes.pop("d3")
    assert isinstance(failed, Stopped)
    assert (failed.failed_chunk, failed.summary) == (2, "S1")
    assert all(isinstance(outcome, Summarized) for outcome in run.outcomes.values())
    assert len(run.outcomes) == 7


def test_chunks_of_a_document_come_in_order_and_documents_beside_each_other() -> None:
    """All documents have a call in flight at once, and none has two."""

    async def main() -> Gate:
        gate = Gate(opens_at=6)
        run = Run(gate.reply)
        await run.over([source(f"d{i}", text_of(f"d{i}", 4)) for i in range(6)])
        for i in range(6):
            assert [index for key, index in run.folded if key == f"d{i}"] == [1, 2, 3, 4]
        return gate

    assert asyncio.run(main()).most == 6


@pytest.mark.parametrize("most", [1, 2, 5])
def test_no_more_calls_than_allowed_are_in_flight_over_the_whole_run(most: int) -> None:
    """The limit is the run's, whatever the number of documents."""

    async def main() -> int:
        gate = Gate(opens_at=most)
        run = Run(gate.reply)
        await run.over(
            [source(f"d{i}", text_of(f"d{i}", 3)) for i in range(12)], max_in_flight=most
        )
        assert len(run.outcomes) == 12
        return gate.most

    assert asyncio.run(main()) == most


def test_documents_are_drawn_and_read_no_earlier_than_their_turn() -> None:
    """What is held is bounded by what is in flight, not by the collection."""
    held: set[str] = set()
    most = 0

    def documents() -> Iterator[Source]:
        for i in range(50):
            key = f"d{i}"
            held.add(key)
            nonlocal most
            most = max(most, len(held))
            yield source(key, text_of(key, 2))

    run = Run(stub)

    async def on_document(source: Source, outcome: DocumentOutcome) -> None:
        held.discard(source.key)
        await run.on_document(source, outcome)

    asyncio.run(run.over(documents(), documents_in_flight=4, on_document=on_document))
    assert len(run.outcomes) == 50
    assert most <= 4


def test_the_first_call_does_not_wait_until_all_documents_are_read() -> None:
    """Reading many documents leaves threads free for the one that is under way."""
    called = threading.Event()

    def reply(prompt: str) -> str:
        called.set()
        return stub(prompt)

    def slow(key: str) -> Document:
        if key != "d0" and not called.wait(timeout=60):
            raise InvalidInput("no call was made")
        return Document(key, key, text_of(key, 1), ())

    run = Run(reply)
    asyncio.run(run.over(Source(f"d{i}", lambda key=f"d{i}": slow(key)) for i in range(64)))
    assert [type(outcome) for outcome in run.outcomes.values()] == [Summarized] * 64


def test_an_async_iterator_of_documents_is_taken_too() -> None:
    """A listing that is itself awaited."""

    async def documents() -> AsyncIterator[Source]:
        for i in range(5):
            await asyncio.sleep(0)
            yield source(f"d{i}", text_of(f"d{i}", 1))

    async def main() -> Run:
        run = Run(stub)
        await run.over(documents())
        return run

    assert len(asyncio.run(main()).outcomes) == 5


def test_e2_an_error_that_ends_the_run_leaves_the_rest_not_started() -> None:
    """Quota exhausted: at most the calls in flight learn of it, and no further document is read."""
    quota = CallError(Problem.UNUSABLE, "quota exhausted")
    loaded: list[str] = []

    def load(key: str) -> Document:
        loaded.append(key)
        return Document(key, key, text_of(key, 3), ())

    def reply(prompt: str) -> str | Exception:
        return quota if "d2 part 1" in prompt else stub(prompt)

    run = Run(reply)
    documents = [Source(f"d{i}", lambda key=f"d{i}": load(key)) for i in range(20)]
    asyncio.run(run.over(documents, documents_in_flight=1))
    assert loaded == ["d0", "d1", "d2"]
    stopped = run.outcomes["d2"]
    assert isinstance(stopped, Stopped)
    assert stopped.ends_run
    rest = [run.outcomes[f"d{i}"] for i in range(3, 20)]
    assert rest == [NotStarted(reason="quota exhausted")] * 17
    assert len(run.model.prompts) == 7


def test_d14_two_equal_documents_at_the_same_time_cost_one() -> None:
    """The second waits for the first, and finds its checkpoints."""
    run = Run(stub)
    text = text_of("same", 3)
    asyncio.run(run.over([source("one", text), source("two", text), source("three", text)]))
    assert len(run.model.prompts) == 3
    summaries = [outcome for outcome in run.outcomes.values() if isinstance(outcome, Summarized)]
    assert [outcome.summary for outcome in summaries] == ["S3"] * 3
    assert sorted(outcome.model_calls for outcome in summaries) == [0, 0, 3]


def test_a_second_run_over_the_same_collection_costs_nothing() -> None:
    """Renamed documents are known by their content."""
    first = Run(stub)
    asyncio.run(first.over([source(f"d{i}", text_of(f"d{i}", 3)) for i in range(5)]))
    second = Run([], first.store)
    asyncio.run(second.over([source(f"renamed{i}", text_of(f"d{i}", 3)) for i in range(5)]))
    assert all(isinstance(outcome, Summarized) for outcome in second.outcomes.values())


def test_a_cancelled_run_keeps_every_finished_chunk_and_leaves_no_task() -> None:
    """The next run makes only the calls that are left."""
    store = MemoryStore()
    documents = [source(f"d{i}", text_of(f"d{i}", 3)) for i in range(6)]

    async def main() -> int:
        arrived = asyncio.Event()
        waiting = 0

        async def reply(prompt: str) -> str:
            nonlocal waiting
            if index_sent(prompt) == 3:
                waiting += 1
                if waiting == 6:
                    arrived.set()
                await asyncio.Event().wait()
            return stub(prompt)

        run = asyncio.ensure_future(Run(reply, store).over(documents))
        await arrived.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        return len(asyncio.all_tasks())

    assert asyncio.run(main()) == 1
    again = Run(stub, store)
    asyncio.run(again.over(documents))
    assert [index_sent(prompt) for prompt in again.model.prompts] == [3] * 6


@pytest.mark.parametrize("thrown", [StoreError("disk full"), RuntimeError("a bug")])
def test_what_a_callback_raises_ends_the_run_and_leaves_no_task(thrown: Exception) -> None:
    """A result that can't be kept is no small matter."""

    async def main() -> int:
        async def on_document(source: Source, outcome: DocumentOutcome) -> None:
            raise thrown

        with pytest.raises(type(thrown), match=str(thrown)):
            await Run(stub).over(
                [source(f"d{i}", text_of(f"d{i}", 2)) for i in range(9)], on_document=on_document
            )
        return len(asyncio.all_tasks())

    assert asyncio.run(main()) == 1


def test_a_write_that_was_asked_for_is_done_though_the_run_is_cancelled() -> None:
    """Also one that still waits for a thread: its summary was paid for."""
    done: list[str] = []

    async def main() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        free = threading.Event()
        blocker = asyncio.ensure_future(in_thread(free.wait))
        write = asyncio.ensure_future(in_thread(done.append, "S1"))
        await asyncio.sleep(0)
        write.cancel()
        await asyncio.sleep(0)
        free.set()
        with pytest.raises(asyncio.CancelledError):
            await write
        assert done == ["S1"]
        await blocker

    asyncio.run(main())


def test_a_collection_without_documents_is_done_at_once() -> None:
    """Nothing to do is no error."""
    run = Run([])
    asyncio.run(run.over([]))
    assert run.outcomes == {}
