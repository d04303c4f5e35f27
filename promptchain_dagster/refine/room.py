"""Whether prompt and reply fit what the model's context holds, where that is known (d3)."""

from __future__ import annotations

import math

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.models.base import ChatModel
from promptchain_dagster.refine.chunking import Chunk
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.tokens import get_encoder

TOKENS_PER_WORD = 1.5
"""Tokens that a word of a summary takes, on the high side for English."""

PROMPT_TOKENS = 100
"""Tokens of the refine prompt around summary and chunk, on the high side."""


def summary_tokens(settings: RefineSettings) -> int:
    """About how many tokens a summary of the length cap takes."""
    return math.ceil(settings.max_words * TOKENS_PER_WORD)


def require_room(
    settings: RefineSettings, context_tokens: int | None, max_output_tokens: int | None = None
) -> None:
    """Raise `InvalidInput` where prompt, summary, chunk and reply can't fit the context together.

    To be called before anything is spent; `context_tokens` None is unknown, and not checked.
    """
    if context_tokens is None:
        return
    summary = summary_tokens(settings)
    reply = max_output_tokens or summary
    room = context_tokens - PROMPT_TOKENS - summary - reply
    if settings.chunk_tokens > room:
        advice = f"chunk_tokens can be at most {room}" if room > 0 else "max_words must be smaller"
        raise InvalidInput(
            f"chunk_tokens is {settings.chunk_tokens}, too many for the model's context of"
            f" {context_tokens} tokens: the prompt takes about {PROMPT_TOKENS}, a summary of"
            f" {settings.max_words} words about {summary}, the reply up to {reply}; {advice}"
        )


def why_too_long(model: ChatModel, summary: str, chunk: Chunk | None = None) -> str | None:
    """Why a prompt with `summary` (and `chunk`) would not fit the context; None where it would."""
    if model.context_tokens is None:
        return None
    encoder = get_encoder()  # near enough for any model, as are the other numbers
    parts = {
        "the prompt": PROMPT_TOKENS,
        "the summary so far": encoder.count(summary),
        "the chunk": chunk.tokens if chunk else 0,
        "the reply": model.max_output_tokens or 0,
    }
    if sum(parts.values()) <= model.context_tokens:
        return None
    told = ", ".join(f"{name} {tokens}" for name, tokens in parts.items() if tokens)
    return (
        f"not sent, being over the model's context of {model.context_tokens} tokens: {told};"
        " make chunk_tokens or max_words smaller"
    )
