"""LlamaIndex: its Refine synthesizer, a document at a time in each place; nothing kept."""

from __future__ import annotations

import asyncio

from llama_index.core.prompts import PromptTemplate
from llama_index.core.response_synthesizers import Refine
from llama_index.llms.openai import OpenAI

from benchmarks.peers.workers import given, run
from benchmarks.workload import MODEL

FIRST = "Summarize this part of a long document.\n\n{context_str}\n\n{query_str}"
NEXT = (
    "You are summarizing a long document one part at a time.\n\n{existing_answer}\n\n"
    "{context_msg}\n\nUpdate the summary so it also covers this part. {query_str}"
)


async def main() -> None:
    url, workload, _ = given()
    synthesizer = Refine(
        llm=OpenAI(model=MODEL, api_base=url, max_retries=0, reuse_client=True),
        text_qa_template=PromptTemplate(FIRST),
        refine_template=PromptTemplate(NEXT),
    )

    async def summarize(number: int, chunks: list[str]) -> object:
        return await synthesizer.aget_response("Return only the summary.", chunks)

    await run(summarize, workload, at_once=workload.in_flight)


if __name__ == "__main__":
    asyncio.run(main())
