"""The workload by the core alone: `summarize_collection`, every chunk durable in a folder."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from benchmarks.child import Clock, new_folder, parameters, tell
from benchmarks.workload import CHUNK_TOKENS, MAX_WORDS, MODEL, Workload
from promptchain_dagster.chain import trace
from promptchain_dagster.chain.run import Record
from promptchain_dagster.models import Calls, ModelSettings, connect
from promptchain_dagster.refine.checkpoints import Checkpoints
from promptchain_dagster.refine.collection import summarize_collection
from promptchain_dagster.refine.documents import Document
from promptchain_dagster.refine.outcome import DocumentOutcome, Summarized
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.refine.source import Source
from promptchain_dagster.store import open_store
from promptchain_dagster.tokens import get_encoder

SETTINGS = RefineSettings(chunk_tokens=CHUNK_TOKENS, max_words=MAX_WORDS)


def sources_of(texts: Sequence[list[str]]) -> list[Source]:
    """The documents, to be split when their turn comes."""

    def source(number: int, chunks: list[str]) -> Source:
        document = Document(f"{number}.txt", f"document-{number}", "\n\n".join(chunks), ())
        return Source(document.key, lambda: document)

    return [source(number, chunks) for number, chunks in enumerate(texts)]


async def main(url: str, workload: Workload, *, traced: bool, home: str) -> dict[str, Any]:
    store = open_store(home)
    sources = sources_of(list(workload.texts()))
    encoder = get_encoder()
    done: list[DocumentOutcome] = []

    async def on_document(source: Source, outcome: DocumentOutcome) -> None:
        done.append(outcome)

    def record(source: Source, index: int) -> Record:
        return trace.recorder(store, "run", f"{source.key}/{index:06}")

    async with connect(ModelSettings(model=MODEL, base_url=url)) as model:
        calls = Calls(model, max_in_flight=workload.in_flight)
        with Clock() as clock:
            await summarize_collection(
                sources,
                SETTINGS,
                calls,
                Checkpoints(store),
                encoder,
                on_document=on_document,
                record=record if traced else None,
                documents_in_flight=2 * workload.in_flight,
            )
    assert all(isinstance(one, Summarized) for one in done) and len(done) == workload.documents
    return {"seconds": clock.seconds, "cpu_seconds": clock.cpu_seconds}


if __name__ == "__main__":
    given = parameters()
    workload = Workload(**given["workload"])
    home = new_folder(given["folder"])
    tell(**asyncio.run(main(given["url"], workload, traced=given["traced"], home=home)))
