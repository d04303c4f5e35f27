"""What a run may spend: checked before every request, and the run ended when it is spent."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.models import Budget, Call, CallError, Calls, Completion, Problem, Usage
from promptchain_dagster.models.base import PROBLEMS, UNKNOWN_USAGE
from promptchain_dagster.refine.checkpoints import Checkpoints
from promptchain_dagster.refine.collection import summarize_collection
from promptchain_dagster.refine.documents import Document
from promptchain_dagster.refine.outcome import DocumentOutcome, NotStarted, Stopped, Summarized
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.refine.source import Source
from promptchain_dagster.testing import Reply, ScriptedChatModel
from promptchain_dagster.tokens import get_encoder
from tests.support.folding import index_sent
from tests.support.memory_store import MemoryStore
from tests.support.virtual_time import now, run

PRICED = "gpt-4o-mini"


class Spender:
    """A model whose replies take what `usages` says, in turn, and a second each.

    `came_back` holds the tokens of all replies that had come when each request was sent.
    """

    def __init__(self, *usages: Usage, text: str = "ok") -> None:
        self._usages, self._text = usages, text
        self.requests = 0
        self.came_back: list[int] = []
        self._tokens = 0

    async def __call__(self, _prompt: str) -> Reply:
        usage = self._usages[self.requests % len(self._usages)]
        self.requests += 1
        self.came_back.append(self._tokens)
        await asyncio.sleep(1)
        self._tokens += (usage.input_tokens or 0) + (usage.output_tokens or 0)
        return Completion(self._text, "stub", usage=usage)


def ask(
    model: Any, count: int, budget: Budget, *, name: str = PRICED, prompt: str = "x", **options: Any
) -> tuple[list[Call], Calls]:
    """That many calls at once, in one run."""

    async def main() -> tuple[list[Call], Calls]:
        scripted = ScriptedChatModel(model, name=name)
        calls = Calls(scripted, budget=budget, clock=now, **options)
        return await asyncio.gather(*(calls.complete(prompt) for _ in range(count))), calls

    return run(main())


def test_the_run_ends_when_its_tokens_are_spent() -> None:
    """Nine of ten tokens each: the twelfth call would pass 100, and no later one is sent."""
    model = Spender(Usage(8, 1, 0.0))
    made, calls = ask(model, 20, Budget(max_tokens=100), max_in_flight=1)
    assert model.requests == calls.requests == 11
    assert [call.error is None for call in made] == [True] * 11 + [False] * 9
    assert calls.ended_by is not None
    assert {call.error for call in made[11:]} == {calls.ended_by}
    assert [call.requests for call in made[11:]] == [0] * 9


def test_the_error_says_budget_limit_and_spent() -> None:
    """And is a problem of its own, which ends the run."""
    _, calls = ask(Spender(Usage(60, 20, 0.0)), 3, Budget(max_tokens=100), max_in_flight=1)
    assert calls.ended_by is not None
    assert calls.ended_by.problem is Problem.BUDGET
    assert PROBLEMS[Problem.BUDGET].ends_run
    assert "budget of this run" in str(calls.ended_by)
    assert "max_tokens is 100; 80 spent" in str(calls.ended_by)


def test_the_run_ends_when_its_dollars_are_spent() -> None:
    """By the cost that the replies told."""
    model = Spender(Usage(10, 10, 0.30))
    _, calls = ask(model, 9, Budget(max_cost_usd=1.0), max_in_flight=1)
    assert model.requests == 4
    assert calls.ended_by is not None
    assert "max_cost_usd is 1; 1.2 spent" in str(calls.ended_by)


@settings(deadline=None)
@given(
    usages=st.lists(
        st.builds(Usage, st.integers(1, 60), st.integers(0, 60), st.just(0.0)),
        min_size=1,
        max_size=8,
    ),
    limit=st.integers(1, 600),
    places=st.integers(1, 6),
)
def test_a_budget_is_never_overshot_by_more_than_what_was_in_flight(
    usages: list[Usage], limit: int, places: int
) -> None:
    """Whenever a request was sent, what had come back was within the limit, and room was left."""
    model = Spender(*usages)
    made, calls = ask(model, 40, Budget(max_tokens=limit), max_in_flight=places)
    assert all(tokens < limit for tokens in model.came_back)
    assert calls.requests == model.requests == sum(call.error is None for call in made)


def test_what_is_in_flight_counts_before_it_comes_back() -> None:
    """Ten prompts of 250 tokens at once, for a budget of 1,000: four are sent, not ten."""
    model = Spender(Usage(250, 0, 0.0))
    ask(model, 10, Budget(max_tokens=1000), prompt="x" * 1000)
    assert model.requests == 4


@pytest.mark.parametrize("usage", [UNKNOWN_USAGE, Usage(None, 3, None, 1), Usage(9, None, None, 1)])
def test_a_reply_without_usage_counts_by_estimate(usage: Usage) -> None:
    """A server that tells nothing does not get round a budget, of tokens or of dollars."""
    for budget in (Budget(max_tokens=5000), Budget(max_cost_usd=0.002)):
        model = Spender(usage, text="word " * 400)
        _, calls = ask(model, 500, budget, prompt="word " * 400, max_in_flight=1)
        assert 2 < model.requests < 500
        assert calls.ended_by is not None


def test_requests_that_fail_without_an_answer_count_too() -> None:
    """A timeout may have been billed; a request that was refused was not."""

    async def timeout(_prompt: str) -> Reply:
        return CallError(Problem.UNAVAILABLE, "no reply", usage=UNKNOWN_USAGE)

    _, calls = ask(timeout, 50, Budget(max_tokens=1000), prompt="x" * 400, max_in_flight=1)
    assert calls.requests == 10

    async def refused(_prompt: str) -> Reply:
        return CallError(Problem.REFUSED, "no")

    _, calls = ask(refused, 50, Budget(max_tokens=1000), prompt="x" * 400, max_in_flight=1)
    assert (calls.requests, calls.ended_by) == (50, None)


def test_a_call_that_was_cancelled_counts() -> None:
    """The provider may have worked, and bills for it."""

    async def main() -> Calls:
        calls = Calls(
            ScriptedChatModel(Spender(Usage(1, 1, 0.0))), budget=Budget(max_tokens=150), clock=now
        )
        task = asyncio.ensure_future(calls.complete("x" * 400))
        await asyncio.sleep(0.5)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await calls.complete("x" * 400)
        return calls

    calls = run(main())
    assert calls.requests == 1
    assert calls.ended_by is not None


def test_a_retry_is_held_against_the_budget_as_any_request() -> None:
    """The call then ends for the budget, with the request that it made."""

    async def fails(_prompt: str) -> Reply:
        return CallError(Problem.UNAVAILABLE, "cut", usage=Usage(90, 0, 0.0))

    (made,), _ = ask(fails, 1, Budget(max_tokens=100), prompt="x" * 200)
    assert made.requests == 1
    assert made.error is not None
    assert made.error.problem is Problem.BUDGET


def test_a_cost_budget_for_a_model_without_a_price_is_refused() -> None:
    """At the start, naming the model."""
    with pytest.raises(InvalidInput, match="'no-such-model' has no known price"):
        Calls(ScriptedChatModel([], name="no-such-model"), budget=Budget(max_cost_usd=1.0))
    Calls(ScriptedChatModel([], name="no-such-model"), budget=Budget(max_tokens=1))


@pytest.mark.parametrize("name", ["max_cost_usd", "max_tokens"])
@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf")])
def test_a_budget_that_is_no_amount_is_refused(name: str, value: float) -> None:
    """By name and value."""
    with pytest.raises(InvalidInput, match=f"{name} is {value}"):
        Budget(**{name: value})  # pyright: ignore[reportArgumentType]


def _collection(budget: Budget, store: MemoryStore) -> tuple[dict[str, DocumentOutcome], int]:
    """One run over five documents of three chunks, one after another; and its requests."""
    model = ScriptedChatModel(lambda prompt: f"S{index_sent(prompt)}")
    calls = Calls(model, budget=budget)
    outcomes: dict[str, DocumentOutcome] = {}

    def source(key: str) -> Source:
        text = "\n\n".join(f"{key} part {i}: " + "and so it went on " * 3 for i in (1, 2, 3))
        return Source(key, lambda: Document(f"/docs/{key}", key, text, ()))

    async def done(source: Source, outcome: DocumentOutcome) -> None:
        outcomes[source.key] = outcome

    asyncio.run(
        summarize_collection(
            [source(f"d{n}") for n in range(5)],
            RefineSettings(chunk_tokens=25),
            calls,
            Checkpoints(store),
            get_encoder("o200k_base"),
            on_document=done,
            documents_in_flight=1,
        )
    )
    return outcomes, calls.requests


def test_a_collection_whose_budget_is_spent_keeps_what_is_done_and_starts_nothing_more() -> None:
    """The next run goes on where this one stopped, and pays for nothing twice."""
    store = MemoryStore()
    outcomes, requests = _collection(Budget(max_tokens=500), store)
    kinds = [type(outcome) for outcome in outcomes.values()]
    stopped = kinds.index(Stopped)
    assert kinds == [Summarized] * stopped + [Stopped] + [NotStarted] * (4 - stopped)
    last = outcomes[f"d{stopped}"]
    assert isinstance(last, Stopped)
    assert last.ends_run
    assert 0 < requests < 15
    outcomes, more = _collection(Budget(max_tokens=100_000), store)
    assert all(isinstance(outcome, Summarized) for outcome in outcomes.values())
    assert requests + more == 15
