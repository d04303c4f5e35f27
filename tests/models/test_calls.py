"""`Calls`: one owner of retries, the in-flight limit, and what a reply is judged to be."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.models import Call, CallError, Calls, Completion, Problem, Usage
from promptchain_dagster.models.base import UNKNOWN_USAGE
from promptchain_dagster.testing import Reply, ScriptedChatModel

USAGE = Usage(100, 200, 0.5)
UNAVAILABLE = CallError(Problem.UNAVAILABLE, "it broke")
UNUSABLE = CallError(Problem.UNUSABLE, "no such parameter")


def said(text: str = "", finish_reason: str | None = "stop", **rest: Any) -> Completion:
    """A reply of 200 tokens."""
    return Completion(text, "stub", finish_reason, USAGE, **rest)


async def _no_wait(seconds: float) -> None:
    await asyncio.sleep(0)


def call(*replies: Reply, cap: int | None = None, at_gate: bool = False, **options: Any) -> Call:
    """One call to a model with that script, without waiting between requests."""
    model = ScriptedChatModel(replies, max_output_tokens=cap)
    return asyncio.run(Calls(model, sleep=_no_wait, **options).complete("x", at_gate=at_gate))


def problem(made: Call) -> Problem:
    """What ended the call."""
    assert made.error is not None
    return made.error.problem


def test_a14_a_cut_reply_is_an_output_limit_and_not_repeated_unchanged() -> None:
    """Without a cap of ours there is nothing to enlarge; the cut text is kept for the trace."""
    made = call(said('{"sections": ["A', "length"), retries=3)
    assert problem(made) is Problem.OUTPUT_LIMIT
    assert made.requests == 1
    assert made.completion is not None
    assert made.completion.text == '{"sections": ["A'
    assert "output limit" in str(made.error)


def test_a14_a_cut_reply_is_repeated_with_twice_the_cap_where_the_cap_was_ours() -> None:
    """And both requests count."""
    model = ScriptedChatModel([said("half", "length"), said("whole")], max_output_tokens=200)
    made = asyncio.run(Calls(model).complete("x"))
    assert made.error is None
    assert model.output_caps == [200, 400]
    assert (made.requests, made.usage) == (2, Usage(200, 400, 1.0))


@pytest.mark.parametrize("second", [UNUSABLE, UNAVAILABLE, said("longer", "length")])
def test_a14_a_larger_cap_that_helps_nothing_leaves_the_output_limit(second: Reply) -> None:
    """A refused cap must not end the run: it was ours, and no other call would send it."""
    model = ScriptedChatModel([said("half", "length"), second, said("next")], max_output_tokens=9)
    calls = Calls(model)

    async def two_calls() -> tuple[Call, Call]:
        return await calls.complete("x"), await calls.complete("y")

    first, next_one = asyncio.run(two_calls())
    assert problem(first) is Problem.OUTPUT_LIMIT
    assert next_one.error is None


def test_a14_a_cap_grows_no_further_than_the_context() -> None:
    """Where the cap is the whole context already, the call is not repeated."""
    model = ScriptedChatModel(lambda _: said("x", "length"), max_output_tokens=8, context_tokens=9)
    asyncio.run(Calls(model, retries=3).complete("x"))
    assert model.output_caps == [8, 9]


@pytest.mark.parametrize("text", ["half an outline", ""])
def test_a14_at_a_gate_a_cut_reply_goes_back_to_the_gate(text: str) -> None:
    """It is a rejected attempt there, so the call is not repeated."""
    made = call(said(text, "length"), cap=100, at_gate=True)
    assert (problem(made), made.requests) == (Problem.OUTPUT_LIMIT, 1)


def test_d5_a_cap_eaten_by_reasoning_is_said_to_be_so() -> None:
    """The message says how much, and what to change; nothing is repeated unchanged."""
    made = call(said("", "length", reasoning_tokens=199), retries=3)
    assert (problem(made), made.requests) == (Problem.OUTPUT_LIMIT, 1)
    assert "reasoning (199 of 200 tokens)" in str(made.error)
    assert "larger" in str(made.error)
    assert "empty" not in str(made.error)


def test_a15_a_refusal_ends_the_call_with_its_text() -> None:
    """Whatever the finish reason and the text beside it; the run goes on."""
    for reply in (
        said("", refusal="I cannot help with that."),
        said("Well,", "length", refusal="I cannot help with that."),
        said("", None, refusal="I cannot help with that."),
    ):
        made = call(reply, retries=3)
        assert (problem(made), made.requests) == (Problem.REFUSED, 1)
        assert "I cannot help with that." in str(made.error)


def test_a15_a_content_filter_ends_the_call() -> None:
    """With or without a text."""
    for text in ("", "The first half"):
        made = call(said(text, "content_filter"), retries=3)
        assert (problem(made), made.requests) == (Problem.REFUSED, 1)


EMPTY = ["", " \n\t", "\u200b", "\ufeff \u2060", "\u00ad", "\u3000\u00a0"]
NOTHING_SAID = [
    "<think>x</think>",
    "<think>foo",
    "<think></think>\n<thinking>b</thinking>\n\u200b",
    "```\n```",
    "```json\n\n```",
    "<think>x</think>\n~~~\n \n~~~",
    "[THINK]x[/THINK]",
    "so I say\n</think>",
]


@pytest.mark.parametrize("text", EMPTY + NOTHING_SAID)
@pytest.mark.parametrize("finish_reason", ["stop", None, "tool_calls"])
def test_a18_an_empty_reply_is_retried_as_a_call_that_errored(
    text: str, finish_reason: str | None
) -> None:
    """Its message includes the finish reason; a good reply after it is the call's."""
    made = call(said(text, finish_reason), said("A"))
    assert made.error is None
    assert made.requests == 2
    made = call(said(text, finish_reason), said(text, finish_reason))
    assert problem(made) is Problem.EMPTY_REPLY
    assert f"empty reply (finish_reason: {finish_reason or 'none'})" in str(made.error)


