from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from promptchain_dagster.models.base import CallError, Problem
from promptchain_dagster.refine.checkpoints import Checkpoints
from promptchain_dagster.refine.plan import Plan, plan_document
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.testing import ScriptedChatModel
from tests.support.folding import chunks_of, fold, index_sent
from tests.support.memory_store import MemoryStore

TEXTS = tuple(f"Part {number} of a long story." for number in range(1, 7))


def plan(
    texts: tuple[str, ...], store: MemoryStore, model: str = "scripted", **options: int
) -> Plan:
    return plan_document(
        chunks_of(*texts),
        RefineSettings(),
        ScriptedChatModel([], name=model),
        Checkpoints(store),
        **options,
    )


def test_a_new_document_needs_a_call_for_each_chunk_at_least() -> None:
    """At most, each chunk is compressed too, and each call made twice."""
    made = plan(TEXTS, MemoryStore())
    assert (made.documents, made.chunks, made.chunks_left) == (1, 6, 6)
    assert (made.least_calls, made.most_calls, made.longest) == (6, 24, 6)
    assert plan(TEXTS, MemoryStore(), retries=0).most_calls == 12


def test_what_checkpoints_cover_is_left_out() -> None:
    """A document under way, and one that is done."""
    store = MemoryStore()
    fold(chunks_of(*TEXTS[:4]), lambda prompt: f"S{index_sent(prompt)}", store)
    under_way = plan(TEXTS, store)
    assert (under_way.chunks, under_way.chunks_left, under_way.least_calls) == (6, 2, 2)
    done = plan(TEXTS[:4], store)
    assert done == Plan(documents=1, chunks=4)


def test_a_compression_that_is_left_counts_as_a_call() -> None:
    """Its refine call was paid for."""
    store = MemoryStore()
    quota = CallError(Problem.UNUSABLE, "quota exhausted")
    fold(chunks_of(*TEXTS), ["S1", "word " * 501, quota], store)
    made = plan(TEXTS, store)
    assert (made.chunks_left, made.least_calls, made.most_calls) == (4, 5, 18)


def test_a_model_without_a_price_has_no_cost() -> None:
    """Unknown is None, and makes the sum unknown; nothing to do costs nothing."""
    assert plan(TEXTS, MemoryStore(), model="no-such-model").cost_usd is None
    priced = plan(TEXTS, MemoryStore(), model="gpt-4o-mini")
    assert priced.cost_usd
    assert (priced + priced).cost_usd == pytest.approx(2 * priced.cost_usd)
    assert (priced + plan(TEXTS, MemoryStore(), model="no-such-model")).cost_usd is None
    assert (Plan() + priced).cost_usd == priced.cost_usd


@settings(max_examples=30, deadline=None)
@given(total=st.integers(1, 8), over=st.sets(st.integers(1, 8)), errs=st.sets(st.integers(1, 16)))
def test_a_run_makes_no_fewer_calls_than_planned_and_no_more(
    total: int, over: set[int], errs: set[int]
) -> None:
    """Whatever is over the cap, and whichever calls err once."""
    texts = tuple(f"Part {number}." for number in range(total))
    made = plan(texts, MemoryStore())
    place = 0
    erred: set[str] = set()

    def reply(prompt: str) -> str | Exception:
        nonlocal place
        if prompt not in erred:
            place += 1
            if place in errs:
                erred.add(prompt)
                return CallError(Problem.UNAVAILABLE, "503")
        index = index_sent(prompt)
        return "word " * 501 if index in over else f"S{index}"

    calls = fold(chunks_of(*texts), reply, MemoryStore()).model_calls
    assert made.least_calls <= calls <= made.most_calls


def test_tokens_are_estimated_from_chunks_prompt_and_cap() -> None:
    """A summary is no longer than its cap, nor than the text it covers."""
    short, long = plan(TEXTS, MemoryStore()), plan(("word " * 5000,) * 3, MemoryStore())
    assert short.output_tokens == 6 + 12 + 18 + 24 + 30 + 36
    assert long.output_tokens == 3 * 750
    assert long.input_tokens == 3 * (5000 + 100) + 2 * 750


def test_time_is_bounded_by_the_longest_document_and_by_what_is_in_flight() -> None:
    """Chunks of one document wait for each other."""
    assert Plan(least_calls=640, longest=10).seconds(0.2, 32) == pytest.approx(4.0)
    assert Plan(least_calls=640, longest=100).seconds(0.2, 32) == pytest.approx(20.0)
