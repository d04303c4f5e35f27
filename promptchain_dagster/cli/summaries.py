"""Documents summarized one after another, each by a run of its own."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import TYPE_CHECKING, Any

from promptchain_dagster.cli.events import FoldedChunk, folded_chunk
from promptchain_dagster.cli.paths import Source
from promptchain_dagster.cli.progress import FoldProgress
from promptchain_dagster.cli.runs import INTERRUPTED, Ended, Runner
from promptchain_dagster.models.base import NO_USAGE, Usage
from promptchain_dagster.refine.outcome import NotStarted, Stopped, Unreadable
from promptchain_dagster.refine.result import document_result
from promptchain_dagster.refine.settings import RefineSettings

if TYPE_CHECKING:
    from dagster import DagsterEvent


class Summaries:
    """Summarizes documents in turn; after an interrupt, or an error that no call can escape, the
    rest is not started."""

    def __init__(
        self, runs: Runner, settings: RefineSettings, *, fresh: bool, progress: FoldProgress
    ) -> None:
        self.documents: list[dict[str, Any]] = []
        self.interrupted = False
        self._runs, self._settings, self._fresh = runs, settings, fresh
        self._progress = progress
        self._ended_by: str | None = None

    def summarize(self, source: Source) -> None:
        """One document more in `documents`, whatever becomes of it."""
        entry: dict[str, Any] | None = None
        if self._ended_by is None:
            try:
                entry = self._run(source)
            except KeyboardInterrupt:  # before the run was made
                self.interrupt()
        if entry is None:
            outcome = NotStarted(reason=self._ended_by or "")
            entry = document_result(outcome, path=source.path, document_key=None, run_id=None)
        self.documents.append(entry)

    def _run(self, source: Source) -> dict[str, Any]:
        from promptchain_dagster.pipelines.summaries import incremental_refine

        watch = _Watch(self._progress)
        self._progress.begin(source.path)
        config = {
            **dataclasses.asdict(self._settings),
            # Absolute, so that a retry from the UI finds it.
            "path": os.path.abspath(source.path),
            "fresh": self._fresh,
        }
        ended = self._runs.run(incremental_refine, {"document": {"config": config}}, watch.on_event)
        self._progress.end()
        if ended.interrupted:
            self.interrupt()
        entry = ended.result or self._broken_off(source, ended, watch)
        if watch.ends_run:
            self._ended_by = entry["error"]
        return {**entry, "path": source.path}

    def interrupt(self) -> None:
        """Start no document any more."""
        self.interrupted, self._ended_by = True, "interrupted"

    def result(self) -> dict[str, Any]:
        """What `--json` prints."""
        usage = (Usage(**document["usage"]) for document in self.documents)
        return {
            "model_calls": sum(document["model_calls"] for document in self.documents),
            "usage": dataclasses.asdict(sum(usage, NO_USAGE)),
            "warnings": [
                f"{document['path']}: {warning}"
                for document in self.documents
                for warning in document["warnings"]
            ],
            "documents": self.documents,
        }

    @property
    def exit_status(self) -> int:
        if self.interrupted:
            return INTERRUPTED
        good = ("completed", "no_content")
        return 0 if all(document["status"] in good for document in self.documents) else 1

    def _broken_off(self, source: Source, ended: Ended, watch: _Watch) -> dict[str, Any]:
        """The entry of a document whose run came to no result: what its checkpoints hold."""
        error = "interrupted" if ended.interrupted else ended.error or "the run broke off"
        last = watch.last
        if last is None:
            outcome = Unreadable(error=error)
        else:
            outcome = Stopped(
                summary=self._checkpoint(last.checkpoint),
                chunks=last.total,
                resumed_from=watch.resumed_from,
                model_calls=watch.model_calls,
                usage=watch.usage,
                failed_chunk=min(last.index + 1, last.total),
                error=error,
            )
        return document_result(
            outcome, path=source.path, document_key=watch.document_key, run_id=ended.run_id
        )

    def _checkpoint(self, url: str) -> str:
        store = self._runs.store
        root = store.url_of("checkpoints")
        data = store.read("checkpoints" + url.removeprefix(root))
        return "" if data is None else json.loads(data)["summary"]


class _Watch:
    """What one run's events tell of its document."""

    def __init__(self, progress: FoldProgress) -> None:
        self.last: FoldedChunk | None = None
        self.resumed_from = 0
        self.model_calls = 0
        self.usage = NO_USAGE
        self.document_key: str | None = None
        self.ends_run = False
        self._progress = progress

    def on_event(self, event: DagsterEvent, run_id: str) -> None:
        from promptchain_dagster.pipelines import metadata as md

        self._progress.on_event(event)
        chunk = folded_chunk(event)
        if chunk is not None:
            if self.last is None:
                self.resumed_from = chunk.index - 1
            self.last = chunk
            self.model_calls += chunk.model_calls
            self.usage += chunk.usage
            self.document_key = event.partition
        elif event.is_step_failure and event.step_failure_data.user_failure_data:
            told = event.step_failure_data.user_failure_data.metadata
            self.ends_run = md.ENDS_RUN in told and bool(told[md.ENDS_RUN].value)
