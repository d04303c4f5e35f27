"""LangGraph: a graph that loops over the chunks, a checkpoint in SQLite after each."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph

from benchmarks.child import new_folder
from benchmarks.peers.workers import given, run
from benchmarks.workload import MODEL, refine_prompt


class State(TypedDict):
    """What is kept after each chunk; the chunks themselves are looked up by the number."""

    document: int
    index: int
    summary: str


async def main() -> None:
    url, workload, folder = given()
    model = ChatOpenAI(model=MODEL, base_url=url, max_retries=0)
    places = asyncio.Semaphore(workload.in_flight)
    texts: dict[int, list[str]] = {}

    async def refine(state: State) -> dict[str, Any]:
        chunks, index = texts[state["document"]], state["index"] + 1
        prompt = refine_prompt(state["summary"], chunks[index - 1], index, len(chunks))
        async with places:
            reply = await model.ainvoke(prompt)
        return {"index": index, "summary": reply.content}

    def goes_on(state: State) -> str:
        return "refine" if state["index"] < len(texts[state["document"]]) else END

    graph = StateGraph(State)
    graph.add_node("refine", refine)
    graph.add_edge(START, "refine")
    graph.add_conditional_edges("refine", goes_on, ["refine", END])
    kept = str(Path(new_folder(folder)) / "kept.db")
    async with AsyncSqliteSaver.from_conn_string(kept) as saver:
        compiled = graph.compile(checkpointer=saver)

        async def summarize(number: int, chunks: list[str]) -> object:
            texts[number] = chunks
            config = {"configurable": {"thread_id": str(number)}, "recursion_limit": 100}
            start: State = {"document": number, "index": 0, "summary": ""}
            return await compiled.ainvoke(start, config)

        await run(summarize, workload)


if __name__ == "__main__":
    asyncio.run(main())
