"""What a language model is to this package: one prompt in, one `Completion` out.

`PROBLEMS` is the one table of what can come back instead of a usable reply and what follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from promptchain_dagster.errors import PromptChainError


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and US dollars of one or more calls; None is unknown, never zero.

    A sum keeps what is known and counts in `calls_without_usage` the replies that told nothing.
    Dollars have 12 decimals, which tells single tokens apart, so that the same parts come to the
    same sum in any order.
    """

    input_tokens: int | None = 0
    output_tokens: int | None = 0
    cost_usd: float | None = 0.0
    calls_without_usage: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            _known_sum(self.input_tokens, other.input_tokens),
            _known_sum(self.output_tokens, other.output_tokens),
            to_the_token(_known_sum(self.cost_usd, other.cost_usd)),
            self.calls_without_usage + other.calls_without_usage,
        )


NO_USAGE = Usage()
"""Nothing was spent."""

UNKNOWN_USAGE = Usage(None, None, None, 1)
"""One call was made, and what it took was not told."""


@dataclass(frozen=True, slots=True)
class Paid:
    """One request that was sent: what it took, and what came instead of a usable reply.

    `entry` is where the ledger counts it (`models.ledger`); None where there is no ledger.
    """

    usage: Usage
    error: str | None = None
    entry: str | None = None


class Problem(str, Enum):
    """What came back instead of a usable reply."""

    UNAVAILABLE = "unavailable"
    """Connection, timeout, 408, 409, 429, 5xx, cut or non-JSON body, no choices, the unknown."""
    EMPTY_REPLY = "empty reply"
    OUTPUT_LIMIT = "output limit"
    """The reply was cut at the output limit."""
    REFUSED = "refused"
    """A refusal or a content filter: for this brief or document alone."""
    TOO_LONG = "too long"
    """The prompt does not fit the model's context: for this brief or document alone."""
    UNUSABLE = "unusable"
    """Wrong key, exhausted quota, unknown model, refused parameter, a wait that is too long for
    this run: no call can succeed."""
    BUDGET = "budget"
    """The budget of the run or of the day would be passed: nothing was sent."""
    INTERRUPTED = "interrupted"
    """The run was stopped before the reply came."""


@dataclass(frozen=True, slots=True)
class Consequence:
    """What follows from a `Problem`.

    `call_again`: the same call may succeed, so the call's own retries apply.
    `rejects_attempt`: at a gate the reply counts as a rejected attempt instead.
    `ends_run`: nothing else in this run can succeed either.
    """

    call_again: bool
    rejects_attempt: bool
    ends_run: bool


PROBLEMS: Mapping[Problem, Consequence] = {
    Problem.UNAVAILABLE: Consequence(call_again=True, rejects_attempt=False, ends_run=False),
    Problem.EMPTY_REPLY: Consequence(call_again=True, rejects_attempt=True, ends_run=False),
    # Repeated only with a larger cap, and only where the cap was ours: `models.calls` sees to it.
    Problem.OUTPUT_LIMIT: Consequence(call_again=False, rejects_attempt=True, ends_run=False),
    Problem.REFUSED: Consequence(call_again=False, rejects_attempt=False, ends_run=False),
    Problem.TOO_LONG: Consequence(call_again=False, rejects_attempt=False, ends_run=False),
    Problem.UNUSABLE: Consequence(call_again=False, rejects_attempt=False, ends_run=True),
    Problem.BUDGET: Consequence(call_again=False, rejects_attempt=False, ends_run=True),
    Problem.INTERRUPTED: Consequence(call_again=False, rejects_attempt=False, ends_run=True),
}


class CallError(PromptChainError):
    """One request to a model that brought no usable reply.

    `retry_after` is the server's wish in seconds; `rate_limited` says that it wants fewer requests
    (a 429); `usage` is what the request took; the message says what came back and, where something
    helps, what to do.
    """

    def __init__(
        self,
        problem: Problem,
        message: str,
        *,
        retry_after: float | None = None,
        rate_limited: bool = False,
        usage: Usage = NO_USAGE,
    ) -> None:
        super().__init__(message)
        self.problem = problem
        self.message = message
        self.retry_after = retry_after
        self.rate_limited = rate_limited
        self.usage = usage


@dataclass(frozen=True, slots=True)
class Completion:
    """One reply as it came: `text` may be empty or cut; `models.calls` judges it.

    `finish_reason` is the provider's word ("stop", "length", "content_filter", …); `refusal` the
    provider's refusal text; `reasoning_tokens` those of `usage.output_tokens` spent on thinking.
    """

    text: str
    model: str
    finish_reason: str | None = "stop"
    usage: Usage = UNKNOWN_USAGE
    refusal: str | None = None
    reasoning_tokens: int | None = None


class ChatModel(Protocol):
    """A language model that answers one prompt at a time, without memory."""

    @property
    def name(self) -> str:
        """The model's name, part of every checkpoint's key."""
        ...

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What else shapes a reply (temperature, output limit, …), as JSON values; no secret."""
        ...

    @property
    def context_tokens(self) -> int | None:
        """How many tokens prompt and reply may have together, if known."""
        ...

    @property
    def max_output_tokens(self) -> int | None:
        """Our own cap on a reply in tokens; None where none was set."""
        ...

    @property
    def max_in_flight(self) -> int | None:
        """How many calls at once it can serve; None where it sets no limit of its own."""
        ...

    async def complete(
        self,
        prompt: str,
        *,
        schema: Mapping[str, Any] | None = None,
        max_output_tokens: int | None = None,
    ) -> Completion:
        """Answer `prompt`; raise `CallError` where no reply came.

        `schema` is a JSON schema that the reply should follow, for models that can be held to one;
        `max_output_tokens` replaces the model's own cap for this call.
        """
        ...


def to_the_token(cost_usd: float | None) -> float | None:
    """US dollars with 12 decimals."""
    return None if cost_usd is None else round(cost_usd, 12)


def _known_sum(a: Any, b: Any) -> Any:
    if a is None:
        # A zero beside an unknown knows nothing about it.
        return b or None
    if b is None:
        return a or None
    return a + b
