"""The workload as one run of `summarize_documents`, its events in SQLite on disk as the shipped
`dagster.yaml` has them.

The clock runs inside the op: from the first call to the last event that is stored.
"""

import os
import shutil
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg

from benchmarks.child import new_folder, parameters, tell
from benchmarks.workload import CHUNK_TOKENS, MAX_WORDS, MODEL, Workload
from promptchain_dagster import pipelines
from promptchain_dagster.library.registry import Registry
from promptchain_dagster.models import ChatModel
from promptchain_dagster.pipelines.collections.batches import DOCUMENT_SUMMARY, batches
from promptchain_dagster.pipelines.resources import HomeResource, ModelResource, chain_resources
from promptchain_dagster.pipelines.summary_assets import summary_assets
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.store import open_store

DAGSTER_YAML = Path(pipelines.__file__).with_name("dagster.yaml")
SETTINGS = RefineSettings(chunk_tokens=CHUNK_TOKENS, max_words=MAX_WORDS)
_EVENTS = (
    dg.DagsterEventType.ASSET_MATERIALIZATION,
    dg.DagsterEventType.ASSET_OBSERVATION,
    dg.DagsterEventType.ASSET_CHECK_EVALUATION,
)


@dataclass
class Times:
    """Unix times, and the process's CPU seconds, when calls may begin and when all were made."""

    began: float = 0.0
    began_cpu: float = 0.0
    called: float = 0.0


TIMES = Times()


class TimedModel(ModelResource):
    """Notes when it is connected, and when it is let go of."""

    def connect(self) -> AbstractAsyncContextManager[ChatModel]:
        return _timed(super().connect())


@asynccontextmanager
async def _timed(connecting: AbstractAsyncContextManager[ChatModel]) -> AsyncIterator[ChatModel]:
    async with connecting as model:
        TIMES.began, TIMES.began_cpu = time.time(), time.process_time()
        yield model
        TIMES.called = time.time()


def register(workload: Workload, folder: Path, home: str, instance: dg.DagsterInstance) -> None:
    """Write the documents as files, and make each known, with its partition."""
    registry = Registry(open_store(home))
    keys: list[str] = []
    for number, chunks in enumerate(workload.texts()):
        path = folder / f"{number:06}.txt"
        path.write_text("\n\n".join(chunks), encoding="utf-8")
        keys.append(registry.register(str(path)).key)
    instance.add_dynamic_partitions("documents", keys)


def job_for(url: str, home: str) -> dg.JobDefinition:
    """`summarize_documents`, with the model at `url`."""
    made = summary_assets(settings=SETTINGS)
    resources: dict[str, Any] = {
        **chain_resources(),
        "model": TimedModel(model=MODEL, base_url=url),
        "home": HomeResource(home=home),
    }
    definitions = dg.Definitions(assets=made.assets, jobs=[made.job], resources=resources)
    return definitions.resolve_job_def("summarize_documents")


def main(
    url: str, workload: Workload, *, events: bool, checks: bool, folder: Path
) -> dict[str, Any]:
    home = str(folder / "home")
    documents = folder / "documents"
    documents.mkdir()
    (folder / "dagster").mkdir()
    shutil.copyfile(DAGSTER_YAML, folder / "dagster" / "dagster.yaml")
    os.environ["DAGSTER_HOME"] = str(folder / "dagster")
    with dg.DagsterInstance.get() as instance:
        register(workload, documents, home, instance)
        keys = instance.get_dynamic_partitions("documents")
        (batch,) = batches(keys, keys, max_partitions_per_run=len(keys))
        config = {
            "max_in_flight": workload.in_flight,
            "running_summary_events": events,
            "checks": checks,
        }
        job = job_for(url, home)
        asked = time.time()
        run = job.execute_in_process(
            batch.run_config(config), tags=dict(batch.tags), instance=instance
        )
        cpu_seconds = time.process_time() - TIMES.began_cpu
        stored, last_at = _events(instance, run.run_id)
    assert stored[DOCUMENT_SUMMARY] == workload.documents, stored
    return {
        "seconds": last_at - TIMES.began,
        "cpu_seconds": cpu_seconds,
        "start": TIMES.began - asked,
        "drain": max(0.0, last_at - TIMES.called),
        "events": sum(stored.values()),
        "chunk_events": stored["running_summary"],
    }


def _events(instance: dg.DagsterInstance, run_id: str) -> tuple[Counter[str], float]:
    """How many events are stored for each asset, checks under their own name; the last one's
    time."""
    stored: Counter[str] = Counter()
    last_at = 0.0
    for entry in instance.all_logs(run_id, of_type=set(_EVENTS)):
        event = entry.get_dagster_event()
        is_check = event.event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION
        name = "checks" if is_check or event.asset_key is None else event.asset_key.path[-1]
        stored[name] += 1
        last_at = max(last_at, entry.timestamp)
    return stored, last_at


if __name__ == "__main__":
    given = parameters()
    os.environ.pop("OPENAI_BASE_URL", None)
    tell(
        **main(
            given["url"],
            Workload(**given["workload"]),
            events=given["events"],
            checks=given["checks"],
            folder=Path(new_folder(given["folder"])),
        )
    )
