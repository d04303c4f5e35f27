"""ReAttempt: the same call again after a delay, with an explicit budget and jitter."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ReAttempt:
    """How often a failed call may be made again, and how long to wait before each.

    `budget` counts re-attempts, the first call not included. The delay in seconds doubles from
    `delay_seconds` up to `max_delay_seconds`; half of it is drawn at random, so that many callers
    do not come back at once.
    """

    budget: int
    delay_seconds: float = 0.0
    max_delay_seconds: float = 30.0

    def delay(self, number: int, at_least: float = 0.0) -> float:
        """Seconds to wait before re-attempt `number` (from 1), never less than `at_least`."""
        full = min(self.delay_seconds * 2 ** (number - 1), self.max_delay_seconds)
        return max(at_least, full * random.uniform(0.5, 1.0))

    async def wait(self, number: int, at_least: float = 0.0, sleep: Sleep = asyncio.sleep) -> float:
        """Wait that long; returns the seconds."""
        seconds = self.delay(number, at_least)
        if seconds > 0:
            await sleep(seconds)
        return seconds
