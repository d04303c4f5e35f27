"""A recorded fold of a refine of one's own, run again from its trace."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from promptchain_dagster.chain.replay import Different, NotReplayable, Replayed, Same
from promptchain_dagster.chain.trace import read_trace, recorder
from promptchain_dagster.models import CallError, Calls, Problem
from promptchain_dagster.refine.checkpoints import Checkpoints
from promptchain_dagster.refine.definition import Refine
from promptchain_dagster.refine.fold import refine_document
from promptchain_dagster.refine.outcome import Stopped
from promptchain_dagster.refine.replay import replay_document, settings_of
from promptchain_dagster.refine.result import document_result
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.store import Store
from promptchain_dagster.testing import Script, ScriptedChatModel
from promptchain_dagster.tokens import get_encoder
from tests.support.folding import chunks_of, no_wait
from tests.support.memory_store import MemoryStore
from tests.support.minutes import PROMPT, minutes, noting, step

OWN = minutes()
CHUNKS = chunks_of(*(f"{name} is to see to it." for name in ("Ana", "Bo", "Kim", "Lu")))
NO_QUOTA = CallError(Problem.UNUSABLE, "quota exhausted")


class Run:
    """One recorded fold, with a cap that every second action is over."""

    def __init__(self, replies: Script, store: Store, run_id: str = "run") -> None:
        settings = RefineSettings(max_words=9, refine=OWN)
        model = ScriptedChatModel(replies)
        used = settings_of(settings, model, get_encoder())
        self.outcome = asyncio.run(
            refine_document(
                CHUNKS,
                settings,
                Calls(model, sleep=no_wait),
                Checkpoints(store),
                record=lambda index: recorder(store, run_id, f"key/{index:06}", used),
            )
        )
        result = document_result(self.outcome, path="a.md", document_key="key", run_id=run_id)
        self.result: dict[str, Any] = json.loads(json.dumps(result))
        self.attempts = read_trace(store, run_id)

    def replay(self, refine: Refine | None = OWN) -> Replayed:
        return asyncio.run(replay_document(self.attempts, self.result, refine))


def failing_at(call: int, instead: Any) -> Script:
    """As `noting`, but for one call."""
    calls = 0

    def reply(prompt: str) -> Any:
        nonlocal calls
        calls += 1
        return instead if calls == call else noting(prompt)

    return reply


@pytest.mark.parametrize("instead", [CallError(Problem.UNAVAILABLE, "HTTP 500"), '{"open": 1}'])
def test_a_typed_fold_comes_out_as_it_did_with_compressions_and_rejections(instead: Any) -> None:
    """Every prompt, state, gate and the result."""
    run = Run(failing_at(2, instead), MemoryStore())
    assert {one["step"] for one in run.attempts} == {"note", "shorten"}
    assert run.replay() == Same(len(run.attempts))


def test_a_run_that_went_on_from_a_checkpoint_begins_with_the_state_of_then() -> None:
    """After a reply, and after one whose compression was left undone."""
    for call, first_step in ((2, "note"), (3, "shorten")):
        store = MemoryStore()
        first = Run(failing_at(call, NO_QUOTA), store)
        second = Run(noting, store, "again")
        assert isinstance(first.outcome, Stopped)
        assert second.attempts[0]["step"] == first_step
        assert second.outcome.resumed_from == call - 1
        assert first.replay() == Same(len(first.attempts))
        assert second.replay() == Same(len(second.attempts))


def test_a_changed_prompt_of_ones_own_is_shown_as_the_first_difference() -> None:
    """The refine of now is what is run."""
    found = Run(noting, MemoryStore()).replay(minutes(prompt=PROMPT.replace("open so far", "open")))
    assert isinstance(found, Different)
    assert (found.what, found.step, found.label) == ("prompt", "note", "key/000001")


def test_without_the_refine_that_made_it_a_document_can_not_be_replayed() -> None:
    """The reason says which is missing."""
    run = Run(noting, MemoryStore())
    assert run.replay(None) == NotReplayable(
        0, "it was made by a refine of one's own, 'note'; name that"
    )
    other = run.replay(Refine(step(name="jot")))
    assert isinstance(other, NotReplayable)
    assert "'note', not 'jot'" in other.reason


def test_a_state_that_no_longer_validates_is_no_place_to_begin() -> None:
    """It is told, and nothing is run."""
    store = MemoryStore()
    Run(failing_at(2, NO_QUOTA), store)
    second = Run(noting, store, "again")
    for one in second.attempts:
        one["inputs"]["actions"] = {"open": "none"}
    outcome = second.replay()
    assert outcome == NotReplayable(0, "the actions it began with no longer validates")


def test_a_trace_of_the_built_in_refine_names_none_and_needs_none() -> None:
    """So that traces from before there were others can be replayed."""
    used = settings_of(RefineSettings(), ScriptedChatModel([]), get_encoder())
    assert "refine" not in used
    own = settings_of(RefineSettings(refine=OWN), ScriptedChatModel([]), get_encoder())
    assert own["refine"] == "note"
