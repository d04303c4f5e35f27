"""What shapes a summary, beside the model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.prompts import one_line_problem
from promptchain_dagster.refine.definition import Refine
from promptchain_dagster.refine.steps import summary_refine

MAX_CHUNK_TOKENS = 1_000_000
MAX_SUMMARY_WORDS = 50_000


@dataclass(frozen=True)
class RefineSettings:
    """How a document is summarized (spec: incremental refine, with its defaults).

    `document_type` is what the prompt calls the document, one line; `chunk_tokens` the most tokens
    a chunk may have; `max_words` the length cap of the summary; `refine` the prompts, and what is
    carried from chunk to chunk.

    Raises `InvalidInput` for a value that cannot work.
    """

    document_type: str = "document"
    chunk_tokens: int = 2000
    max_words: int = 500
    refine: Refine = field(default_factory=summary_refine)

    def __post_init__(self) -> None:
        if problem := one_line_problem(self.document_type):
            raise InvalidInput(f"document_type {problem}")
        _require_range("chunk_tokens", self.chunk_tokens, MAX_CHUNK_TOKENS)
        _require_range("max_words", self.max_words, MAX_SUMMARY_WORDS)
        refine: Any = self.refine
        if not isinstance(refine, Refine):
            raise InvalidInput(f"refine is a {type(refine).__name__}, must be a Refine(step)")

    @property
    def numbers(self) -> dict[str, Any]:
        """All but the refine, by name, as values that a config or a trace can hold."""
        return {
            "document_type": self.document_type,
            "chunk_tokens": self.chunk_tokens,
            "max_words": self.max_words,
        }


def _require_range(name: str, value: object, most: int) -> None:
    if type(value) is not int or not 1 <= value <= most:
        raise InvalidInput(f"{name} is {value!r}, must be an integer from 1 to {most:,}")
