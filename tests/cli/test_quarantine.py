"""`promptchain quarantine` and `prune`."""

from __future__ import annotations

from datetime import timedelta

import pytest

from promptchain_dagster.cli.prune import age_of
from promptchain_dagster.library.recipe import digest_of
from promptchain_dagster.library.registry import Entry, Registry
from promptchain_dagster.library.state import Kind, State
from promptchain_dagster.refine.documents import document_key
from promptchain_dagster.store import open_store
from tests.cli.conftest import Command
from tests.cli.test_summarize import SHAPE, refuse_bad, write_story
from tests.support.chat_server import ChatServer


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


def test_prune_removes_nothing_new_and_says_how_much(command: Command) -> None:
    """Counts, as text or as one JSON object; summaries stay."""
    story = write_story(command.cwd / "a.md", 3)
    with ChatServer(["A keeper lit lamps."]) as server:
        command.run("summarize", story, *SHAPE, "--base-url", server.url)
    done = command.run("prune", "--older-than", "30d", "--json")
    assert done.status == 0
    assert done.json == {"traces": 0, "checkpoints": 0, "leftovers": 0}
    assert list((command.home / "summaries").iterdir())
    shown = command.run("prune", "--older-than", "2w").out
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
