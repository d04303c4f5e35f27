"""A document that is read when its turn comes, and what there is to summarize in it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.refine.chunking import Chunk, split_text
from promptchain_dagster.refine.documents import Document
from promptchain_dagster.refine.outcome import NoContent, Unreadable
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.tokens import Encoder


@dataclass(frozen=True)
class Source:
    """One document of a collection. `load` reads it, in a thread; where it can't be read, it
    raises `InvalidInput` or `OSError`."""

    key: str
    load: Callable[[], Document]


@dataclass(frozen=True)
class Readable:
    """A document's chunks; `digest` (SHA-256, hex) is of its clean text."""

    chunks: Sequence[Chunk]
    digest: str
    warnings: tuple[str, ...]


def read_source(
    source: Source, settings: RefineSettings, encoder: Encoder
) -> Readable | NoContent | Unreadable:
    """Read and split one document. Blocks: call it off the event loop."""
    try:
        document = source.load()
        if not document.has_content:
            return NoContent(warnings=document.warnings)
        chunks = split_text(document.text, settings.chunk_tokens, encoder)
    except (InvalidInput, OSError) as error:
        failed = isinstance(error, OSError) or isinstance(error.__cause__, OSError)
        return Unreadable(error=str(error), may_pass=failed)
    digest = hashlib.sha256(document.text.encode()).hexdigest()
    return Readable(chunks, digest, document.warnings)
