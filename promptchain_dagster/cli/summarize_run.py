"""Many documents as one run of `summarize_documents`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from promptchain_dagster.cli.paths import Source
from promptchain_dagster.cli.progress import FoldProgress
from promptchain_dagster.cli.runs import Ended, Runner
from promptchain_dagster.cli.summaries import Summaries
from promptchain_dagster.library.estimate import estimate
from promptchain_dagster.library.quarantine import Quarantined, quarantine
from promptchain_dagster.library.registry import Entry, Registry
from promptchain_dagster.library.scanned import Known
from promptchain_dagster.library.state import Kind
from promptchain_dagster.models.settings import ModelSettings
from promptchain_dagster.refine.outcome import NotStarted, Unreadable
from promptchain_dagster.refine.result import document_result
from promptchain_dagster.refine.settings import RefineSettings

if TYPE_CHECKING:
    from dagster import JobDefinition

Entries = Mapping[str, tuple[Source, Entry]]


class SummarizeRun:
    """Registers documents, has one run summarize them, and tells what became of each."""

    def __init__(self, runs: Runner, settings: RefineSettings, model: ModelSettings) -> None:
        self._runs, self._settings, self._model = runs, settings, model

    def summarize(
        self, sources: Sequence[Source], *, max_in_flight: int | None, fresh: bool
    ) -> Summaries:
        """All of the documents but those set aside, which are tried only where they are named."""
        try:
            entries = self._register(sources)
            aside = self._set_aside(entries)
            keys = [key for key in entries if key not in aside]
            ended = self._run(keys, entries, max_in_flight, fresh) if keys else None
        except KeyboardInterrupt:  # before there was a run
            left = [
                document_result(
                    NotStarted(reason="interrupted"),
                    path=source.path,
                    document_key=None,
                    run_id=None,
                )
                for source in sources
            ]
            return Summaries.of(left, interrupted=True)
        documents = [
            _left_alone(source, aside[key]) if key in aside else self._entry(key, source, ended)
            for key, (source, _) in entries.items()
        ]
        return Summaries.of(documents, ended)

    def _register(self, sources: Iterable[Source]) -> Entries:
        """The documents by key; each is a partition then, and its text is recorded."""
        from promptchain_dagster.pipelines.collections.watch import (
            PARTITIONS,
            VARIABLE,
            record_versions,
        )

        registry = Registry(self._runs.store, os.environ.get(VARIABLE, "").strip() or None)
        entries = {
            entry.key: (source, entry)
            for source in sources
            for entry in [registry.register(source.path)]
        }
        instance = self._runs.instance
        registered = set(instance.get_dynamic_partitions(PARTITIONS))
        if missing := [key for key in entries if key not in registered]:
            instance.add_dynamic_partitions(PARTITIONS, missing)
        known = [Known(one.path, None, one.content_hash) for _, one in entries.values()]
        record_versions(instance, known)
        return entries

    def _set_aside(self, entries: Entries) -> dict[str, Quarantined]:
        """Those inside folders that had failed for good with this text and these prompts."""
        from promptchain_dagster.pipelines.collections.recipe import summary_recipe

        recipe = summary_recipe(self._settings, self._model)
        return {
            one.key: one
            for one in quarantine(self._runs.store, recipe=recipe)
            # Without a try, only an earlier scan found it unreadable.
            if one.tries and one.key in entries and not entries[one.key][0].named
        }

    def _run(
        self, keys: Sequence[str], entries: Entries, max_in_flight: int | None, fresh: bool
    ) -> Ended:
        from promptchain_dagster.pipelines.collections.batches import batches
        from promptchain_dagster.pipelines.collections.watch import PARTITIONS

        partitions = self._runs.instance.get_dynamic_partitions(PARTITIONS)
        (batch,) = batches(keys, partitions, max_partitions_per_run=len(keys))
        config = {
            **self._settings.numbers,
            "max_in_flight": max_in_flight,
            "fresh": fresh,
            "retry_set_aside": True,  # none is among them but those named
        }
        ops = batch.run_config({name: one for name, one in config.items() if one is not None})
        sizes = {key: entries[key][1].size for key in keys}
        expected = {
            key: estimate([size], self._settings, "").chunks if size else 0
            for key, size in sizes.items()
        }
        with FoldProgress(expected) as progress:
            return self._runs.run(
                _summarize_documents(self._settings), ops["ops"], progress.on_event, tags=batch.tags
            )

    def _entry(self, key: str, source: Source, ended: Ended | None) -> dict[str, Any]:
        from promptchain_dagster.pipelines.results import read_document_result

        assert ended is not None
        entry = read_document_result(self._runs.store, ended.run_id, key, source.path)
        if entry["status"] == "not_started":
            by_itself = (ended.result or {}).get("error") or ended.error
            entry["error"] = "interrupted" if ended.interrupted else by_itself or entry["error"]
        return {**entry, "path": source.path}


def _summarize_documents(settings: RefineSettings) -> JobDefinition:
    import dagster as dg

    from promptchain_dagster.pipelines.resources import chain_resources
    from promptchain_dagster.pipelines.summary_assets import summary_assets

    made = summary_assets(settings=settings)
    definitions = dg.Definitions(assets=made.assets, jobs=[made.job], resources=chain_resources())
    return definitions.resolve_job_def(made.job.name)


def _left_alone(source: Source, one: Quarantined) -> dict[str, Any]:
    times = "once" if one.tries == 1 else f"{one.tries} times"
    error = f"set aside ({one.kind.value}, tried {times}): {one.reason}"
    if one.kind is not Kind.UNREADABLE:  # another try would read the same
        error += f"; to try it again, name it, or: promptchain quarantine release {one.key}"
    return document_result(
        Unreadable(error=error), path=source.path, document_key=one.key, run_id=None
    )
