"""What may be spent, what was, and the check between the two that stands before every request."""

from __future__ import annotations

from dataclasses import dataclass

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.models.base import NO_USAGE, Usage


@dataclass(frozen=True)
class Budget:
    """The most that may be spent, in US dollars and in tokens (input and output together).

    None sets no limit. Raises `InvalidInput` for a limit that is not more than 0.
    """

    max_cost_usd: float | None = None
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_cost_usd", "max_tokens"):
            limit = getattr(self, name)
            if limit is not None and not 0 < limit < float("inf"):
                raise InvalidInput(f"{name} is {limit}, must be more than 0")

    def __bool__(self) -> bool:
        return self.max_cost_usd is not None or self.max_tokens is not None


@dataclass(frozen=True, slots=True)
class Spent:
    """What requests took. `tokens` and `cost_usd` count by estimate what was not told, so that no
    budget is passed by replies without usage; `usage` holds only what was told."""

    requests: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    usage: Usage = NO_USAGE

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.requests + other.requests,
            self.tokens + other.tokens,
            self.cost_usd + other.cost_usd,
            self.usage + other.usage,
        )


NOTHING_SPENT = Spent()


def passed(budget: Budget, spent: Spent, in_flight: Spent, next_one: Spent) -> str | None:
    """Which limit `next_one` would pass, with limit, spent and in flight; None where it fits.

    `in_flight` and `next_one` are estimates, and count as if they were spent.
    """
    tokens = spent.tokens + in_flight.tokens + next_one.tokens
    if budget.max_tokens is not None and tokens > budget.max_tokens:
        return (
            f"max_tokens is {budget.max_tokens:,}; {spent.tokens:,} spent, about "
            f"{in_flight.tokens:,} in flight, and the next request takes about "
            f"{next_one.tokens:,}"
        )
    cost = spent.cost_usd + in_flight.cost_usd + next_one.cost_usd
    if budget.max_cost_usd is not None and cost > budget.max_cost_usd:
        return (
            f"max_cost_usd is {budget.max_cost_usd:g}; {spent.cost_usd:.4g} spent, about "
            f"{in_flight.cost_usd:.4g} in flight, and the next request takes about "
            f"{next_one.cost_usd:.2g}"
        )
    return None
