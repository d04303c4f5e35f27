"""One run over many documents: each recorded the moment it is done, whatever becomes of others."""

import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import dagster as dg

from promptchain_dagster.errors import StoreError
from promptchain_dagster.library.registry import Registry
from promptchain_dagster.library.state import State, failure_of
from promptchain_dagster.models.calls import Calls
from promptchain_dagster.pipelines import metadata as md
from promptchain_dagster.pipelines.collections.config import MAX_IN_FLIGHT, SummarizeConfig
from promptchain_dagster.pipelines.collections.document_run import DocumentRun
from promptchain_dagster.pipelines.collections.events import (
    AsideNote,
    ChunkNote,
    DoneNote,
    FailedNote,
    Note,
    SummaryEvents,
)
from promptchain_dagster.pipelines.collections.opened import Opened, open_document, why_set_aside
from promptchain_dagster.pipelines.collections.tally import Tally
from promptchain_dagster.pipelines.materializer import Writer
from promptchain_dagster.pipelines.paid_calls import paid_calls
from promptchain_dagster.pipelines.resources import ModelResource
from promptchain_dagster.pipelines.results import keep_document_result
from promptchain_dagster.pipelines.run_async import run_async
from promptchain_dagster.refine.collection import summarize_collection
from promptchain_dagster.refine.outcome import (
    ChunkFolded,
    DocumentOutcome,
    NoContent,
    NotStarted,
    Stopped,
    Summarized,
    Unreadable,
)
from promptchain_dagster.refine.quality import Made, judge_summary
from promptchain_dagster.refine.replay import settings_of
from promptchain_dagster.refine.result import document_result
from promptchain_dagster.refine.room import require_room
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.refine.source import Source
from promptchain_dagster.threads import in_thread
from promptchain_dagster.words import count_words


