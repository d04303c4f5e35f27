"""`Pace`: when the next request of a run may be sent, and how many may be under way.

All callers of a run stand in one queue, first come, first served. Only its head waits for
something: a free place, the end of a server's `Retry-After`, or room in the minute's limits.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.models.base import PROBLEMS, CallError
from promptchain_dagster.reattempt import ReAttempt, Sleep

log = logging.getLogger(__name__)

MINUTE = 60.0
_SHORTEST_WAIT = 0.001
"""Seconds; less may be nothing to a clock."""

_BY_CHANCE = 4
"""So many faults in a row say nothing about the next request, however few are under way."""

_LONGEST_ROW = 16
"""Refusals in a row that are told apart: the delay has long been the longest one then."""


@dataclass(slots=True)
class Amount:
    """What counts against a limit since `at`, in seconds of the run's clock."""

    at: float
    size: int
    over: bool = False
    """Whether its minute is over."""


class Window:
    """At most `limit` in any 60 s."""

    def __init__(self, limit: int, *, used_until: float | None = None) -> None:
        """With `used_until`, the minute up to then counts as used up, evenly."""
        self._limit = limit
        self._amounts: deque[Amount] = deque()
        self._total = 0
        if used_until is None:
            return
        seconds = int(MINUTE)
        for second in range(1, seconds + 1):
            size = limit * second // seconds - limit * (second - 1) // seconds
            if size:
                self.add(size, used_until - seconds + second)

    def wait(self, size: int, now: float) -> float:
        """Seconds until there may be room for `size`; 0 where there is now.

        What is larger than the limit has room where nothing else counts.
        """
        amounts = self._amounts
        while amounts and now - amounts[0].at >= MINUTE:
            amounts[0].over = True
            self._total -= amounts.popleft().size
        if not self._total or self._total + size <= self._limit:
            return 0
        return max(_SHORTEST_WAIT, amounts[0].at + MINUTE - now)

    def add(self, size: int, now: float) -> Amount:
        amount = Amount(now, size)
        self._amounts.append(amount)
        self._total += size
        return amount

    def correct(self, amount: Amount, size: int, now: float) -> None:
        """`amount` was an estimate and came to `size`: more counts from now on, less from then."""
        if size > amount.size:
            self.add(size - amount.size, now)
        elif not amount.over:
            self._total -= amount.size - size
            amount.size = size


@dataclass(slots=True)
class Sent:
    """One request under way: how often the run had been slowed down before it, and its tokens."""

    slowdowns: int
    tokens: Amount | None