@pytest.mark.parametrize(
    "text", ["A <think>", "```\nA\n```", "<think>x</think>A", "</think> A", "<b>"]
)
def test_a18_a_reply_that_says_anything_is_not_empty(text: str) -> None:
    """One request, and its text as it came."""
    made = call(said(text))
    assert made.error is None
    assert made.completion is not None
    assert made.completion.text == text


def test_d5_a_cap_eaten_by_thinking_in_the_text_is_said_to_be_so() -> None:
    """A think block that the limit cut is no text."""
    made = call(said("<think>hm, let me", "length", reasoning_tokens=199), retries=3)
    assert problem(made) is Problem.OUTPUT_LIMIT
    assert "reasoning (199 of 200 tokens)" in str(made.error)


def test_a18_at_a_gate_an_empty_reply_goes_back_to_the_gate() -> None:
    """It is a rejected attempt there: one request."""
    made = call(said(""), at_gate=True, retries=3)
    assert (problem(made), made.requests) == (Problem.EMPTY_REPLY, 1)


def test_at_a_gate_a_call_that_errors_is_retried_as_anywhere() -> None:
    """The retry belongs to the call, not to the gate."""
    assert call(UNAVAILABLE, said("A"), at_gate=True).error is None


@pytest.mark.parametrize("retries", [0, 1, 2])
def test_a_call_is_made_once_and_then_again_as_often_as_configured(retries: int) -> None:
    """Whatever mix of faults comes."""
    faults: list[Reply] = [UNAVAILABLE, said(""), ValueError("odd"), UNAVAILABLE]
    assert call(*faults[: retries + 1], retries=retries).requests == retries + 1
    assert call(*faults[:retries], said("A"), retries=retries).error is None


def test_an_unknown_exception_of_a_model_is_a_call_that_errored() -> None:
    """What it took is unknown; the message names the exception."""
    made = call(ValueError("odd"), ConnectionResetError("gone"))
    assert problem(made) is Problem.UNAVAILABLE
    assert str(made.error) == "ConnectionResetError: gone"
    assert made.usage == UNKNOWN_USAGE + UNKNOWN_USAGE


def test_a_caller_s_mistake_is_raised() -> None:
    """No retry mends it."""
    with pytest.raises(InvalidInput):
        call(InvalidInput("not like this"))


