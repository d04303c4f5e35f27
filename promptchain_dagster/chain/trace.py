"""The trace: every attempt of a run, whole, under the home as `traces/<run>/…json`.

Logs and the UI hold previews; a bad word is followed back to its call from here.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from promptchain_dagster.chain.outcome import Attempt
from promptchain_dagster.chain.run import Record
from promptchain_dagster.store import Store
from promptchain_dagster.threads import in_thread


def folder_of(run_id: str) -> str:
    """Where the trace of a run lies, relative to the home."""
    return f"traces/{run_id}/"


def recorder(
    store: Store, run_id: str, label: str = "", settings: Mapping[str, Any] | None = None
) -> Record:
    """A `Record` that writes each attempt down as soon as it is judged.

    `label` (one or more names joined by "/") tells attempts at equal steps apart: a document's key
    and the number of its chunk. `settings` are what a replay needs beside the inputs.
    """
    # Beside those of the document's other chunks: a folder for each would take as long again.
    place = folder_of(run_id) + (f"{label}-" if label else "")

    async def record(attempt: Attempt) -> None:
        key = f"{place}{attempt.step}-{attempt.number}.json"
        # Without indent: that would take the slow encoder, on every call.
        told = {"label": label, "settings": settings, **as_json(attempt)}
        data = json.dumps(told, ensure_ascii=False).encode("utf-8", "replace")
        await in_thread(store.write, key, data)

    return record


def as_json(attempt: Attempt) -> dict[str, Any]:
    """The attempt as JSON values: what it saw, said and cost."""
    told = {field.name: getattr(attempt, field.name) for field in dataclasses.fields(attempt)}
    del told["judgements"], told["number"]
    return {
        **told,
        "problem": attempt.problem.value if attempt.problem else None,
        "paid": [
            {"usage": dataclasses.asdict(one.usage), "error": one.error, "entry": one.entry}
            for one in attempt.paid
        ],
        "attempt": attempt.number,
        "accepted": attempt.accepted,
        "checks": [
            {"check": one.check, "met": one.met, "messages": list(one.messages)}
            for one in attempt.judgements
        ],
        "errors": list(attempt.errors),
        "retries": attempt.retries,
        "usage": dataclasses.asdict(attempt.usage),
    }


def read_trace(store: Store, run_id: str) -> list[dict[str, Any]]:
    """Every attempt recorded for a run, in the order in which they began; empty if none was."""
    attempts: list[dict[str, Any]] = []
    for key in store.list(folder_of(run_id)):
        data = store.read(key)
        if data is not None:
            attempts.append(json.loads(data))
    return sorted(attempts, key=lambda attempt: str(attempt["started_at"]))
