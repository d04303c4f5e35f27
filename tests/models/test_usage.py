"""Sums of usage: what is known is added up, in any order, and what is not is counted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from promptchain_dagster.models import Usage
from promptchain_dagster.models.base import NO_USAGE, UNKNOWN_USAGE, to_the_token
from promptchain_dagster.models.prices import cost_usd

tokens = st.integers(0, 2_000_000)


def priced(tokens_in: int, tokens_out: int) -> Usage:
    """As a model's reply has it."""
    return Usage(tokens_in, tokens_out, cost_usd("gpt-4o-mini", tokens_in, tokens_out))


unpriced = st.builds(Usage, tokens, tokens, st.none())
any_usage = st.one_of(st.builds(priced, tokens, tokens), unpriced, st.just(UNKNOWN_USAGE))


@given(st.lists(any_usage, max_size=30), st.randoms(use_true_random=False), st.integers(0, 30))
def test_the_same_parts_come_to_the_same_sum_in_any_order_and_grouping(
    parts: list[Usage], rng: object, at: int
) -> None:
    """To the last digit: a day is the sum of its runs, a run the sum of its documents."""
    total = sum(parts, NO_USAGE)
    assert sum(parts[:at], NO_USAGE) + sum(parts[at:], NO_USAGE) == total
    shuffled = list(parts)
    rng.shuffle(shuffled)  # type: ignore[attr-defined]
    assert sum(shuffled, NO_USAGE) == total
    assert total.calls_without_usage == parts.count(UNKNOWN_USAGE)


def test_what_nobody_knows_is_null_and_a_single_token_is_not_nothing() -> None:
    """Never 0 for what was not told."""
    assert NO_USAGE + UNKNOWN_USAGE == UNKNOWN_USAGE
    assert UNKNOWN_USAGE + Usage(5, 2, 0.5) == Usage(5, 2, 0.5, 1)
    assert to_the_token(cost_usd("gpt-4o-mini", 1, 0)) == cost_usd("gpt-4o-mini", 1, 0) != 0
