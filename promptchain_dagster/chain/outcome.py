"""What a run of a chain returns: told apart by type, never raised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from promptchain_dagster.chain.accept import FailedCheck, Judgement
from promptchain_dagster.models.base import NO_USAGE, Paid, Problem, Usage


class Reason(str, Enum):
    """Why a chain halted."""

    REJECTED = "rejected"
    """A gate ended it: the output, or what entered the step, did not hold."""
    FAILED = "failed"
    """A call ended it: of the model, or of a tool."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at one step: everything it saw, said and cost.

    `output` is the parsed output as JSON values, or the reply's text where it did not parse, or
    None where nothing came. `requests` counts the requests sent, `retries` those after the first,
    and `paid` has each of them. `problem` is what came back instead of a usable reply, if so.
    """

    step: str
    number: int
    started_at: str
    seconds: float = 0.0
    inputs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    prompt: str | None = None
    reply: str | None = None
    output: Any = None
    judgements: tuple[Judgement, ...] = ()
    warnings: tuple[str, ...] = ()
    call_error: str | None = None
    model: str | None = None
    finish_reason: str | None = None
    requests: int = 0
    usage: Usage = NO_USAGE
    problem: Problem | None = None
    paid: tuple[Paid, ...] = ()

    @property
    def errors(self) -> tuple[str, ...]:
        """The messages of every failed check, or of the failed call."""
        told = tuple(message for judgement in self.judgements for message in judgement.messages)
        return (*told, self.call_error) if self.call_error else told

    @property
    def accepted(self) -> bool:
        return not self.errors

    @property
    def retries(self) -> int:
        return max(0, self.requests - 1)


@dataclass(frozen=True, kw_only=True)
class _Outcome:
    attempts: tuple[Attempt, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is worth knowing of the accepted outputs, each naming its step."""
        return tuple(f"{one.step}: {told}" for one in self.attempts for told in one.warnings)

    @property
    def model_calls(self) -> int:
        """Requests sent, retries included."""
        return sum(attempt.requests for attempt in self.attempts)

    @property
    def usage(self) -> Usage:
        return sum((attempt.usage for attempt in self.attempts), NO_USAGE)


@dataclass(frozen=True, kw_only=True)
class Accepted(_Outcome):
    """A step whose output met its AcceptSpec: the only kind that may be passed on."""

    step: str
    output: Any


@dataclass(frozen=True, kw_only=True)
class Completed(_Outcome):
    """A chain whose every step was accepted; `outputs` by field, `output` the last one."""

    outputs: Mapping[str, Any]
    output: Any


@dataclass(frozen=True, kw_only=True)
class Halted(_Outcome):
    """A step, and with it its chain, that ended without an output.

    `failed_checks` are those of the last attempt, `messages` those of every attempt in order;
    `rejected_output` is the last output, as JSON values, or as text where it did not parse.
    `ends_run` says that no other call of this run can succeed either (wrong key, quota, …);
    `problem` is what came back instead of the last reply, where that is what ended it.
    """

    step: str
    reason: Reason
    failed_checks: tuple[FailedCheck, ...] = ()
    messages: tuple[str, ...] = ()
    rejected_output: Any = None
    ends_run: bool = False
    problem: Problem | None = None
