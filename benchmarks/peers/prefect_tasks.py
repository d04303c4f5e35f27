"""Prefect: a task per chunk with its result persisted, a flow over all documents."""

from __future__ import annotations

import asyncio
import os

from benchmarks.child import new_folder
from benchmarks.peers.workers import given, run
from benchmarks.workload import MODEL, refine_prompt


async def main(url: str, scratch: str) -> None:
    # Prefect reads its settings when it is imported.
    os.environ["PREFECT_HOME"] = scratch
    from openai import AsyncOpenAI
    from prefect import flow, task

    _, workload, _ = given()
    async with AsyncOpenAI(base_url=url, max_retries=0) as client:

        @task(persist_result=True)
        async def refine(prompt: str) -> str:
            reply = await client.chat.completions.create(
                model=MODEL, messages=[{"role": "user", "content": prompt}]
            )
            return reply.choices[0].message.content or ""

        async def summarize(number: int, chunks: list[str]) -> str:
            summary = ""
            for index, chunk in enumerate(chunks, start=1):
                summary = await refine(refine_prompt(summary, chunk, index, len(chunks)))
            return summary

        @flow
        async def collection() -> None:
            await run(summarize, workload, at_once=workload.in_flight)

        await collection()


if __name__ == "__main__":
    address, _, folder = given()
    asyncio.run(main(address, new_folder(folder)))
