"""The jobs `gated_exit` and `gate_with_retry`: real runs on an instance on disk."""

import json
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from promptchain_dagster.chain.trace import read_trace
from promptchain_dagster.models.base import CallError, Problem
from promptchain_dagster.pipelines import metadata as md
from promptchain_dagster.pipelines.blog_post import gate_with_retry, gated_exit
from promptchain_dagster.store import open_store
from promptchain_dagster.testing import ScriptedChatModel
from tests.pipelines.scripted import (
    failure_of,
    outline,
    outputs_of,
    result_of,
    retry_from_failure,
    run,
    succeeded,
)

BRIEF = {"brief": "Why tests pay.", "audience": "developers"}
DRAFT = "The draft, from first to last."
POST = "The post, polished."


def test_spec_an_outline_of_two_sections_is_one_call_and_an_error_holding_it(
    home: Path, instance: dg.DagsterInstance
) -> None:
    """The first failed gate ends the run: nothing is stored, and no later op starts."""
    model = ScriptedChatModel([outline(2)])

    done = run(gated_exit, {"brief": BRIEF}, home, model, instance)

    assert not done.success
    assert succeeded(done) == ["brief"]
    assert outputs_of(home, done.run_id) == {"brief/brief"}
    assert len(model.prompts) == 1
    result = result_of(home, done.run_id)
    assert result["status"] == "rejected"
    assert result["post"] is None
    assert result["model_calls"] == 1
    assert result["error"] == {
        "step": "outline",
        "reason": "rejected",
        "failed_checks": [{"check": "section_count", "message": "2 sections, need 4 to 6"}],
        "messages": ["2 sections, need 4 to 6"],
        "rejected_output": json.loads(outline(2)),
    }
    assert instance.get_run_by_id(done.run_id).tags[md.RESULT].endswith(f"{done.run_id}.json")


def test_spec_two_then_four_sections_are_two_outline_calls_and_a_post(
    home: Path, instance: dg.DagsterInstance
) -> None:
    """The second outline prompt holds the gate's error verbatim, and the post is returned."""
    model = ScriptedChatModel([outline(2), outline(4), DRAFT, POST])

    done = run(gate_with_retry, {"brief": BRIEF}, home, model, instance)

    assert done.success
    assert succeeded(done) == ["brief", "outline", "check_outline", "draft", "polish"]
    assert len(model.prompts) == 4
    assert "2 sections, need 4 to 6" in model.prompts[1]
    result = result_of(home, done.run_id)
    assert result["status"] == "completed"
    assert result["post"] == POST
    assert result["error"] is None
    assert [(a["step"], a["attempt"]) for a in result["attempts"]] == [
        ("outline", 1),
        ("outline", 2),
        ("draft", 1),
        ("polish", 1),
    ]
    assert result["attempts"][0]["errors"] == ["2 sections, need 4 to 6"]


@pytest.mark.parametrize(("retries", "calls"), [(None, 3), (0, 1), (3, 4)])
def test_the_outline_is_asked_for_no_more_often_than_the_run_allows(
    home: Path, instance: dg.DagsterInstance, retries: int | None, calls: int
) -> None:
    """`max_retries_per_step` of the run holds; every attempt is in the failure's metadata."""
    model = ScriptedChatModel(lambda prompt: outline(7))
    ops: dict[str, Any] = {"brief": BRIEF}
    if retries is not None:
        ops["outline"] = {"max_retries_per_step": retries}

    done = run(gate_with_retry, ops, home, model, instance)

    assert len(model.prompts) == calls
    told = failure_of(done, "outline").metadata
    assert {key for key in told if key.startswith(f"{md.ATTEMPT}_")} == {
        f"{md.ATTEMPT}_{n}" for n in range(1, calls + 1)
    }
    assert result_of(home, done.run_id)["error"]["messages"] == ["7 sections, need 4 to 6"] * calls


@pytest.mark.parametrize("retries", [-1, 4])
def test_a_budget_outside_the_pattern_is_refused_before_any_call(
    home: Path, instance: dg.DagsterInstance, retries: int
) -> None:
    """The spec allows 0 to 3; the failure says so."""
    model = ScriptedChatModel([])

    ops = {"brief": BRIEF, "outline": {"max_retries_per_step": retries}}
    done = run(gate_with_retry, ops, home, model, instance)

    assert not done.success
    assert "from 0 to 3" in failure_of(done, "outline").description
    assert model.prompts == []


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"audience": "one\ntwo"}, "audience"),
        ({"min_sections": 7}, "min_sections is 7"),
        ({"word_count": -1}, "word_count"),
    ],
)
def test_a_brief_that_cannot_work_ends_the_run_before_any_call(
    home: Path, instance: dg.DagsterInstance, changed: dict[str, Any], named: str
) -> None:
    """The first op is the guard of the chain: it names what it refuses."""
    model = ScriptedChatModel([])

    done = run(gated_exit, {"brief": {**BRIEF, **changed}}, home, model, instance)

    assert succeeded(done) == []
    assert named in failure_of(done, "brief").description
    result = result_of(home, done.run_id)
    assert (result["status"], result["error"]["step"]) == ("rejected", "brief")
    assert model.prompts == []


