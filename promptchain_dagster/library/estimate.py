"""About what summaries would cost, by the sizes of the files alone."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

from promptchain_dagster.models.prices import cost_usd
from promptchain_dagster.refine.plan import Plan, most_calls
from promptchain_dagster.refine.room import prompt_tokens, summary_tokens
from promptchain_dagster.refine.settings import RefineSettings

BYTES_PER_TOKEN = 4
"""Of English; other scripts have fewer, or more bytes to a character, which comes to the same."""


def estimate(sizes: Iterable[int], settings: RefineSettings, model: str) -> Plan:
    """A plan of documents that nobody has read: `sizes` are in bytes.

    What checkpoints cover is not left out, so it is rather too much. `cost_usd` is None where
    `model` has no price.
    """
    total = Plan()
    for size in sizes:
        total += _one(size, settings)
    cost = cost_usd(model, total.input_tokens, total.output_tokens) if total.documents else 0.0
    return dataclasses.replace(total, cost_usd=cost)


def _one(size: int, settings: RefineSettings) -> Plan:
    tokens = math.ceil(size / BYTES_PER_TOKEN)
    chunks = max(1, math.ceil(tokens / settings.chunk_tokens))
    summary = min(summary_tokens(settings), tokens)
    return Plan(
        documents=1,
        chunks=chunks,
        chunks_left=chunks,
        least_calls=chunks,
        most_calls=2 * most_calls(settings.refine, chunks),
        input_tokens=tokens + chunks * prompt_tokens(settings.refine) + (chunks - 1) * summary,
        output_tokens=chunks * summary,
        longest=chunks,
    )
