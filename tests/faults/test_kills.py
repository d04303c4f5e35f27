"""kill -9 at the writes that the product makes, and then the same run again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.kill_core import AT_ONCE
from tests.faults.killing import Place

ROOT = Path(__file__).parents[2]
SHARED_MEMORY = "/dev/shm"
KINDS = {"checkpoints/", "traces/", "summaries/", "results/", "state/", "ledger/", "events"}


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory, where there is such a place: a kill is no power cut, and the disk is slow."""
    memory = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


def batch(module: str, *args: object) -> list[dict[str, Any]]:
    """The kills of a batch, which runs in an interpreter of its own, so that it can fork."""
    command = [sys.executable, "-m", f"tests.faults.{module}", *map(str, args)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(kills: list[dict[str, Any]]) -> None:
    """Each process was killed, and the one after it did what was left, and no more."""
    for kill in kills:
        assert kill["killed"], kill
        assert kill["wrong"] == [], kill
        assert kill["paid_again"] == kill["total"] - kill["kept"], kill


@pytest.mark.parametrize("collection", ["one of six chunks", "twenty of two chunks"])
def test_d11_d12_a_kill_at_any_write_of_the_core_loses_nothing(
    collection: str, folder: Path
) -> None:
    """Registry, trace, checkpoint, state and ledger: the next run pays for what is not on the disk,
    a reply for each document at work at most, and every chunk is in its summary once."""
    kills = batch("kill_core", folder, collection)
    check(kills)
    assert {kill["at"] for kill in kills} == set(range(1, kills[0]["of"] + 1))
    assert {kill["place"] for kill in kills} == {place.value for place in Place}
    at_work = 1 if collection.startswith("one") else AT_ONCE
    for kill in kills:
        assert 0 <= kill["begun"] - kill["kept"] <= at_work, kill
        assert kill["in_ledger"] == kill["paid_again"], kill


@pytest.mark.parametrize("collection", ["one_of_six_chunks", "twenty_of_two_chunks"])
def test_f24_a_kill_of_a_dagster_run_loses_nothing(collection: str, folder: Path) -> None:
    """At its writes and between its events: summaries, results, marks and materializations are
    then those of an undisturbed run, and only what was in flight was paid twice."""
    kills = batch("kill_dagster", folder, collection)
    check(kills)
    assert {kill["kind"] for kill in kills} in ({"", "events"}, KINDS)
    at_work = 1 if collection.startswith("one") else 2 * 4  # documents, twice the calls at once
    assert all(0 <= kill["begun"] - kill["kept"] <= at_work for kill in kills)


def test_an_edit_that_is_taken_back_after_a_kill_is_not_taken_for_done(folder: Path) -> None:
    """The summary of the edit may be kept by then: the earlier mark must be gone before it."""
    kills = batch("kill_dagster", folder, "an_edit_taken_back")
    assert len(kills) > 5
    for kill in kills:
        assert kill["killed"], kill
        assert kill["wrong"] == [], kill
