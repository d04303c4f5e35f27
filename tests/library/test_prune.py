"""Old traces and checkpoints go, by age; all else stays."""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.library.prune import Pruned, prune
from promptchain_dagster.store import Store, open_store
from tests.support.folding import chunks_of, fold

NOW = datetime.now(timezone.utc)
MONTH = timedelta(days=30)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def put(home: Path, key: str, days: float) -> None:
    """An object that was written so many days ago."""
    open_store(str(home)).write(key, b"{}")
    age(home / key, days)


def age(file: Path, days: float) -> None:
    then = (NOW - timedelta(days=days)).timestamp()
    os.utime(file, (then, then))


def keys(home: Path) -> list[str]:
    return sorted(str(file.relative_to(home)) for file in home.rglob("*") if file.is_file())


def pruned(home: Path) -> Pruned:
    store: Store = open_store(str(home))
    return prune(store, MONTH, NOW)


def test_a_runs_trace_goes_when_its_newest_part_is_old(home: Path) -> None:
    """A run that still adds to its trace keeps all of it."""
    put(home, "traces/old/document/000001/refine-1.json", 90)
    put(home, "traces/old/document/000002/refine-1.json", 31)
    put(home, "traces/long/outline-1.json", 90)
    put(home, "traces/long/draft-1.json", 29)
    put(home, "traces/new/outline-1.json", 1)
    assert pruned(home) == Pruned(traces=1, checkpoints=0, leftovers=0)
    assert keys(home) == [
        "traces/long/draft-1.json",
        "traces/long/outline-1.json",
        "traces/new/outline-1.json",
    ]
    assert not (home / "traces" / "old").exists()


def test_checkpoints_are_as_old_as_the_newest_beside_them(home: Path) -> None:
    """A document that grew yesterday keeps its beginning."""
    for index, days in ((1, 400), (2, 200), (3, 1)):
        put(home, f"checkpoints/aa/aaaa/{index:06}-x.json", days)
    put(home, "checkpoints/aa/aabb/000001-x.json", 400)
    put(home, "checkpoints/bb/bbbb/000001-x.json", 400)
    put(home, "checkpoints/bb/bbbb/000002-x.json", 31)
    assert pruned(home) == Pruned(traces=0, checkpoints=2, leftovers=0)
    assert keys(home) == [f"checkpoints/aa/aaaa/{index:06}-x.json" for index in (1, 2, 3)]
    assert not (home / "checkpoints" / "bb").exists()


def test_summaries_results_markers_and_documents_stay_for_ever(home: Path) -> None:
    """They are what was paid for, and what says so."""
    kept = [
        "documents.scan.json",
        "documents/a.json",
        "posts/a.md",
        "results/run.json",
        "state/a.json",
        "summaries/a.md",
    ]
    for key in kept:
        put(home, key, 4000)
    assert pruned(home) == Pruned(0, 0, 0)
    assert keys(home) == kept


def test_what_a_killed_writer_left_goes_when_it_is_old(home: Path, tmp_path: Path) -> None:
    """A fresh one may still be written; a file that only looks alike is somebody's."""
    put(home, "summaries/a.md", 1)
    outside = tmp_path / "outside"
    outside.mkdir()
    leftover = ".123-0123456789abcdef.tmp"
    old = [home / leftover, home / "summaries" / leftover, home / "probe-0123456789abcdef"]
    kept = [
        home / "summaries" / ".124-0123456789abcdef.tmp",
        home / "summaries" / ".mine.tmp",
        home / "summaries" / "probe-0123456789abcdef",
        home / "probe-mine",
        outside / leftover,
    ]
    for file in (*old, *kept):
        file.write_bytes(b"")
        age(file, 31)
    age(kept[0], 1)
    (home / "link").symlink_to(outside)
    assert pruned(home) == Pruned(0, 0, 3)
    assert not any(file.exists() for file in old)
    assert all(file.exists() for file in kept)


def test_a_document_resumes_from_checkpoints_that_were_spared_and_starts_over_else(
    home: Path,
) -> None:
    """Pruning costs calls at most, never a wrong summary."""
    grown = chunks_of("one ", "two ", "three")
    fold(chunks_of("one ", "two "), ["S1", "S2"], home)
    pruned(home)
    outcome = fold(grown, ["S3"], home)
    assert (outcome.summary, outcome.resumed_from) == ("S3", 2)
    for file in (home / "checkpoints").rglob("*.json"):
        age(file, 31)
    assert pruned(home).checkpoints == 1
    outcome = fold(grown, ["T1", "T2", "T3"], home)
    assert (outcome.summary, outcome.resumed_from) == ("T3", 0)


@pytest.mark.parametrize("days", [0, -1])
def test_an_age_that_spares_nothing_is_refused(home: Path, days: int) -> None:
    """What a run is writing this moment must not go."""
    with pytest.raises(InvalidInput, match=r"older_than is .*, must be more than 0"):
        prune(open_store(str(home)), timedelta(days=days), NOW)
