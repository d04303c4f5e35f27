"""What the events of a run tell of the documents under way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from promptchain_dagster.models.base import Usage

if TYPE_CHECKING:
    from dagster import DagsterEvent


@dataclass(frozen=True)
class FoldedChunk:
    """Chunk `index` of `total` of the document `key` is folded in."""

    key: str
    index: int
    total: int
    model_calls: int
    usage: Usage


@dataclass(frozen=True)
class EndedDocument:
    """The document `key` is done, or failed: what it took in all."""

    key: str
    model_calls: int
    usage: Usage


def told_by(event: DagsterEvent) -> FoldedChunk | EndedDocument | None:
    """What `event` tells of a document; None for any other event."""
    from promptchain_dagster.pipelines import metadata as md
    from promptchain_dagster.pipelines.collections.batches import DOCUMENT_SUMMARY
    from promptchain_dagster.pipelines.collections.document_run import RUNNING_SUMMARY

    if event.is_step_materialization:
        said: Any = event.step_materialization_data.materialization
    elif event.is_asset_observation:
        said = event.asset_observation_data.asset_observation
    else:
        return None
    told: dict[str, Any] = {name: value.value for name, value in said.metadata.items()}
    key, calls = said.partition, told.get(md.MODEL_CALLS, 0)
    if said.asset_key == RUNNING_SUMMARY:
        return FoldedChunk(key, told[md.INDEX], told[md.TOTAL], calls, _usage(told))
    if said.asset_key.to_user_string() == DOCUMENT_SUMMARY:
        return EndedDocument(key, calls, _usage(told) if calls else Usage())
    return None


def _usage(told: Mapping[str, Any]) -> Usage:
    from promptchain_dagster.pipelines import metadata as md

    return Usage(
        told.get(md.INPUT_TOKENS),
        told.get(md.OUTPUT_TOKENS),
        told.get(md.COST_USD),
        told.get(md.CALLS_WITHOUT_USAGE, 0),
    )
