"""Disks that fill up or turn read-only in the middle of a run, and checkpoints of other versions.

Checkpoints that are cut, changed or swapped: `tests/refine/test_checkpoints.py`. A single write to
a full or read-only disk, without a mount: `tests/store/test_folder_store.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from promptchain_dagster.errors import StoreError
from promptchain_dagster.library.state import State
from promptchain_dagster.pipelines.summaries import incremental_refine
from promptchain_dagster.refine import checkpoints
from promptchain_dagster.refine.outcome import Summarized
from promptchain_dagster.store import Store, open_store
from promptchain_dagster.testing import ScriptedChatModel
from tests.faults.conftest import Disk
from tests.faults.documents import SETTINGS, answer, summary_of, text_of
from tests.pipelines.document_collection import Collection
from tests.pipelines.document_collection import answer as collection_answer
from tests.pipelines.scripted import failure_of, run
from tests.support.dagster_home import instance_at
from tests.support.folding import chunks_of, fold, index_sent

BREAKS: dict[str, tuple[Callable[[Disk], None], Callable[[Disk], None], str]] = {
    "full": (Disk.fill, Disk.clear, "No space left on device"),
    "read-only": (
        lambda disk: disk.change("ro"),
        lambda disk: disk.change("rw"),
        "Read-only file system",
    ),
}
breaking = pytest.mark.parametrize(("breaks", "mend", "why"), BREAKS.values(), ids=BREAKS)
Change = Callable[[Disk], None]
SIX = text_of("d", 6).split("\n\n")


def model_that(breaks: Callable[[], None], at: int, reply: Callable[[str], str]) -> Any:
    """A model during whose call number `at` something breaks."""
    asked = 0

    def answer_or_break(prompt: str) -> str:
        nonlocal asked
        asked += 1
        if asked == at:
            breaks()
        return reply(prompt)

    return ScriptedChatModel(answer_or_break)


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        yield instance


@breaking
@pytest.mark.parametrize("at", range(1, 9))
def test_a_disk_that_breaks_at_any_chunk_costs_the_reply_that_it_could_not_take(
    at: int, breaks: Change, mend: Change, why: str, disk: Disk
) -> None:
    """The run ends and names the object and the reason; mended, the next one pays for the rest."""
    home, chunks = disk.folder / "home", chunks_of(*SIX)
    first = model_that(lambda: breaks(disk), at, answer)
    with pytest.raises(StoreError, match=f"{home}/checkpoints/.* can't be written: {why}"):
        fold(chunks, first, home, max_words=SETTINGS.max_words)
    mend(disk)
    second = ScriptedChatModel(answer)
    outcome = fold(chunks, second, home, max_words=SETTINGS.max_words)
    assert isinstance(outcome, Summarized)
    assert outcome.summary == summary_of("d", 6)
    assert len(first.prompts) == at
    assert len(first.prompts) + len(second.prompts) == 8 + 1
    assert list(home.rglob(".*")) == []


@breaking
def test_a_collection_on_a_disk_that_breaks_fails_with_the_reason_and_goes_on_once_it_is_mended(
    breaks: Change, mend: Change, why: str, disk: Disk, instance: dg.DagsterInstance
) -> None:
    """Nothing that was kept is paid again, and Dagster shows a failure, not a traceback of ours."""
    collection = Collection(disk.folder, instance)
    keys = [collection.add(f"d{n}.txt") for n in range(6)]
    model = model_that(lambda: breaks(disk), 7, collection_answer)
    result = collection.run(keys, model, max_in_flight=1)
    assert not result.success
    assert why in failure_of(result, "document_summary").description
    mend(disk)
    second = ScriptedChatModel(collection_answer)
    assert collection.run(keys, second).success
    assert {collection.summary(key) for key in keys} == {
        f"d{n}.txt up to part 2 of 2" for n in range(6)
    }
    state = State.read(collection.store)
    assert all(state.done_digest(key) for key in keys)
    # Two documents are at work at a time, each with one reply at most that is not kept yet.
    assert 0 <= len(model.prompts) + len(second.prompts) - 12 <= 2


@breaking
def test_one_document_on_a_disk_that_breaks_fails_with_the_reason(
    breaks: Change, mend: Change, why: str, disk: Disk, instance: dg.DagsterInstance
) -> None:
    """The op job too, whose result can't be kept either."""
    (disk.folder / "d.txt").write_text(text_of("d", 3), "utf-8")
    config = {"path": str(disk.folder / "d.txt"), "chunk_tokens": 30, "max_words": 9}
    home = disk.folder / "home"
    first = model_that(lambda: breaks(disk), 2, answer)
    result = run(incremental_refine, {"document": config}, home, first, instance)
    assert not result.success
    assert why in failure_of(result, "refine").description
    mend(disk)
    second = ScriptedChatModel(answer)
    assert run(incremental_refine, {"document": config}, home, second, instance).success
    assert [index_sent(prompt) for prompt in second.prompts] == [2, 3, None]