def test_usage_and_requests_add_up_over_calls() -> None:
    """Failed requests included."""
    model = ScriptedChatModel([UNAVAILABLE, said("A"), said("B")])
    calls = Calls(model, sleep=_no_wait)

    async def two_calls() -> None:
        await calls.complete("x")
        await calls.complete("y")

    asyncio.run(two_calls())
    assert (calls.requests, calls.usage) == (3, Usage(200, 400, 1.0))


def test_no_more_calls_than_the_limit_are_in_flight() -> None:
    """And as many as that are."""
    in_flight: list[int] = [0, 0]

    async def reply(prompt: str) -> Reply:
        in_flight[0] += 1
        in_flight[1] = max(in_flight)
        await asyncio.sleep(0)
        in_flight[0] -= 1
        return said("A")

    async def many(calls: Calls) -> None:
        await asyncio.gather(*(calls.complete(str(n)) for n in range(20)))

    asyncio.run(many(Calls(ScriptedChatModel(reply), max_in_flight=3)))
    assert in_flight == [0, 3]
    in_flight[1] = 0
    asyncio.run(many(Calls(ScriptedChatModel(reply, max_in_flight=1))))
    assert in_flight == [0, 1]


def test_e2_calls_that_wait_for_a_place_send_nothing_once_the_run_has_ended() -> None:
    """An exhausted quota costs one request, not one for each document."""
    model = ScriptedChatModel(lambda _: UNUSABLE)

    async def many() -> list[Call]:
        calls = Calls(model, max_in_flight=1)
        return await asyncio.gather(*(calls.complete(str(n)) for n in range(20)))

    made = asyncio.run(many())
    assert len(model.prompts) == 1
    assert all(one.error is UNUSABLE for one in made)


def _cancelled_while(held: Callable[[Calls], Awaitable[object]]) -> Calls:
    started = asyncio.Event()

    async def hold(prompt: str) -> Reply:
        if prompt != "hold":
            return said("A")
        started.set()
        await asyncio.Event().wait()
        return said("never")

    async def main() -> Calls:
        calls = Calls(ScriptedChatModel(hold), max_in_flight=1)
        task = asyncio.ensure_future(held(calls))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await calls.complete("after")).error is None
        return calls

    return asyncio.run(main())


def test_a_cancelled_call_is_cancelled_gives_its_place_back_and_is_counted() -> None:
    """What it took is unknown: the provider may have worked."""
    calls = _cancelled_while(lambda calls: calls.complete("hold"))
    assert calls.requests == 2
    assert calls.usage == USAGE + UNKNOWN_USAGE


@pytest.mark.parametrize("options", [{"retries": -1}, {"max_in_flight": 0}, {"timeout_seconds": 0}])
def test_a_limit_that_cannot_work_is_refused(options: dict[str, Any]) -> None:
    """By name and value."""
    (name,) = options
    with pytest.raises(InvalidInput, match=f"{name} is {options[name]}"):
        Calls(ScriptedChatModel([]), **options)


def test_a_part_counts_its_own_calls_and_the_whole_counts_them_all() -> None:
    """One that was cancelled too; what ends the run ends it for every part."""
    started = asyncio.Event()

    async def reply(prompt: str) -> Reply:
        if prompt == "hold":
            started.set()
            await asyncio.Event().wait()
        return UNUSABLE if prompt == "bad" else said("A")

    async def main() -> None:
        whole = Calls(ScriptedChatModel(reply))
        one, other, last = whole.part(), whole.part(), whole.part()
        await one.complete("x")
        await one.part().complete("x")
        held = asyncio.ensure_future(other.complete("hold"))
        await started.wait()
        held.cancel()
        with pytest.raises(asyncio.CancelledError):
            await held
        assert (one.requests, other.requests, whole.requests) == (2, 1, 3)
        assert (one.usage, other.usage) == (Usage(200, 400, 1.0), UNKNOWN_USAGE)
        assert whole.usage == one.usage + other.usage
        assert (await last.complete("bad")).error is UNUSABLE
        assert one.ended_by is whole.ended_by is UNUSABLE
        assert (await one.complete("x")).error is UNUSABLE
        assert (one.requests, whole.requests) == (2, 4)

    asyncio.run(main())
