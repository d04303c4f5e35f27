"""`Calls`: all calls of one run to one model, and the one owner of retries and of their number."""

from __future__ import annotations

import asyncio
import copy
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from promptchain_dagster.errors import InvalidInput, PromptChainError
from promptchain_dagster.models.base import (
    NO_USAGE,
    PROBLEMS,
    UNKNOWN_USAGE,
    CallError,
    ChatModel,
    Completion,
    Paid,
    Problem,
    Usage,
)
from promptchain_dagster.models.budget import Budget
from promptchain_dagster.models.judge import problem_of
from promptchain_dagster.models.ledger import Ledger
from promptchain_dagster.models.meter import Meter
from promptchain_dagster.models.pacing import Pace, slows_down
from promptchain_dagster.models.spending import Reservation, Spending
from promptchain_dagster.reattempt import ReAttempt, Sleep
from promptchain_dagster.telemetry import request_span, tell

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """What one call came to, its retries included.

    Without `error` the completion is whole and usable. With one, `completion` is the reply that
    was cut, empty or refused, where there was a reply; a usable reply is never beside an error.

    `requests` counts the requests that were sent, `usage` is the sum of what they took, `seconds`
    the time from the first request to the outcome, waits between requests included, the wait for
    a free place not. `model` is the model that answered, or the one that was asked. `paid` has each
    request for itself.
    """

    completion: Completion | None
    error: CallError | None
    requests: int
    usage: Usage
    seconds: float
    model: str
    paid: tuple[Paid, ...] = ()


class Interrupted(asyncio.CancelledError):
    """A cancellation that came when requests had been sent: what `call` had come to by then."""

    def __init__(self, call: Call) -> None:
        super().__init__()
        self.call = call


