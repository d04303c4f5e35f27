"""What shapes a summary, beside the prompts and the model."""

from __future__ import annotations

from dataclasses import dataclass

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.prompts import one_line_problem

MAX_CHUNK_TOKENS = 1_000_000
MAX_SUMMARY_WORDS = 50_000


@dataclass(frozen=True)
class RefineSettings:
    """How a document is summarized (spec: incremental refine, with its defaults).

    `document_type` is what the prompt calls the document, one line; `chunk_tokens` the most tokens
    a chunk may have; `max_words` the length cap of the summary.

    Raises `InvalidInput` for a value that cannot work.
    """

    document_type: str = "document"
    chunk_tokens: int = 2000
    max_words: int = 500

    def __post_init__(self) -> None:
        if problem := one_line_problem(self.document_type):
            raise InvalidInput(f"document_type {problem}")
        _require_range("chunk_tokens", self.chunk_tokens, MAX_CHUNK_TOKENS)
        _require_range("max_words", self.max_words, MAX_SUMMARY_WORDS)


def _require_range(name: str, value: object, most: int) -> None:
    if type(value) is not int or not 1 <= value <= most:
        raise InvalidInput(f"{name} is {value!r}, must be an integer from 1 to {most:,}")
