"""`promptchain summarize`, end to end."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import dagster as dg

from tests.cli.conftest import Command
from tests.support.chat_server import HANG, Answer, ChatServer, Request, error, reply
from tests.support.dagster_home import instance_at

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


SHAPE = ("--chunk-tokens", "200", "--json")


def write_story(path: Path, paragraphs: int = 40) -> str:
    """A document of its own, of several chunks of 200 tokens."""
    told = (f"On day {n} {path.stem} lit {n} lamps at dusk." for n in range(paragraphs))
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n\n".join(told), "utf-8")
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
    with ChatServer(tale) as server:
        done = command.run("summarize", "docs", *SHAPE, "--base-url", server.url)
        first_calls = len(server.requests)
        again = command.run("summarize", "docs", *SHAPE, "--base-url", server.url)
        calls_again = len(server.requests) - first_calls
        command.run("summarize", "docs", *SHAPE, "--fresh", "--base-url", server.url)

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
    with instance_at(dagster_home) as instance:
        run = instance.get_run_by_id(story["run_id"])
    assert run is not None
    assert (run.job_name, run.status) == ("summarize_documents", dg.DagsterRunStatus.SUCCESS)


def refuse_bad(request: Request) -> Answer | str:
    """The model won't have anything to do with the document `bad`."""
    if " bad lit " in request.prompt:
        return reply(None, refusal="I can't help with that.")
    return tale(request)


def test_many_documents_are_one_run_and_each_is_recorded(
    command: Command, dagster_home: Path
) -> None:
    """In the order given; a refused and an unreadable one fail alone, and the status is 1."""
    docs = command.cwd / "docs"
    paths = [write_story(docs / f"{name}.md", 3) for name in ("d", "bad", "a", "c")]
    (docs / "inside").mkdir()
    (docs / "inside" / "zip.txt").write_bytes(b"PK\x03\x04" + bytes(200))
    with ChatServer(refuse_bad) as server:
        asked = [*paths, str(docs / "inside"), paths[0], str(docs)]
        done = command.run("summarize", *asked, *SHAPE, "--base-url", server.url)
    assert done.status == 1
    documents = done.json["documents"]
    assert [one["path"] for one in documents] == [*paths, str(docs / "inside" / "zip.txt")]
    assert [one["status"] for one in documents] == [
        "completed",
        "failed",
        "completed",
        "completed",
        "failed",
    ]
    assert "I can't help with that." in documents[1]["error"]
    assert "zip archive" in documents[4]["error"]
    assert done.json["model_calls"] == len(server.requests) == 4
    (run_id,) = {one["run_id"] for one in documents}
    with instance_at(dagster_home) as instance:
        run = instance.get_run_by_id(run_id)
        partitions = instance.get_dynamic_partitions("documents")
        made = instance.get_materialized_partitions(dg.AssetKey("document_summary"))
    assert run is not None
    assert run.status == dg.DagsterRunStatus.FAILURE
    keys = {one["document_key"] for one in documents}
    assert keys <= set(partitions)
    assert made & keys == {one["document_key"] for one in documents if one["summary"]}


def test_two_paths_of_equal_content_cost_one_and_each_gets_the_summary(command: Command) -> None:
    """d14: keys are of content, not of names."""
    first = write_story(command.cwd / "a.md")
    second = command.cwd / "b.md"
    second.write_bytes(Path(first).read_bytes())
    with ChatServer(tale) as server:
        done = command.run("summarize", first, str(second), *SHAPE, "--base-url", server.url)
    one, other = done.json["documents"]
    assert one["summary"] == other["summary"]
    assert done.json["model_calls"] == len(server.requests) == one["chunks"]


