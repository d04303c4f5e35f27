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
from promptchain_dagster.pipelines.refine_run import RUNNING_SUMMARY


def folded(index: int, total: int) -> DagsterEvent:
    """The event of a chunk that is folded in."""
    told = {md.INDEX: index, md.TOTAL: total, md.PATH: "there", md.MODEL_CALLS: 1}
    told |= {md.INPUT_TOKENS: 1000, md.OUTPUT_TOKENS: 200}
    materialization = AssetMaterialization(RUNNING_SUMMARY, metadata=told)
    return DagsterEvent(
        event_type_value="ASSET_MATERIALIZATION",
        job_name="incremental_refine",
        event_specific_data=StepMaterializationData(materialization),
    )


def test_long_work_says_how_far_it_is_at_intervals(capsys: pytest.CaptureFixture[str]) -> None:
    """Chunk, documents, calls, tokens and the time left, of which a fold's pace tells."""
    now = 0.0
    console = Console(file=io.StringIO(), force_terminal=False)
    with FoldProgress(12, clock=lambda: now, console=console) as progress:
        progress.begin("first.md")
        progress.end()
        progress.begin("second.md")
        for index in range(1, 41):
            now += SECONDS_BETWEEN_LINES / 3
            progress.on_event(folded(index, 40))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 13
    assert lines[0] == (
        "chunk 3 of 40, 1 of 12 documents done, 3 calls, 3,600 tokens, 6 min 10 s left"
    )


def test_short_work_says_nothing_where_nothing_moves(capsys: pytest.CaptureFixture[str]) -> None:
    """A few quick chunks need no lines."""
    console = Console(file=io.StringIO(), force_terminal=False)
    with FoldProgress(1, clock=lambda: 0.0, console=console) as progress:
        progress.begin("first.md")
        progress.on_event(folded(1, 2))
    assert capsys.readouterr().err == ""


def test_a_terminal_sees_the_chunk_at_work() -> None:
    """The line holds the document, its chunk and what was spent."""
    console = Console(file=io.StringIO(), force_terminal=True, width=160)
    with FoldProgress(1, clock=lambda: 0.0, console=console) as progress:
        progress.begin("[bold]first.md")
        progress.on_event(folded(3, 40))
        progress._bar.refresh()
        shown = console.file.getvalue()
    assert "chunk 3 of 40, 1 calls, 1,200 tokens" in shown
    assert "[bold]first.md" in shown


@pytest.mark.parametrize("text", ["\x1b[2Jgone", "\x07", "a\x9bb", "\x00", "half \ud83d"])
def test_what_a_terminal_would_obey_is_not_shown(text: str) -> None:
    """Documents and models write it; line ends, tabs and every script stay."""
    assert printable(text).isprintable()
    assert printable("caf\u00e9\t\u6771\u4eac\n") == "caf\u00e9\t\u6771\u4eac\n"
