"""About what documents would cost that nobody has read."""

from __future__ import annotations

import pytest

from promptchain_dagster.library.estimate import estimate
from promptchain_dagster.models.prices import cost_usd
from promptchain_dagster.refine.settings import RefineSettings

SETTINGS = RefineSettings(chunk_tokens=1000, max_words=100)


def test_calls_and_tokens_grow_with_the_bytes() -> None:
    """A call for each chunk, a chunk being of so many tokens, a token of about 4 bytes."""
    plan = estimate([100, 4_000, 40_000], SETTINGS, "gpt-4o-mini")
    assert (plan.documents, plan.chunks_left, plan.least_calls) == (3, 12, 12)
    assert plan.longest == 10
    assert 11_025 < plan.input_tokens < 20_000
    assert 0 < plan.output_tokens <= 12 * 150
    assert plan.cost_usd == cost_usd("gpt-4o-mini", plan.input_tokens, plan.output_tokens)


@pytest.mark.parametrize("size", [0, 1, 3, 4])
def test_a_tiny_document_takes_a_call_at_most(size: int) -> None:
    """And no more words than it has."""
    plan = estimate([size], SETTINGS, "gpt-4o-mini")
    assert plan.least_calls == 1
    assert plan.output_tokens <= 1


def test_without_a_price_the_cost_is_unknown_and_nothing_costs_nothing() -> None:
    """Unknown is None, never 0."""
    assert estimate([4_000], SETTINGS, "of-no-list").cost_usd is None
    assert estimate([], SETTINGS, "of-no-list").cost_usd == 0.0
