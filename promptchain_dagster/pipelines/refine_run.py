"""One document in one run: folding it under Dagster, and keeping what comes of it."""

import hashlib
from collections.abc import Sequence
from typing import Any

import dagster as dg

from promptchain_dagster.chain import trace
from promptchain_dagster.errors import PromptChainError
from promptchain_dagster.pipelines import metadata as md
from promptchain_dagster.pipelines.materializer import Writer
from promptchain_dagster.pipelines.resources import ModelResource
from promptchain_dagster.pipelines.results import keep_result
from promptchain_dagster.pipelines.run_async import run_async
from promptchain_dagster.refine.checkpoints import Checkpoints
from promptchain_dagster.refine.chunking import Chunk
from promptchain_dagster.refine.fold import refine_document
from promptchain_dagster.refine.outcome import (
    ChunkFolded,
    DocumentOutcome,
    NoContent,
    Stopped,
    Summarized,
    Unreadable,
)
from promptchain_dagster.refine.result import document_result
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.store import Store
from promptchain_dagster.words import count_words

RUNNING_SUMMARY = dg.AssetKey("running_summary")


class RefineRun:
    """What an op of `incremental_refine` does for its document."""

    def __init__(
        self,
        context: dg.OpExecutionContext,
        store: Store,
        path: str,
        document_key: str | None = None,
        warnings: Sequence[str] = (),
    ) -> None:
        self._context, self._store = context, store
        self._path, self._key, self._warnings = path, document_key, warnings

    def fold(
        self,
        chunks: Sequence[Chunk],
        settings: RefineSettings,
        model: ModelResource,
        *,
        fresh: bool,
    ) -> Summarized | Stopped | Unreadable:
        """Fold the chunks, materializing the running summary after each."""
        context = self._context
        # The run that was retried and the retry are one generation, so a fresh run resumes too.
        generation = (context.run.root_run_id or context.run_id) if fresh else None

        async def work(writer: Writer[ChunkFolded]) -> Summarized | Stopped:
            async with model.connect() as chat:
                return await refine_document(
                    chunks,
                    settings,
                    model.calls(chat),
                    Checkpoints(self._store, generation),
                    record=lambda index: trace.recorder(
                        self._store, context.run_id, f"{self._key}/{index:06}"
                    ),
                    on_chunk=writer.put,
                )

        try:
            with Writer(self._materialize) as writer:
                return run_async(lambda: work(writer))
        except PromptChainError as error:
            return Unreadable(error=str(error))

    def finish(self, outcome: DocumentOutcome) -> tuple[dict[str, Any], md.Metadata]:
        """Keep the outcome; the run's result and its metadata, or a failure that says why."""
        if not isinstance(outcome, Summarized | NoContent):
            raise self.failure(outcome)
        told: md.Metadata = {}
        if isinstance(outcome, Summarized):
            told[md.PATH] = dg.MetadataValue.path(self._keep_summary(outcome.summary))
        result, path = self._keep(outcome)
        told[md.RESULT] = dg.MetadataValue.path(path)
        return result, {**told, **self._metadata(outcome, result)}

    def failure(self, outcome: DocumentOutcome) -> dg.Failure:
        """Keep the outcome, and the failure that ends the run; never retried by Dagster (f11)."""
        result, path = self._keep(outcome)
        told = {
            **self._metadata(outcome, result),
            md.ERROR: md.preview(result["error"]),
            md.RESULT: dg.MetadataValue.path(path),
        }
        return dg.Failure(md.preview(result["error"]), told, allow_retries=False)

    def _materialize(self, folded: ChunkFolded) -> None:
        told = {
            md.INDEX: folded.index,
            md.TOTAL: folded.total,
            md.WORDS: folded.words,
            md.TOKENS: folded.tokens,
            md.COMPRESSED: folded.compressed,
            md.PREVIEW_KEY: md.preview(folded.summary),
            md.PATH: dg.MetadataValue.path(self._store.url_of(folded.checkpoint)),
            **md.of_usage(folded.usage, folded.model_calls),
        }
        self._context.log_event(
            dg.AssetMaterialization(
                RUNNING_SUMMARY,
                description=f"chunk {folded.index} of {folded.total}, {folded.words} words",
                metadata=told,
                partition=self._key,
            )
        )

    def _keep_summary(self, summary: str) -> str:
        """Write the summary as Markdown; one that it takes the place of is kept beside it."""
        key, data = f"summaries/{self._key}.md", f"{summary}\n".encode()
        earlier = self._store.read(key)
        if earlier is not None and earlier != data:
            mark = hashlib.sha256(earlier).hexdigest()[:16]
            self._store.write(f"summaries/{self._key}.earlier-{mark}.md", earlier)
        if earlier != data:
            self._store.write(key, data)
        return self._store.url_of(key)

    def _keep(self, outcome: DocumentOutcome) -> tuple[dict[str, Any], str]:
        run_id = self._context.run_id
        result = document_result(
            outcome,
            path=self._path,
            document_key=self._key,
            run_id=run_id,
            warnings=self._warnings,
        )
        return result, keep_result(self._context.instance, self._store, run_id, result)

    def _metadata(self, outcome: DocumentOutcome, result: dict[str, Any]) -> md.Metadata:
        told: md.Metadata = {md.STATUS: result["status"], md.DOCUMENT: md.preview(self._path)}
        if self._key:
            told[md.DOCUMENT_KEY] = self._key
        if result["warnings"]:
            told[md.WARNINGS] = md.lines(result["warnings"])
        if isinstance(outcome, Summarized | Stopped):
            told |= {
                md.PREVIEW_KEY: md.preview(outcome.summary),
                md.WORDS: count_words(outcome.summary),
                md.CHUNKS: outcome.chunks,
                md.RESUMED_FROM: outcome.resumed_from,
                md.COMPRESSIONS: outcome.compressions,
                md.TRACE: dg.MetadataValue.path(
                    self._store.url_of(trace.folder_of(self._context.run_id).rstrip("/"))
                ),
                **md.of_usage(outcome.usage, outcome.model_calls),
            }
        if isinstance(outcome, Stopped):
            told[md.FAILED_CHUNK] = outcome.failed_chunk
            told[md.ENDS_RUN] = outcome.ends_run
        return told
