"""What Dagster is told of documents while a run goes on: one note after another, in the writer's
thread."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg

from promptchain_dagster.chain.accept import Verdict
from promptchain_dagster.library.state import Kind, State
from promptchain_dagster.pipelines import metadata as md
from promptchain_dagster.pipelines.collections.checks import Evaluations
from promptchain_dagster.pipelines.collections.document_run import RUNNING_SUMMARY, DocumentRun
from promptchain_dagster.pipelines.collections.provenance import provenance
from promptchain_dagster.refine.outcome import ChunkFolded


@dataclass(frozen=True, slots=True)
class ChunkNote:
    """A chunk was folded in."""

    key: str
    folded: ChunkFolded


@dataclass(frozen=True, slots=True)
class DoneNote:
    """A document is done: its summary is kept, or there is nothing to summarize. `verdict` is None
    where the run reports no checks."""

    key: str
    digest: str
    content_hash: str
    data_version: str
    told: md.Metadata
    verdict: Verdict | None
    checkpoints: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class FailedNote:
    """A document failed. `kind` is None where that is not to be held against it."""

    key: str
    digest: str
    kind: Kind | None
    reason: str
    told: md.Metadata


@dataclass(frozen=True, slots=True)
class AsideNote:
    """A document that had failed for good was left alone."""

    key: str
    told: md.Metadata


Note = ChunkNote | DoneNote | FailedNote | AsideNote


class SummaryEvents:
    """Writes the events of one run of `asset`, made from `document`.

    A document is marked done after its event: what is killed in between is done again, from its
    checkpoints, and not missing for ever.
    """

    def __init__(
        self,
        context: dg.AssetExecutionContext,
        run: DocumentRun,
        state: State,
        *,
        asset: dg.AssetKey,
        document: dg.AssetKey,
        checks: bool,
        code_version: str,
    ) -> None:
        self._context, self._run, self._state = context, run, state
        self._asset, self._document, self._code_version = asset, document, code_version
        names = {key.name for key in context.selected_asset_check_keys} if checks else set[str]()
        self._checks = Evaluations(asset, names)
        self._hurried = False

    def hurry(self) -> None:
        """The run was terminated: from now on only what is done, or failed, is recorded."""
        self._hurried = True

    def write(self, note: Note) -> None:
        """Record one note."""
        match note:
            case ChunkNote():
                if not self._hurried:
                    self._log(self._run.running_summary(note.key, note.folded))
            case DoneNote():
                self._done(note)
            case FailedNote():
                self._failed(note)
            case AsideNote():
                self._log(
                    dg.AssetObservation(
                        self._asset,
                        description="set aside: it had failed for good",
                        partition=note.key,
                        metadata=note.told,
                    )
                )

    def _done(self, note: DoneNote) -> None:
        instance, key = self._context.instance, note.key
        tags = provenance(
            instance,
            key,
            code_version=self._code_version,
            data_version=note.data_version,
            made_from=(self._document, note.content_hash),
            others=(RUNNING_SUMMARY,),
        )
        self._log(
            dg.AssetMaterialization(self._asset, partition=key, metadata=note.told, tags=tags)
        )
        run_id = self._run.run_id
        self._state.mark_done(key, note.digest, run_id, checkpoints=note.checkpoints)
        if note.verdict is None or not self._checks.names or self._hurried:
            return
        records = dg.AssetRecordsFilter(asset_key=self._asset, asset_partitions=[key])
        made = instance.fetch_materializations(records, limit=1).records
        for event in self._checks.of(key, note.verdict, made[0] if made else None):
            self._log(event)

    def _failed(self, note: FailedNote) -> None:
        self._context.log.error(f"{note.key}: {md.preview(note.reason)}")
        if note.kind is not None:
            run_id = self._run.run_id
            self._state.mark_failed(note.key, note.digest, note.kind, note.reason, run_id)
        self._log(
            dg.AssetObservation(
                self._asset,
                description=md.preview(note.reason),
                partition=note.key,
                metadata=note.told,
            )
        )
        for event in self._checks.of_failure(note.key, note.reason, note.told):
            self._log(event)

    def _log(self, event: Any) -> None:
        self._context.log_event(event)
        # They are in the event log; the context would hold them all until the step ends.
        for _ in self._context.op_execution_context.consume_events():
            pass
