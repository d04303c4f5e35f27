"""An event loop whose time passes at once: hours of waiting take no time, and nothing can hang."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _NoWait(selectors.DefaultSelector):
    """Instead of waiting, moves the clock to where the wait would have ended."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise AssertionError("every task waits for something that nothing will bring about")
        self.now += max(timeout, 0)
        return super().select(0)


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._clock = _NoWait()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now


def run(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` in virtual time, which `now` tells; fails if `work` leaves a task behind."""
    loop = _Loop()
    try:
        result = loop.run_until_complete(work)
        loop.run_until_complete(asyncio.sleep(0))
        left = asyncio.all_tasks(loop)
        assert not left, f"left behind: {left}"
        return result
    finally:
        loop.close()


def now() -> float:
    """Seconds of the running loop's own time."""
    return asyncio.get_running_loop().time()
