"""A recorded fold, run again from its trace."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from promptchain_dagster.chain.replay import Different, NotReplayable, Replayed, Same
from promptchain_dagster.chain.trace import read_trace, recorder
from promptchain_dagster.models import CallError, Calls, Completion, Problem, Usage
from promptchain_dagster.models.base import UNKNOWN_USAGE
from promptchain_dagster.refine.checkpoints import Checkpoints
from promptchain_dagster.refine.chunking import split_text
from promptchain_dagster.refine.fold import refine_document
from promptchain_dagster.refine.outcome import Stopped, Summarized
from promptchain_dagster.refine.replay import replay_document, settings_of
from promptchain_dagster.refine.result import document_result
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.store import Store
from promptchain_dagster.testing import ScriptedChatModel
from promptchain_dagster.tokens import get_encoder
from tests.support.folding import no_wait
from tests.support.memory_store import MemoryStore

SETTINGS = RefineSettings("report", chunk_tokens=12, max_words=6)
TEXT = "\n\n".join(f"Paragraph {n} tells of the <summary_so_far> of {n} ships." for n in range(5))
UNAVAILABLE = CallError(Problem.UNAVAILABLE, "HTTP 500: it broke", usage=UNKNOWN_USAGE)
REFUSED = CallError(Problem.REFUSED, "the model refused")
LONG = "This summary has far more words than the cap allows for."
UNCHANGED = "The existing summary is already complete; no changes needed."


class Run:
    """One recorded fold in `store`: its outcome, its trace and its result, as they are stored."""

    def __init__(
        self, replies: Sequence[Any], store: Store, run_id: str = "run", **limits: Any
    ) -> None:
        encoder = get_encoder()
        chunks = split_text(TEXT, SETTINGS.chunk_tokens, encoder)
        model = ScriptedChatModel([*replies, *["S and no more"] * 20], **limits)
        used = settings_of(SETTINGS, model, encoder)
        calls = Calls(model, sleep=no_wait)
        self.outcome: Summarized | Stopped = asyncio.run(
            refine_document(
                chunks,
                SETTINGS,
                calls,
                Checkpoints(store),
                record=lambda index: recorder(store, run_id, f"key/{index:06}", used),
            )
        )
        result = document_result(
            self.outcome, path="a.md", document_key="key", run_id=run_id, warnings=["decoded"]
        )
        self.result: dict[str, Any] = json.loads(json.dumps(result))
        self.attempts = read_trace(store, run_id)

    def replay(self) -> Replayed:
        return asyncio.run(replay_document(self.attempts, self.result))


def test_a_fold_comes_out_as_it_did_with_compressions_and_retries() -> None:
    """Every prompt, reply, warning and the summary."""
    replies = ["S1", LONG, "S2", UNAVAILABLE, UNCHANGED, LONG, LONG]
    run = Run(replies, MemoryStore())
    assert isinstance(run.outcome, Summarized)
    assert run.outcome.compressions == 2
    assert run.outcome.warnings
    assert run.replay() == Same(len(run.attempts))


def test_a_document_that_stopped_stops_at_the_same_chunk_and_a_later_run_goes_on_from_there() -> (
    None
):
    """Of the second run, the trace has its first summary and no chunk before."""
    store = MemoryStore()
    first = Run(["S1", "S2", UNAVAILABLE, UNAVAILABLE], store)
    second = Run(["S3"], store, "again")
    assert isinstance(first.outcome, Stopped) and first.outcome.failed_chunk == 3
    assert second.outcome.resumed_from == 2
    assert first.replay() == Same(3)
    assert second.replay() == Same(len(second.attempts))


def test_a_compression_that_an_earlier_run_left_undone_is_where_a_replay_begins() -> None:
    """The reply was kept; only its compression is in the second run's trace."""
    store = MemoryStore()
    quota = CallError(Problem.UNUSABLE, "quota exhausted")
    first, second = Run(["S1", LONG, quota], store), Run(["S2"], store, "again")
    assert second.attempts[0]["step"] == "compress"
    assert first.replay() == Same(3)
    assert second.replay() == Same(len(second.attempts))


