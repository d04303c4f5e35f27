"""LangChain: prompt | ChatOpenAI | parser, once per chunk; nothing kept."""

from __future__ import annotations

import asyncio

from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI

from benchmarks.peers.workers import given, run
from benchmarks.workload import MAX_WORDS, MODEL, REFINE_PROMPT


async def main() -> None:
    url, workload, _ = given()
    model = ChatOpenAI(model=MODEL, base_url=url, max_retries=0)
    chain = ChatPromptTemplate.from_template(REFINE_PROMPT) | model | StrOutputParser()
    places = asyncio.Semaphore(workload.in_flight)

    async def summarize(number: int, chunks: list[str]) -> str:
        summary = ""
        for index, chunk in enumerate(chunks, start=1):
            fields = {
                "document_type": "document",
                "summary": summary,
                "index": index,
                "total": len(chunks),
                "chunk": chunk,
                "max_words": MAX_WORDS,
            }
            async with places:
                summary = await chain.ainvoke(fields)
        return summary

    await run(summarize, workload)


if __name__ == "__main__":
    asyncio.run(main())
