"""What `make fuzz` and the tests run, by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fuzz import documents, prompts, replies, stored

Target = Callable[[bytes], None]

TARGETS: dict[str, Target] = {
    "reply": replies.parsed_reply,
    "text-reply": replies.cleaned_reply,
    "latex": replies.swallowed_text,
    "summary": replies.summary_reply,
    "body": replies.answered_body,
    "redact": replies.redacted_words,
    "document": documents.read_document,
    "chunks": documents.chunked_text,
    "keys": documents.partition_keys,
    "checkpoint": stored.damaged_checkpoint,
    "registry": stored.damaged_registry,
    "prompt": prompts.filled_prompt,
    "template": prompts.any_template,
    "brief": prompts.any_brief,
}

CORPUS = Path(__file__).parent / "corpus"
"""A folder for each target: what to begin with, and every input that once found a fault."""


def corpus_of(name: str) -> list[Path]:
    """The kept inputs of a target."""
    return sorted((CORPUS / name).glob("*"))
