"""What the peers share: the clock around all documents, and how many calls are under way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from benchmarks.child import Clock, parameters, tell
from benchmarks.workload import Workload

Summarize = Callable[[int, list[str]], Awaitable[object]]
"""Summarizes the document of that number, its chunks in order."""


async def run(summarize: Summarize, workload: Workload, *, at_once: int | None = None) -> None:
    """All documents beside each other, or `at_once` of them, timed after one short one."""
    places = asyncio.Semaphore(at_once or workload.documents)

    async def one(number: int, chunks: list[str]) -> None:
        async with places:
            await summarize(number, chunks)

    texts = list(workload.texts())
    await summarize(-1, ["Only what is loaded late is loaded by this."])
    with Clock() as clock:
        await asyncio.gather(*(one(number, chunks) for number, chunks in enumerate(texts)))
    tell(seconds=clock.seconds, cpu_seconds=clock.cpu_seconds)


def given() -> tuple[str, Workload, str]:
    """The server's URL, the workload, and a folder to write in."""
    values = parameters()
    return values["url"], Workload(**values["workload"]), values["folder"]
