"""`promptchain post`, end to end."""

from __future__ import annotations

import json
from pathlib import Path

import dagster as dg

from tests.cli.conftest import Command, outline
from tests.support.chat_server import ChatServer, error
from tests.support.dagster_home import instance_at

BRIEF = ("--brief", "Why tests pay.", "--audience", "developers")
USAGE = {"input_tokens", "output_tokens", "cost_usd", "calls_without_usage"}
RESULT = {
    "status",
    "run_id",
    "post",
    "error",
    "attempts",
    "warnings",
    "model_calls",
    "usage",
}


def test_spec_two_then_four_sections_give_a_post_and_one_json_object(
    command: Command, dagster_home: Path
) -> None:
    """The gate's error goes back once; standard output is the contract's object alone."""
    with ChatServer([outline(2), outline(4), "The draft.", "The post."]) as server:
        done = command.run("post", *BRIEF, "--json", "--base-url", server.url)

    assert done.status == 0
    result = done.json
    assert set(result) == RESULT
    assert set(result["usage"]) == USAGE
    assert (result["status"], result["post"], result["error"]) == ("completed", "The post.", None)
    assert result["model_calls"] == len(server.requests) == 4
    assert "2 sections, need 4 to 6" in server.requests[1].prompt
    assert [(one["step"], one["attempt"]) for one in result["attempts"]] == [
        ("outline", 1),
        ("outline", 2),
        ("draft", 1),
        ("polish", 1),
    ]
    assert {frozenset(one) for one in result["attempts"]} == {
        frozenset({"step", "attempt", "output", "errors"})
    }
    assert result["attempts"][0]["errors"] == ["2 sections, need 4 to 6"]
    with instance_at(dagster_home) as instance:
        run = instance.get_run_by_id(result["run_id"])
    assert run is not None
    assert (run.job_name, run.status) == ("gate_with_retry", dg.DagsterRunStatus.SUCCESS)
    assert run.remote_job_origin is not None, "without an origin the UI can't retry a run"


def test_spec_gated_exit_ends_at_the_first_rejected_outline_with_status_1(
    command: Command,
) -> None:
    """One call, and an error that holds the outline and its failed checks."""
    with ChatServer([outline(2)]) as server:
        done = command.run(
            "post", *BRIEF, "--variant", "gated-exit", "--json", "--base-url", server.url
        )

    assert done.status == 1
    assert len(server.requests) == done.json["model_calls"] == 1
    assert done.json["status"] == "rejected"
    assert done.json["post"] is None
    assert done.json["error"] == {
        "step": "outline",
        "reason": "rejected",
        "failed_checks": [{"check": "section_count", "message": "2 sections, need 4 to 6"}],
        "messages": ["2 sections, need 4 to 6"],
        "rejected_output": json.loads(outline(2)),
    }


def test_without_json_the_post_alone_is_on_standard_output(command: Command) -> None:
    """Everything else is on standard error: status, cost, run, and how to look further."""
    with ChatServer([outline(2), "The draft.", "# The post\n\nwhole."]) as server:
        done = command.run(
            "post", *BRIEF, "--min-sections", "2", "--max-attempts", "1", "--base-url", server.url
        )
    assert done.status == 0
    assert done.out == "# The post\n\nwhole.\n"
    assert "completed" in done.err
    assert "3 model calls" in done.err
    run_id = done.err.rsplit("promptchain trace ", 1)[1].strip()

    traced = command.run("trace", run_id[:8], "--base-url", server.url)
    assert traced.status == 0
    assert traced.out.startswith(f"run {run_id}: completed")
    for told in ("input brief: Why tests pay.", "check section_count: met", "reply: The draft."):
        assert told in traced.out
    whole = command.run("trace", run_id, "--json").json
    assert set(whole) == {"run_id", "attempts", "result"}
    assert [one["step"] for one in whole["attempts"]] == ["outline", "draft", "polish"]
    assert whole["result"]["post"] == "# The post\n\nwhole."


def test_every_attempt_that_failed_is_told_with_its_checks(command: Command) -> None:
    """A rejected brief shows what each outline lacked, and nothing on standard output."""
    with ChatServer([outline(2), outline(7), "never"]) as server:
        done = command.run("post", *BRIEF, "--max-attempts", "2", "--base-url", server.url)
    assert done.status == 1
    assert done.out == ""
    assert "attempt 1: 2 sections, need 4 to 6" in done.err
    assert "attempt 2: 7 sections, need 4 to 6" in done.err


def test_a_call_that_fails_is_told_with_its_step_and_status_failed(command: Command) -> None:
    """A wrong key ends the run at once; the key itself is shown nowhere."""
    echo = f"Incorrect API key provided: {command.env['OPENAI_API_KEY']}"
    with ChatServer([error(401, echo, code="invalid_api_key")]) as server:
        done = command.run("post", *BRIEF, "--json", "--base-url", server.url)
    assert done.status == 1
    assert len(server.requests) == 1
    assert done.json["status"] == "failed"
    assert done.json["error"]["step"] == "outline"
