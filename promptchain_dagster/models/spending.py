"""`Spending`: what the requests of one run take, held against the budgets before each is sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.models.base import CallError, Problem, Usage
from promptchain_dagster.models.budget import NOTHING_SPENT, Budget, Spent, passed
from promptchain_dagster.models.ledger import Ledger
from promptchain_dagster.models.prices import cost_usd

_PRICED_AS = 1000
"""Tokens; a larger number may have another price each."""


class Spending:
    """The run's own account, with the day's beside it where there is a `ledger`.

    Raises `InvalidInput`, naming the model, for a cost budget where it has no price.
    """

    def __init__(self, model: str, budget: Budget, ledger: Ledger | None) -> None:
        self._ledger = ledger
        self._spent = NOTHING_SPENT
        self._tokens_in_flight = 0
        self._cost_in_flight = 0.0
        accounts: list[tuple[str, Budget, Callable[[], Spent]]] = [
            ("this run", budget, lambda: self._spent)
        ]
        if ledger is not None:
            accounts.append(("all runs of this UTC day", ledger.day_budget, ledger.spent_today))
        self._accounts = [account for account in accounts if account[1]]
        costs_count = any(account[1].max_cost_usd is not None for account in self._accounts)
        self._prices = _prices_of(model) if costs_count or ledger is not None else None
        if costs_count and self._prices is None:
            raise InvalidInput(
                f"max_cost_usd is set, but model {model!r} has no known price: "
                "set max_tokens instead, or name another model"
            )

    def reserve(self, tokens: tuple[int, int]) -> Reservation | CallError:
        """Count a request of about that many input and output tokens as in flight, if it may be."""
        cost = self._cost(tokens)
        next_one = Spent(1, sum(tokens), cost)
        in_flight = Spent(0, self._tokens_in_flight, self._cost_in_flight)
        for name, budget, spent in self._accounts:
            reason = passed(budget, spent(), in_flight, next_one)
            if reason is not None:
                return CallError(Problem.BUDGET, f"the budget of {name} is exhausted: {reason}")
        self._tokens_in_flight += next_one.tokens
        self._cost_in_flight += cost
        return Reservation(next_one.tokens, cost)

    def settle(self, reserved: Reservation, tokens: tuple[int, int], usage: Usage) -> str | None:
        """Replace what was reserved by what it took, `tokens` as told or estimated; where the
        ledger, if there is one, has it."""
        self._tokens_in_flight -= reserved.tokens
        self._cost_in_flight -= reserved.cost_usd
        cost = usage.cost_usd if usage.cost_usd is not None else self._cost(tokens)
        spent = Spent(1, sum(tokens), cost, usage)
        self._spent += spent
        return self._ledger.add(spent) if self._ledger is not None else None

    def _cost(self, tokens: tuple[int, int]) -> float:
        if self._prices is None:
            return 0.0
        return tokens[0] * self._prices[0] + tokens[1] * self._prices[1]


@dataclass(frozen=True, slots=True)
class Reservation:
    """What one request in flight is expected to take."""

    tokens: int
    cost_usd: float


def _prices_of(model: str) -> tuple[float, float] | None:
    """US dollars for one token in and one out."""
    price_in, price_out = cost_usd(model, _PRICED_AS, 0), cost_usd(model, 0, _PRICED_AS)
    if price_in is None or price_out is None:
        return None
    return price_in / _PRICED_AS, price_out / _PRICED_AS
