"""The documents through `summarize_collection`, one run after another, in a process of its own."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.child import parameters, tell
from promptchain_dagster.chain import trace
from promptchain_dagster.chain.run import Record
from promptchain_dagster.library.folder import Folder
from promptchain_dagster.models import Budget, Calls, Ledger, ModelSettings, connect
from promptchain_dagster.refine.checkpoints import Checkpoints
from promptchain_dagster.refine.collection import summarize_collection
from promptchain_dagster.refine.documents import Document, document_key
from promptchain_dagster.refine.outcome import DocumentOutcome
from promptchain_dagster.refine.result import document_result
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.refine.source import Source
from promptchain_dagster.store import open_store
from promptchain_dagster.tokens import encoding_for
from soak.documents import CHUNK_TOKENS, MAX_WORDS
from soak.heard import Heard, hearing
from soak.limits import Limits
from soak.resources import Samples, held, memory_mb
from soak.server import MODEL

SETTINGS = RefineSettings(chunk_tokens=CHUNK_TOKENS, max_words=MAX_WORDS)
WARM_UP = 20
"""Documents."""


def sources_in(folder: str) -> list[Source]:
    """The files of the folder, each read when its turn comes."""
    documents = Folder(folder)

    def source(path: str) -> Source:
        def load() -> Document:
            return documents.load(path)

        return Source(document_key(path), load)

    return [source(file.path) for file in documents.list().files]


async def summarize(
    sources: Sequence[Source], url: str, home: str, run_id: str, limits: Limits
) -> dict[str, Any]:
    """One run: what it came to; what became of each document goes to `<home>/../<run_id>.jsonl`."""
    store, heard, samples = open_store(home), Heard(), Samples()
    done = 0

    async def on_document(source: Source, outcome: DocumentOutcome) -> None:
        nonlocal done
        key = source.key
        result = document_result(outcome, path=key, document_key=key, run_id=run_id)
        results.write(json.dumps(result) + "\n")
        done += 1
        if done % max(1, len(sources) // 40) == 0:
            samples.append((done, memory_mb()))

    def record(source: Source, index: int) -> Record:
        return trace.recorder(store, run_id, f"{source.key}/{index:06}")

    settings = ModelSettings(model=MODEL, base_url=url, timeout_seconds=limits.timeout_seconds)
    budget = Budget(limits.max_cost_usd, limits.max_tokens)
    began = time.monotonic()
    with Path(home).with_name(f"{run_id}.jsonl").open("w", encoding="utf-8") as results:
        async with (
            hearing(connect(settings), heard) as model,
            Ledger(store, run_id, day_budget=budget) as ledger,
        ):
            calls = Calls(
                model,
                max_in_flight=limits.max_in_flight,
                timeout_seconds=limits.timeout_seconds,
                requests_per_minute=limits.requests_per_minute,
                tokens_per_minute=limits.tokens_per_minute,
                budget=budget,
                ledger=ledger,
            )
            await summarize_collection(
                sources,
                SETTINGS,
                calls,
                Checkpoints(store),
                encoding_for(MODEL)[0],
                on_document=on_document,
                record=record,
                documents_in_flight=2 * limits.max_in_flight,
            )
    return {
        "seconds": time.monotonic() - began,
        "requests": calls.requests,
        "usage": asdict(calls.usage),
        "memory": samples,
        **vars(heard),
    }


def main(folder: str, home: str, runs: dict[str, str], calm: str, limits: Limits) -> None:
    """`runs` are names and the URLs of the servers that they ask; `calm` is that of a good one."""
    sources = sources_in(folder)
    asyncio.run(summarize(sources[:WARM_UP], calm, f"{home}-warm-up", "warm-up", limits))
    before = held()
    told = [
        {**asyncio.run(summarize(sources, url, home, name, limits)), "left": held() - before}
        for name, url in runs.items()
    ]
    tell(runs=told)


if __name__ == "__main__":
    given = parameters()
    limits = Limits(given["documents"])
    main(given["folder"], given["home"], given["runs"], given["calm"], limits)
