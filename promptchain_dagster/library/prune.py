"""Old traces and checkpoints, removed by age; summaries, results and markers stay."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.store import Store


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was removed: runs' `traces`, documents' `checkpoints` (each a folder of them), and
    `leftovers`, files that a killed process had not finished."""

    traces: int
    checkpoints: int
    leftovers: int


def prune(store: Store, older_than: timedelta, now: datetime | None = None) -> Pruned:
    """Remove what nobody has written to for so long.

    A run's trace is as old as its newest part, and so is a beginning of checkpoints: all those of
    documents that begin with the same chunk. So what a running or nightly run adds to is kept
    whole. A document whose checkpoints are gone keeps its summary; only when its text changes is
    all of it paid for again.
    """
    if older_than <= timedelta(0):
        raise InvalidInput(f"older_than is {older_than}, must be more than 0")
    before = (now or datetime.now(timezone.utc)) - older_than
    traces = _prune(store, "traces/", 2, before)
    checkpoints = _prune(store, "checkpoints/", 3, before)
    return Pruned(traces, checkpoints, store.sweep(before))


def _prune(store: Store, prefix: str, parts: int, before: datetime) -> int:
    """Remove the groups, by the first `parts` of their keys, whose newest object is older."""
    newest: dict[str, datetime] = {}
    keys: dict[str, list[str]] = {}
    for key, written in store.list_aged(prefix):
        group = "/".join(key.split("/")[:parts])
        newest[group] = max(written, newest.get(group, written))
        keys.setdefault(group, []).append(key)
    old = [group for group, written in newest.items() if written < before]
    for group in old:
        for key in keys[group]:
            store.delete(key)
    return len(old)
