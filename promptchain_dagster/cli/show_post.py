"""How a post's run ended, for people, on standard error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from promptchain_dagster.cli.streams import note

if TYPE_CHECKING:
    from promptchain_dagster.cli.runs import Ended
    from promptchain_dagster.store import Store


def show_ending(result: Mapping[str, Any], ended: Ended, store: Store) -> None:
    """Status, failed checks or error, warnings, what it took, and where to look further."""
    error = result["error"]
    if ended.interrupted:
        note("interrupted; what was done is in the trace. The same command starts the post anew.")
    elif error is None:
        note("completed")
    else:
        show_error(result)
    for warning in result["warnings"]:
        note(f"warning: {warning}")
    note(taken(result))
    show_where(ended, store)


def show_error(result: Mapping[str, Any]) -> None:
    """Every attempt's failed checks, and the rejected output."""
    error = result["error"]
    note(f"{result['status']} at step {error['step']!r}")
    shown = False
    for attempt in result["attempts"]:
        for message in attempt["errors"]:
            shown = True
            note(f"  {attempt['step']}, attempt {attempt['attempt']}: {message}")
    if not shown:
        for message in error["messages"]:
            note(f"  {message}")
    rejected = error["rejected_output"]
    if rejected is not None:
        note("rejected output:")
        text = rejected if isinstance(rejected, str) else json.dumps(rejected, ensure_ascii=False)
        note("  " + text)


def taken(spent: Mapping[str, Any]) -> str:
    """Calls, tokens and cost; what is unknown is said to be."""
    usage, calls = spent["usage"], spent["model_calls"]
    return (
        f"{calls} model call{'' if calls == 1 else 's'},"
        f" {_number(usage['input_tokens'])} tokens in, {_number(usage['output_tokens'])} out,"
        f" cost {dollars(usage['cost_usd'])}"
    )


def show_where(ended: Ended, store: Store) -> None:
    """The run, its file, and how to look further."""
    from promptchain_dagster.cli.runs import result_key

    if ended.result is not None:
        note(f"result: {store.url_of(result_key(ended.run_id))}")
    note(f"run {ended.run_id}; each call in full: promptchain trace {ended.run_id}")


def dollars(cost: float | None) -> str:
    """The cost in US dollars; a tiny one is not shown as none."""
    if cost is None:
        return "unknown"
    return "under $0.0001" if 0 < cost < 0.0001 else f"${cost:.4f}"


def _number(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,}"
