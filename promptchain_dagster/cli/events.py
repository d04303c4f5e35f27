"""What the events of a run tell of a document under way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from promptchain_dagster.models.base import Usage

if TYPE_CHECKING:
    from dagster import DagsterEvent


@dataclass(frozen=True)
class FoldedChunk:
    """Chunk `index` of `total` is folded in; `checkpoint` is the path or URL of what was kept."""

    index: int
    total: int
    checkpoint: str
    model_calls: int
    usage: Usage


def folded_chunk(event: DagsterEvent) -> FoldedChunk | None:
    """The chunk that `event` materializes as `running_summary`; None for any other event."""
    from promptchain_dagster.pipelines import metadata as md
    from promptchain_dagster.pipelines.refine_run import RUNNING_SUMMARY

    if not event.is_step_materialization or event.asset_key != RUNNING_SUMMARY:
        return None
    metadata = event.step_materialization_data.materialization.metadata
    told: dict[str, Any] = {name: value.value for name, value in metadata.items()}
    return FoldedChunk(
        told[md.INDEX],
        told[md.TOTAL],
        told[md.PATH],
        told[md.MODEL_CALLS],
        Usage(
            told.get(md.INPUT_TOKENS),
            told.get(md.OUTPUT_TOKENS),
            told.get(md.COST_USD),
            told.get(md.CALLS_WITHOUT_USAGE, 0),
        ),
    )
