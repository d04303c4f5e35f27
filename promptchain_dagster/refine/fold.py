"""Incremental refine of one document: its chunks, in order, folded into a running summary."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from promptchain_dagster.chain.outcome import Accepted, Attempt, Halted, Reason
from promptchain_dagster.chain.run import Record, as_inputs, run_step, utc_now
from promptchain_dagster.chain.step import PromptStep
from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.models.base import NO_USAGE, Problem, Usage
from promptchain_dagster.models.calls import Calls
from promptchain_dagster.refine.checkpoints import Checkpoints, Trail
from promptchain_dagster.refine.chunking import Chunk
from promptchain_dagster.refine.outcome import ChunkFolded, Stopped, Summarized
from promptchain_dagster.refine.room import why_too_long
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.threads import in_thread
from promptchain_dagster.words import count_words

OnChunk = Callable[[ChunkFolded], Awaitable[None]]
"""Called with every chunk folded in this run, once its checkpoint is durable."""

OnLeft = Callable[[Stopped], None]
"""Called where the fold is left in between, cancelled or by an exception, which is raised then."""

RecordOf = Callable[[int], Record]
"""Gives the `Record` for the attempts at the chunk of that index."""


async def refine_document(
    chunks: Sequence[Chunk],
    settings: RefineSettings,
    calls: Calls,
    checkpoints: Checkpoints,
    *,
    record: RecordOf | None = None,
    on_chunk: OnChunk | None = None,
    on_left: OnLeft | None = None,
) -> Summarized | Stopped:
    """Fold `chunks`, all those of one document, into a summary; resume where an earlier run ended.

    One call for each chunk that no checkpoint covers, and for each at most one compression (spec).
    The summary after each chunk is durable before the next call.

    Raises `InvalidInput` where `chunks` are not 1 to total, in order (f1), and `StoreError` where
    a checkpoint can't be read or kept.
    """
    _require_all(chunks)
    trail = await in_thread(checkpoints.of, chunks, settings, calls.model)
    fold = _Fold(chunks, settings, calls.part(), trail, record, on_chunk)
    try:
        return await fold.outcome()
    except BaseException:
        if on_left:
            on_left(fold.left())
        raise


class _Fold:
    """One document under way: the running summary, and what this run has spent on it."""

    def __init__(
        self,
        chunks: Sequence[Chunk],
        settings: RefineSettings,
        calls: Calls,
        trail: Trail,
        record: RecordOf | None,
        on_chunk: OnChunk | None,
    ) -> None:
        self._chunks, self._settings, self._calls, self._trail = chunks, settings, calls, trail
        self._record, self._on_chunk = record, on_chunk
        self._refine = settings.refine
        self._hold(self._refine.start)
        self._resumed_from = 0
        self._at = chunks[0]
        self._compressions = 0
        self._spent_on_chunk = _Spent()
        self._warnings: list[str] = []

    async def outcome(self) -> Summarized | Stopped:
        found = await in_thread(self._trail.furthest)
        self._resumed_from = found.index
        if found.index:
            self._hold(self._refine.state_in(found.summary))
        self._warnings += found.warnings
        if found.uncompressed:
            # The reply to this chunk was paid for; only its compression is missing.
            chunk = self._at = self._chunks[found.index - 1]
            if halted := await self._settle(chunk, reply_is_kept=True):
                return self._stopped(chunk, halted)
        for chunk in self._chunks[found.index :]:
            if halted := await self._fold(chunk):
                return self._stopped(chunk, halted)
        earlier = await in_thread(self._trail.publish)
        return Summarized(**self._so_far(), earlier=earlier, checkpoints=self._trail.last_two)

    def left(self) -> Stopped:
        """What it came to where it was left in between; why is the caller's to say."""
        error = "left before its end"
        return Stopped(**self._so_far(), failed_chunk=self._at.index, error=error, ends_run=True)

    def _hold(self, state: Any) -> None:
        """Carry on `state`; its text is what is kept and measured."""
        self._state, self._summary = state, self._refine.text_of(state)

    async def _fold(self, chunk: Chunk) -> Halted | None:
        """Take the reply to `chunk` as the state; returns the call that failed, if one did."""
        self._at = chunk
        self._spent_on_chunk = _Spent()
        fields = {
            "document_type": self._settings.document_type,
            self._refine.field: self._state,
            "index": chunk.index,
            "total": chunk.total,
            "chunk": chunk.text,
            "max_words": self._settings.max_words,
        }
        step = self._refine.step
        reason = why_too_long(self._calls.model, self._refine, self._summary, chunk)
        if reason is not None:
            return await self._not_sent(step, fields, chunk, reason)
        refined = await self._run(step, fields, chunk)
        if isinstance(refined, Halted):
            return refined
        state = self._refine.taken(refined.output, self._state)
        if state is None:
            self._warn(chunk, "the reply names no change; the earlier summary was kept")
        else:
            self._hold(state)
        if not self._summary and chunk.index == chunk.total:
            return _without_end(step, refined)
        return await self._settle(chunk, unchanged=state is None)

    async def _settle(
        self, chunk: Chunk, *, unchanged: bool = False, reply_is_kept: bool = False
    ) -> Halted | None:
        """Bring the summary after `chunk` under the cap, once, and keep it."""
        words = count_words(self._summary)
        compressed = False
        if words > self._settings.max_words and self._refine.compress:
            if not reply_is_kept:
                await self._keep(chunk, uncompressed=True)
            longer = self._summary
            if halted := await self._compress(self._refine.compress, chunk):
                return halted
            compressed = self._summary != longer
            words = count_words(self._summary)
        await self._keep(chunk)
        over_cap = words > self._settings.max_words
        if over_cap:
            cap = self._settings.max_words
            what = self._refine.field
            self._warn(chunk, f"the {what} has {words} words, over the cap of {cap}")
        if self._on_chunk:
            await self._on_chunk(
                ChunkFolded(
                    index=chunk.index,
                    total=chunk.total,
                    summary=self._summary,
                    words=words,
                    tokens=chunk.tokens,
                    compressed=compressed,
                    over_cap=over_cap,
                    unchanged=unchanged,
                    checkpoint=self._trail.object_of(chunk.index),
                    model_calls=self._spent_on_chunk.model_calls,
                    usage=self._spent_on_chunk.usage,
                )
            )
        return None

    async def _compress(self, step: PromptStep, chunk: Chunk) -> Halted | None:
        """Keep the shorter of two; a call that fails is returned only where it ends the run."""
        fields = {
            "document_type": self._settings.document_type,
            self._refine.field: self._state,
            "max_words": self._settings.max_words,
        }
        if reason := why_too_long(self._calls.model, self._refine, self._summary):
            await self._not_sent(step, fields, chunk, reason)
            self._warn(chunk, f"it could not be compressed: {reason}")
            return None
        self._compressions += 1
        shortened = await self._run(step, fields, chunk)
        if isinstance(shortened, Halted):
            if shortened.ends_run:
                return shortened
            self._warn(chunk, f"it could not be compressed: {'; '.join(shortened.messages)}")
            return None
        state = self._refine.taken(shortened.output, self._state)
        if state is not None:
            text = self._refine.text_of(state)
            if count_words(text) < count_words(self._summary):
                self._hold(state)
        return None

    async def _run(
        self, step: PromptStep, fields: Mapping[str, Any], chunk: Chunk
    ) -> Accepted | Halted:
        record = self._record(chunk.index) if self._record else None
        outcome = await run_step(step, fields, self._calls, record=record)
        self._spent_on_chunk.add(outcome)
        return outcome

    async def _not_sent(
        self, step: PromptStep, fields: Mapping[str, Any], chunk: Chunk, reason: str
    ) -> Halted:
        """A call that is not made, in the trace all the same."""
        problem = Problem.TOO_LONG
        inputs = as_inputs({name: fields[name] for name in step.reads})
        attempt = Attempt(
            step.name, 1, utc_now(), inputs=inputs, call_error=reason, problem=problem
        )
        if self._record:
            await self._record(chunk.index)(attempt)
        return Halted(
            attempts=(attempt,),
            step=step.name,
            reason=Reason.FAILED,
            messages=(reason,),
            problem=problem,
        )

    async def _keep(self, chunk: Chunk, *, uncompressed: bool = False) -> None:
        await in_thread(self._trail.save, chunk.index, self._summary, uncompressed=uncompressed)

    def _warn(self, chunk: Chunk, message: str) -> None:
        self._warnings.append(f"chunk {chunk.index} of {chunk.total}: {message}")

    def _stopped(self, chunk: Chunk, halted: Halted) -> Stopped:
        error = f"{halted.step}, chunk {chunk.index} of {chunk.total}: {'; '.join(halted.messages)}"
        return Stopped(
            **self._so_far(),
            failed_chunk=chunk.index,
            error=error,
            ends_run=halted.ends_run,
            problem=halted.problem,
        )

    def _so_far(self) -> dict[str, Any]:
        return {
            "summary": self._summary,
            "state": None if self._refine.gives_text else self._state,
            "chunks": len(self._chunks),
            "resumed_from": self._resumed_from,
            "compressions": self._compressions,
            "over_cap": count_words(self._summary) > self._settings.max_words,
            "model_calls": self._calls.requests,
            "usage": self._calls.usage,
            "warnings": tuple(self._warnings),
        }


class _Spent:
    """Requests sent and what they took."""

    def __init__(self) -> None:
        self.model_calls = 0
        self.usage: Usage = NO_USAGE

    def add(self, outcome: Accepted | Halted) -> None:
        self.model_calls += outcome.model_calls
        self.usage += outcome.usage


def _without_end(step: PromptStep, refined: Accepted) -> Halted:
    """The last reply, too, brought no text: a document with content has come to nothing."""
    return Halted(
        attempts=refined.attempts,
        step=step.name,
        reason=Reason.REJECTED,
        messages=(f"no {step.output} came of the whole document",),
    )


def _require_all(chunks: Sequence[Chunk]) -> None:
    if not chunks:
        raise InvalidInput("chunks is empty; a document without content has nothing to summarize")
    total = len(chunks)
    for place, chunk in enumerate(chunks, start=1):
        if (chunk.index, chunk.total) != (place, total):
            raise InvalidInput(
                f"chunk {chunk.index} of {chunk.total} stands in place {place} of {total};"
                " chunks must be all those of one document, in order"
            )
