"""A collection of documents in a folder, and runs of the summary assets over it."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg

from promptchain_dagster.library.registry import Registry
from promptchain_dagster.pipelines.collections.batches import batches
from promptchain_dagster.pipelines.results import read_document_result
from promptchain_dagster.pipelines.summary_assets import summary_assets
from promptchain_dagster.store import open_store
from promptchain_dagster.testing import ScriptedChatModel
from tests.pipelines.scripted import resources

SUMMARY = dg.AssetKey("document_summary")
RUNNING = dg.AssetKey("running_summary")
QUIET = {"console": {"config": {"log_level": "CRITICAL"}}}
CHUNK_TOKENS = 30
PART = re.compile(r'<part number="(\d+)" of="(\d+)">(.*)</part>', re.DOTALL)


def text_of(name: str, chunks: int = 2) -> str:
    """A document of so many chunks at 30 tokens each, each of which names it."""
    return "\n\n".join(
        f"Part {n} of {name} says that in the harbour the boats were out, and that nobody knew why."
        for n in range(1, chunks + 1)
    )


def answer(prompt: str) -> str:
    """A summary that says which part of what it was made from."""
    found = PART.search(prompt)
    assert found, prompt
    name = re.search(r"of (\S+) says", found[3])
    return f"{name[1] if name else 'nothing'} up to part {found[1]} of {found[2]}"


class Collection:
    """Documents under `folder`, registered as partitions of `instance`; a home beside them."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance) -> None:
        self.home, self.folder, self.instance = folder / "home", folder / "documents", instance
        self.folder.mkdir(exist_ok=True)
        self.store = open_store(str(self.home))
        self.registry = Registry(self.store, str(self.folder))
        self.paths: dict[str, str] = {}

    def add(self, path: str, text: str | None = None, *, chunks: int = 2) -> str:
        """Write a document and register it; its key."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text_of(path, chunks) if text is None else text, "utf-8")
        key = self.registry.register(str(file)).key
        if key not in self.paths:
            self.instance.add_dynamic_partitions("documents", [key])
            self.paths[key] = path
        return key

    def run(
        self, keys: Sequence[str], model: ScriptedChatModel, **config: Any
    ) -> dg.ExecuteInProcessResult:
        """One run of `summarize_documents` over `keys`; a run that fails raises nothing."""
        (batch,) = batches(keys, self.instance.get_dynamic_partitions("documents"))
        return self.execute(batch.run_config(config), batch.tags, model)

    def execute(
        self, run_config: Mapping[str, Any], tags: Mapping[str, str], model: ScriptedChatModel
    ) -> dg.ExecuteInProcessResult:
        made = summary_assets(settings=self.settings)
        defs = dg.Definitions(
            assets=made.assets, jobs=[made.job], resources=resources(self.home, model)
        )
        return defs.resolve_job_def("summarize_documents").execute_in_process(
            {**run_config, "loggers": QUIET},
            instance=self.instance,
            tags={"home": str(self.home), **tags},
            raise_on_error=False,
        )

    @property
    def settings(self) -> Any:
        from promptchain_dagster.refine.settings import RefineSettings

        return RefineSettings(chunk_tokens=CHUNK_TOKENS, max_words=50)

    def result(self, run_id: str, key: str) -> dict[str, Any]:
        return read_document_result(self.store, run_id, key, self.paths[key])

    def statuses(self, run_id: str) -> dict[str, str]:
        """What became of each document, by path."""
        return {path: self.result(run_id, key)["status"] for key, path in self.paths.items()}

    def run_result(self, run_id: str) -> dict[str, Any]:
        return json.loads((self.home / "results" / f"{run_id}.json").read_text("utf-8"))

    def summary(self, key: str) -> str:
        return (self.home / "summaries" / f"{key}.md").read_text("utf-8").strip()

    def materialized(self, run_id: str, asset: dg.AssetKey = SUMMARY) -> list[str]:
        """The partitions that a run's events name, in order."""
        return [
            str(event.partition)
            for event in self.materializations(run_id)
            if event.asset_key == asset
        ]

    def materializations(self, run_id: str) -> list[dg.AssetMaterialization]:
        kind = dg.DagsterEventType.ASSET_MATERIALIZATION
        return [
            entry.dagster_event.step_materialization_data.materialization
            for entry in self.instance.all_logs(run_id, of_type=kind)
        ]

    def evaluations(self, run_id: str) -> list[dg.AssetCheckEvaluation]:
        kind = dg.DagsterEventType.ASSET_CHECK_EVALUATION
        return [
            entry.dagster_event.asset_check_evaluation_data
            for entry in self.instance.all_logs(run_id, of_type=kind)
        ]
