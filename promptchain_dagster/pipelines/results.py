"""A run's result, good or bad, as a JSON file under the home: `results/<run>.json`.

A run over a collection has one more for each document that it came to:
`results/<run>/<document key>.json`.
"""

import json
from collections.abc import Mapping
from typing import Any

import dagster as dg

from promptchain_dagster.pipelines import metadata as md
from promptchain_dagster.refine.outcome import NotStarted
from promptchain_dagster.refine.result import document_result
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
    store.write(key, _packed(result))
    path = store.url_of(key)
    instance.add_run_tags(run_id, {md.RESULT: path, md.STATUS: str(result["status"])})
    return path


def keep_document_result(store: Store, run_id: str, key: str, result: Mapping[str, Any]) -> str:
    """Write down what became of one document of a run; returns its path."""
    name = _document_key(run_id, key)
    store.write(name, _packed(result))
    return store.url_of(name)


def read_document_result(store: Store, run_id: str, key: str, path: str) -> dict[str, Any]:
    """What became of the document `key` in a run that has ended; `not_started` where that was
    never its turn, with what ended the run as the reason."""
    data = store.read(_document_key(run_id, key))
    if data is not None:
        return json.loads(data)
    ended = read_result(store, run_id) or {}
    outcome = NotStarted(reason=ended.get("error") or "the run broke off")
    return document_result(outcome, path=path, document_key=key, run_id=run_id)


def _packed(result: Mapping[str, Any]) -> bytes:
    # A path of undecodable bytes holds half characters, which only JSON's own escapes can tell.
    text = json.dumps(result, ensure_ascii=False, indent=2)
    return text.encode(errors="backslashreplace")


def _document_key(run_id: str, key: str) -> str:
    return f"results/{run_id}/{key}.json"
