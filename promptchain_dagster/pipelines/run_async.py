"""`asyncio.run` for an op: a terminated run stops at once, wherever the signal lands."""

import asyncio
import contextlib
import signal
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

import dagster as dg

T = TypeVar("T")

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run_async(work: Callable[[], Awaitable[T]]) -> T:
    """Run `work()` in an event loop of its own and return what it returns.

    A SIGINT or SIGTERM cancels the work and raises `DagsterExecutionInterruptedError`. Without
    this, a signal that lands inside a coroutine may be swallowed there, and the run goes on.
    Dagster's own handlers are back in place afterwards.
    """
    if threading.current_thread() is not threading.main_thread():
        return asyncio.run(_awaited(work))  # signals reach the main thread alone
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    interrupted = False

    async def cancellable() -> T:
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()

        def stop() -> None:
            nonlocal interrupted
            interrupted = True
            task.cancel()

        for number in _SIGNALS:
            loop.add_signal_handler(number, stop)
        try:
            return await work()
        finally:
            for number in _SIGNALS:
                with contextlib.suppress(RuntimeError, ValueError):
                    loop.remove_signal_handler(number)

    try:
        return asyncio.run(cancellable())
    except asyncio.CancelledError:
        if interrupted:
            raise dg.DagsterExecutionInterruptedError() from None
        raise
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


async def _awaited(work: Callable[[], Awaitable[T]]) -> T:
    return await work()