def test_no_more_calls_are_in_flight_than_asked_for_and_an_interrupt_counts_them(
    command: Command,
) -> None:
    """Two of eight documents at once; theirs are the calls, the others are not started."""
    for number in range(8):
        write_story(command.cwd / "docs" / f"{number}.md", 3)
    seen: list[str] = []
    both = threading.Event()

    def hang(request: Request) -> Answer:
        seen.append(request.prompt)
        if len(seen) == 2:
            both.set()
        return HANG

    with ChatServer(hang) as server:
        args = ("summarize", "docs", "--max-in-flight", "2", *SHAPE, "--base-url", server.url)
        process = command.start(*args)
        assert both.wait(120)
        process.send_signal(signal.SIGINT)
        done = command.finish(process)
    assert done.status == 130
    assert len(seen) == done.json["model_calls"] == 2
    assert done.json["usage"]["calls_without_usage"] == 2
    assert done.json["usage"]["input_tokens"] is None
    documents = done.json["documents"]
    begun = [one for one in documents if one["model_calls"]]
    assert len(begun) == 2
    for one in documents:
        told = (one["status"], one["failed_chunk"], one["model_calls"], one["summary"])
        assert told == (("failed", 1, 1, "") if one in begun else ("not_started", None, 0, None))
    assert all(one["usage"]["calls_without_usage"] == 1 for one in begun)
    assert {one["error"] for one in done.json["documents"]} == {"interrupted"}


def test_e2_an_exhausted_quota_leaves_the_other_documents_not_started(command: Command) -> None:
    """No call of the run can succeed any more, so none is made; what was done is kept."""
    paths = [write_story(command.cwd / f"{name}.md", 3) for name in "abcd"]

    answers = ["A keeper lit lamps.", *[error(429, "no money", code="insufficient_quota")] * 3]
    with ChatServer(answers) as server:
        args = ("summarize", *paths, "--max-in-flight", "1", *SHAPE, "--base-url", server.url)
        done = command.run(*args)
    assert done.status == 1
    assert done.json["model_calls"] == len(server.requests) == 2
    # They are read side by side: which of them is first to ask is not said.
    first, second, *rest = sorted(done.json["documents"], key=lambda one: one["status"])
    assert (first["status"], second["status"]) == ("completed", "failed")
    assert second["failed_chunk"] == 1
    assert [one["status"] for one in rest] == ["not_started", "not_started"]
    assert all("quota" in one["error"] and one["run_id"] == first["run_id"] for one in rest)


def test_an_interrupt_keeps_what_is_done_and_the_same_command_pays_for_the_rest_alone(
    command: Command, dagster_home: Path
) -> None:
    """Status 130, the summary so far, the other not started, every request counted."""
    story, other = write_story(command.cwd / "a.md"), write_story(command.cwd / "b.md", 3)
    third = threading.Event()

    def hang_at_third(request: Request) -> Answer | str:
        if 'number="3"' in request.prompt and not third.is_set():
            third.set()
            return HANG
        return tale(request)

    args = ("summarize", story, other, "--max-in-flight", "1", *SHAPE)
    with ChatServer(hang_at_third) as server:
        process = command.start(*args, "--base-url", server.url)
        assert third.wait(120)
        process.send_signal(signal.SIGINT)
        done = command.finish(process)
        sent = len(server.requests)
        again = command.run(*args, "--base-url", server.url)
        sent_again = len(server.requests) - sent

    assert done.status == 130
    first, second = done.json["documents"]
    assert (first["status"], first["failed_chunk"]) == ("failed", 3)
    assert first["summary"].endswith("up to part 2 of the story.")
    assert first["run_id"] == second["run_id"]
    assert done.json["model_calls"] == sent == first["model_calls"] + second["model_calls"]
    assert done.json["usage"]["calls_without_usage"] == 1
    assert first["usage"]["calls_without_usage"] == 1
    if second["status"] != "completed":  # its turn may have come between two chunks
        assert (second["status"], second["error"]) == ("not_started", "interrupted")
    assert "the same command goes on" in done.err
    assert again.status == 0
    assert again.json["documents"][0]["resumed_from"] == 2
    assert sent + sent_again == first["chunks"] + 1 + 1
    assert again.json["model_calls"] == sent_again
    with instance_at(dagster_home) as instance:
        run = instance.get_run_by_id(first["run_id"])
    assert run is not None
    assert run.status == dg.DagsterRunStatus.CANCELED
