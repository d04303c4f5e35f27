"""The documents through runs of `summarize_documents`, one after another in this process, on an
instance in a folder with the `dagster.yaml` that is shipped.

First all of them, as a backfill has them; then what the work list says is left, as a night has it.
"""

import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import dagster as dg

from benchmarks.child import parameters, tell
from promptchain_dagster import pipelines
from promptchain_dagster.library.scanned import Known
from promptchain_dagster.library.state import State
from promptchain_dagster.library.worklist import worklist
from promptchain_dagster.models import ChatModel
from promptchain_dagster.models.base import NO_USAGE, Usage
from promptchain_dagster.pipelines.collections.batches import Batch, batches
from promptchain_dagster.pipelines.collections.recipe import summary_recipe
from promptchain_dagster.pipelines.collections.watch import Look, look
from promptchain_dagster.pipelines.documents import document_assets, summarize_documents
from promptchain_dagster.pipelines.resources import HomeResource, ModelResource, chain_resources
from promptchain_dagster.pipelines.results import read_document_result, read_result
from promptchain_dagster.refine.outcome import Unreadable
from promptchain_dagster.refine.result import document_result
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.store import open_store
from soak.documents import CHUNK_TOKENS, MAX_WORDS
from soak.heard import Heard, hearing
from soak.limits import Limits
from soak.resources import Samples, held, memory_mb
from soak.server import MODEL

SETTINGS = RefineSettings(chunk_tokens=CHUNK_TOKENS, max_words=MAX_WORDS)
DAGSTER_YAML = Path(pipelines.__file__).with_name("dagster.yaml")
WARM_UP = 20
"""Documents."""
RUNS = 8
"""How many runs all documents are spread over, ..."""
FEWEST = 20
"""... unless one would have fewer documents than this."""
HEARD = Heard()


class HeardModel(ModelResource):
    """Its calls are counted in `HEARD`."""

    def connect(self) -> AbstractAsyncContextManager[ChatModel]:
        return hearing(super().connect(), HEARD)


def job_for(url: str, home: str, limits: Limits) -> dg.JobDefinition:
    """The job as `definitions.py` has it, the model at `url`."""
    model = HeardModel(model=MODEL, base_url=url, timeout_seconds=limits.timeout_seconds)
    resources = {**chain_resources(), "model": model, "home": HomeResource(home=home)}
    definitions = dg.Definitions(
        assets=document_assets, jobs=[summarize_documents], resources=resources
    )
    return definitions.resolve_job_def(summarize_documents.name)


def config(limits: Limits) -> dict[str, Any]:
    """That of each run."""
    return {
        "chunk_tokens": SETTINGS.chunk_tokens,
        "max_words": SETTINGS.max_words,
        "max_in_flight": limits.max_in_flight,
        "requests_per_minute": limits.requests_per_minute,
        "tokens_per_minute": limits.tokens_per_minute,
        "max_cost_usd": limits.max_cost_usd,
        "max_tokens": limits.max_tokens,
        "max_cost_usd_per_day": limits.max_cost_usd,
        "max_tokens_per_day": limits.max_tokens,
    }


