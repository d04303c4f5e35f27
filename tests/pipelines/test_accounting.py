"""What real runs cost is in the ledger, and each can be run again from its trace."""

import asyncio
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from promptchain_dagster.blog_post import Variant, blog_post_chain
from promptchain_dagster.chain.trace import read_trace
from promptchain_dagster.library.replay import Chains, Replay, replay_run
from promptchain_dagster.library.usage import RunUsage, usage_between
from promptchain_dagster.models.base import UNKNOWN_USAGE, CallError, Completion, Problem, Usage
from promptchain_dagster.pipelines.blog_post import gate_with_retry
from promptchain_dagster.pipelines.results import read_result
from promptchain_dagster.pipelines.summaries import incremental_refine
from promptchain_dagster.pipelines.summary_assets import summary_assets
from promptchain_dagster.store import Store, open_store
from promptchain_dagster.testing import ScriptedChatModel
from tests.pipelines.document_collection import QUIET, Collection, answer
from tests.pipelines.scripted import outline, resources, retry_from_failure, run

BROKEN = CallError(Problem.UNAVAILABLE, "HTTP 500: it broke", usage=UNKNOWN_USAGE)
CHAINS: Chains = {"gate_with_retry": lambda: blog_post_chain(Variant.GATE_WITH_RETRY)}


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    folder = tmp_path / "dagster"
    folder.mkdir()
    with dg.DagsterInstance.local_temp(str(folder)) as instance:
        yield instance


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(str(tmp_path / "home"))


def said(text: str) -> Completion:
    return Completion(text, "stub", usage=Usage(10, 4, 0.125))


def usage_of(store: Store, run_id: str) -> RunUsage:
    today = datetime.now(timezone.utc).date()
    found = [one for day in usage_between(store, today, today) for one in day.runs]
    (usage,) = [one for one in found if one.run_id == run_id]
    return usage


def replay(store: Store, run_id: str) -> Replay:
    return asyncio.run(replay_run(store, run_id, CHAINS))


def assert_adds_up(store: Store, run_id: str, result: dict[str, Any]) -> None:
    """Attempts, result and ledger."""
    attempts = read_trace(store, run_id)
    usage = usage_of(store, run_id)
    assert sum(one["requests"] for one in attempts) == usage.model_calls == result["model_calls"]
    assert usage.usage == Usage(**result["usage"])
    assert usage.ended


def test_a_post_is_in_the_ledger_and_so_is_the_run_that_retries_it(
    tmp_path: Path, store: Store, instance: dg.DagsterInstance
) -> None:
    """Every step, the failed call and its retry too; each run is replayed from where it began."""
    model = ScriptedChatModel(
        [said(outline(2)), said(outline(4)), BROKEN, BROKEN, said("The draft."), said("The post.")]
    )
    brief = {"brief": {"brief": "Why tests pay.", "audience": "developers"}}
    failed = run(gate_with_retry, brief, tmp_path / "home", model, instance)
    retried = retry_from_failure(gate_with_retry, failed, instance)
    assert (failed.success, retried.success) == (False, True)
    for run_id, calls, without in ((failed.run_id, 4, 2), (retried.run_id, 2, 0)):
        result = read_result(store, run_id)
        assert result is not None
        assert_adds_up(store, run_id, result)
        assert (result["model_calls"], result["usage"]["calls_without_usage"]) == (calls, without)
        done = replay(store, run_id)
        assert (done.status, done.difference) == ("same", None)
    assert done.calls == 2, "the outline is the earlier run's"


def test_a_document_of_the_op_job_adds_up_and_is_replayed_also_where_its_home_fails(
    tmp_path: Path, store: Store, instance: dg.DagsterInstance
) -> None:
    """Where a checkpoint can't be kept, what was paid by then is in the result all the same."""
    path = tmp_path / "harbour.md"
    path.write_text(
        "\n\n".join(f"On day {n} the boats were out at sea." for n in range(6)), "utf-8"
    )
    config = {"document": {"path": str(path), "chunk_tokens": 20, "max_words": 50}}
    home = tmp_path / "home"
    done = run(incremental_refine, config, home, ScriptedChatModel(lambda _: said("S")), instance)
    result = read_result(store, done.run_id)
    assert result is not None and result["chunks"] > 1
    assert_adds_up(store, done.run_id, result)
    assert replay(store, done.run_id).status == "same"

    for file in (home / "checkpoints").rglob("*.json"):
        file.unlink()
    folder = next((home / "checkpoints").glob("*/*"), None)
    if folder is not None:
        folder.rmdir()
    next((home / "checkpoints").iterdir()).rmdir()
    (home / "checkpoints").rmdir()
    (home / "checkpoints").write_text("no folder")
    broken = run(incremental_refine, config, home, ScriptedChatModel(lambda _: said("S")), instance)
    assert not broken.success
    result = read_result(store, broken.run_id)
    assert result is not None and result["model_calls"] == 1
    assert_adds_up(store, broken.run_id, result)


def test_a_collection_and_the_summary_over_it_add_up_and_are_replayed(
    tmp_path: Path, store: Store, instance: dg.DagsterInstance
) -> None:
    """Every document, then the fold over their summaries."""
    collection = Collection(tmp_path, instance)
    keys = [collection.add(f"d{n}.txt") for n in range(3)]
    done = collection.run(keys, ScriptedChatModel(lambda prompt: said(answer(prompt))))
    assert done.success
    assert_adds_up(store, done.run_id, collection.run_result(done.run_id))
    documents = [collection.result(done.run_id, key) for key in keys]
    assert sum(one["model_calls"] for one in documents) == usage_of(store, done.run_id).model_calls
    again = replay(store, done.run_id)
    assert (again.status, [part.key for part in again.parts]) == ("same", sorted(keys))

    over = dg.materialize(
        summary_assets(settings=collection.settings).assets,
        selection=["collection_summary"],
        instance=instance,
        resources=resources(collection.home, ScriptedChatModel(lambda _: said("Of boats."))),
        run_config={"loggers": QUIET},
    )
    assert_adds_up(store, over.run_id, collection.run_result(over.run_id))
    again = replay(store, over.run_id)
    assert (again.status, [part.key for part in again.parts]) == ("same", ["collection_summary"])
