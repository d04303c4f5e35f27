"""Five thousand documents: what a tick, a night and a load of the definitions touch (f18)."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import pytest

from promptchain_dagster.library.scanned import Known, Scanned
from promptchain_dagster.refine.documents import document_key
from promptchain_dagster.store import open_store
from tests.pipelines.test_automation import Deployment, deployment

__all__ = ["deployment"]

COUNT = 5_000
ROOT = Path(__file__).parents[2]

_watched: list[tuple[str, str]] | None = None


def _hear(event: str, args: tuple[object, ...]) -> None:
    if _watched is not None and event in ("open", "os.scandir", "os.listdir"):
        _watched.append((event, str(args[0])))


sys.addaudithook(_hear)


@contextmanager
def watched() -> Iterator[list[tuple[str, str]]]:
    """Every file that is opened and every folder that is listed meanwhile."""
    global _watched
    _watched = heard = []
    try:
        yield heard
    finally:
        _watched = None


def opened(heard: list[tuple[str, str]], folder: Path) -> list[str]:
    return [path for event, path in heard if event == "open" and path.startswith(str(folder))]


def listed(heard: list[tuple[str, str]], folder: Path) -> int:
    events = ("os.scandir", "os.listdir")
    return sum(event in events and path.startswith(str(folder)) for event, path in heard)


@pytest.fixture
def collection(deployment: Deployment) -> Deployment:
    """A collection that was registered, recorded by its scan, and summarized."""
    known: dict[str, Known] = {}
    store = open_store(str(deployment.home))
    state = deployment.home / "state"
    state.mkdir(parents=True)
    for n in range(COUNT):
        path, text = f"{n:05}.txt", f"the words of document {n}"
        file = deployment.root / path
        file.write_text(text)
        os.utime(file, (1_700_000_000, 1_700_000_000))
        at = file.stat()
        digest = hashlib.sha256(text.encode()).hexdigest()
        known[path] = Known(path, (at.st_size, at.st_mtime_ns, at.st_ctime_ns), digest)
        name = f"{document_key(path)}.{digest[:16]}-{deployment.recipe[:16]}.done.json"
        (state / name).write_text("{}")
    Scanned(known).write(store)
    deployment.instance.add_dynamic_partitions("documents", [document_key(path) for path in known])
    return deployment


def test_f18_a_tick_over_5000_documents_lists_each_folder_once_and_reads_none(
    collection: Deployment,
) -> None:
    """Whatever their number; what changed is read, so many a tick."""
    with watched() as heard:
        data = collection.tick(documents_per_tick=20)
    assert data.run_requests == [] and "5,000 summarized" in data.skip_message
    assert (opened(heard, collection.root), listed(heard, collection.root)) == ([], 1)
    assert len(heard) < COUNT / 10
    assert collection.events() == 20
    for n in range(0, 600, 20):
        (collection.root / f"{n:05}.txt").write_text("other words of the document")
    for left in (20, 10):
        with watched() as heard:
            data = collection.tick(documents_per_tick=20)
        assert len(collection.asked(data)) == left
        assert len(opened(heard, collection.root)) <= 20


def test_f18_a_night_over_5000_documents_reads_none_either(collection: Deployment) -> None:
    """It takes so many, and asks in few runs."""
    for n in range(COUNT):
        (collection.root / f"{n:05}.txt").touch()
    scanned = Scanned.read(collection.store)
    collection.home.joinpath("state").rename(collection.home / "state-of-before")
    with watched() as heard:
        data = collection.night(max_documents_per_night=100)
    assert len(scanned.documents) == COUNT
    assert len(collection.asked(data)) == 100 and len(data.run_requests) == 2
    assert data.run_requests[0].tags["promptchain/waiting"] == str(COUNT - 100)
    assert listed(heard, collection.root) == 1
    assert len(opened(heard, collection.root)) <= 1_000
    assert collection.events() == 100


def test_f18_loading_looks_neither_at_the_documents_nor_at_the_home(tmp_path: Path) -> None:
    """The number of definitions doesn't depend on that of documents."""
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "a.txt").write_text("some words of a document")
    program = (
        "import os, sys\n"
        "heard = []\n"
        "sys.addaudithook(lambda event, args: heard.append(str(args[:1])))\n"
        "import dagster as dg\n"
        "from promptchain_dagster.pipelines.automation import new_documents, nightly_summaries\n"
        "dg.Definitions(sensors=[new_documents()], schedules=[nightly_summaries()])\n"
        f"sys.exit(' '.join(one for one in heard if {str(tmp_path)!r} in one) or 0)"
    )
    places = {
        "PROMPTCHAIN_DOCUMENTS": str(tmp_path / "documents"),
        "PROMPTCHAIN_HOME": str(tmp_path / "home"),
    }
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, **places},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "home").exists()


def test_a_run_over_a_stretch_of_partitions_is_at_all_of_them(collection: Deployment) -> None:
    """Whoever launched it: the documents of a backfill's run are left alone."""
    stretch = {
        "dagster/asset_partition_range_start": document_key("00010.txt"),
        "dagster/asset_partition_range_end": document_key("00019.txt"),
    }
    run = dg.DagsterRun(
        job_name="__ASSET_JOB",
        tags=stretch,
        asset_selection=frozenset([dg.AssetKey("document_summary")]),
        status=dg.DagsterRunStatus.STARTED,
    )
    collection.instance.add_run(run)
    assert collection.working() == {document_key(f"000{n}.txt") for n in range(10, 20)}