class Runs:
    """Runs on one instance and one home, and what they left behind."""

    def __init__(
        self, instance: dg.DagsterInstance, folder: str, home: str, limits: Limits
    ) -> None:
        self._instance, self._folder, self._limits = instance, folder, limits
        self._home, self._store = home, open_store(home)

    def look(self, limit: int) -> Look:
        """Scan so many files of the folder, as the sensor does; what is known by then."""
        return look(self._instance, self._store, self._folder, limit=limit)

    def left_to_do(self, seen: Look) -> list[str]:
        """The keys of what a night would take."""
        recipe = summary_recipe(SETTINGS, ModelResource(model=MODEL).settings())
        return [one.key for one in worklist(seen.documents, State.read(self._store), recipe).work]

    def summarize(
        self, name: str, url: str, keys: Sequence[str], seen: Look, before: Counter[str]
    ) -> dict[str, Any]:
        """Those documents, in runs of equal size; what `core.summarize` tells, and the events that
        are stored."""
        HEARD.__init__()
        job, size = job_for(url, self._home, self._limits), _size(len(seen.partitions))
        began, samples, done, requests, usage = time.monotonic(), Samples(), 0, 0, NO_USAGE
        events: Counter[str] = Counter()
        left: Counter[str] = Counter()
        results = Path(self._home).with_name(f"{name}.jsonl")
        _append(results, (_unreadable(one) for one in seen.documents if one.unreadable))
        for batch in batches(keys, seen.partitions, max_partitions_per_run=size):
            run_id = self._run(job, batch)
            left = held() - before
            done += len(batch.keys)
            samples.append((done, memory_mb()))
            _append(
                results, (read_document_result(self._store, run_id, key, key) for key in batch.keys)
            )
            events += _events(self._instance, run_id)
            total = read_result(self._store, run_id) or {}
            requests += total["model_calls"]
            usage += Usage(**total["usage"])
        return {
            "seconds": time.monotonic() - began,
            "requests": requests,
            "usage": asdict(usage),
            "memory": samples,
            "left": left,
            "events": events,
            **vars(HEARD),
        }

    def _run(self, job: dg.JobDefinition, batch: Batch) -> str:
        done = job.execute_in_process(
            {
                **batch.run_config(config(self._limits)),
                "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
            },
            tags=dict(batch.tags),
            instance=self._instance,
            raise_on_error=False,
        )
        return done.run_id


def _size(documents: int) -> int:
    return max(FEWEST, -(-documents // RUNS))


def _append(file: Path, results: Iterable[Mapping[str, Any]]) -> None:
    with file.open("a", encoding="utf-8") as lines:
        lines.writelines(json.dumps(one) + "\n" for one in results)


def _unreadable(known: Known) -> dict[str, Any]:
    """What the scan says of a file, in place of a run."""
    outcome = Unreadable(error=known.unreadable or "")
    return document_result(outcome, path=known.path, document_key=known.key, run_id=None)


def _events(instance: dg.DagsterInstance, run_id: str) -> Counter[str]:
    """How many events are stored of each asset, by its name and their kind."""
    stored: Counter[str] = Counter()
    kinds = {
        dg.DagsterEventType.ASSET_MATERIALIZATION,
        dg.DagsterEventType.ASSET_OBSERVATION,
    }
    for entry in instance.all_logs(run_id, of_type=kinds):
        event = entry.get_dagster_event()
        if event.asset_key is not None:
            stored[f"{event.asset_key.path[-1]} {event.event_type_value}"] += 1
    return stored


def main(folder: str, home: str, runs: dict[str, str], calm: str, limits: Limits) -> None:
    """`runs` are names and the URLs of the servers that they ask; `calm` is that of a good one."""
    dagster_home = Path(f"{home}-dagster")
    dagster_home.mkdir()
    shutil.copyfile(DAGSTER_YAML, dagster_home / "dagster.yaml")
    os.environ["DAGSTER_HOME"] = str(dagster_home)
    told: list[dict[str, Any]] = []
    with dg.DagsterInstance.get() as instance:
        first = Runs(instance, folder, f"{home}-warm-up", limits)
        seen = first.look(WARM_UP)
        first.summarize("warm-up", calm, seen.partitions, seen, Counter())
        before = held()
        work = Runs(instance, folder, home, limits)
        seen = work.look(limits.documents)
        for number, (name, url) in enumerate(runs.items()):
            keys = work.left_to_do(seen) if number else seen.partitions
            told.append(work.summarize(name, url, keys, seen, before))
    tell(runs=told)


if __name__ == "__main__":
    given = parameters()
    limits = Limits(given["documents"])
    main(given["folder"], given["home"], given["runs"], given["calm"], limits)
