"""What the ops of `incremental_refine` do for their one document."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import dagster as dg

from promptchain_dagster.errors import PromptChainError, StoreError
from promptchain_dagster.pipelines import metadata as md
from promptchain_dagster.pipelines.collections.document_run import DocumentRun
from promptchain_dagster.pipelines.materializer import Writer
from promptchain_dagster.pipelines.paid_calls import paid_calls
from promptchain_dagster.pipelines.resources import ModelResource
from promptchain_dagster.pipelines.results import keep_result
from promptchain_dagster.pipelines.run_async import run_async
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
from promptchain_dagster.refine.replay import settings_of
from promptchain_dagster.refine.result import document_result
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.store import Store
from promptchain_dagster.tokens import Encoder


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
        self._document = DocumentRun(context.run, store)
        self._path, self._key, self._warnings = path, document_key, warnings

    def fold(
        self,
        chunks: Sequence[Chunk],
        settings: RefineSettings,
        model: ModelResource,
        encoder: Encoder,
        *,
        fresh: bool,
    ) -> Summarized | Stopped | Unreadable:
        """Fold the chunks, materializing the running summary after each.

        Where the run breaks off, what it had come to is kept as its result.
        """
        run = self._document
        left: list[Stopped] = []

        async def work(writer: Writer[ChunkFolded]) -> Summarized | Stopped:
            async with paid_calls(model, self._store, run.run_id) as calls:
                used = settings_of(settings, calls.model, encoder)
                return await refine_document(
                    chunks,
                    settings,
                    calls,
                    run.checkpoints(fresh=fresh),
                    record=lambda index: run.record(self._key, index, used),
                    on_chunk=writer.put,
                    on_left=left.append,
                )

        try:
            with Writer(self._materialize) as writer:
                return run_async(lambda: work(writer))
        except PromptChainError as error:
            return replace(left[0], error=str(error)) if left else Unreadable(error=str(error))
        except dg.DagsterExecutionInterruptedError:
            for stopped in left:
                self._keep(replace(stopped, error="interrupted"))
            raise

    def finish(self, outcome: DocumentOutcome) -> tuple[dict[str, Any], md.Metadata]:
        """Keep the outcome; the run's result and its metadata, or a failure that says why."""
        if not isinstance(outcome, Summarized | NoContent):
            raise self.failure(outcome)
        told: md.Metadata = {}
        try:
            if isinstance(outcome, Summarized):
                assert self._key is not None
                told |= self._document.keep_summary(self._key, outcome).metadata
            result, path = self._keep(outcome)
        except StoreError as error:
            raise self.failure(Unreadable(error=str(error))) from None
        told[md.RESULT] = dg.MetadataValue.path(path)
        return result, {**told, **self._document.metadata(outcome, result)}

    def failure(self, outcome: DocumentOutcome) -> dg.Failure:
        """Keep the outcome, and the failure that ends the run; never retried by Dagster (f11)."""
        result = self._result(outcome)
        told = self._document.metadata(outcome, result)
        try:
            told[md.RESULT] = dg.MetadataValue.path(self._keep(outcome)[1])
        except StoreError as error:
            self._context.log.error(f"the result could not be kept: {error}")
        return dg.Failure(md.preview(result["error"]), told, allow_retries=False)

    def _materialize(self, folded: ChunkFolded) -> None:
        self._context.log_event(self._document.running_summary(self._key, folded))

    def _keep(self, outcome: DocumentOutcome) -> tuple[dict[str, Any], str]:
        result = self._result(outcome)
        run_id = self._context.run_id
        return result, keep_result(self._context.instance, self._store, run_id, result)

    def _result(self, outcome: DocumentOutcome) -> dict[str, Any]:
        return document_result(
            outcome,
            path=self._path,
            document_key=self._key,
            run_id=self._context.run_id,
            warnings=self._warnings,
        )
