"""Writes events to Dagster from a thread, so that no event holds up the event loop."""

import queue
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Generic, TypeVar

T = TypeVar("T")


class Writer(Generic[T]):
    """Hands what it is given to `write`, in order, in a thread of its own.

    An event costs about 10 ms; within the event loop it would stop every other document. Leaving
    the `with` block waits until all is written, since a thread that outlives its step writes
    outside the run; it raises what `write` raised, unless the block itself raised.
    """

    def __init__(self, write: Callable[[T], None]) -> None:
        self._write = write
        self._queue: queue.SimpleQueue[T | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="event writer")
        self._error: Exception | None = None

    async def put(self, item: T) -> None:
        """Take `item`; returns at once."""
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
                except Exception as error:  # told where the writer is left
                    self._error = error
