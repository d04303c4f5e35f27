"""Many documents at once: beside each other, the chunks of each strictly in order."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from typing import TypeVar
from weakref import WeakValueDictionary

from promptchain_dagster.chain.run import Record
from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.models.calls import Calls
from promptchain_dagster.refine.checkpoints import Checkpoints
from promptchain_dagster.refine.fold import refine_document
from promptchain_dagster.refine.outcome import (
    ChunkFolded,
    DocumentOutcome,
    NotStarted,
    Stopped,
    Summarized,
)
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.refine.source import Readable, Source, read_source
from promptchain_dagster.threads import in_thread
from promptchain_dagster.tokens import Encoder

DOCUMENTS_IN_FLIGHT = 64
READ_AT_ONCE = 2
"""More would make the first document's first call wait until all are read."""

Folded = TypeVar("Folded", bound=Summarized | Stopped)

OnDocument = Callable[[Source, DocumentOutcome], Awaitable[None]]
"""Called once for every document, the moment it is done."""


async def summarize_collection(
    documents: Iterable[Source] | AsyncIterable[Source],
    settings: RefineSettings,
    calls: Calls,
    checkpoints: Checkpoints,
    encoder: Encoder,
    *,
    on_document: OnDocument,
    on_chunk: Callable[[Source, ChunkFolded], Awaitable[None]] | None = None,
    record: Callable[[Source, int], Record] | None = None,
    on_left: Callable[[Source, Stopped], None] | None = None,
    documents_in_flight: int = DOCUMENTS_IN_FLIGHT,
) -> None:
    """Summarize every document; what becomes of each is told to `on_document`, and not kept.

    `documents` is drawn from, and each one read, no earlier than its turn comes: at most
    `documents_in_flight` are held at once. A document has one call in flight at most, so this
    should be over the `max_in_flight` of `calls` (twice is good). One that fails harms no other;
    after an error that no call can escape, those left are `NotStarted`.

    What `on_document`, `on_chunk` or `documents` raises ends the run, as does `StoreError`. So
    does cancellation: no task is left then, and every finished chunk is kept. `on_left` hears of
    each document that was being folded, and of what it came to.
    """
    if documents_in_flight < 1:
        raise InvalidInput(f"documents_in_flight is {documents_in_flight}, must be 1 or more")
    work = _Collection(settings, calls, checkpoints, encoder, on_chunk, record, on_left)
    drawn = _each(documents)
    drawing = asyncio.Lock()

    async def worker() -> None:
        while True:
            async with drawing:
                source = await anext(drawn, None)
            if source is None:
                return
            await on_document(source, await work.outcome_of(source))

    workers = [asyncio.ensure_future(worker()) for _ in range(documents_in_flight)]
    try:
        await asyncio.gather(*workers)
    finally:
        for task in workers:
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


class _Collection:
    """What all documents of one run share."""

    def __init__(
        self,
        settings: RefineSettings,
        calls: Calls,
        checkpoints: Checkpoints,
        encoder: Encoder,
        on_chunk: Callable[[Source, ChunkFolded], Awaitable[None]] | None,
        record: Callable[[Source, int], Record] | None,
        on_left: Callable[[Source, Stopped], None] | None,
    ) -> None:
        self._settings, self._calls, self._checkpoints = settings, calls, checkpoints
        self._encoder, self._on_chunk, self._record = encoder, on_chunk, record
        self._on_left = on_left
        self._reading = asyncio.Semaphore(READ_AT_ONCE)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def outcome_of(self, source: Source) -> DocumentOutcome:
        if self._calls.ended_by is not None:
            return NotStarted(reason=str(self._calls.ended_by))
        async with self._reading:
            read = await in_thread(read_source, source, self._settings, self._encoder)
        if not isinstance(read, Readable):
            return read
        # Of two equal documents the second waits, and finds what the first has kept (d14).
        async with self._turns.setdefault(read.digest, asyncio.Lock()):
            outcome = await self._fold(source, read)
        return _with(read.warnings, outcome)

    async def _fold(self, source: Source, read: Readable) -> Summarized | Stopped:
        on_chunk, record, on_left = self._on_chunk, self._record, self._on_left
        return await refine_document(
            read.chunks,
            self._settings,
            self._calls,
            self._checkpoints,
            on_chunk=(lambda folded: on_chunk(source, folded)) if on_chunk else None,
            record=(lambda index: record(source, index)) if record else None,
            on_left=(lambda stopped: on_left(source, _with(read.warnings, stopped)))
            if on_left
            else None,
        )


def _with(warnings: tuple[str, ...], outcome: Folded) -> Folded:
    """The outcome with the warnings that came up before its first chunk."""
    return dataclasses.replace(outcome, warnings=(*warnings, *outcome.warnings))


async def _each(documents: Iterable[Source] | AsyncIterable[Source]) -> AsyncIterator[Source]:
    if isinstance(documents, AsyncIterable):
        async for source in documents:
            yield source
    else:
        for source in documents:
            yield source
