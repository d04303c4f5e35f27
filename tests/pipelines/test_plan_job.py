"""The job `plan`: the numbers of `promptchain plan`, under Dagster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from promptchain_dagster.pipelines.plan_job import plan
from promptchain_dagster.testing import ScriptedChatModel
from tests.pipelines.document_collection import CHUNK_TOKENS, QUIET, Collection, answer
from tests.pipelines.scripted import resources

SHAPE = {"chunk_tokens": CHUNK_TOKENS}


@pytest.fixture
def collection(
    tmp_path: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> Collection:
    made = Collection(tmp_path, instance)
    monkeypatch.setenv("PROMPTCHAIN_DOCUMENTS", str(made.folder))
    return made


def planned(collection: Collection, **config: Any) -> dg.ExecuteInProcessResult:
    job = dg.Definitions(
        jobs=[plan], resources=resources(collection.home, ScriptedChatModel([]))
    ).resolve_job_def("plan")
    ops = {"plan_documents": {"config": {**SHAPE, **config}}}
    return job.execute_in_process(
        {"ops": ops, "loggers": QUIET}, instance=collection.instance, raise_on_error=False
    )


def statuses(result: dg.ExecuteInProcessResult) -> list[str]:
    return [one["status"] for one in result.output_for_node("plan_documents")["documents"]]


def test_the_whole_collection_is_planned_without_a_call_and_told_in_metadata(
    collection: Collection,
) -> None:
    """Chunks, calls, tokens, cost where it is known, and the time at the rate given."""
    collection.add("a.txt", chunks=3)
    collection.add("b.txt", chunks=2)
    collection.add("empty.txt", "1")
    (collection.folder / "zip.txt").write_bytes(b"PK\x03\x04" + bytes(99))
    result = planned(collection, seconds_per_call=2.0, max_in_flight=1)

    assert result.success
    assert statuses(result) == ["planned", "planned", "no_content", "failed"]
    numbers = result.output_for_node("plan_documents")
    assert numbers["chunks"] == numbers["least_calls"] == 5
    assert numbers["seconds"] == 10
    (event,) = [one for one in result.all_events if one.is_successful_output]
    told = event.step_output_data.metadata
    assert told["promptchain/least_calls"].value == 5
    assert told["promptchain/seconds"].value == 10
    assert told["promptchain/documents"].value == 4


def test_what_is_done_is_left_out(collection: Collection) -> None:
    """By the marks of a run where all are planned, by checkpoints where paths are given."""
    done = collection.add("a.txt")
    collection.add("b.txt")
    collection.run([done], ScriptedChatModel(answer))
    every = planned(collection, **_as(collection))
    given = planned(collection, paths=[str(collection.folder)], **_as(collection))

    assert statuses(every) == ["done", "planned"]
    assert statuses(given) == ["planned", "planned"]
    for result in (every, given):
        numbers = result.output_for_node("plan_documents")
        assert numbers["chunks_left"] == numbers["least_calls"] == 2


def test_paths_are_documents_and_folders_each_once(collection: Collection) -> None:
    """A document named that lies in a folder named is one."""
    collection.add("a.txt")
    collection.add("inside/b.txt")
    paths = [str(collection.folder / "inside" / "b.txt"), str(collection.folder)]
    assert len(statuses(planned(collection, paths=paths))) == 2


@pytest.mark.parametrize("config", [{"chunk_tokens": 0}, {"paths": ["/no/such/folder/"]}])
def test_what_cannot_be_planned_is_told(collection: Collection, config: dict[str, Any]) -> None:
    """A setting ends the run; a document that can't be read fails alone."""
    result = planned(collection, **config)
    assert result.success == ("paths" in config)
    if result.success:
        assert statuses(result) == ["failed"]


def _as(collection: Collection) -> dict[str, Any]:
    settings = collection.settings
    return {"document_type": settings.document_type, "max_words": settings.max_words}
