"""Whether prompt and reply fit what the model's context holds, where that is known (d3)."""

from __future__ import annotations

import math
from functools import cache

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.models.base import ChatModel
from promptchain_dagster.prompts import PromptTemplate
from promptchain_dagster.refine.chunking import Chunk
from promptchain_dagster.refine.definition import Refine
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.refine.steps import summary_refine
from promptchain_dagster.tokens import get_encoder

TOKENS_PER_WORD = 1.5
"""Tokens that a word of a summary takes, on the high side for English."""

TOKENS_PER_JSON_WORD = 4
"""The same of a typed state, whose brackets, quotes and indents are no words."""

PROMPT_TOKENS = 100
"""Tokens of the built-in refine prompt around summary and chunk, on the high side."""


def prompt_tokens(refine: Refine, *, compress: bool = False) -> int:
    """Tokens of a prompt around what is put into it; one's own prompt is counted, slots and all."""
    if refine is summary_refine():
        return PROMPT_TOKENS
    step = refine.compress if compress and refine.compress else refine.step
    return _tokens_of(step.prompt)


@cache
def _tokens_of(prompt: PromptTemplate) -> int:
    return get_encoder().count(prompt.text)


def summary_tokens(settings: RefineSettings) -> int:
    """About how many tokens a summary, or a state, of the length cap takes."""
    per_word = TOKENS_PER_WORD if settings.refine.gives_text else TOKENS_PER_JSON_WORD
    return math.ceil(settings.max_words * per_word)


def require_room(
    settings: RefineSettings, context_tokens: int | None, max_output_tokens: int | None = None
) -> None:
    """Raise `InvalidInput` where prompt, summary, chunk and reply can't fit the context together.

    To be called before anything is spent; `context_tokens` None is unknown, and not checked.
    """
    if context_tokens is None:
        return
    summary, prompt = summary_tokens(settings), prompt_tokens(settings.refine)
    reply = max_output_tokens or summary
    room = context_tokens - prompt - summary - reply
    if settings.chunk_tokens > room:
        advice = f"chunk_tokens can be at most {room}" if room > 0 else "max_words must be smaller"
        raise InvalidInput(
            f"chunk_tokens is {settings.chunk_tokens}, too many for the model's context of"
            f" {context_tokens} tokens: the prompt takes about {prompt}, a summary of"
            f" {settings.max_words} words about {summary}, the reply up to {reply}; {advice}"
        )


def why_too_long(
    model: ChatModel, refine: Refine, summary: str, chunk: Chunk | None = None
) -> str | None:
    """Why the prompt for `summary` and `chunk` (to compress, without one) would not fit the
    context; None where it would."""
    if model.context_tokens is None:
        return None
    encoder = get_encoder()  # near enough for any model, as are the other numbers
    parts = {
        "the prompt": prompt_tokens(refine, compress=chunk is None),
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
