"""Pruning a folder and an object store alike."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from promptchain_dagster.library.prune import Pruned, prune
from promptchain_dagster.library.state import State
from promptchain_dagster.store import Store

LATER = datetime.now(timezone.utc) + timedelta(days=31)
MONTH = timedelta(days=30)


def test_old_traces_and_checkpoints_go_and_those_of_done_documents_stay(store: Store) -> None:
    """More of them than are deleted at once."""
    kept = "checkpoints/aa/aaaa/000002-x.json"
    gone = [
        "checkpoints/aa/aaaa/000001-x.json",
        "checkpoints/bb/bbbb/000001-x.json",
        *(f"traces/run/a-0123/{index:06}/refine-1.json" for index in range(40)),
    ]
    for key in (kept, *gone, "summaries/a-0123.md"):
        store.write(key, b"{}")
    State.read(store).mark_done("a-0123", f"{'0' * 16}-{'1' * 16}", checkpoints=[kept])

    assert prune(store, MONTH) == Pruned()
    told = Pruned(("traces/run",), ("checkpoints/aa/aaaa", "checkpoints/bb/bbbb"))
    assert prune(store, MONTH, LATER, dry_run=True) == told
    assert len(store.list("traces/")) == 40
    assert prune(store, MONTH, LATER) == told
    assert store.list("checkpoints/") == [kept]
    assert store.list("traces/") == []
    assert store.list("summaries/") == ["summaries/a-0123.md"]
    assert prune(store, MONTH, LATER) == Pruned()
