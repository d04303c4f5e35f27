"""The writer's thread."""

import asyncio
import threading

import pytest

from promptchain_dagster.pipelines.materializer import Writer


def test_everything_is_written_in_order_by_the_end_and_the_thread_is_gone() -> None:
    """Leaving the block waits for it."""
    written: list[int] = []

    async def work(writer: Writer[int]) -> None:
        for item in range(500):
            await writer.put(item)

    with Writer(written.append) as writer:
        asyncio.run(work(writer))
    assert written == list(range(500))
    assert "event writer" not in {thread.name for thread in threading.enumerate()}


def test_whoever_has_more_than_may_wait_waits_and_the_loop_goes_on() -> None:
    """Nothing more is taken until something is written."""
    written: list[int] = []
    may_write = threading.Event()

    def write(item: int) -> None:
        assert may_write.wait(timeout=30)
        written.append(item)

    async def work(writer: Writer[int]) -> int:
        taken = 0

        async def give() -> None:
            nonlocal taken
            for item in range(20):
                await writer.put(item)
                taken += 1

        giving = asyncio.ensure_future(give())
        for _ in range(50):  # the loop is not held up
            await asyncio.sleep(0)
        before = taken
        may_write.set()
        await giving
        return before

    with Writer(write, waiting=3) as writer:
        assert asyncio.run(work(writer)) == 3
    assert written == list(range(20))


def test_what_writing_raises_ends_those_who_give_more() -> None:
    """And leaves no one waiting for room."""

    def write(item: int) -> None:
        raise OSError("the disk is full")

    async def work(writer: Writer[int]) -> None:
        for item in range(100):
            await writer.put(item)

    with pytest.raises(OSError, match="the disk is full"), Writer(write, waiting=2) as writer:
        asyncio.run(work(writer))
