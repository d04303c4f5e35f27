"""The calls, tokens and cost of summaries before anything is spent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from promptchain_dagster.models.base import ChatModel
from promptchain_dagster.models.prices import cost_usd
from promptchain_dagster.refine.checkpoints import Checkpoints
from promptchain_dagster.refine.chunking import Chunk
from promptchain_dagster.refine.definition import Refine
from promptchain_dagster.refine.room import prompt_tokens, summary_tokens
from promptchain_dagster.refine.settings import RefineSettings


@dataclass(frozen=True)
class Plan:
    """What one or more documents still need; what checkpoints cover is left out.

    `least_calls` is one for each chunk that is left (and one for a compression that is); in
    `most_calls` each of those chunks needs a compression too (where there is one), every step its
    re-attempts, and every call its retries.
    Tokens and US dollars are estimates for the least calls, every summary being as long as its
    cap, or as the text it covers where that is shorter. `cost_usd` is None where there is no
    price. `longest` counts the least calls of the document that has most: they come one by one.
    """

    documents: int = 0
    chunks: int = 0
    chunks_left: int = 0
    least_calls: int = 0
    most_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    longest: int = 0

    def __add__(self, other: Plan) -> Plan:
        known = self.cost_usd is not None and other.cost_usd is not None
        return Plan(
            documents=self.documents + other.documents,
            chunks=self.chunks + other.chunks,
            chunks_left=self.chunks_left + other.chunks_left,
            least_calls=self.least_calls + other.least_calls,
            most_calls=self.most_calls + other.most_calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_usd=(self.cost_usd or 0) + (other.cost_usd or 0) if known else None,
            longest=max(self.longest, other.longest),
        )

    def seconds(self, seconds_per_call: float, max_in_flight: int) -> float:
        """How long the least calls take at that rate."""
        rounds = max(self.longest, math.ceil(self.least_calls / max_in_flight))
        return rounds * seconds_per_call


def plan_document(
    chunks: Sequence[Chunk],
    settings: RefineSettings,
    model: ChatModel,
    checkpoints: Checkpoints,
    *,
    retries: int = 1,
) -> Plan:
    """The plan of one document; reads its checkpoints, so call it off the event loop."""
    found = checkpoints.of(chunks, settings, model).furthest()
    refine, longest_summary = settings.refine, summary_tokens(settings)
    covered = 0
    given = told = 0
    for chunk in chunks:
        before = min(longest_summary, covered)
        covered += chunk.tokens
        after = min(longest_summary, covered)
        if chunk.index > found.index:
            given += prompt_tokens(refine) + chunk.tokens + before
            told += after
        elif chunk.index == found.index and found.uncompressed:
            given += prompt_tokens(refine, compress=True) + after
            told += after
    left = len(chunks) - found.index
    least = left + found.uncompressed
    return Plan(
        documents=1,
        chunks=len(chunks),
        chunks_left=left,
        least_calls=least,
        most_calls=most_calls(refine, left, found.uncompressed) * (1 + retries),
        input_tokens=given,
        output_tokens=told,
        cost_usd=cost_usd(model.name, given, told) if least else 0.0,
        longest=least,
    )


def most_calls(refine: Refine, chunks: int, compressions: int = 0) -> int:
    """Calls for so many chunks and compressions left over, each at its worst, without retries."""
    each = 1 + refine.step.max_retries_per_step
    shorter = 1 + refine.compress.max_retries_per_step if refine.compress else 0
    return chunks * (each + shorter) + compressions * shorter
