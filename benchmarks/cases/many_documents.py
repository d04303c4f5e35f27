"""Many documents in one run of the core, by a model that answers at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from benchmarks.cases.core import SETTINGS
from benchmarks.cases.model import InstantModel
from benchmarks.child import Clock, new_folder, parameters, tell
from benchmarks.workload import Workload
from promptchain_dagster.models import Calls
from promptchain_dagster.refine.checkpoints import Checkpoints
from promptchain_dagster.refine.collection import summarize_collection
from promptchain_dagster.refine.documents import Document
from promptchain_dagster.refine.outcome import DocumentOutcome, Summarized
from promptchain_dagster.refine.source import Source
from promptchain_dagster.store import open_store
from promptchain_dagster.tokens import get_encoder


def sources_of(workload: Workload) -> Iterator[Source]:
    """Each document twice as many times as needed would be one; so a word makes them distinct."""
    texts = ["\n\n".join(chunks) for chunks in Workload(10, workload.chunks).texts()]

    def source(number: int) -> Source:
        key = f"document-{number}"

        def load() -> Document:
            return Document(f"{key}.txt", key, f"Document {number}.\n\n{texts[number % 10]}", ())

        return Source(key, load)

    return map(source, range(workload.documents))


async def main(workload: Workload, home: str) -> None:
    done = 0

    async def on_document(source: Source, outcome: DocumentOutcome) -> None:
        nonlocal done
        done += isinstance(outcome, Summarized)

    calls = Calls(InstantModel(), max_in_flight=workload.in_flight)
    checkpoints, encoder = Checkpoints(open_store(home)), get_encoder()
    with Clock() as clock:
        await summarize_collection(
            sources_of(workload), SETTINGS, calls, checkpoints, encoder, on_document=on_document
        )
    assert done == workload.documents
    tell(seconds=clock.seconds, cpu_seconds=clock.cpu_seconds)


if __name__ == "__main__":
    given = parameters()
    asyncio.run(main(Workload(**given["workload"]), new_folder(given["folder"])))
