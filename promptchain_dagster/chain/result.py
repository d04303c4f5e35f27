"""A run's result as one JSON object: what `promptchain post --json` prints."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from promptchain_dagster.chain.outcome import Halted, Reason
from promptchain_dagster.models.base import NO_USAGE, Usage

RESERVED = frozenset(
    {"status", "run_id", "error", "attempts", "warnings", "model_calls", "usage"},
)
"""Keys of a result beside the one that bears the name of the chain's output."""


def chain_result(
    run_id: str,
    output_name: str,
    attempts: Sequence[Mapping[str, Any]],
    *,
    output: Any = None,
    halted: Halted | None = None,
) -> dict[str, Any]:
    """The result of a run: of one that completed with `output`, or of one that `halted`.

    `attempts` are those of the run as its trace has them, whatever process made them. `status` is
    `completed`, `rejected` (a gate ended it) or `failed` (a call ended it); the output stands
    under `output_name`, as JSON values, and is null unless the run completed.
    """
    return {
        "status": halted.reason.value if halted else "completed",
        "run_id": run_id,
        output_name: None if halted else output,
        "error": _error(halted) if halted else None,
        "attempts": [
            {
                "step": attempt["step"],
                "attempt": attempt["attempt"],
                "output": attempt["output"],
                "errors": list(attempt["errors"]),
            }
            for attempt in attempts
        ],
        "warnings": [
            f"{attempt['step']}: {told}" for attempt in attempts for told in attempt["warnings"]
        ],
        "model_calls": sum(attempt["requests"] for attempt in attempts),
        "usage": dataclasses.asdict(
            sum((Usage(**attempt["usage"]) for attempt in attempts), NO_USAGE)
        ),
    }


def _error(halted: Halted) -> dict[str, Any]:
    return {
        "step": halted.step,
        "reason": halted.reason.value,
        "failed_checks": [dataclasses.asdict(failed) for failed in halted.failed_checks],
        "messages": list(halted.messages),
        "rejected_output": halted.rejected_output,
    }


def halted_by(error: Exception, step: str, reason: Reason = Reason.FAILED) -> Halted:
    """The outcome of a step that never came to an attempt, or could not keep one."""
    return Halted(attempts=(), step=step, reason=reason, messages=(str(error),))
