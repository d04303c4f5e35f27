"""How fast a run sends its requests, in virtual time, and over the real SDK."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.models import (
    Call,
    CallError,
    Calls,
    Completion,
    ModelSettings,
    Problem,
    Usage,
    connect,
)
from promptchain_dagster.testing import Reply, ScriptedChatModel
from tests.support.chat_server import Answer, ChatServer, Request, error, reply
from tests.support.virtual_time import now, run

SLOW_DOWN = CallError(Problem.UNAVAILABLE, "HTTP 429", rate_limited=True)


def asks_to_wait(seconds: float, *, rate_limited: bool = True) -> CallError:
    """A 429, or another error, with a `Retry-After`."""
    return CallError(Problem.UNAVAILABLE, "not now", retry_after=seconds, rate_limited=rate_limited)


class Endpoint:
    """Answers after `seconds`, keeping when each request came and how many were under way."""

    def __init__(
        self,
        seconds: float | list[float] = 1.0,
        answer: Callable[[int, str], Reply] = lambda _number, _prompt: "ok",
    ) -> None:
        self._seconds = seconds if isinstance(seconds, list) else [seconds]
        self._answer = answer
        self.sent: list[float] = []
        self.prompts: list[str] = []
        self.failed: list[tuple[float, float]] = []
        self.under_way: list[int] = []
        self._now_under_way = 0

    async def __call__(self, prompt: str) -> Reply:
        number = len(self.sent)
        self.sent.append(now())
        self.prompts.append(prompt)
        self._now_under_way += 1
        self.under_way.append(self._now_under_way)
        try:
            await asyncio.sleep(self._seconds[number % len(self._seconds)])
        finally:
            self._now_under_way -= 1
        answer = self._answer(number, prompt)
        if isinstance(answer, CallError) and answer.retry_after:
            self.failed.append((now(), now() + answer.retry_after))
        return answer


def ask_all(endpoint: Endpoint, prompts: list[str], **options: Any) -> list[Call]:
    """All prompts at once, in one run."""

    async def main() -> list[Call]:
        calls = Calls(ScriptedChatModel(endpoint), clock=now, **options)
        return await asyncio.gather(*(calls.complete(prompt) for prompt in prompts))

    return run(main())


def most_in_a_minute(sent: list[float], sizes: list[int] | None = None) -> int:
    """The most that was sent in any 60 s."""
    sizes = sizes or [1] * len(sent)
    pairs = list(zip(sent, sizes, strict=True))
    return max(sum(size for at, size in pairs if start <= at < start + 60) for start in sent)


seconds = st.floats(0.1, 90, allow_nan=False)


@settings(deadline=None)
@given(
    count=st.integers(1, 40),
    limit=st.integers(1, 12),
    took=st.lists(seconds, min_size=1, max_size=5),
)
def test_no_more_requests_than_the_limit_in_any_minute(
    count: int, limit: int, took: list[float]
) -> None:
    """However long each takes; and as many as that where there are so many."""
    endpoint = Endpoint(took)
    made = ask_all(
        endpoint, [str(n) for n in range(count)], requests_per_minute=limit, timeout_seconds=100
    )
    assert all(call.error is None for call in made)
    assert most_in_a_minute(endpoint.sent) == min(count, limit)


@settings(deadline=None)
@given(sizes=st.lists(st.integers(1, 3000), min_size=1, max_size=25), limit=st.integers(100, 2000))
@example(sizes=[3000, 10, 3000], limit=100)
def test_no_more_tokens_than_the_limit_in_any_minute(sizes: list[int], limit: int) -> None:
    """A prompt above the whole limit is sent alone in its minute: it neither hangs nor fails."""

    def answer(_number: int, prompt: str) -> Reply:
        return Completion("ok", "stub", usage=Usage(len(prompt) // 4, 0, None))

    endpoint = Endpoint(1.0, answer)
    made = ask_all(endpoint, ["x" * (4 * size) for size in sizes], tokens_per_minute=limit)
    assert all(call.error is None for call in made)
    took = [len(prompt) // 4 for prompt in endpoint.prompts]
    for start in endpoint.sent:
        inside = [
            size for at, size in zip(endpoint.sent, took, strict=True) if start <= at < start + 60
        ]
        assert sum(inside) <= limit or len(inside) == 1


def test_what_replies_really_took_counts_too() -> None:
    """A prompt of 1 token that took 1,000 fills its minute; the next are expected to as well."""

    def answer(_number: int, _prompt: str) -> Reply:
        return Completion("ok", "stub", usage=Usage(1, 999, None))

    endpoint = Endpoint(1.0, answer)
    ask_all(endpoint, ["x"] * 4, tokens_per_minute=1000, max_in_flight=1)
    assert endpoint.sent == pytest.approx([0, 61, 121, 181], abs=0.1)


def test_what_was_estimated_too_high_is_given_back() -> None:
    """100 prompts that look like 25 tokens each, and take one, fit a limit of 200."""

    def answer(_number: int, _prompt: str) -> Reply:
        return Completion("ok", "stub", usage=Usage(1, 0, None))

    endpoint = Endpoint(0.1, answer)
    ask_all(endpoint, ["x" * 100] * 100, tokens_per_minute=200, max_in_flight=2)
    assert endpoint.sent[-1] < 60


@settings(deadline=None)
@given(
    count=st.integers(1, 60),
    places=st.integers(1, 12),
    took=st.lists(seconds, min_size=1, max_size=5),
    faults=st.sets(st.integers(0, 80), max_size=30),
    wait=st.sampled_from([None, 0.5, 20.0]),
)
def test_never_more_in_flight_than_the_limit_and_nobody_sends_before_the_wait_is_over(
    count: int, places: int, took: list[float], faults: set[int], wait: float | None
) -> None:
    """Whatever is answered when, and each call is made as often as it may be, and no more."""
    fault = asks_to_wait(wait) if wait else SLOW_DOWN
    endpoint = Endpoint(took, lambda number, _: fault if number in faults else "ok")
    made = ask_all(
        endpoint, [str(n) for n in range(count)], max_in_flight=places, timeout_seconds=100
    )
    assert max(endpoint.under_way) <= places
    for failed_at, until in endpoint.failed:
        assert not [at for at in endpoint.sent if failed_at < at < until]
    assert sum(call.requests for call in made) == len(endpoint.sent)
    assert all(times <= 2 for times in Counter(endpoint.prompts).values())
    assert all(call.error is None or call.requests == 2 for call in made)


@pytest.mark.parametrize("rate_limited", [True, False])
def test_one_retry_after_holds_for_every_caller(rate_limited: bool) -> None:
    """Also for those who had not been told: nobody sends before it is over."""
    fault = asks_to_wait(30, rate_limited=rate_limited)
    endpoint = Endpoint(1.0, lambda number, _: fault if number == 0 else "ok")
    made = ask_all(endpoint, [str(n) for n in range(9)], max_in_flight=3)
    assert all(call.error is None for call in made)
    assert len(endpoint.sent) == 10
    assert endpoint.sent[:3] == [0, 0, 0]
    assert all(at >= 31 for at in endpoint.sent[3:])


def test_a_429_without_retry_after_holds_up_the_whole_run_too() -> None:
    """By the normal delay, twice as long each time in a row."""
    endpoint = Endpoint(0.01, lambda number, _: SLOW_DOWN if number < 3 else "ok")
    ask_all(endpoint, [str(n) for n in range(6)], max_in_flight=1, retries=3)
    waits = [b - a for a, b in pairwise(endpoint.sent)]
    assert 0.5 <= waits[0] <= 1.2
    assert 1.0 <= waits[1] <= 2.2
    assert 2.0 <= waits[2] <= 4.2
    assert max(waits[3:]) < 0.1


def test_another_fault_holds_up_its_own_call_alone() -> None:
    """A 500 says nothing about the others."""
    fault = CallError(Problem.UNAVAILABLE, "HTTP 500")
    endpoint = Endpoint(0.01, lambda number, _: fault if number == 0 else "ok")
    ask_all(endpoint, [str(n) for n in range(20)], max_in_flight=2)
    assert sorted(endpoint.sent)[-2] < 0.3


@pytest.mark.parametrize("places", [64, 16, 2])
def test_a_server_that_is_away_costs_a_few_calls_and_the_others_wait(places: int) -> None:
    """It goes after 100 of 200 calls, for 30 s: lost are those alone that asked after it."""
    away = CallError(Problem.UNAVAILABLE, "connection refused")
    endpoint = Endpoint(0.1, lambda number, _: away if number >= 100 and now() < 30 else "ok")
    made = ask_all(endpoint, [str(n) for n in range(200)], max_in_flight=places)
    assert sum(call.error is not None for call in made) <= 10
    assert sum(at < 30 for at in endpoint.sent[100:]) <= 10 + 2 * places
    assert max(endpoint.sent) < 90


def test_the_first_reply_of_a_server_that_was_away_opens_all_places_again() -> None:
    """It was no want of room that held the run up."""
    away = CallError(Problem.UNAVAILABLE, "HTTP 503")
    endpoint = Endpoint(1.0, lambda _number, _prompt: away if now() < 20 else "ok")
    made = ask_all(endpoint, [str(n) for n in range(60)], max_in_flight=8)
    rounds = list(Counter(round(at, 3) for at in endpoint.sent if at > 20).values())
    assert sum(call.error is not None for call in made) <= 8
    assert rounds[0] == 1
    assert set(rounds[1:-1]) == {8}


def test_in_flight_is_halved_once_for_requests_that_failed_together_and_grows_again() -> None:
    """Eight fail at once: four places, not none; then one more a round, up to eight."""
    endpoint = Endpoint(1.0, lambda number, _: asks_to_wait(10) if number < 8 else "ok")
    made = ask_all(endpoint, [str(n) for n in range(60)], max_in_flight=8)
    assert all(call.error is None for call in made)
    rounds = list(Counter(endpoint.sent).values())
    assert rounds[:2] == [8, 4]
    assert all(b - a in (0, 1) for a, b in pairwise(rounds[1:-1]))
    assert max(rounds[1:]) == 8


def test_without_a_limit_of_its_own_the_run_shrinks_from_what_was_in_flight() -> None:
    """All 40 at once, half of them after they were refused."""
    endpoint = Endpoint(1.0, lambda number, _: asks_to_wait(10) if number < 40 else "ok")
    made = ask_all(endpoint, [str(n) for n in range(40)])
    assert all(call.error is None for call in made)
    assert list(Counter(endpoint.sent).values()) == [40, 20, 20]


def test_first_come_first_served() -> None:
    """A small prompt doesn't overtake a large one that waits for room."""
    prompts = ["a" * 40, "b" * 4000, "c", "d" * 2000, "e"]
    endpoint = Endpoint(0.1)
    ask_all(endpoint, prompts, tokens_per_minute=1000)
    assert [prompt[0] for prompt in endpoint.prompts] == list("abcde")


