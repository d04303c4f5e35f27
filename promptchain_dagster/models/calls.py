"""`Calls`: all calls of one run to one model, and the one owner of retries and of their number."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from promptchain_dagster.errors import InvalidInput, PromptChainError
from promptchain_dagster.models.base import (
    NO_USAGE,
    PROBLEMS,
    UNKNOWN_USAGE,
    CallError,
    ChatModel,
    Completion,
    Problem,
    Usage,
)
from promptchain_dagster.models.judge import problem_of
from promptchain_dagster.reattempt import ReAttempt, Sleep

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """What one call came to, its retries included.

    Without `error` the completion is whole and usable. With one, `completion` is the reply that
    was cut, empty or refused, where there was a reply; a usable reply is never beside an error.

    `requests` counts the requests that were sent, `usage` is the sum of what they took, `seconds`
    the time from the first request to the outcome, waits between requests included, the wait for
    a free place not. `model` is the model that answered, or the one that was asked.
    """

    completion: Completion | None
    error: CallError | None
    requests: int
    usage: Usage
    seconds: float
    model: str


class Calls:
    """The calls of one run: retried here and nowhere else, and at most `max_in_flight` at once.

    `retries` is how often a call is made again after it brought nothing usable (spec: once);
    `max_in_flight` is the model's own limit unless given; `timeout_seconds` bounds each request
    as a whole, however slowly its reply drips; `max_retry_after_seconds` is the longest wait
    that a server may ask for, itself included. After an error that no call of this run can
    escape, every later call returns that error and sends nothing. Lives in one event loop.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        retries: int = 1,
        max_in_flight: int | None = None,
        timeout_seconds: float = 120.0,
        delay_seconds: float = 1.0,
        max_retry_after_seconds: float = 120.0,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        _require(retries >= 0, "retries", retries, "0 or more")
        places = max_in_flight if max_in_flight is not None else model.max_in_flight
        _require(places is None or places >= 1, "max_in_flight", places, "1 or more")
        _require(timeout_seconds > 0, "timeout_seconds", timeout_seconds, "more than 0")
        self.model = model
        self.requests = 0
        self.usage = NO_USAGE
        self.ended_by: CallError | None = None
        """The error that ended the run for all calls, if one did."""
        self._reattempt = ReAttempt(budget=retries, delay_seconds=delay_seconds)
        self._timeout = timeout_seconds
        self._max_retry_after = max_retry_after_seconds
        self._sleep = sleep
        self._places = asyncio.Semaphore(places) if places else None

    async def complete(
        self,
        prompt: str,
        *,
        schema: Mapping[str, Any] | None = None,
        at_gate: bool = False,
        max_output_tokens: int | None = None,
    ) -> Call:
        """Ask the model; never raises `CallError`.

        `at_gate`: a step with re-attempts of its own judges the reply, so an empty or cut one goes
        back to it at once, as a rejected attempt. `max_output_tokens` replaces the model's cap.
        """
        tally = _Tally(self.model.name)
        cap = max_output_tokens or self.model.max_output_tokens
        cut: tuple[Completion | None, CallError | None] | None = None
        while True:
            completion, error = await self._request(tally, prompt, schema, cap)
            if error is None:
                return tally.call(completion, None)
            if completion is None and cut is not None:
                # A larger cap may itself be refused; that says nothing about other calls.
                return tally.call(*cut)
            if PROBLEMS[error.problem].ends_run:
                self.ended_by = self.ended_by or error
            larger_cap = self._larger(cap)
            if tally.requests > self._reattempt.budget or not _may_repeat(
                error, at_gate, larger_cap
            ):
                return tally.call(completion, error)
            if error.problem is Problem.OUTPUT_LIMIT:
                cap, cut = larger_cap, (completion, error)
                continue
            if (error.retry_after or 0) > self._max_retry_after:
                return tally.call(completion, _too_patient(error, self._max_retry_after))
            seconds = await self._reattempt.wait(
                tally.requests, at_least=error.retry_after or 0, sleep=self._sleep
            )
            log.warning("%s: %s; asked again after %.1f s", self.model.name, error, seconds)

    async def _request(
        self, tally: _Tally, prompt: str, schema: Mapping[str, Any] | None, cap: int | None
    ) -> tuple[Completion | None, CallError | None]:
        """One request, once there is a place for it: the reply, and what is wrong with it."""
        async with self._places or contextlib.nullcontext():
            if self.ended_by is not None:
                return None, self.ended_by
            self.requests += 1
            tally.begin_request()
            spent = UNKNOWN_USAGE
            try:
                completion, error = await self._answer(prompt, schema, cap)
                spent = completion.usage if completion else error.usage if error else spent
            finally:
                # Also where the call is cancelled: the provider may have worked, and bills for it.
                self.usage += spent
                tally.usage += spent
        if completion is not None:
            error = problem_of(completion, cap)
        return completion, error

    async def _answer(
        self, prompt: str, schema: Mapping[str, Any] | None, cap: int | None
    ) -> tuple[Completion | None, CallError | None]:
        asked = self.model.complete(prompt, schema=schema, max_output_tokens=cap)
        try:
            return await _within(self._timeout, asked), None
        except CallError as error:
            return None, error
        except (PromptChainError, AssertionError):
            raise  # the caller's mistake, which no retry mends
        except asyncio.TimeoutError:
            message = f"no reply within {self._timeout:g} s"
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
        return None, CallError(Problem.UNAVAILABLE, message, usage=UNKNOWN_USAGE)

    def _larger(self, cap: int | None) -> int | None:
        """A cap twice as large, where the cap was ours and the context has room for it."""
        if cap is None:
            return None
        larger = min(2 * cap, self.model.context_tokens or 2 * cap)
        return larger if larger > cap else None


class _Tally:
    """What the requests of one call took."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.requests = 0
        self.usage = NO_USAGE
        self._began: float | None = None

    def begin_request(self) -> None:
        self.requests += 1
        self._began = self._began or time.perf_counter()

    def call(self, completion: Completion | None, error: CallError | None) -> Call:
        seconds = time.perf_counter() - self._began if self._began else 0.0
        model = completion.model if completion else self.model
        return Call(completion, error, self.requests, self.usage, seconds, model)


def _may_repeat(error: CallError, at_gate: bool, larger_cap: int | None) -> bool:
    consequence = PROBLEMS[error.problem]
    if at_gate and consequence.rejects_attempt:
        return False
    if error.problem is Problem.OUTPUT_LIMIT:
        return larger_cap is not None
    return consequence.call_again


def _too_patient(error: CallError, limit: float) -> CallError:
    message = (
        f"{error.message}; the server asks to wait {error.retry_after:g} s, "
        f"over the limit of {limit:g} s"
    )
    return CallError(error.problem, message, retry_after=error.retry_after, usage=error.usage)


async def _within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.wait_for`, which before Python 3.12 could lose a cancellation to a result."""
    task = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
        if not done:
            raise asyncio.TimeoutError
        return task.result()
    finally:
        task.cancel()


def _require(holds: bool, name: str, value: object, allowed: str) -> None:
    if not holds:
        raise InvalidInput(f"{name} is {value!r}, must be {allowed}")
