"""Writes events to Dagster from a thread, so that no event holds up the event loop."""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Generic, TypeVar

T = TypeVar("T")

WAITING = 100
"""Items; at 10 ms an event, they are written in a second."""


class Writer(Generic[T]):
    """Hands what it is given to `write`, in order, in a thread of its own.

    An event costs about 10 ms; within the event loop it would stop every other document. At most
    `waiting` items wait at once: whoever has more waits too. Leaving the `with` block waits until
    all is written, since a thread that outlives its step writes outside the run; it raises what
    `write` raised, unless the block itself raised. So does giving it more.
    """

    def __init__(self, write: Callable[[T], None], *, waiting: int = WAITING) -> None:
        self._write = write
        self._room = asyncio.Semaphore(waiting)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._queue: queue.SimpleQueue[T | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="event writer")
        self._error: Exception | None = None

    async def put(self, item: T) -> None:
        """Take `item`, once there is room for it."""
        await self.reserve()
        self.add(item)

    async def reserve(self) -> None:
        """Wait until there is room for one item more, which is then `add`ed."""
        if self._error is not None:
            raise self._error
        self._loop = asyncio.get_running_loop()
        await self._room.acquire()

    def add(self, item: T) -> None:
        """Take the item that room was reserved for, in whichever thread."""
        self._queue.put(item)

    def __enter__(self) -> "Writer[T]":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._queue.put(None)
        self._thread.join()
        if self._error and value is None:
            raise self._error

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            if self._error is None:
                try:
                    self._write(item)
                except Exception as error:  # told where more is given, or the writer is left
                    self._error = error
            if self._loop is not None:
                with contextlib.suppress(RuntimeError):  # the loop has ended, and nobody waits
                    self._loop.call_soon_threadsafe(self._room.release)
