"""`promptchain replay`, end to end."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command, outline
from tests.cli.test_post import BRIEF
from tests.cli.test_summarize import SHAPE, tale, write_story
from tests.cli.test_usage import files
from tests.support.chat_server import ChatServer, error

REPLAY = {"run_id", "status", "attempts", "reason", "difference", "documents"}
DIFFERENCE = {"document_key", "chunk", "step", "attempt", "what", "recorded", "now", "diff"}


def edit(file: Path, **changes: Any) -> None:
    held = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps({**held, **changes}), "utf-8")


def test_a_post_comes_out_the_same_without_a_model_and_a_changed_prompt_is_shown(
    command: Command,
) -> None:
    """Status 0, then 1; nothing under the home is touched, and no model is needed."""
    answers = [error(500), outline(2), outline(4), "The draft.", "The post."]
    with ChatServer(answers) as server:
        post = command.run("post", *BRIEF, "--json", "--base-url", server.url).json
        asked = len(server.requests)
        before = files(command.home)
        same = command.run("replay", post["run_id"][:12], "--json", "--base-url", server.url)
        assert len(server.requests) == asked
    assert (same.status, files(command.home)) == (0, before)
    assert set(same.json) == REPLAY
    assert same.json == {
        "run_id": post["run_id"],
        "status": "same",
        "attempts": 4,
        "reason": None,
        "difference": None,
        "documents": [],
    }

    file = command.home / "traces" / post["run_id"] / "draft-1.json"
    prompt = json.loads(file.read_text("utf-8"))["prompt"]
    edit(file, prompt=prompt.replace("plain", "ornate"))
    different = command.run("replay", post["run_id"], "--json")
    shown = command.run("replay", post["run_id"])
    assert different.status == shown.status == 1
    found = different.json["difference"]
    assert set(found) == DIFFERENCE
    assert (found["what"], found["step"], found["attempt"]) == ("prompt", "draft", 1)
    assert found["now"] == prompt
    assert "first difference: step draft, attempt 1, prompt" in shown.out
    assert "ornate" in shown.out


def test_both_variants_and_every_ending_can_be_replayed(command: Command) -> None:
    """A rejected post, and one whose call failed."""
    ids: list[str] = []
    for variant, answers in (
        ("gated-exit", [outline(2)]),
        ("gate-with-retry", [outline(4), error(400, "no", code="content_filter")]),
    ):
        with ChatServer(answers) as server:
            args = ("post", *BRIEF, "--variant", variant, "--json", "--base-url", server.url)
            ids.append(command.run(*args).json["run_id"])
    for run_id in ids:
        done = command.run("replay", run_id, "--json")
        assert (done.status, done.json["status"]) == (0, "same"), done.out


def test_summaries_are_replayed_each_and_what_is_missing_is_said(command: Command) -> None:
    """Status 2 for a pruned trace and a run without a result; a difference goes before."""
    for name in "ab":
        write_story(command.cwd / "docs" / f"{name}.md", 30)
    with ChatServer(tale) as server:
        done = command.run("summarize", "docs", *SHAPE, "--base-url", server.url).json
        again = command.run("summarize", "docs", *SHAPE, "--base-url", server.url).json
    first, second = done["documents"]
    run_id = first["run_id"]
    same = command.run("replay", run_id, "--json")
    assert same.status == 0, same.out
    assert [one["status"] for one in same.json["documents"]] == ["same", "same"]
    assert same.json["attempts"] == done["model_calls"]
    assert {Path(one["path"]).name for one in same.json["documents"]} == {"a.md", "b.md"}
    nothing = command.run("replay", again["documents"][0]["run_id"], "--json")
    assert (nothing.status, nothing.json["attempts"]) == (0, 0), "no call was made, none differs"

    trace = command.home / "traces" / run_id
    part = trace / first["document_key"] / "000002-refine-1.json"
    whole = part.read_text("utf-8")
    edit(part, output="Another summary.")
    different = command.run("replay", run_id, "--json")
    assert different.status == 1
    found = different.json["difference"]
    assert (found["document_key"], found["chunk"], found["what"]) == (
        first["document_key"],
        2,
        "output",
    )
    part.write_text(whole, "utf-8")
    shutil.rmtree(trace / second["document_key"])
    pruned = command.run("replay", run_id, "--json")
    assert (pruned.status, pruned.json["status"]) == (2, "not_replayable")
    assert f"{second['document_key']}: the trace has 0 of " in pruned.json["reason"]
    assert "pruned" in pruned.json["reason"]
    shutil.rmtree(command.home / "results" / run_id)
    (command.home / "results" / f"{run_id}.json").unlink()
    killed = command.run("replay", run_id)
    assert killed.status == 2
    assert "it left no result: the run was killed, or is under way" in killed.out


@pytest.mark.parametrize("run_id", ["", "no-such-run"])
def test_a_run_that_nothing_is_kept_of_is_bad_usage(command: Command, run_id: str) -> None:
    """Status 2, and the place where it would be."""
    done = command.run("replay", run_id)
    assert done.status == 2
    assert "no such run under" in done.err
