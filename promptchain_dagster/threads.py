"""Blocking work beside the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


async def in_thread(function: Callable[..., T], *args: Any, **named: Any) -> T:
    """Run `function` in a thread and wait for it; once asked for it is done, cancelled or not.

    A cancelled `asyncio.to_thread` drops work that no thread has taken up yet, and with it a
    summary that was paid for.
    """
    work = asyncio.get_running_loop().run_in_executor(None, partial(function, *args, **named))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait({work})
        raise
