"""What the tests of incremental refine share: chunks made by hand, and a fold in one line."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from promptchain_dagster.models.calls import Calls
from promptchain_dagster.refine.checkpoints import Checkpoints
from promptchain_dagster.refine.chunking import Chunk
from promptchain_dagster.refine.definition import Refine
from promptchain_dagster.refine.fold import refine_document
from promptchain_dagster.refine.outcome import Stopped, Summarized
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.refine.steps import summary_refine
from promptchain_dagster.store import Store, open_store
from promptchain_dagster.testing import Script, ScriptedChatModel

SUMMARY = re.compile(r"<summary_so_far>(.*)</summary_so_far>", re.DOTALL)
TO_COMPRESS = re.compile(r"<summary>(.*)</summary>", re.DOTALL)
PART = re.compile(r'<part number="(\d+)" of="(\d+)">(.*)</part>', re.DOTALL)


def chunks_of(*texts: str) -> list[Chunk]:
    """The texts as the chunks of one document, a token for each word."""
    chunks: list[Chunk] = []
    start = 0
    for index, text in enumerate(texts, start=1):
        end = start + len(text)
        chunks.append(Chunk(index, len(texts), text, start, end, len(text.split())))
        start = end
    return chunks


async def no_wait(seconds: float) -> None:
    """Wait for nothing."""


def fold(
    chunks: Sequence[Chunk],
    model: ScriptedChatModel | Script,
    home: Path | Store,
    *,
    max_words: int = 500,
    generation: str | None = None,
    refine: Refine | None = None,
    **options: Any,
) -> Summarized | Stopped:
    """One run over one document, in an event loop of its own."""
    if not isinstance(model, ScriptedChatModel):
        model = ScriptedChatModel(model)
    store = open_store(str(home)) if isinstance(home, Path) else home
    settings = RefineSettings(max_words=max_words, refine=refine or summary_refine())
    calls = Calls(model, sleep=no_wait)
    checkpoints = Checkpoints(store, generation)
    return asyncio.run(refine_document(chunks, settings, calls, checkpoints, **options))


def summary_sent(prompt: str) -> str:
    """The running summary that a refine prompt holds."""
    found = SUMMARY.search(prompt)
    assert found, prompt
    return found[1]


def index_sent(prompt: str) -> int | None:
    """The number of the chunk that a refine prompt holds; None for a compress prompt."""
    found = PART.search(prompt)
    return int(found[1]) if found else None