def test_a_call_that_the_context_has_no_room_for_is_in_the_trace_and_comes_out_the_same() -> None:
    """It was never sent; that, too, is recorded with its reason."""
    run = Run(["word " * 200], MemoryStore(), context_tokens=250)
    assert isinstance(run.outcome, Stopped)
    assert run.attempts[-1]["requests"] == 0
    assert "not sent, being over the model's context" in run.attempts[-1]["call_error"]
    assert run.replay() == Same(len(run.attempts))


def test_a_prompt_or_an_output_that_is_another_now_is_told_with_its_chunk() -> None:
    """What was recorded was changed here, as a change of the code would."""
    run = Run(["S1", "S2"], MemoryStore())
    prompt, output = run.attempts[2], run.attempts[1]
    prompt["prompt"] = prompt["prompt"].replace("one part at a time", "part by part")
    found = run.replay()
    assert isinstance(found, Different)
    assert (found.what, found.label, found.calls) == ("prompt", "key/000003", 2)
    assert any(line.startswith("-You are summarizing a long report part by") for line in found.diff)
    output["output"] = "S2 as it was parsed then"
    found = run.replay()
    assert isinstance(found, Different)
    assert (found.what, found.label, found.step) == ("output", "key/000002", "refine")


def test_a_trace_with_a_gap_is_not_replayable() -> None:
    """It says which chunk there is no attempt at."""
    run = Run([], MemoryStore())
    del run.attempts[2]
    assert run.replay() == NotReplayable(0, "the trace has no attempt at chunk 3")


def test_an_interrupted_document_is_compared_up_to_there() -> None:
    """A replay can't be interrupted at the same moment."""
    run = Run(["S1"], MemoryStore())
    last = run.attempts[-1]
    last |= {"problem": "interrupted", "reply": None, "call_error": "interrupted"}
    found = run.replay()
    assert isinstance(found, NotReplayable)
    assert found.calls == len(run.attempts) - 1
    assert "interrupted" in found.reason


def test_a_replay_writes_nothing_and_counts_what_was_paid_then() -> None:
    """The store is not even known to it; requests and usage are facts of then."""
    store = MemoryStore()
    run = Run([UNAVAILABLE, "S1"], store)
    kept = dict(store.objects)
    assert run.replay() == Same(len(run.attempts))
    assert store.objects == kept
    run.result["model_calls"] += 1
    assert isinstance(run.replay(), Different)


words = st.sampled_from(["Ships", "Harbour", "<summary_so_far>", "</part>", "{{x}}", "é", "台帳"])
replies = st.one_of(
    st.lists(words, min_size=1, max_size=14).map(" ".join),
    st.sampled_from(
        [UNAVAILABLE, REFUSED, LONG, UNCHANGED, "", "ok\n\n```\nx\n```", "\ud800 lone"]
    ),
    st.just(Completion("cut he", "stub", "length", Usage(3, 2, 0.5))),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(replies, max_size=9), st.lists(replies, max_size=9))
def test_whatever_the_model_says_its_runs_come_out_as_they_did(
    first: list[Any], second: list[Any]
) -> None:
    """A run, and one that goes on from its checkpoints."""
    store = MemoryStore()
    for run in (Run(first, store), Run(second, store, "again")):
        if run.attempts:
            assert run.replay() == Same(len(run.attempts))


@pytest.mark.parametrize("field", SETTINGS.numbers)
def test_the_settings_of_the_run_are_in_each_attempt(field: str) -> None:
    """So that a replay needs nothing else than the trace and the result."""
    run = Run([], MemoryStore())
    assert {one["settings"][field] for one in run.attempts} == {getattr(SETTINGS, field)}