class Pace:
    """Places for requests: `enter` waits for one, `leave` gives it back and says what came of it.

    `requests_per_minute` and `tokens_per_minute` hold in every window of 60 s; what a reply took
    beyond its estimate counts from when it came. With `sharers`, each of so many runs has an equal
    part, and over all of them the limit holds. A request of more tokens than a minute's limit is
    sent alone, once nothing else counts: it is never refused and never waits for ever.

    After a server said to slow down (`slows_down`), nobody enters until its `Retry-After` is over,
    or without one, a delay that doubles each time in a row. The places are then half of what was in
    use, once for all requests that were under way together, and grow by one for as many good
    replies as there are places, up to `max_in_flight`.

    Where in a row more requests came to nothing than were under way, the server is taken to be
    away: one request at a time asks for it, after a delay that doubles, and the others wait, so
    that an outage costs these few and not the whole run. The first reply opens all places again.
    """

    def __init__(
        self,
        *,
        max_in_flight: int | None,
        requests_per_minute: int | None,
        tokens_per_minute: int | None,
        sharers: int | None,
        delay_seconds: float,
        sleep: Sleep,
        clock: Callable[[], float],
    ) -> None:
        self._most = max_in_flight or math.inf
        self._places: float = self._most
        self._requests = self._tokens = None
        if requests_per_minute:
            self._requests = _window("requests_per_minute", requests_per_minute, sharers, clock)
        if tokens_per_minute:
            self._tokens = _window("tokens_per_minute", tokens_per_minute, sharers, clock)
        self._delays = ReAttempt(budget=0, delay_seconds=delay_seconds)
        self._sleep, self._clock = sleep, clock
        self._in_flight = 0
        self._slowdowns = self._in_a_row = self._in_vain = 0
        self._places_before: float | None = None  # while the server is away
        self._closed_until: float | None = None
        self._ended = False
        self._queue = asyncio.Lock()  # gives way in the order of asking
        self._queued = 0
        self._change: asyncio.Future[None] | None = None

    async def enter(self, tokens: Callable[[], int]) -> Sent:
        """Wait until a request of about `tokens` may be sent; at once when the run has ended.

        `tokens` is asked when it is the request's turn, and where tokens are limited.
        """
        if not self._queued and self._wait(tokens) == 0:
            return self._take(tokens)
        self._queued += 1
        try:
            async with self._queue:
                while (seconds := self._wait(tokens)) != 0:
                    await self._change_within(seconds)
                return self._take(tokens)
        finally:
            self._queued -= 1

    def leave(self, sent: Sent, error: CallError | None, *, answered: bool, tokens: int) -> None:
        """Give the place back: what the request came to, and the tokens that it took."""
        if error is not None and slows_down(error):
            self._slow_down(sent, error.retry_after)
        elif sent.slowdowns == self._slowdowns:
            if answered:
                self._go_on()
            elif error is not None and PROBLEMS[error.problem].call_again:
                self._miss(sent)
        self._in_flight -= 1
        if self._tokens is not None and sent.tokens is not None:
            self._tokens.correct(sent.tokens, tokens, self._clock())
        self._tell()

    def end(self) -> None:
        """Let everybody through at once, now and later: the run has ended and nothing is sent."""
        self._ended = True
        self._tell()

    def _wait(self, tokens: Callable[[], int]) -> float | None:
        """Seconds until a request may be sent: 0 is now, None when a place will be free."""
        if self._ended:
            return 0
        if self._closed_until is not None:
            left = self._closed_until - self._clock()
            if left > 0:
                return math.ceil(left * 10) / 10
            self._closed_until = None
        if self._in_flight + 1 > self._places:
            return None
        if self._requests is None and self._tokens is None:
            return 0
        now = self._clock()
        return max(
            self._requests.wait(1, now) if self._requests is not None else 0,
            self._tokens.wait(tokens(), now) if self._tokens is not None else 0,
        )

    def _take(self, tokens: Callable[[], int]) -> Sent:
        self._in_flight += 1
        if self._ended:
            return Sent(self._slowdowns, None)
        if self._requests is not None:
            self._requests.add(1, self._clock())
        amount = self._tokens.add(tokens(), self._clock()) if self._tokens is not None else None
        return Sent(self._slowdowns, amount)

    def _slow_down(self, sent: Sent, retry_after: float | None) -> None:
        if sent.slowdowns == self._slowdowns:
            self._slowdowns += 1
            self._in_a_row = min(self._in_a_row + 1, _LONGEST_ROW)
            self._places = max(1.0, min(self._places, self._in_flight) / 2)
            seconds = self._delays.delay(self._in_a_row, retry_after or 0)
        else:
            seconds = retry_after or 0
        self._closed_until = max(self._closed_until or 0, self._clock() + seconds)

    def _miss(self, sent: Sent) -> None:
        self._in_vain += 1
        away = self._places_before is not None
        if away or self._in_vain > max(_BY_CHANCE, self._in_flight):
            if not away:
                self._places_before = self._places
                log.warning("no answer %d times in a row: the others wait", self._in_vain)
            self._slow_down(sent, None)
            self._places = 1

    def _go_on(self) -> None:
        self._in_a_row = self._in_vain = 0
        if self._places_before is not None:
            self._places, self._places_before = self._places_before, None
            log.warning("answered again: all go on")
        else:
            self._places = min(self._most, self._places + 1 / self._places)

    async def _change_within(self, seconds: float | None) -> None:
        """Wait until something changed, `seconds` at most."""
        self._change = asyncio.get_running_loop().create_future()
        if seconds is None:
            await self._change
            return
        until = self._closed_until
        slept = asyncio.ensure_future(self._sleep(seconds))
        try:
            await asyncio.wait({slept, self._change}, return_when=asyncio.FIRST_COMPLETED)
            if slept.done():
                slept.result()
                if self._closed_until == until:
                    self._closed_until = None
        finally:
            slept.cancel()

    def _tell(self) -> None:
        if self._change is not None and not self._change.done():
            self._change.set_result(None)


def slows_down(error: CallError) -> bool:
    """Whether the server wants fewer requests: a 429, or any passing error with a Retry-After."""
    wanted = error.rate_limited or bool(error.retry_after)
    return wanted and PROBLEMS[error.problem].call_again


def _window(name: str, limit: int, sharers: int | None, clock: Callable[[], float]) -> Window:
    """All of `limit`, or the part of one of `sharers`.

    Another run may have had this one's part until now, and nobody tells how much of it was used in
    the last minute. Taken as used evenly, a part that is kept busy is passed on without a burst.
    """
    if sharers is None:
        return Window(limit)
    if limit < sharers:
        raise InvalidInput(
            f"{name} is {limit}, must be {sharers} or more: as many runs may share it, "
            "which is the limit of their pool"
        )
    return Window(limit // sharers, used_until=clock())
