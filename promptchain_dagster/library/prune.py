"""Old traces and checkpoints, removed by age; summaries, results and markers stay."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import islice

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.library.state import State
from promptchain_dagster.store import Store

_AT_ONCE = 16
"""Deletions; in an object store, one after another would take hours."""
_BATCH = 1000


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was removed, or would be: folders of runs' `traces` and of documents' `checkpoints`, as
    prefixes of keys, and how many `leftovers`, files that a killed process had not finished."""

    traces: tuple[str, ...] = ()
    checkpoints: tuple[str, ...] = ()
    leftovers: int = 0


def prune(
    store: Store, older_than: timedelta, now: datetime | None = None, *, dry_run: bool = False
) -> Pruned:
    """Remove what nobody has written to for so long; with `dry_run` only tell what that is.

    A run's trace is as old as its newest part, and so is a beginning of checkpoints: all those of
    documents that begin with the same chunk. So what a running or nightly run adds to is kept
    whole. Of a document that is done, the last two checkpoints stay whatever their age: with them
    it costs nothing again while it is unchanged, and what is new when it has grown. An edit
    further up is paid for from the first chunk on.
    """
    if older_than <= timedelta(0):
        raise InvalidInput(f"older_than is {older_than}, must be more than 0")
    before = (now or datetime.now(timezone.utc)) - older_than
    traces = _old(store, "traces/", 2, before)
    checkpoints = _old(store, "checkpoints/", 3, before)
    if checkpoints:
        # Read after the listing, so that what became done in between is kept too.
        kept = State.read(store).checkpoints()
        spared = {
            folder: [k for k in keys if k not in kept] for folder, keys in checkpoints.items()
        }
        checkpoints = {folder: keys for folder, keys in spared.items() if keys}
    if not dry_run:
        _delete(store, (key for keys in (*traces.values(), *checkpoints.values()) for key in keys))
    leftovers = store.sweep(before, dry_run=dry_run)
    return Pruned(tuple(sorted(traces)), tuple(sorted(checkpoints)), leftovers)


def _old(store: Store, prefix: str, parts: int, before: datetime) -> dict[str, list[str]]:
    """The keys by the first `parts` of them, where the newest object of these is older."""
    newest: dict[str, datetime] = {}
    keys: dict[str, list[str]] = {}
    for key, written in store.list_aged(prefix):
        folder = "/".join(key.split("/")[:parts])
        newest[folder] = max(written, newest.get(folder, written))
        keys.setdefault(folder, []).append(key)
    return {folder: keys[folder] for folder, written in newest.items() if written < before}


def _delete(store: Store, keys: Iterable[str]) -> None:
    left = iter(keys)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        while batch := list(islice(left, _BATCH)):
            for _ in pool.map(store.delete, batch):
                pass
