"""`promptchain quarantine` and `prune`."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

from promptchain_dagster.cli.prune import age_of
from promptchain_dagster.library.recipe import digest_of
from promptchain_dagster.library.registry import Entry, Registry
from promptchain_dagster.library.state import Kind, State
from promptchain_dagster.refine.documents import document_key
from promptchain_dagster.store import open_store
from tests.cli.conftest import Command
from tests.cli.test_summarize import SHAPE, refuse_bad, tale, write_story
from tests.support.chat_server import ChatServer

COMMAND = (sys.executable, "-m", "promptchain_dagster.cli")


def test_a_refused_document_is_left_alone_until_it_is_named_or_released(command: Command) -> None:
    """It costs nothing more in a folder; `quarantine` says why, and lets it go."""
    docs = command.cwd / "docs"
    bad = write_story(docs / "bad.md", 3)
    write_story(docs / "good.md", 3)
    with ChatServer(refuse_bad) as server:
        url = ("--base-url", server.url)
        first = command.run("summarize", "docs", *SHAPE, *url)
        sent = [len(server.requests)]
        night = command.run("summarize", "docs", *SHAPE, *url)
        sent.append(len(server.requests))
        listed = command.run("quarantine", "--json")
        command.run("summarize", "docs", bad, *SHAPE, *url)
        sent.append(len(server.requests))
        shown = command.run("quarantine")
        released = command.run("quarantine", "release", "docs/bad.md", "--json")
        after = command.run("quarantine", "--json")
        command.run("summarize", "docs", *SHAPE, *url)
        sent.append(len(server.requests))

    assert sent == [2, 2, 3, 4]
    key = first.json["documents"][0]["document_key"]
    aside, good = night.json["documents"]
    assert (good["status"], night.json["model_calls"]) == ("completed", 0)
    assert (aside["status"], aside["document_key"], aside["run_id"]) == ("failed", key, None)
    assert "I can't help with that." in aside["error"]
    assert f"promptchain quarantine release {key}" in aside["error"]
    assert night.status == 1
    (entry,) = listed.json["documents"]
    assert {"path", "document_key", "reason", "kind", "tries", "when", "run_id"} == set(entry)
    assert (entry["path"], entry["document_key"]) == (bad, key)
    assert (entry["kind"], entry["tries"]) == ("refused", 1)
    assert entry["run_id"] == first.json["documents"][0]["run_id"]
    assert f"{bad}: refused, 2 times, last at " in shown.out
    assert "1 document set aside" in shown.out
    assert released.json == {"released": [key]}
    assert after.json == {"documents": []}


def test_all_documents_are_released_at_once(command: Command) -> None:
    """Each is named in what is told."""
    docs = command.cwd / "docs"
    docs.mkdir()
    for name, paragraphs in (("one", 3), ("two", 2)):
        write_story(docs / name / "bad.md", paragraphs)
    with ChatServer(refuse_bad) as server:
        command.run("summarize", "docs", *SHAPE, "--base-url", server.url)
    before = command.run("quarantine", "--json").json["documents"]
    released = command.run("quarantine", "release", "--all", "--json").json["released"]
    assert len(before) == 2
    assert sorted(released) == sorted(one["document_key"] for one in before)
    assert command.run("quarantine", "--json").json == {"documents": []}


def test_a_document_in_a_bucket_is_released_by_its_url(command: Command) -> None:
    """Without a look at the bucket: its path is the key after the prefix."""
    store, path = open_store(str(command.home)), "sub/a b.txt"
    key, text = document_key(path), "a" * 64
    Registry(store).put(
        Entry(
            key=key,
            path=path,
            root="s3://bucket/docs",
            content_hash=text,
            size=1,
            registered_at="2026-01-01T00:00:00+00:00",
        )
    )
    digest = digest_of(text, "1" * 64)
    State.read(store).mark_failed(key, digest, Kind.REFUSED, "refused", "run")
    command.env["PROMPTCHAIN_DOCUMENTS"] = "s3://bucket/docs/"
    released = command.run("quarantine", "release", "s3://bucket/docs/sub/a b.txt", "--json")
    assert released.json == {"released": [key]}


def test_an_unreadable_document_given_by_hand_is_listed_until_it_is_mended(
    command: Command,
) -> None:
    """As one that the nightly run could not read; it costs nothing, and harms no other."""
    docs = command.cwd / "docs"
    write_story(docs / "good.md", 3)
    bad = docs / "bad.md"
    bad.write_bytes(b"%PDF-1.7 not text")
    with ChatServer(["A keeper lit lamps.", "Another keeper."]) as server:
        url = ("--base-url", server.url)
        first = command.run("summarize", "docs", *SHAPE, *url)
        (entry,) = command.run("quarantine", "--json").json["documents"]
        again = command.run("summarize", "docs", *SHAPE, "--max-words", "90", *url)
        (still,) = command.run("quarantine", "--json").json["documents"]
        write_story(bad, 2)
        assert command.run("quarantine", "--json").json["documents"] == [still]
        mended = command.run("summarize", "docs", *SHAPE, *url)

    assert [one["status"] for one in first.json["documents"]] == ["failed", "completed"]
    assert (entry["path"], entry["kind"], entry["tries"]) == (str(bad), "unreadable", 1)
    assert entry["run_id"] == first.json["documents"][0]["run_id"]
    assert "is not text but a PDF" in entry["reason"]
    assert (first.status, again.status, still) == (1, 1, entry)
    told = again.json["documents"][0]["error"]
    assert told.startswith("set aside (unreadable, tried once): ")
    assert "release" not in told
    assert [one["status"] for one in mended.json["documents"]] == ["completed", "completed"]
    assert command.run("quarantine", "--json").json == {"documents": []}


def grow_old(home: Path) -> None:
    """Let everything under the home be of a year ago."""
    then = time.time() - 365 * 86_400
    for file in home.rglob("*"):
        os.utime(file, (then, then))


def test_a_done_document_costs_nothing_after_a_prune_and_fresh_pays_all(command: Command) -> None:
    """Its last checkpoints stay; `plan` says so too."""
    story = write_story(command.cwd / "a.md")
    with ChatServer(tale) as server:
        args = (story, *SHAPE, "--base-url", server.url)
        first = command.run("summarize", *args)
        grow_old(command.home)
        pruned = command.run("prune", "--older-than", "30d", "--yes", "--json")
        planned = command.run("plan", *args)
        again = command.run("summarize", *args)
        sent = len(server.requests)
        fresh = command.run("summarize", *args, "--fresh")
    (done,) = first.json["documents"]
    assert done["chunks"] > 2
    assert (pruned.json["traces"], pruned.json["checkpoints"]) == (1, 1)
    assert planned.json["least_calls"] == 0
    assert sent == first.json["model_calls"] == fresh.json["model_calls"]
    (unchanged,) = again.json["documents"]
    assert (unchanged["summary"], unchanged["model_calls"]) == (done["summary"], 0)


def test_prune_shows_first_and_asks_nobody_who_cannot_answer(command: Command) -> None:
    """Without a terminal it wants `--yes`; `--dry-run` lists, and removes nothing."""
    with ChatServer(["A keeper lit lamps."]) as server:
        url = ("--base-url", server.url)
        command.run("summarize", write_story(command.cwd / "a.md", 3), *SHAPE, *url)
    grow_old(command.home)
    (trace,) = (command.home / "traces").iterdir()

    unasked = command.run("prune", "--older-than", "30d")
    shown = command.run("prune", "--older-than", "30d", "--dry-run", "--yes")
    told = command.run("prune", "--older-than", "30d", "--dry-run", "--json")
    assert unasked.status == 2
    assert "give --yes to remove, or --dry-run" in unasked.err
    assert shown.status == told.status == 0
    listed, summary = shown.out.splitlines()
    assert listed == f"traces/{trace.name}"
    assert summary.startswith("nothing removed; it would be the traces of 1 run, ")
    counts = {"traces": 1, "checkpoints": 0, "leftovers": 0, "folders": [listed]}
    assert told.json == {"removed": False, **counts}
    assert trace.exists()

    assert command.run("prune", "--older-than", "30d", "-y", "--json").json == {
        "removed": True,
        **counts,
    }
    assert not trace.exists()


@pytest.mark.parametrize(("answer", "left"), [("y", 0), ("n", 1), ("", 1)])
def test_at_a_terminal_prune_asks_before_it_removes(
    command: Command, answer: str, left: int
) -> None:
    """No is what is taken unless the answer is yes; the question is no part of the result."""
    old = command.home / "traces" / "run" / "outline-1.json"
    old.parent.mkdir(parents=True)
    old.write_text("{}")
    grow_old(command.home)
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            [*COMMAND, "prune", "--older-than", "30d", "--json"],
            cwd=command.cwd,
            env=command.env,
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        os.write(ours, f"{answer}\n".encode())
        done = command.finish(process)
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.status == 0
    assert "the traces of 1 run, " in done.err
    assert "Remove them?" in done.err
    assert done.json["removed"] is (left == 0)
    assert len(list((command.home / "traces").rglob("*.json"))) == left


def test_a_home_that_is_not_there_is_not_made_by_looking(command: Command) -> None:
    """What was misspelt holds nothing, and stays away; what is no folder is refused."""
    (command.cwd / "file").write_text("")
    for command_line in (
        ("prune", "--older-than", "1d", "--yes"),
        ("quarantine",),
        ("quarantine", "release", "--all"),
    ):
        assert command.run(*command_line, "--home", "misspelt").status == 0
        refused = command.run(*command_line, "--home", "file")
        assert (refused.status, refused.out) == (2, "")
        assert "home 'file' can't be used: it is no folder" in refused.err
    assert not (command.cwd / "misspelt").exists()


def test_prune_removes_nothing_new_and_says_how_much(command: Command) -> None:
    """Counts, as text or as one JSON object; summaries stay."""
    story = write_story(command.cwd / "a.md", 3)
    with ChatServer(["A keeper lit lamps."]) as server:
        command.run("summarize", story, *SHAPE, "--base-url", server.url)
    done = command.run("prune", "--older-than", "30d", "--yes", "--json")
    assert done.status == 0
    counts = {"traces": 0, "checkpoints": 0, "leftovers": 0}
    assert done.json == {"removed": True, **counts, "folders": []}
    assert list((command.home / "summaries").iterdir())
    shown = command.run("prune", "--older-than", "2w", "--yes").out
    assert shown.startswith("removed the traces of 0 runs")
    assert "\n" not in shown.strip()


@pytest.mark.parametrize(
    ("text", "age"),
    [
        ("30d", timedelta(days=30)),
        ("12h", timedelta(hours=12)),
        ("2w", timedelta(weeks=2)),
        ("90m", timedelta(minutes=90)),
        (" 1d ", timedelta(days=1)),
    ],
)
def test_an_age_is_a_number_and_a_unit(text: str, age: timedelta) -> None:
    """Minutes, hours, days, weeks."""
    assert age_of(text) == age
