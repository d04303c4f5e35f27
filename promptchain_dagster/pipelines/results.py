"""A run's result, good or bad, as a JSON file under the home: `results/<run>.json`."""

import json
from collections.abc import Mapping
from typing import Any

import dagster as dg

from promptchain_dagster.pipelines import metadata as md
from promptchain_dagster.store import Store


def result_key(run_id: str) -> str:
    """The store's key of a run's result."""
    return f"results/{run_id}.json"


def read_result(store: Store, run_id: str) -> dict[str, Any] | None:
    """A run's result; None where the run has not come to one."""
    data = store.read(result_key(run_id))
    return None if data is None else json.loads(data)


def keep_result(
    instance: dg.DagsterInstance, store: Store, run_id: str, result: Mapping[str, Any]
) -> str:
    """Write the result down and name it in the run's tags; returns its path."""
    key = result_key(run_id)
    store.write(key, json.dumps(result, ensure_ascii=False, indent=2).encode())
    path = store.url_of(key)
    instance.add_run_tags(run_id, {md.RESULT: path, md.STATUS: str(result["status"])})
    return path
