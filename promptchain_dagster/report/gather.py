"""What runs left under the home, put together: results, traces, the quarantine."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from promptchain_dagster.chain.trace import read_trace
from promptchain_dagster.errors import StoreError
from promptchain_dagster.library.quarantine import Quarantined, quarantine
from promptchain_dagster.report.chains import ChainRun, chain_run
from promptchain_dagster.report.spending import CheckTally, Spending, StepTally
from promptchain_dagster.store import Store

RUNS = 500
"""The most runs of a report over all of them: the latest."""

_ORDER = {"failed": 0, "not_started": 1, "no_content": 2, "completed": 3}


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run, and when it ended (UTC). `status` is its result's."""

    run_id: str
    ended: datetime
    status: str


@dataclass(frozen=True, kw_only=True)
class Report:
    """What is shown. `documents` are entries of `promptchain summarize --json`, the latest one of
    each document, those that failed first; `run_id` is None for all runs of a home.

    `left_out`: runs that are older than the latest 500.
    """

    run_id: str | None
    made: datetime
    runs: list[RunLine]
    documents: list[dict[str, Any]]
    chains: list[ChainRun]
    spending: Spending
    set_aside: list[Quarantined] = field(default_factory=list[Quarantined])
    left_out: int = 0

    @property
    def steps(self) -> list[StepTally]:
        """The steps, the dearest first."""
        return self.spending.by_step()

    @property
    def checks(self) -> list[CheckTally]:
        """The criteria that rejected anything, the one that rejected most first."""
        return self.spending.by_check()


def report_of_run(store: Store, run_id: str) -> Report:
    """One run. Raises `StoreError`."""
    ended = dict(_results(store)).get(run_id)
    return _report(store, [(run_id, ended or datetime.now(timezone.utc))], run_id=run_id)


def report_of_home(store: Store) -> Report:
    """The latest runs under the home, and what is set aside now. Raises `StoreError`."""
    ended = sorted(_results(store), key=lambda run: run[1], reverse=True)
    return _report(
        store, ended[:RUNS], set_aside=quarantine(store), left_out=max(0, len(ended) - RUNS)
    )


def _report(
    store: Store,
    ended: Iterable[tuple[str, datetime]],
    *,
    run_id: str | None = None,
    set_aside: list[Quarantined] | None = None,
    left_out: int = 0,
) -> Report:
    runs: list[RunLine] = []
    documents: dict[str, dict[str, Any]] = {}
    paths: dict[str, str] = {}
    chains: list[ChainRun] = []
    spending = Spending()
    for one, when in ended:  # the latest first
        result = _read(store, f"results/{one}.json")
        runs.append(RunLine(one, when, str((result or {}).get("status", "broken off"))))
        found = [_read(store, key) for key in store.list(f"results/{one}/")]
        if not found and result is not None and "chunks" in result:
            found = [result]
        for document in found:
            if document is not None:
                key = document["document_key"] or document["path"]
                paths[key] = documents.setdefault(key, document)["path"]
        attempts = read_trace(store, one)
        spending.add(one, attempts, paths)
        if result is not None and "attempts" in result:
            chains.append(chain_run(one, when, result, attempts))
    return Report(
        run_id=run_id,
        made=datetime.now(timezone.utc),
        runs=runs,
        documents=sorted(documents.values(), key=_rank),
        chains=chains,
        spending=spending,
        set_aside=set_aside or [],
        left_out=left_out,
    )


def _results(store: Store) -> list[tuple[str, datetime]]:
    """Each run that left a trace or a result, and when it last wrote one."""
    last: dict[str, datetime] = {}
    for folder in ("traces/", "results/"):
        for key, written in store.list_aged(folder):
            run_id = key.split("/")[1].removesuffix(".json")
            last[run_id] = max(written, last.get(run_id, written))
    return list(last.items())


def _read(store: Store, key: str) -> dict[str, Any] | None:
    try:
        return json.loads(store.read(key) or b"null")
    except (StoreError, ValueError):  # damaged: the rest is told all the same
        return None


def _rank(document: dict[str, Any]) -> tuple[int, str]:
    return _ORDER.get(document["status"], 0), str(document["path"])
