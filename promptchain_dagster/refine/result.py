"""A document's result as one JSON object: an entry of `promptchain summarize --json`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from promptchain_dagster.models.base import NO_USAGE
from promptchain_dagster.refine.outcome import (
    DocumentOutcome,
    NoContent,
    NotStarted,
    Stopped,
    Summarized,
    Unreadable,
)


def document_result(
    outcome: DocumentOutcome,
    *,
    path: str,
    document_key: str | None,
    run_id: str | None,
    warnings: Sequence[str] = (),
) -> dict[str, Any]:
    """What became of the document at `path`; `warnings` came up before its first chunk.

    `status` is `completed`, `failed`, `no_content` or `not_started`; on a failure `summary` is the
    summary so far. `failed_chunk` counts from 1; what is unknown is null.
    """
    folded = outcome if isinstance(outcome, Summarized | Stopped) else None
    told = outcome.warnings if isinstance(outcome, Summarized | Stopped | NoContent) else ()
    return {
        "path": path,
        "document_key": document_key,
        "run_id": run_id,
        "status": _status(outcome),
        "summary": folded.summary if folded else None,
        "chunks": folded.chunks if folded else 0 if isinstance(outcome, NoContent) else None,
        "failed_chunk": outcome.failed_chunk if isinstance(outcome, Stopped) else None,
        "resumed_from": folded.resumed_from if folded else 0,
        "compressions": folded.compressions if folded else 0,
        "model_calls": folded.model_calls if folded else 0,
        "usage": dataclasses.asdict(folded.usage if folded else NO_USAGE),
        "warnings": [*warnings, *told],
        "error": _error(outcome),
    }


def _status(outcome: DocumentOutcome) -> str:
    if isinstance(outcome, Summarized):
        return "completed"
    if isinstance(outcome, NoContent):
        return "no_content"
    return "not_started" if isinstance(outcome, NotStarted) else "failed"


def _error(outcome: DocumentOutcome) -> str | None:
    if isinstance(outcome, Stopped | Unreadable):
        return outcome.error
    return outcome.reason if isinstance(outcome, NotStarted) else None