def test_e3_a_wait_beyond_the_limit_ends_the_run() -> None:
    """One request in all: the others would be told the same."""
    endpoint = Endpoint(1.0, lambda _number, _prompt: asks_to_wait(3600))
    made = ask_all(endpoint, [str(n) for n in range(20)], max_in_flight=1)
    assert len(endpoint.sent) == 1
    assert {call.error for call in made} == {made[0].error}
    assert made[0].error is not None
    assert made[0].error.problem is Problem.UNUSABLE
    assert "3600 s" in str(made[0].error)


def test_e2_the_end_of_the_run_is_not_waited_for_in_the_queue() -> None:
    """Those who wait for their minute learn it at once."""

    wrong_key = CallError(Problem.UNUSABLE, "wrong key")

    async def main() -> float:
        endpoint = Endpoint(1.0, lambda _number, _prompt: wrong_key)
        calls = Calls(ScriptedChatModel(endpoint), clock=now, requests_per_minute=1)
        await asyncio.gather(*(calls.complete(str(n)) for n in range(20)))
        assert len(endpoint.sent) == 1
        return now()

    assert run(main()) == pytest.approx(1.0)


async def _cancel_in_turn(tasks: list[asyncio.Task[Call]], which: set[int]) -> list[Call]:
    await asyncio.sleep(0.5)
    for number in sorted(which):
        tasks[number].cancel()
        await asyncio.sleep(0.1)
    return [
        call
        for call in await asyncio.gather(*tasks, return_exceptions=True)
        if isinstance(call, Call)
    ]


