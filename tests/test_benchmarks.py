"""The benchmarks run; how fast they are is not for a test to say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.report import Section, Target, table, targets_table
from benchmarks.workload import CHUNK_TOKENS, Workload
from promptchain_dagster.refine.chunking import split_text
from promptchain_dagster.tokens import get_encoder

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("part", ["makespan", "splitting", "starting", "growth"])
def test_every_part_runs_and_shows_each_fixed_number(part: str) -> None:
    """A quick run ends well and prints the table of fixed numbers first."""
    command = [sys.executable, "-m", "benchmarks", "--quick", "--only", part]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "| fixed number | wanted | measured | reached |" in done.stdout
    assert "fails" not in done.stdout


def test_a_document_of_the_workload_has_as_many_chunks_as_it_says() -> None:
    """Neither those cut beforehand nor ours are more, and all are within the limit."""
    workload, encoder = Workload(documents=3, chunks=4), get_encoder()
    for texts in workload.texts():
        assert len(texts) == 4
        assert all(encoder.count(text) <= CHUNK_TOKENS for text in texts)
        assert len(split_text("\n\n".join(texts), CHUNK_TOKENS, encoder)) == 4


@pytest.mark.parametrize(
    ("workload", "ideal"),
    [
        (Workload(64, 10, 32, 0.2), 4.0),
        (Workload(64, 10, 32, 1.0), 20.0),
        (Workload(1, 10, 32, 0.5), 5.0),
        (Workload(4, 10, 32, 0.5), 5.0),
        (Workload(48, 2, 32, 1.0), 3.0),
    ],
)
def test_the_ideal_time_is_bounded_by_the_order_and_by_the_calls_in_flight(
    workload: Workload, ideal: float
) -> None:
    """A document's chunks come one after the other, however many calls may be in flight."""
    assert workload.ideal == pytest.approx(ideal)


def test_a_target_says_whether_it_was_reached() -> None:
    """What was not measured is not reached, and shown as such."""
    shown = targets_table(
        [
            Target.at_least("one", 0.88, 0.91),
            Target.at_most("two", 4.5, 5.0, unit=" ms"),
            Target.at_least("three", 0.88, None),
        ]
    ).splitlines()
    assert shown[2:] == [
        "| one | ≥ 0.88 | 0.91 | yes |",
        "| two | ≤ 4.5 ms | 5.00 ms | **no** |",
        "| three | ≥ 0.88 | not measured | – |",
    ]


def test_a_section_is_a_title_a_sentence_and_a_table() -> None:
    """In Markdown, so that the README holds it as it is printed."""
    section = Section("Title", "About.", ("", "s"), [("a", "1")])
    assert section.to_markdown() == "### Title\n\nAbout.\n\n" + table(("", "s"), [("a", "1")])
