"""What is wrong with a reply that came whole over the wire, if anything."""

from __future__ import annotations

from promptchain_dagster.models.base import CallError, Completion, Problem
from promptchain_dagster.thinking import unfenced, without_thinking


def problem_of(completion: Completion, cap: int | None) -> CallError | None:
    """Why `completion` is no usable reply (cases a14, a15, a18, d5); None where it is one.

    `cap` is our own output limit for the call in tokens, where one was set. A reply that is only
    thinking, invisible characters or an empty fence is an empty one.
    """
    empty = not unfenced(without_thinking(completion.text))
    if completion.refusal:
        problem, message = Problem.REFUSED, f"the model refused: {completion.refusal}"
    elif completion.finish_reason == "content_filter":
        problem, message = Problem.REFUSED, "the provider's content filter stopped the reply"
    elif completion.finish_reason == "length":
        problem, message = Problem.OUTPUT_LIMIT, _limit_message(completion, cap, empty)
    elif empty:
        reason = completion.finish_reason or "none"
        problem, message = Problem.EMPTY_REPLY, f"empty reply (finish_reason: {reason})"
    else:
        return None
    return CallError(problem, message, usage=completion.usage)


def _limit_message(completion: Completion, cap: int | None, empty: bool) -> str:
    limit = cap or completion.usage.output_tokens
    tokens = f"{limit} tokens" if limit else "the model's own"
    if not empty:
        return f"the reply was cut at the output limit ({tokens}) before its end"
    if not completion.reasoning_tokens:
        return f"the output limit ({tokens}) was reached before any text; set a larger one"
    return (
        f"the output cap was eaten by reasoning ({completion.reasoning_tokens} of {tokens}) "
        "before any text; set a larger max_output_tokens"
    )
