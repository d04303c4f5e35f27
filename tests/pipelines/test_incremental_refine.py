"""The job `incremental_refine`: real runs on an instance on disk."""

import json
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from promptchain_dagster.models.base import CallError, Problem
from promptchain_dagster.pipelines import metadata as md
from promptchain_dagster.pipelines.summaries import incremental_refine
from promptchain_dagster.testing import ScriptedChatModel
from tests.pipelines.scripted import (
    failure_of,
    outputs_of,
    result_of,
    retry_from_failure,
    run,
    succeeded,
)

PARAGRAPHS = [
    "In the morning the harbour was empty and the boats were out.",
    "At noon a storm came up from the south, and nobody had seen it coming.",
    "By night every boat was back but one, and the lamp was kept burning.",
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A document of three chunks at 20 tokens each."""
    path = tmp_path / "harbour.md"
    path.write_text("\n\n".join(PARAGRAPHS), "utf-8")
    return path


def config(path: Path, /, **changed: Any) -> dict[str, Any]:
    return {"document": {"path": str(path), "chunk_tokens": 20, "max_words": 50} | changed}


def running_summaries(instance: dg.DagsterInstance, run_id: str) -> list[dg.AssetMaterialization]:
    """What the event log holds, whether or not the run went on."""
    return [
        entry.dagster_event.step_materialization_data.materialization
        for entry in instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION)
    ]


def summary_in(prompt: str) -> str:
    return prompt.split("<summary_so_far>")[1].split("</summary_so_far>")[0].strip()


def test_spec_three_chunks_are_three_calls_each_reading_the_summary_before(
    path: Path, home: Path, instance: dg.DagsterInstance
) -> None:
    """Call 3 receives "S2", "S3" is returned, and each is materialized once."""
    model = ScriptedChatModel(["S1", "S2", "S3"])

    done = run(incremental_refine, config(path), home, model, instance)

    assert done.success
    assert [summary_in(prompt) for prompt in model.prompts] == ["", "S1", "S2"]
    result = result_of(home, done.run_id)
    assert result["status"] == "completed"
    assert result["summary"] == "S3"
    assert (result["chunks"], result["model_calls"], result["failed_chunk"]) == (3, 3, None)
    key = result["document_key"]
    assert (home / "summaries" / f"{key}.md").read_text("utf-8") == "S3\n"
    told = running_summaries(instance, done.run_id)
    assert [event.metadata[md.INDEX].value for event in told] == [1, 2, 3]
    assert [event.metadata[md.PREVIEW_KEY].value for event in told] == ["S1", "S2", "S3"]
    assert {event.partition for event in told} == {key}
    for event in told:
        assert {md.TOTAL, md.WORDS, md.TOKENS, md.COMPRESSED, md.PATH} <= set(event.metadata)


def test_f3_each_chunk_is_a_dynamic_output_under_a_valid_and_distinct_name(
    tmp_path: Path, home: Path, instance: dg.DagsterInstance
) -> None:
    """Whatever the document is called, the mapping keys count its chunks."""
    path = tmp_path / "报告 v2.0 [draft], Q1.md"
    path.write_text("\n\n".join(PARAGRAPHS), "utf-8")
    model = ScriptedChatModel(["S1", "S2", "S3"])

    done = run(incremental_refine, config(path), home, model, instance)

    assert done.success
    chunks = {name for name in outputs_of(home, done.run_id) if name.startswith("split/")}
    assert chunks == {f"split/chunks--chunk_{n:06}" for n in (1, 2, 3)}


@pytest.mark.parametrize("text", ["", "1\n\f\n2\n"])
def test_c9_a_document_without_content_makes_no_call(
    tmp_path: Path, home: Path, instance: dg.DagsterInstance, text: str
) -> None:
    """The run succeeds with the status `no_content`."""
    path = tmp_path / "empty.txt"
    path.write_text(text, "utf-8")
    model = ScriptedChatModel([])

    done = run(incremental_refine, config(path), home, model, instance)

    assert done.success
    assert model.prompts == []
    result = result_of(home, done.run_id)
    assert (result["status"], result["summary"], result["error"]) == ("no_content", None, None)
    assert not (home / "summaries").exists()


def test_a_failed_chunk_keeps_the_summary_so_far_and_a_retry_pays_only_for_the_rest(
    path: Path, home: Path, instance: dg.DagsterInstance
) -> None:
    """The spec: stop, return the summary so far with the chunk's index; then resume."""
    model = ScriptedChatModel(["S1", CallError(Problem.REFUSED, "I cannot help."), "S2", "S3"])

    first = run(incremental_refine, config(path), home, model, instance)

    assert succeeded(first) == ["document", "split"]
    result = result_of(home, first.run_id)
    assert (result["status"], result["summary"], result["failed_chunk"]) == ("failed", "S1", 2)
    assert failure_of(first, "refine").metadata[md.FAILED_CHUNK].value == 2
    assert len(running_summaries(instance, first.run_id)) == 1

    again = retry_from_failure(incremental_refine, first, instance)

    assert succeeded(again) == ["refine"]
    result = result_of(home, again.run_id)
    assert (result["summary"], result["resumed_from"], result["model_calls"]) == ("S3", 1, 2)


@pytest.mark.parametrize("lost", [1, 3])
def test_f1_a_chunk_that_did_not_arrive_fails_the_run(
    path: Path, home: Path, instance: dg.DagsterInstance, lost: int
) -> None:
    """The op that collects checks that it has every index from 1 to total."""
    model = ScriptedChatModel([CallError(Problem.REFUSED, "no")] + ["S"] * 3)
    first = run(incremental_refine, config(path), home, model, instance)
    stored = home / "runs" / first.run_id / "split" / f"chunks--chunk_{lost:06}.json"
    other = home / "runs" / first.run_id / "split" / f"chunks--chunk_{lost % 3 + 1:06}.json"
    stored.write_bytes(other.read_bytes())

    again = retry_from_failure(incremental_refine, first, instance)

    assert not again.success
    assert result_of(home, again.run_id)["status"] == "failed"
    assert len(model.prompts) == 1


def test_an_unchanged_document_costs_no_call_and_fresh_pays_again(
    path: Path, home: Path, instance: dg.DagsterInstance
) -> None:
    """The earlier summary is kept beside the one that a fresh run wrote."""
    model = ScriptedChatModel(["S1", "S2", "S3", "T1", "T2", "T3"])
    run(incremental_refine, config(path), home, model, instance)

    again = run(incremental_refine, config(path), home, model, instance)
    assert len(model.prompts) == 3
    assert result_of(home, again.run_id)["resumed_from"] == 3

    fresh = run(incremental_refine, config(path, fresh=True), home, model, instance)
    assert len(model.prompts) == 6
    key = result_of(home, fresh.run_id)["document_key"]
    kept = {file.name: file.read_text("utf-8") for file in (home / "summaries").iterdir()}
    assert kept.pop(f"{key}.md") == "T3\n"
    assert list(kept.values()) == ["S3\n"]


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"path": "/nowhere/at/all.md"}, "/nowhere/at/all.md"),
        ({"chunk_tokens": 0}, "chunk_tokens is 0"),
        ({"max_words": -5}, "max_words is -5"),
        ({"token_encoding": "nothing"}, "nothing"),
    ],
)
def test_bad_input_ends_the_run_with_its_name_before_any_call(
    path: Path,
    home: Path,
    instance: dg.DagsterInstance,
    changed: dict[str, Any],
    named: str,
) -> None:
    """The failure and the result name the thing and the value."""
    model = ScriptedChatModel([])

    done = run(incremental_refine, config(path, **changed), home, model, instance)

    assert not done.success
    result = result_of(home, done.run_id)
    assert result["status"] == "failed"
    assert named in result["error"]
    assert model.prompts == []


def test_f14_the_events_of_a_long_summary_stay_small(
    tmp_path: Path, home: Path, instance: dg.DagsterInstance
) -> None:
    """Chunks and summaries lie under the home; the event log has previews."""
    path = tmp_path / "long.txt"
    path.write_text("\n\n".join(f"Part {n}. " + "It rained. " * 900 for n in range(4)), "utf-8")
    model = ScriptedChatModel(lambda prompt: "It rained all day. " * 200)

    done = run(
        incremental_refine,
        config(path, chunk_tokens=3000, max_words=5000),
        home,
        model,
        instance,
    )

    assert done.success
    records = instance.get_records_for_run(done.run_id, limit=1000).records
    assert max(len(dg.serialize_value(record.event_log_entry)) for record in records) < 6_000
    assert len(json.dumps(result_of(home, done.run_id))) > 3_000
