"""The fake that other tests rely on."""

from __future__ import annotations

import asyncio

import pytest

from promptchain_dagster.models import CallError, Calls, Completion, Problem, Usage
from promptchain_dagster.testing import Reply, ScriptedChatModel


def test_replies_come_in_order_and_prompts_are_kept() -> None:
    """A text, a whole completion and an error, each as it was given."""
    whole = Completion("B", "other", "length", reasoning_tokens=3)
    model = ScriptedChatModel(["A a", whole, CallError(Problem.REFUSED, "no")])

    async def main() -> None:
        assert (await model.complete("one two three", schema={"type": "object"})) == Completion(
            "A a", "scripted", usage=Usage(3, 2, None)
        )
        assert (await model.complete("2", max_output_tokens=7)) is whole
        with pytest.raises(CallError, match="no"):
            await model.complete("3")

    asyncio.run(main())
    assert model.prompts == ["one two three", "2", "3"]
    assert model.schemas == [{"type": "object"}, None, None]
    assert model.output_caps == [None, 7, None]


def test_a_function_replies_to_the_prompt() -> None:
    """A plain one or an async one."""

    async def later(prompt: str) -> Reply:
        return prompt.upper()

    for script in (str.upper, later):
        made = asyncio.run(Calls(ScriptedChatModel(script)).complete("hello"))
        assert made.completion is not None
        assert made.completion.text == "HELLO"


def test_a_call_beyond_the_script_is_an_assertion_error() -> None:
    """Retries don't hide it."""
    with pytest.raises(AssertionError, match="call 2, but the script has only 1 replies"):
        asyncio.run(
            Calls(
                ScriptedChatModel(
                    [CallError(Problem.UNAVAILABLE, "")],
                ),
                delay_seconds=0,
            ).complete("x")
        )
