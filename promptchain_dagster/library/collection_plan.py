"""What the summaries of many documents would take, before anything is spent."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from promptchain_dagster.models.base import ChatModel
from promptchain_dagster.refine.checkpoints import Checkpoints
from promptchain_dagster.refine.outcome import NoContent
from promptchain_dagster.refine.plan import Plan, plan_document
from promptchain_dagster.refine.room import require_room
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.refine.source import Readable, Source, read_source
from promptchain_dagster.tokens import Encoder

NUMBERS = (
    "chunks",
    "chunks_left",
    "least_calls",
    "most_calls",
    "input_tokens",
    "output_tokens",
    "cost_usd",
)


@dataclass(frozen=True)
class PlannedDocument:
    """One document: `status` is `planned`, `no_content`, `failed` for the reason `error`, or why it
    is left out."""

    key: str
    status: str
    plan: Plan
    error: str | None = None


@dataclass(frozen=True)
class CollectionPlan:
    """The documents in the order given, and all of them together."""

    documents: Sequence[PlannedDocument]
    total: Plan

    def numbers(
        self, seconds_per_call: float | None = None, max_in_flight: int = 1
    ) -> dict[str, Any]:
        """`NUMBERS` of all documents, and the `seconds` at that rate, None where none is given."""
        rate = seconds_per_call
        seconds = None if rate is None else self.total.seconds(rate, max_in_flight)
        return {**numbers_of(self.total), "seconds": seconds}


def numbers_of(plan: Plan) -> dict[str, Any]:
    """`NUMBERS` of a plan; what is unknown is None."""
    held: Mapping[str, Any] = dataclasses.asdict(plan)
    return {name: held[name] for name in NUMBERS}


def plan_collection(
    sources: Iterable[Source],
    settings: RefineSettings,
    model: ChatModel,
    checkpoints: Checkpoints,
    encoder: Encoder,
    *,
    why_left_out: Callable[[str, str], str | None] = lambda key, content_hash: None,
) -> CollectionPlan:
    """Read and split each document, and look up what its checkpoints cover. Blocks.

    `why_left_out` is asked with a document's key and the hash of its text. Two documents of equal
    content cost one (d14). Raises `InvalidInput` where chunks leave the model no room.
    """
    require_room(settings, model.context_tokens, model.max_output_tokens)
    documents: list[PlannedDocument] = []
    total, seen = Plan(), set[str]()
    for source in sources:
        read = read_source(source, settings, encoder)
        why = why_left_out(source.key, read.digest) if isinstance(read, Readable) else None
        if why is not None:
            documents.append(PlannedDocument(source.key, why, Plan()))
        elif isinstance(read, Readable):
            plan = plan_document(read.chunks, settings, model, checkpoints)
            if read.digest in seen:
                plan = Plan(documents=1, chunks=plan.chunks)
            seen.add(read.digest)
            total += plan
            documents.append(PlannedDocument(source.key, "planned", plan))
        elif isinstance(read, NoContent):
            documents.append(PlannedDocument(source.key, "no_content", Plan()))
        else:
            documents.append(PlannedDocument(source.key, "failed", Plan(), read.error))
    return CollectionPlan(documents, total)
