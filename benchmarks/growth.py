"""Whether ten times the work takes ten times the time, and how much memory."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Any

from benchmarks.child import run_case
from benchmarks.options import Options
from benchmarks.report import Row, Section, Target
from benchmarks.server import serving
from benchmarks.workload import Workload

FLAT = 1.5
"""How much more a document may take in the largest run than in the second smallest: the smallest
does not fill the places in flight."""


def documents(options: Options) -> Section:
    """More documents in one run, of 2 chunks each."""
    rows: list[Row] = []
    targets: list[Target] = []
    for name, run in (("core", _core), ("Dagster, every event", _dagster)):
        found = {count: run(count, options) for count in options.documents}
        for count, one in found.items():
            each = 1000 * one["seconds"] / count
            rows.append((f"{name}, {count:,} documents", f"{each:.1f}", f"{one['peak_mb']:.0f}"))
        *_, before, most = options.documents
        ratio = (found[most]["seconds"] / most) / (found[before]["seconds"] / before)
        peak = found[most]["peak_mb"]
        what = f"{name}: a document's time, {before:,} → {most:,} documents"
        targets += [
            Target.at_most(f"{name}, {most:,} documents: peak memory", 300, peak, ".0f", " MB"),
            Target.at_most(what, FLAT, ratio, unit=" times"),
        ]
    about = "2 chunks each, by a model that answers at once (core) or in 10 ms (Dagster)."
    columns = ("", "ms per document", "peak memory, MB")
    return Section("From few documents to many, in one run", about, columns, rows, targets)


def chunks(options: Options) -> Section:
    """One document, longer and longer."""
    rows: list[Row] = []
    each: dict[int, float] = {}
    for count in options.chunks:
        sys.stderr.write(f"growth: {count:,} chunks\n")
        one = run_case("cases.long_document", folder=options.scratch, chunks=count, stop_at=None)
        each[count] = 1000 * one["seconds"] / count
        rows.append((f"{count:,} chunks", f"{each[count]:.2f}", f"{one['peak_mb']:.0f}"))
    *_, before, most = options.chunks
    what = f"a chunk's time, {before:,} → {most:,} chunks"
    target = Target.at_most(what, FLAT, each[most] / each[before], unit=" times")
    about = "One document in the core, every chunk durable, by a model that answers at once."
    columns = ("", "ms per chunk", "peak memory, MB")
    return Section("From few chunks to many", about, columns, rows, [target])


def _core(count: int, options: Options) -> dict[str, Any]:
    sys.stderr.write(f"growth: {count:,} documents, core\n")
    return run_case(
        "cases.many_documents",
        folder=options.scratch,
        workload=asdict(Workload(count, 2)),
    )


def _dagster(count: int, options: Options) -> dict[str, Any]:
    sys.stderr.write(f"growth: {count:,} documents, Dagster\n")
    workload = Workload(count, 2, delay=0.01)
    with serving(workload.delay) as url:
        return run_case(
            "cases.under_dagster",
            folder=options.scratch,
            workload=asdict(workload),
            url=url,
            events=True,
            checks=True,
        )
