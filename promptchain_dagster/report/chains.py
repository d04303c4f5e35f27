"""A run of a chain, step by step and attempt by attempt."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from promptchain_dagster.chain.result import RESERVED

_LINES = 60


@dataclass(frozen=True, slots=True)
class Tried:
    """One attempt as the trace has it; `change` is what its output changed in that of the one
    before, as a diff of lines."""

    attempt: Mapping[str, Any]
    change: list[str]

    @property
    def verdict(self) -> str:
        if self.attempt["call_error"]:
            return "failed"
        return "accepted" if self.attempt["accepted"] else "rejected"

    @property
    def output(self) -> str:
        return _text(self.attempt["output"])


@dataclass(frozen=True, slots=True)
class StepRun:
    """A step and all that was tried at it."""

    name: str
    tried: list[Tried]

    @property
    def verdict(self) -> str:
        return self.tried[-1].verdict


@dataclass(frozen=True, slots=True)
class ChainRun:
    """A run of a chain. `output` is what it ended with, None unless it completed."""

    run_id: str
    ended: datetime
    status: str
    about: str
    steps: list[StepRun]
    output: str | None
    messages: list[str]
    warnings: list[str]


def chain_run(
    run_id: str,
    ended: datetime,
    result: Mapping[str, Any],
    attempts: Sequence[Mapping[str, Any]],
) -> ChainRun:
    """From a run's result and its trace."""
    by_step: dict[str, list[Tried]] = {}
    for attempt in attempts:
        before = by_step.setdefault(attempt["step"], [])
        change = _change(before[-1].output, _text(attempt["output"])) if before else []
        before.append(Tried(attempt, change))
    outputs = [value for key, value in result.items() if key not in RESERVED]
    output = outputs[0] if outputs and outputs[0] is not None else None
    about = attempts[0]["inputs"].get("brief", "") if attempts else ""
    return ChainRun(
        run_id=run_id,
        ended=ended,
        status=result["status"],
        about=" ".join(str(about).split())[:200],
        steps=[StepRun(name, tried) for name, tried in by_step.items()],
        output=_text(output) if output is not None else None,
        messages=list(dict.fromkeys((result["error"] or {}).get("messages", []))),
        warnings=list(result["warnings"]),
    )


def _change(before: str, after: str) -> list[str]:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1)
    told = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
    return told[:_LINES] + ([f"… {len(told) - _LINES} lines more"] if len(told) > _LINES else [])


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
