"""`promptchain summarize`, end to end."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import dagster as dg

from tests.cli.conftest import Command
from tests.support.chat_server import HANG, Answer, ChatServer, Request, error

ENTRY = {
    "path",
    "document_key",
    "run_id",
    "status",
    "summary",
    "chunks",
    "failed_chunk",
    "resumed_from",
    "compressions",
    "model_calls",
    "usage",
    "warnings",
    "error",
}


def write_story(path: Path, paragraphs: int = 40) -> str:
    """A document of several chunks of 200 tokens."""
    path.write_text(
        "\n\n".join(f"On day {n} the keeper lit {n} lamps at dusk." for n in range(paragraphs)),
        "utf-8",
    )
    return str(path)


def tale(request: Request) -> str:
    """A summary that tells how far the model has read."""
    part = request.prompt.split('number="', 1)[1].split('"', 1)[0]
    return f"The keeper lit the lamps, told up to part {part} of the story."


def test_a_folder_gives_an_entry_for_each_document_and_a_second_run_costs_nothing(
    command: Command, dagster_home: Path
) -> None:
    """One without content is no error; what is kept is not paid for again, but for `--fresh`."""
    folder = command.cwd / "docs"
    (folder / "inner").mkdir(parents=True)
    write_story(folder / "inner" / "story.md")
    (folder / "empty.txt").write_text("# 1\n")
    (folder / "data.csv").write_text("a,b\n")
    (folder / ".hidden.md").write_text("Not to be read by anybody.")
    shape = ("--chunk-tokens", "200", "--json")
    with ChatServer(tale) as server:
        done = command.run("summarize", "docs", *shape, "--base-url", server.url)
        first_calls = len(server.requests)
        again = command.run("summarize", "docs", *shape, "--base-url", server.url)
        calls_again = len(server.requests) - first_calls
        command.run("summarize", "docs", *shape, "--fresh", "--base-url", server.url)

    assert done.status == again.status == 0
    assert set(done.json) == {"model_calls", "usage", "warnings", "documents"}
    empty, story = done.json["documents"]
    assert set(empty) == set(story) == ENTRY
    assert (empty["path"], empty["status"]) == ("docs/empty.txt", "no_content")
    assert (story["path"], story["status"]) == ("docs/inner/story.md", "completed")
    chunks = story["chunks"]
    assert chunks > 1
    assert story["summary"].endswith(f"up to part {chunks} of the story.")
    assert done.json["model_calls"] == first_calls == chunks
    assert calls_again == again.json["model_calls"] == 0
    assert again.json["documents"][1]["resumed_from"] == chunks
    assert len(server.requests) == 2 * chunks
    with dg.DagsterInstance.from_config(str(dagster_home)) as instance:
        run = instance.get_run_by_id(story["run_id"])
    assert run is not None
    assert (run.job_name, run.status) == ("incremental_refine", dg.DagsterRunStatus.SUCCESS)


def test_an_unreadable_document_inside_a_folder_fails_alone(command: Command) -> None:
    """The others are summarized, on standard output; the status is 1."""
    folder = command.cwd / "docs"
    folder.mkdir()
    (folder / "a.txt").write_bytes(b"PK\x03\x04" + bytes(200))
    write_story(folder / "b.txt", 3)
    with ChatServer(tale) as server:
        done = command.run("summarize", "docs", "--base-url", server.url)
    assert done.status == 1
    assert "# docs/b.txt" in done.out
    assert "told up to part 1 of the story." in done.out
    assert "docs/a.txt: failed" in done.err
    assert "zip archive" in done.err
    assert len(server.requests) == 1


def test_e2_an_exhausted_quota_leaves_the_other_documents_not_started(command: Command) -> None:
    """No call of the run can succeed any more, so none is made."""
    first, second = write_story(command.cwd / "a.md"), write_story(command.cwd / "b.md")
    with ChatServer([error(429, "no money", code="insufficient_quota")]) as server:
        done = command.run("summarize", first, second, "--json", "--base-url", server.url)
    assert done.status == 1
    assert len(server.requests) == 1
    assert [one["status"] for one in done.json["documents"]] == ["failed", "not_started"]
    assert done.json["documents"][0]["failed_chunk"] == 1


def test_an_interrupt_keeps_what_is_done_and_the_same_command_goes_on_from_there(
    command: Command, dagster_home: Path
) -> None:
    """Status 130, the summary so far, the other document not started; no chunk is paid twice."""
    story, other = write_story(command.cwd / "a.md"), write_story(command.cwd / "b.md", 3)
    third = threading.Event()

    def hang_at_third(request: Request) -> Answer | str:
        if 'number="3"' in request.prompt and not third.is_set():
            third.set()
            return HANG
        return tale(request)

    shape = ("--chunk-tokens", "200", "--json")
    with ChatServer(hang_at_third) as server:
        process = command.start("summarize", story, other, *shape, "--base-url", server.url)
        assert third.wait(120)
        process.send_signal(signal.SIGINT)
        done = command.finish(process)
        again = command.run("summarize", story, other, *shape, "--base-url", server.url)

    assert done.status == 130
    first, second = done.json["documents"]
    assert (first["status"], first["failed_chunk"]) == ("failed", 3)
    assert first["summary"].endswith("up to part 2 of the story.")
    assert second["status"] == "not_started"
    assert "the same command goes on" in done.err
    assert again.status == 0
    assert again.json["documents"][0]["resumed_from"] == 2
    with dg.DagsterInstance.from_config(str(dagster_home)) as instance:
        run = instance.get_run_by_id(first["run_id"])
    assert run is not None
    assert run.status == dg.DagsterRunStatus.CANCELED