class CollectionRun:
    """The work of one run; `tally` says what it came to."""

    def __init__(
        self,
        run: DocumentRun,
        registry: Registry,
        state: State,
        events: SummaryEvents,
        *,
        config: SummarizeConfig,
        settings: RefineSettings,
        recipe: str,
    ) -> None:
        self.tally = Tally()
        self._run, self._registry, self._state, self._events = run, registry, state, events
        self._config, self._settings, self._recipe = config, settings, recipe
        self._open: dict[str, Opened] = {}
        self._left: dict[str, DocumentOutcome] = {}
        self._calls: Calls | None = None
        self._writer = Writer[Note](events.write)

    def summarize(self, keys: Sequence[str], model: ModelResource, limits: dict[str, Any]) -> None:
        """Do the documents; raises `PromptChainError` where none of them can be done. `limits` are
        for `paid_calls`.

        Where the run breaks off, those that are under way get a result with the summary so far.
        """
        encoder, _ = model.encoder()
        config = self._config
        asked = MAX_IN_FLIGHT if config.max_in_flight is None else config.max_in_flight

        async def work() -> None:
            async with paid_calls(
                model,
                self._run.store,
                self._run.run_id,
                most_in_flight=asked,
                **limits,
            ) as calls:
                self._calls = calls
                chat = calls.model
                require_room(self._settings, chat.context_tokens, chat.max_output_tokens)
                used = settings_of(self._settings, chat, encoder)
                await summarize_collection(
                    self._sources(keys),
                    self._settings,
                    calls,
                    self._run.checkpoints(fresh=config.fresh),
                    encoder,
                    on_document=self._on_document,
                    on_chunk=self._on_chunk,
                    record=lambda source, index: self._run.record(source.key, index, used),
                    on_left=lambda source, outcome: self._left.update({source.key: outcome}),
                    documents_in_flight=2 * min(asked, chat.max_in_flight or asked),
                )

        try:
            with self._writer:
                try:
                    run_async(work)
                except BaseException as error:
                    self._break_off(error)
                    raise
        finally:
            self._sum_up()

    async def _sources(self, keys: Sequence[str]) -> AsyncIterator[Source]:
        for key in keys:
            if self._calls is not None and self._calls.ended_by is not None:
                return  # those left are not started, and need not be read for that
            opened = await in_thread(open_document, self._registry, self._state, key, self._recipe)
            why = None if self._config.retry_set_aside else why_set_aside(opened)
            if why is None:
                self._open[key] = opened
                yield opened.source
            else:
                await self._writer.reserve()
                await in_thread(self._leave_aside, opened, why)

    async def _on_chunk(self, source: Source, folded: ChunkFolded) -> None:
        self._open[source.key].add(folded)
        if self._config.running_summary_events:
            short = replace(folded, summary=md.preview(folded.summary))
            await self._writer.put(ChunkNote(source.key, short))

    async def _on_document(self, source: Source, outcome: DocumentOutcome) -> None:
        if isinstance(outcome, Stopped) and outcome.ends_run and not outcome.model_calls:
            outcome = NotStarted(reason=outcome.error)
        if isinstance(outcome, NotStarted):
            del self._open[source.key]
            return
        self._left[source.key] = outcome  # should the run end while it waits for its turn
        await self._writer.reserve()
        await in_thread(self._settle, source.key, outcome)

    def _settle(self, key: str, outcome: DocumentOutcome) -> None:
        """Keep what became of a document, and note it down."""
        opened = self._open[key]
        if isinstance(outcome, Summarized | NoContent) and opened.digest:
            self._state.unmark_done(key, opened.digest)
        note: Note
        if isinstance(outcome, Summarized):
            note = self._done(opened, outcome)
        elif isinstance(outcome, NoContent):
            self._run.keep_no_summary(key)
            note = self._note(
                opened, self._told(opened, outcome), summary="", readable="", chunks=0
            )
        else:
            assert isinstance(outcome, Stopped | Unreadable)
            told = self._told(opened, outcome)
            note = FailedNote(key, opened.digest, failure_of(outcome), outcome.error, told)
        error = outcome.error if isinstance(outcome, Stopped | Unreadable) else None
        self.tally.add(key, str(note.told[md.STATUS]), error)
        del self._open[key], self._left[key]
        self._writer.add(note)

    def _done(self, opened: Opened, outcome: Summarized) -> DoneNote:
        kept = self._run.keep_summary(opened.key, outcome)
        told = {**self._told(opened, outcome), **kept.metadata}
        before = count_words(kept.earlier) if kept.earlier is not None else None
        return self._note(
            opened,
            told,
            summary=outcome.summary,
            readable=outcome.readable,
            chunks=outcome.chunks,
            previous=before,
            checkpoints=outcome.checkpoints,
        )

    def _note(
        self,
        opened: Opened,
        told: md.Metadata,
        *,
        summary: str,
        readable: str,
        chunks: int,
        previous: int | None = None,
        checkpoints: Sequence[str] = (),
    ) -> DoneNote:
        assert opened.document and opened.content_hash
        made = Made(
            text=opened.document.text,
            max_words=self._settings.max_words,
            chunks=chunks,
            folded=opened.last.index if opened.last else chunks,
            shrinkings=opened.shrinkings,
            previous=previous,
            words=count_words(summary),
        )
        return DoneNote(
            key=opened.key,
            digest=opened.digest,
            content_hash=opened.content_hash,
            data_version=hashlib.sha256(summary.encode()).hexdigest(),
            told=told,
            verdict=judge_summary(readable, made) if self._config.checks else None,
            checkpoints=checkpoints,
        )

    def _told(self, opened: Opened, outcome: DocumentOutcome) -> md.Metadata:
        """Write the document's result down; the metadata that goes with it."""
        result = document_result(
            outcome, path=opened.path, document_key=opened.key, run_id=self._run.run_id
        )
        path = keep_document_result(self._run.store, self._run.run_id, opened.key, result)
        told = {
            **self._run.metadata(outcome, result),
            md.RESULT: dg.MetadataValue.path(path),
            md.SECONDS: opened.seconds,
        }
        if opened.content_hash:
            told[md.CONTENT_HASH] = opened.content_hash
        return told

    def _leave_aside(self, opened: Opened, why: str) -> None:
        told = {**self._told(opened, Unreadable(error=why)), md.STATUS: "set_aside"}
        self.tally.add(opened.key, "set_aside", why)
        self._writer.add(AsideNote(opened.key, told))

    def _break_off(self, error: BaseException) -> None:
        """What is known of the documents that were under way when the run was terminated, or could
        not go on for `error`; those for which nothing was sent yet are not started."""
        reason = str(error)
        if isinstance(error, dg.DagsterExecutionInterruptedError):
            self._events.hurry()
            self.tally.ended_by = reason = "interrupted"
        for key, outcome in list(self._left.items()):
            with suppress(StoreError):  # which may be what the run ends for
                if not isinstance(outcome, Stopped) or not outcome.ends_run:
                    self._settle(key, outcome)
                elif outcome.model_calls:
                    self._told(self._open[key], replace(outcome, error=reason))
                    self.tally.add(key, "failed", reason)

    def _sum_up(self) -> None:
        if self._calls is not None:
            self.tally.model_calls = self._calls.requests
            self.tally.usage = self._calls.usage
            if self._calls.ended_by is not None:
                self.tally.ended_by = str(self._calls.ended_by)
