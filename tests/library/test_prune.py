"""Old traces and checkpoints go, by age; all else stays."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.library.prune import Pruned, prune
from promptchain_dagster.library.recipe import digest_of
from promptchain_dagster.library.state import State
from promptchain_dagster.refine.documents import document_key
from promptchain_dagster.refine.outcome import Stopped, Summarized
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


def pruned(home: Path, *, dry_run: bool = False) -> Pruned:
    store: Store = open_store(str(home))
    return prune(store, MONTH, NOW, dry_run=dry_run)


def age_all(home: Path) -> None:
    for file in home.rglob("*"):
        age(file, 31)


def done(home: Path, name: str, outcome: Summarized | Stopped) -> None:
    """Mark a document done by its outcome, as a run does."""
    assert isinstance(outcome, Summarized)
    digest = digest_of(hashlib.sha256(outcome.summary.encode()).hexdigest(), "1" * 64)
    state = State.read(open_store(str(home)))
    state.mark_done(document_key(name), digest, "run", checkpoints=outcome.checkpoints)


def test_a_runs_trace_goes_when_its_newest_part_is_old(home: Path) -> None:
    """A run that still adds to its trace keeps all of it."""
    put(home, "traces/old/document/000001/refine-1.json", 90)
    put(home, "traces/old/document/000002/refine-1.json", 31)
    put(home, "traces/long/outline-1.json", 90)
    put(home, "traces/long/draft-1.json", 29)
    put(home, "traces/new/outline-1.json", 1)
    assert pruned(home) == Pruned(traces=("traces/old",))
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
    assert pruned(home) == Pruned(checkpoints=("checkpoints/aa/aabb", "checkpoints/bb/bbbb"))
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
    assert pruned(home) == Pruned()
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
    assert pruned(home, dry_run=True) == Pruned(leftovers=3)
    assert all(file.exists() for file in old)
    assert pruned(home) == Pruned(leftovers=3)
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
    age_all(home)
    assert len(pruned(home).checkpoints) == 1
    outcome = fold(grown, ["T1", "T2", "T3"], home)
    assert (outcome.summary, outcome.resumed_from) == ("T3", 0)


@pytest.mark.parametrize("days", [0, -1])
def test_an_age_that_spares_nothing_is_refused(home: Path, days: int) -> None:
    """What a run is writing this moment must not go."""
    with pytest.raises(InvalidInput, match=r"older_than is .*, must be more than 0"):
        prune(open_store(str(home)), timedelta(days=days), NOW)


def test_a_done_document_costs_nothing_again_and_a_grown_one_what_is_new(home: Path) -> None:
    """Its last two checkpoints stay, whatever their age; those of a document left undone go."""
    texts = [f"part {n} " for n in range(1, 6)]
    done(home, "a.md", fold(chunks_of(*texts), ["S1", "S2", "S3", "S4", "S5"], home))
    fold(chunks_of(texts[0], "another "), ["S1", "T2"][1:], home)
    age_all(home)

    (folder,) = pruned(home).checkpoints

    left = keys(home / folder)
    assert [name[:6] for name in left] == ["000004", "000005"]
    assert pruned(home) == Pruned()
    unchanged = fold(chunks_of(*texts), [], home)
    assert (unchanged.summary, unchanged.resumed_from, unchanged.model_calls) == ("S5", 5, 0)
    grown = fold(chunks_of(*texts[:4], "part 5, grown ", "part 6"), ["G5", "G6"], home)
    assert (grown.resumed_from, grown.warnings) == (4, ())


def test_a_summary_made_afresh_is_the_one_that_stays(home: Path) -> None:
    """A later run takes it up, not what it took the place of."""
    texts = ["one ", "two ", "three"]
    done(home, "a.md", fold(chunks_of(*texts), ["S1", "S2", "S3"], home))
    done(home, "a.md", fold(chunks_of(*texts), ["T1", "T2", "T3"], home, generation="fresh"))
    age_all(home)
    assert len(pruned(home).checkpoints) == 2
    assert fold(chunks_of(*texts), [], home).summary == "T3"


def test_what_a_later_text_or_recipe_took_the_place_of_goes(home: Path) -> None:
    """What is kept does not grow with every edit and every prompt."""
    done(home, "a.md", fold(chunks_of("one ", "two"), ["S1", "S2"], home))
    done(home, "b.md", fold(chunks_of("of one chunk"), ["B"], home))
    done(home, "a.md", fold(chunks_of("1 ", "2"), ["T1", "T2"], home, max_words=90))
    age_all(home)
    assert len(pruned(home).checkpoints) == 1
    assert fold(chunks_of("1 ", "2"), [], home, max_words=90).resumed_from == 2
    assert fold(chunks_of("of one chunk"), [], home).resumed_from == 1
    assert fold(chunks_of("one ", "two"), ["S1", "S2"], home).resumed_from == 0


def test_a_damaged_marker_keeps_nothing_and_stops_nothing(home: Path) -> None:
    """Its document is paid for again, as one that was never done."""
    done(home, "a.md", fold(chunks_of("one"), ["S1"], home))
    (marker,) = (home / "state").iterdir()
    for damage in (b"", b"{", b"[]", b"null", b'{"checkpoints": 3}', b'{"checkpoints": [3]}'):
        marker.write_bytes(damage)
        assert State.read(open_store(str(home))).checkpoints() == set()
    age_all(home)
    assert len(pruned(home).checkpoints) == 1


def test_a_dry_run_tells_the_same_and_removes_nothing(home: Path) -> None:
    """So that one can look first."""
    put(home, "traces/old/outline-1.json", 90)
    put(home, "checkpoints/aa/aaaa/000001-x.json", 90)
    before = keys(home)
    told = pruned(home, dry_run=True)
    assert keys(home) == before
    assert told == pruned(home) == Pruned(("traces/old",), ("checkpoints/aa/aaaa",))
    assert keys(home) == []


def test_two_at_once_and_a_run_beside_them_harm_nobody(home: Path) -> None:
    """What one has removed is no fault to the other; what is written meanwhile stays whole."""
    for run in range(20):
        for index in range(10):
            put(home, f"traces/old-{run}/a/{index}.json", 90)
            put(home, f"checkpoints/aa/{run:04}/{index:06}-x.json", 90)
    written = [f"checkpoints/aa/{run:04}/000010-x.json" for run in range(20)]
    start, failed = threading.Barrier(3), list[BaseException]()

    def beside(work: Callable[[], object]) -> threading.Thread:
        def run() -> None:
            start.wait()
            try:
                work()
            except BaseException as error:
                failed.append(error)

        return threading.Thread(target=run)

    store = open_store(str(home))
    threads = [
        beside(lambda: pruned(home)),
        beside(lambda: pruned(home)),
        beside(lambda: [store.write(key, b"{}") for key in written]),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert set(written) <= set(keys(home))
    assert not [key for key in keys(home) if key.startswith("traces/")]