@settings(deadline=None)
@given(which=st.sets(st.integers(0, 11)), per_minute=st.sampled_from([None, 2, 100]))
def test_a_cancelled_caller_leaves_nothing_behind(which: set[int], per_minute: int | None) -> None:
    """Head of the queue or not, in flight or not: the others go on, and no task is left."""
    endpoint = Endpoint(5.0, lambda number, _: asks_to_wait(7) if number == 1 else "ok")

    async def main() -> list[Call]:
        calls = Calls(
            ScriptedChatModel(endpoint), clock=now, max_in_flight=2, requests_per_minute=per_minute
        )
        tasks = [asyncio.ensure_future(calls.complete(str(n))) for n in range(12)]
        made = await _cancel_in_turn(tasks, which)
        assert (await calls.complete("after")).error is None
        return made

    made = run(main())
    assert len(made) == 12 - len(which)
    assert all(call.error is None for call in made)
    assert max(endpoint.under_way) <= 2


@pytest.mark.parametrize("name", ["requests_per_minute", "tokens_per_minute"])
def test_a_limit_that_lets_nothing_through_is_refused(name: str) -> None:
    """By name and value."""
    with pytest.raises(InvalidInput, match=f"{name} is 0"):
        ask_all(Endpoint(), ["x"], **{name: 0})


