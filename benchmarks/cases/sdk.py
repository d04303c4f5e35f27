"""The workload by a loop over the OpenAI SDK, nothing kept."""

from __future__ import annotations

import asyncio

from openai import AsyncOpenAI

from benchmarks.child import Clock, parameters, tell
from benchmarks.workload import MODEL, Workload, refine_prompt


async def main(url: str, workload: Workload) -> None:
    places = asyncio.Semaphore(workload.in_flight)
    texts = list(workload.texts())
    async with AsyncOpenAI(base_url=url, max_retries=0) as client:

        async def summarize(chunks: list[str]) -> str:
            summary = ""
            for index, chunk in enumerate(chunks, start=1):
                prompt = refine_prompt(summary, chunk, index, len(chunks))
                async with places:
                    reply = await client.chat.completions.create(
                        model=MODEL, messages=[{"role": "user", "content": prompt}]
                    )
                summary = reply.choices[0].message.content or ""
            return summary

        with Clock() as clock:
            await asyncio.gather(*map(summarize, texts))
    tell(seconds=clock.seconds, cpu_seconds=clock.cpu_seconds)


if __name__ == "__main__":
    given = parameters()
    asyncio.run(main(given["url"], Workload(**given["workload"])))