@pytest.mark.parametrize("problem", [Problem.UNUSABLE, Problem.REFUSED])
def test_f11_what_no_retry_mends_is_a_failure_that_dagster_does_not_retry(
    home: Path, instance: dg.DagsterInstance, problem: Problem
) -> None:
    """`Failure(allow_retries=False)` is the outermost exception, even under a retry policy."""
    model = ScriptedChatModel([CallError(problem, "I cannot help with that.")] * 3)
    retrying = dg.GraphDefinition(
        name="retrying",
        node_defs=gated_exit.graph.node_defs,
        dependencies=gated_exit.graph.dependencies,
    ).to_job(op_retry_policy=dg.RetryPolicy(max_retries=3))

    done = run(retrying, {"brief": BRIEF}, home, model, instance)

    assert not done.success
    assert not [event for event in done.all_events if event.is_step_up_for_retry]
    assert len(model.prompts) == 1
    result = result_of(home, done.run_id)
    assert result["status"] == "failed"
    assert result["error"]["messages"] == ["I cannot help with that."]


def test_a_retry_from_failure_asks_the_model_again(
    home: Path, instance: dg.DagsterInstance
) -> None:
    """Nothing of the rejected outline is there to be taken for a good one."""
    model = ScriptedChatModel([outline(2), outline(5), DRAFT, POST])
    first = run(gated_exit, {"brief": BRIEF}, home, model, instance)

    again = retry_from_failure(gated_exit, first, instance)

    assert again.success
    assert succeeded(again) == ["outline", "check_outline", "draft", "polish"]
    assert len(model.prompts) == 4
    assert result_of(home, again.run_id)["post"] == POST
    assert result_of(home, again.run_id)["model_calls"] == 3


def test_a_retry_after_a_failed_draft_keeps_the_outline(
    home: Path, instance: dg.DagsterInstance
) -> None:
    """What was accepted is read from the run that stored it; only the draft is paid for again."""
    down = CallError(Problem.REFUSED, "not today")
    model = ScriptedChatModel([outline(4), down, DRAFT, POST])
    first = run(gated_exit, {"brief": BRIEF}, home, model, instance)
    assert result_of(home, first.run_id)["error"]["step"] == "draft"

    again = retry_from_failure(gated_exit, first, instance)

    assert succeeded(again) == ["draft", "polish"]
    assert json.loads(outline(4))["sections"][0]["heading"] in model.prompts[2]


@pytest.mark.parametrize(
    ("tampered", "check"),
    [
        (json.loads(outline(2)), "section_count"),
        ({"sections": [{"heading": "", "point": "x"}] * 4}, "headings"),
        ({"sections": "none"}, "schema"),
    ],
)
def test_check_outline_is_the_only_door_to_the_draft(
    home: Path, instance: dg.DagsterInstance, tampered: Any, check: str
) -> None:
    """It judges what is stored: an outline that no longer holds never reaches the draft."""
    model = ScriptedChatModel([outline(4), CallError(Problem.REFUSED, "not today")])
    first = run(gated_exit, {"brief": BRIEF}, home, model, instance)
    stored = home / "runs" / first.run_id / "outline" / "outline.json"
    stored.write_text(json.dumps(tampered))

    again = retry_from_failure(gated_exit, first, instance, steps=["check_outline", "draft"])

    assert not again.success
    assert succeeded(again) == []
    assert len(model.prompts) == 2
    error = result_of(home, again.run_id)["error"]
    assert error["step"] == "outline"
    assert check in {failed["check"] for failed in error["failed_checks"]}


def test_f14_metadata_and_logs_are_short_and_the_trace_is_whole(
    home: Path, instance: dg.DagsterInstance
) -> None:
    """A draft of 300,000 characters adds a preview to the event log and lies whole in the trace."""
    draft = "A long draft. " * 20_000
    model = ScriptedChatModel([outline(4), draft, POST])

    done = run(gated_exit, {"brief": {**BRIEF, "brief": "b" * 100_000}}, home, model, instance)

    assert done.success
    records = instance.get_records_for_run(done.run_id, limit=1000).records
    assert max(len(dg.serialize_value(record.event_log_entry)) for record in records) < 6_000
    attempts = read_trace(open_store(str(home)), done.run_id)
    assert [attempt["step"] for attempt in attempts] == ["outline", "draft", "polish"]
    assert attempts[1]["reply"] == draft


def test_each_step_is_logged_with_its_input_output_gate_and_tokens(
    home: Path, instance: dg.DagsterInstance
) -> None:
    """One log line for each attempt, so that a bad post is traced to the step that caused it."""
    model = ScriptedChatModel([outline(2), outline(4), DRAFT, POST])

    done = run(gate_with_retry, {"brief": BRIEF}, home, model, instance)

    logged = [entry.user_message for entry in instance.all_logs(done.run_id)]
    (rejected,) = [line for line in logged if line.startswith("outline, attempt 1")]
    assert "rejected: section_count: 2 sections, need 4 to 6" in rejected
    assert "audience=developers" in rejected
    assert '"heading": "Reason 1 to test"' in rejected
    tokens = f"tokens: {len(model.prompts[0].split())} in, {len(outline(2).split())} out"
    assert tokens in rejected
    assert sum(line.startswith(("outline,", "draft,", "polish,")) for line in logged) == 4