async def _at_once(_seconds: float) -> None:
    await asyncio.sleep(0)


def test_a_run_finishes_at_an_endpoint_that_turns_a_third_of_the_calls_away() -> None:
    """Over the real SDK: each of those is asked again once, and the requests add up."""
    asked: Counter[str] = Counter()

    def answer(request: Request) -> Answer:
        asked[request.prompt] += 1
        if int(request.prompt) % 3 == 0 and asked[request.prompt] == 1:
            return error(429, headers={"Retry-After": "7"})
        return reply(f"reply to {request.prompt}")

    async def ask(url: str) -> tuple[list[Call], Calls]:
        async with connect(ModelSettings(model="stub", base_url=url)) as model:
            calls = Calls(model, max_in_flight=4, sleep=_at_once)
            work: list[Awaitable[Call]] = [calls.complete(str(n)) for n in range(90)]
            return await asyncio.gather(*work), calls

    with ChatServer(answer) as server:
        made, calls = asyncio.run(ask(server.url))
    texts = [call.completion.text for call in made if call.completion]
    assert texts == [f"reply to {n}" for n in range(90)]
    assert calls.requests == len(server.requests) == 120
    assert [call.requests for call in made] == [2 if n % 3 == 0 else 1 for n in range(90)]


@settings(deadline=None)
@given(
    limit=st.integers(2, 60),
    sharers=st.integers(1, 2),
    ended=st.floats(1, 200),
    between=st.floats(0, 70),
)
def test_a_share_is_passed_on_from_run_to_run_without_a_burst(
    limit: int, sharers: int, ended: float, between: float
) -> None:
    """The first run is killed in the middle; over both, no minute has more than the share, and one
    request for where they meet. Each goes on at the full rate."""
    endpoint = Endpoint(0.0)

    async def start(seconds: float) -> None:
        calls = Calls(
            ScriptedChatModel(endpoint), clock=now, requests_per_minute=limit, sharers=sharers
        )
        asked = asyncio.gather(*(calls.complete(str(n)) for n in range(5 * limit)))
        await asyncio.wait({asked}, timeout=seconds)
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)

    async def main() -> None:
        await start(ended)
        await asyncio.sleep(between)
        await start(180)

    run(main())
    share = limit // sharers
    assert most_in_a_minute(endpoint.sent) <= share + 1
    second = [at for at in endpoint.sent if at >= ended + between]
    assert len(second) >= 2 * share


def test_a_limit_too_small_to_be_shared_is_refused() -> None:
    """By name and value, and what it is too small for."""
    with pytest.raises(InvalidInput, match=r"tokens_per_minute is 7, must be 8 or more: .* pool"):
        ask_all(Endpoint(), ["x"], tokens_per_minute=7, sharers=8)


def test_a_share_holds_for_tokens_too() -> None:
    """Four runs at once, each of a quarter: the whole limit over all, and no more."""
    took: list[tuple[float, int]] = []

    async def answer(_prompt: str) -> Reply:
        took.append((now(), 100))
        return Completion("ok", "stub", usage=Usage(60, 40, 0.0))

    async def one_run() -> None:
        calls = Calls(
            ScriptedChatModel(answer), clock=now, tokens_per_minute=4000, sharers=4, max_in_flight=1
        )
        for _ in range(30):
            await calls.complete("x" * 240)

    async def main() -> None:
        await asyncio.gather(*(one_run() for _ in range(4)))

    run(main())
    most = most_in_a_minute([at for at, _ in took], [size for _, size in took])
    assert 3600 <= most <= 4400
