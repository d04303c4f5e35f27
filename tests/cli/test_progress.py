"""Progress where nothing moves: a line now and then."""

from __future__ import annotations

import io

import pytest
from dagster import AssetMaterialization
from dagster._core.events import DagsterEvent, StepMaterializationData
from rich.console import Console

from promptchain_dagster.cli.progress import SECONDS_BETWEEN_LINES, FoldProgress
from promptchain_dagster.cli.streams import printable
from promptchain_dagster.pipelines import metadata as md
from promptchain_dagster.pipelines.collections.document_run import RUNNING_SUMMARY


def folded(index: int, total: int, key: str = "a") -> DagsterEvent:
    """The event of a chunk that is folded in."""
    told = {md.INDEX: index, md.TOTAL: total, md.PATH: "there", md.MODEL_CALLS: 1}
    told |= {md.INPUT_TOKENS: 1000, md.OUTPUT_TOKENS: 200, md.COST_USD: 0.01}
    return event_of(AssetMaterialization(RUNNING_SUMMARY, metadata=told, partition=key))


def ended(key: str, calls: int) -> DagsterEvent:
    """The event of a document that is done."""
    told = {md.STATUS: "completed", md.MODEL_CALLS: calls, md.CHUNKS: calls}
    return event_of(AssetMaterialization("document_summary", metadata=told, partition=key))


def event_of(materialization: AssetMaterialization) -> DagsterEvent:
    return DagsterEvent(
        event_type_value="ASSET_MATERIALIZATION",
        job_name="summarize_documents",
        event_specific_data=StepMaterializationData(materialization),
    )


def test_long_work_says_how_far_it_is_at_intervals(capsys: pytest.CaptureFixture[str]) -> None:
    """Documents, chunks, calls, tokens, cost, and the time left, of which the pace tells."""
    now = 0.0
    console = Console(file=io.StringIO(), force_terminal=False)
    with FoldProgress({"a": 1, "b": 4}, clock=lambda: now, console=console) as progress:
        progress.on_event(folded(1, 2, "a"), "run")
        now += SECONDS_BETWEEN_LINES
        progress.on_event(folded(2, 2, "a"), "run")
        progress.on_event(ended("a", 2), "run")
        progress.on_event(folded(1, 3, "b"), "run")
        now += SECONDS_BETWEEN_LINES
        progress.on_event(folded(2, 3, "b"), "run")
    assert capsys.readouterr().err.splitlines() == [
        "0 of 2 documents done, chunk 2 of about 6, 2 calls, 2,400 tokens, cost $0.0200,"
        " about 1 min 0 s left",
        "1 of 2 documents done, chunk 4 of 5, 4 calls, 4,800 tokens, cost $0.0400, 15 s left",
    ]


def test_chunks_from_checkpoints_count_as_done_and_not_towards_the_pace(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nine of ten were there: one call was made, and nothing is left."""
    now = 0.0
    console = Console(file=io.StringIO(), force_terminal=False)
    with FoldProgress({"a": 10}, clock=lambda: now, console=console) as progress:
        now += SECONDS_BETWEEN_LINES
        progress.on_event(folded(10, 10), "run")
    told = capsys.readouterr().err
    assert told == "chunk 10 of 10, 1 call, 1,200 tokens, cost $0.0100, 0 s left\n"


def test_short_work_says_nothing_where_nothing_moves(capsys: pytest.CaptureFixture[str]) -> None:
    """A few quick chunks need no lines."""
    console = Console(file=io.StringIO(), force_terminal=False)
    with FoldProgress({"a": 2}, clock=lambda: 0.0, console=console) as progress:
        progress.on_event(folded(1, 2), "run")
    assert capsys.readouterr().err == ""


def test_a_terminal_sees_the_chunk_at_work() -> None:
    """The line holds the chunk and what was spent."""
    console = Console(file=io.StringIO(), force_terminal=True, width=160)
    with FoldProgress({"a": 40}, clock=lambda: 0.0, console=console) as progress:
        progress.on_event(folded(3, 40), "run")
        progress._bar.refresh()
        shown = console.file.getvalue()
    assert "chunk 3 of 40, 1 call, 1,200 tokens" in shown


@pytest.mark.parametrize("text", ["\x1b[2Jgone", "\x07", "a\x9bb", "\x00", "half \ud83d"])
def test_what_a_terminal_would_obey_is_not_shown(text: str) -> None:
    """Documents and models write it; line ends, tabs and every script stay."""
    assert printable(text).isprintable()
    assert printable("caf\u00e9\t\u6771\u4eac\n") == "caf\u00e9\t\u6771\u4eac\n"