def test_a_full_disk_under_dagster_s_own_log_loses_no_summary(disk: Disk, tmp_path: Path) -> None:
    """The run breaks off; what it paid for lies under the home, and the next run takes it up."""
    (disk.folder / "dagster").mkdir()
    with instance_at(disk.folder / "dagster") as instance:
        collection = Collection(tmp_path, instance)
        keys = [collection.add(f"d{n}.txt") for n in range(6)]
        assert collection.run(keys[:1], ScriptedChatModel(collection_answer)).success
        model = model_that(disk.fill, 5, collection_answer)
        with pytest.raises(Exception, match=r"disk is full|disk I/O error"):
            collection.run(keys, model)
    disk.clear()
    with instance_at(disk.folder / "dagster") as instance:
        collection.instance = instance
        second = ScriptedChatModel(collection_answer)
        assert collection.run(keys, second).success
        materialized = instance.get_materialized_partitions(dg.AssetKey("document_summary"))
    assert materialized == set(keys)
    assert {collection.summary(key) for key in keys} == {
        f"d{n}.txt up to part 2 of 2" for n in range(6)
    }


def test_d10_checkpoints_of_an_older_version_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another format is another key: the document starts over, and the old ones stay."""
    monkeypatch.setattr(checkpoints, "FORMAT", checkpoints.FORMAT - 1)
    fold(chunks_of(*SIX), answer, tmp_path)
    store = open_store(str(tmp_path))
    old = {key: store.read(key) for key in store.list("checkpoints/")}
    monkeypatch.undo()
    outcome = fold(chunks_of(*SIX), answer, tmp_path)
    assert isinstance(outcome, Summarized)
    assert (outcome.resumed_from, outcome.model_calls, outcome.warnings) == (0, 6, ())
    assert {key: store.read(key) for key in old} == old


def older(held: dict[str, Any]) -> list[dict[str, Any]]:
    """What a version before this one, or one after it, might have written under the same key."""
    bare = {"key": held["key"], "summary": held["summary"]}
    return [bare, {**held, "checksum": None}, {**held, "version": 0}, {"text": held["summary"]}]


@pytest.mark.parametrize("layout", range(4))
def test_d12_a_checkpoint_of_another_layout_is_named_and_not_used(
    layout: int, tmp_path: Path
) -> None:
    """Whatever its summary says, it was not kept as this version keeps one."""
    fold(chunks_of(*SIX), answer, tmp_path)
    store = open_store(str(tmp_path))
    key = last_checkpoint(store)
    store.write(key, json.dumps(older(json.loads(store.read(key) or b""))[layout]).encode())
    second = ScriptedChatModel(answer)
    outcome = fold(chunks_of(*SIX), second, tmp_path)
    assert isinstance(outcome, Summarized)
    assert (outcome.resumed_from, [index_sent(one) for one in second.prompts]) == (5, [6])
    assert store.url_of(key) in outcome.warnings[0]


def last_checkpoint(store: Store) -> str:
    return store.list("checkpoints/")[-1]