class Calls:
    """The calls of one run: retried, paced and paid for here and nowhere else.

    `retries` is how often a call is made again after it brought nothing usable (spec: once);
    `max_in_flight` is the model's own limit unless given; `timeout_seconds` bounds each request
    as a whole, however slowly its reply drips; `max_retry_after_seconds` is the longest wait
    that a server may ask for, itself included. `requests_per_minute` and `tokens_per_minute` hold
    in every window of 60 s (`pacing.Pace`), over as many runs beside each other as there are
    `sharers`, this one among them. `budget` is for this run; with a `ledger`, what is
    spent is written there, and held against its day's budget too.

    After an error that no call of this run can escape (a wrong key, a budget, a server that asks
    to wait too long), every later call returns that error and sends nothing. Lives in one event
    loop; `clock` and `sleep` are of one time, in seconds.

    Raises `InvalidInput` for a limit that cannot work, and for a cost budget where the model has
    no known price.
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
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        sharers: int | None = None,
        budget: Budget | None = None,
        ledger: Ledger | None = None,
        sleep: Sleep = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        _require(retries >= 0, "retries", retries, "0 or more")
        places = max_in_flight if max_in_flight is not None else model.max_in_flight
        for name, limit in (
            ("max_in_flight", places),
            ("requests_per_minute", requests_per_minute),
            ("tokens_per_minute", tokens_per_minute),
            ("sharers", sharers),
        ):
            _require(limit is None or limit >= 1, name, limit, "1 or more")
        _require(timeout_seconds > 0, "timeout_seconds", timeout_seconds, "more than 0")
        self.model = model
        self.requests = 0
        self.usage = NO_USAGE
        self._ended_by: CallError | None = None
        self._whole: Calls | None = None
        self._reattempt = ReAttempt(budget=retries, delay_seconds=delay_seconds)
        self._timeout = timeout_seconds
        self._max_retry_after = max_retry_after_seconds
        self._sleep = sleep
        self._pace = Pace(
            max_in_flight=places,
            requests_per_minute=requests_per_minute,
            tokens_per_minute=tokens_per_minute,
            sharers=sharers,
            delay_seconds=delay_seconds,
            sleep=sleep,
            clock=clock,
        )
        self._spending = (
            Spending(model.name, budget or Budget(), ledger) if budget or ledger else None
        )
        self._meter = Meter()
        self._counts_tokens = bool(tokens_per_minute or self._spending)

    @property
    def ended_by(self) -> CallError | None:
        """The error that ended the run for all calls, if one did."""
        return self._whole.ended_by if self._whole else self._ended_by

    def part(self) -> Calls:
        """The same calls under the same limits; its `requests` and `usage` are of what is asked
        through it, cancelled calls included, and add to those here."""
        part = copy.copy(self)
        part.requests, part.usage, part._whole = 0, NO_USAGE, self
        return part

    async def complete(
        self,
        prompt: str,
        *,
        schema: Mapping[str, Any] | None = None,
        at_gate: bool = False,
        max_output_tokens: int | None = None,
    ) -> Call:
        """Ask the model; never raises `CallError`, and `Interrupted` where it is cancelled.

        `at_gate`: a step with re-attempts of its own judges the reply, so an empty or cut one goes
        back to it at once, as a rejected attempt. `max_output_tokens` replaces the model's cap.
        """
        tally = _Tally(self.model.name)
        cap = max_output_tokens or self.model.max_output_tokens
        try:
            return await self._complete(tally, prompt, schema, at_gate, cap)
        except asyncio.CancelledError:
            if not tally.requests:
                raise
            error = CallError(Problem.INTERRUPTED, "interrupted before the reply came")
            raise Interrupted(tally.call(None, error)) from None

    async def _complete(
        self,
        tally: _Tally,
        prompt: str,
        schema: Mapping[str, Any] | None,
        at_gate: bool,
        cap: int | None,
    ) -> Call:
        cut: tuple[Completion | None, CallError | None] | None = None
        while True:
            completion, error = await self._request(tally, prompt, schema, cap)
            if error is None:
                return tally.call(completion, None)
            if completion is None and cut is not None:
                # A larger cap may itself be refused; that says nothing about other calls.
                return tally.call(*cut)
            if PROBLEMS[error.problem].ends_run:
                self._end(error)
            larger_cap = self._larger(cap)
            if tally.requests > self._reattempt.budget or not _may_repeat(
                error, at_gate, larger_cap
            ):
                return tally.call(completion, error)
            if error.problem is Problem.OUTPUT_LIMIT:
                cap, cut = larger_cap, (completion, error)
                continue
            if slows_down(error):
                log.warning("%s: %s; asked again when the run goes on", self.model.name, error)
                continue
            seconds = await self._reattempt.wait(tally.requests, sleep=self._sleep)
            log.warning("%s: %s; asked again after %.1f s", self.model.name, error, seconds)

    async def _request(
        self, tally: _Tally, prompt: str, schema: Mapping[str, Any] | None, cap: int | None
    ) -> tuple[Completion | None, CallError | None]:
        """One request, once it may be sent: the reply, and what is wrong with it."""
        sent = await self._pace.enter(lambda: sum(self._meter.before(prompt)))
        completion, took = None, 0
        error, reserved = self._reserve(prompt)
        try:
            if error is not None:
                return None, error
            self._count(1, NO_USAGE)
            tally.begin_request()
            spent = UNKNOWN_USAGE
            try:
                completion, error = await self._spanned(prompt, schema, cap)
                spent = completion.usage if completion else error.usage if error else spent
            finally:
                # Also where the call is cancelled: the provider may have worked, and bills for it.
                self._count(0, spent)
                took, entry = self._settle(prompt, spent, completion, reserved)
                tally.paid.append(Paid(spent, entry=entry))
        finally:
            self._pace.leave(sent, error, answered=completion is not None, tokens=took)
        if completion is not None:
            error = problem_of(completion, cap)
        if error is not None:
            tally.paid[-1] = replace(tally.paid[-1], error=error.message)
        return completion, error

    def _reserve(self, prompt: str) -> tuple[CallError | None, Reservation | None]:
        """Why nothing may be sent, if so; what is reserved in the budgets, where there are any."""
        if self.ended_by is not None or self._spending is None:
            return self.ended_by, None
        reserved = self._spending.reserve(self._meter.before(prompt))
        if isinstance(reserved, CallError):
            self._end(reserved)
            return reserved, None
        return None, reserved

    def _settle(
        self, prompt: str, spent: Usage, completion: Completion | None, reserved: Reservation | None
    ) -> tuple[int, str | None]:
        """Count what a request took: the tokens, estimated where they were not told, and where
        the ledger has it."""
        if not self._counts_tokens:
            return 0, None
        entry = None
        tokens = self._meter.after(prompt, spent, completion.text if completion else None)
        if self._spending is not None and reserved is not None:
            entry = self._spending.settle(reserved, tokens, spent)
        return sum(tokens), entry

    def _count(self, requests: int, usage: Usage) -> None:
        self.requests += requests
        self.usage += usage
        if self._whole:
            self._whole._count(requests, usage)

    def _end(self, error: CallError) -> None:
        if self._whole:
            self._whole._end(error)
        else:
            self._ended_by = self._ended_by or error
            self._pace.end()

    async def _spanned(
        self, prompt: str, schema: Mapping[str, Any] | None, cap: int | None
    ) -> tuple[Completion | None, CallError | None]:
        with request_span(self.model.name, self.model.parameters, cap) as span:
            completion, error = await self._answer(prompt, schema, cap)
            tell(span, _of_reply(completion), error.problem.value if error else None)
        return completion, error

    async def _answer(
        self, prompt: str, schema: Mapping[str, Any] | None, cap: int | None
    ) -> tuple[Completion | None, CallError | None]:
        asked = self.model.complete(prompt, schema=schema, max_output_tokens=cap)
        try:
            return await _within(self._timeout, asked), None
        except CallError as error:
            return None, self._within_patience(error)
        except (PromptChainError, AssertionError):
            raise  # the caller's mistake, which no retry mends
        except asyncio.TimeoutError:
            message = f"no reply within {self._timeout:g} s"
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
        return None, CallError(Problem.UNAVAILABLE, message, usage=UNKNOWN_USAGE)

    def _within_patience(self, error: CallError) -> CallError:
        """A server that wants a longer wait than ours ends the run: no other call can succeed."""
        wait = error.retry_after or 0
        if wait <= self._max_retry_after or not slows_down(error):
            return error
        message = (
            f"{error.message}; the server asks to wait {wait:g} s, "
            f"over the limit of {self._max_retry_after:g} s"
        )
        return CallError(Problem.UNUSABLE, message, retry_after=wait, usage=error.usage)

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
        self.paid: list[Paid] = []
        self._began: float | None = None

    def begin_request(self) -> None:
        self.requests += 1
        self._began = self._began or time.perf_counter()

    def call(self, completion: Completion | None, error: CallError | None) -> Call:
        seconds = time.perf_counter() - self._began if self._began else 0.0
        model = completion.model if completion else self.model
        usage = sum((one.usage for one in self.paid), NO_USAGE)
        return Call(completion, error, self.requests, usage, seconds, model, tuple(self.paid))


def _of_reply(completion: Completion | None) -> dict[str, Any]:
    if completion is None:
        return {}
    reason = completion.finish_reason
    return {
        "gen_ai.response.model": completion.model,
        "gen_ai.response.finish_reasons": (reason,) if reason else None,
        "gen_ai.usage.input_tokens": completion.usage.input_tokens,
        "gen_ai.usage.output_tokens": completion.usage.output_tokens,
    }


def _may_repeat(error: CallError, at_gate: bool, larger_cap: int | None) -> bool:
    consequence = PROBLEMS[error.problem]
    if at_gate and consequence.rejects_attempt:
        return False
    if error.problem is Problem.OUTPUT_LIMIT:
        return larger_cap is not None
    return consequence.call_again


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
