"""One document of many chunks, by a model that answers at once: whole, or killed and resumed."""

from __future__ import annotations

import asyncio
import time

from benchmarks.cases.model import InstantModel
from benchmarks.child import Clock, new_folder, parameters, tell
from benchmarks.workload import PARAGRAPHS_PER_CHUNK, paragraphs_of
from promptchain_dagster.models import Calls
from promptchain_dagster.refine.checkpoints import Checkpoints
from promptchain_dagster.refine.chunking import Chunk
from promptchain_dagster.refine.fold import refine_document
from promptchain_dagster.refine.outcome import Summarized
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.store import Store, open_store

TOKENS = 1850


def chunks_of(total: int) -> list[Chunk]:
    """As `split_text` gives them, without the time it takes: the same text in every tenth."""
    texts = ["\n\n".join(paragraphs_of(seed, PARAGRAPHS_PER_CHUNK)) for seed in range(10)]
    chunks: list[Chunk] = []
    for index in range(1, total + 1):
        text, start = texts[index % 10], chunks[-1].end if chunks else 0
        chunks.append(Chunk(index, total, text, start, start + len(text), TOKENS))
    return chunks


async def fold(chunks: list[Chunk], store: Store, model: InstantModel) -> bool:
    """Fold them; whether it came to the end."""
    outcome = await refine_document(chunks, RefineSettings(), Calls(model), Checkpoints(store))
    return isinstance(outcome, Summarized)


def main(total: int, stop_at: int | None, folder: str) -> None:
    chunks = chunks_of(total)
    store = open_store(new_folder(folder))
    if stop_at is not None:
        assert not asyncio.run(fold(chunks, store, InstantModel(limit=stop_at)))
    model = InstantModel()
    began = time.perf_counter()
    with Clock() as clock:
        assert asyncio.run(fold(chunks, store, model))
    tell(seconds=clock.seconds, calls=model.calls, before_next_call=model.first_at - began)


if __name__ == "__main__":
    given = parameters()
    main(given["chunks"], given["stop_at"], given["folder"])
