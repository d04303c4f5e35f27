"""The workload by each: how close to the ideal, at what cost."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.child import CaseFailed, run_case
from benchmarks.options import Options
from benchmarks.report import Row, Section, Target, medians
from benchmarks.server import serving, stats_of
from benchmarks.workload import Workload

COLUMNS = (
    "",
    "efficiency",
    "seconds",
    "CPU per call, ms",
    "peak memory, MB",
    "events stored",
    "drain, s",
    "start, s",
    "durable per chunk",
)


@dataclass(frozen=True)
class Case:
    """Who does the workload, by the module `benchmarks.<module>`."""

    name: str
    module: str
    durable: str = "yes"
    is_peer: bool = False
    parameters: dict[str, Any] = field(default_factory=dict[str, Any])


RAW = Case("asyncio, raw HTTP", "cases.raw", "no")
CORE = Case("**core**", "cases.core", parameters={"traced": False})
TRACED = Case("**core, every attempt in the trace too**", "cases.core", parameters={"traced": True})
QUIET = Case(
    "**Dagster, one run, an event for each document**",
    "cases.under_dagster",
    parameters={"events": False, "checks": False},
)
CHECKED = Case(
    "**Dagster, an event for each document and its 5 checks**",
    "cases.under_dagster",
    parameters={"events": False, "checks": True},
)
TOLD = Case(
    "**Dagster, an event for each document and chunk**",
    "cases.under_dagster",
    parameters={"events": True, "checks": False},
)
ALL = Case(
    "**Dagster, an event for each document, chunk and check**",
    "cases.under_dagster",
    parameters={"events": True, "checks": True},
)
OTHERS = (
    Case("OpenAI SDK, `chat.completions.create`", "cases.sdk", "no"),
    Case("LangChain refine", "peers.langchain_refine", "no", is_peer=True),
    Case("LangGraph, SQLite checkpoints", "peers.langgraph_sqlite", is_peer=True),
    Case("LlamaIndex Refine", "peers.llamaindex_refine", "no", is_peer=True),
    Case("Prefect, persisted results", "peers.prefect_tasks", is_peer=True),
)


def fast(options: Options) -> Section:
    """The model answers in 0.2 s."""
    cases = (
        (RAW, CORE, TOLD)
        if options.is_quick
        else (RAW, CORE, TRACED, QUIET, CHECKED, TOLD, ALL, *OTHERS)
    )
    section, found = _measure(options, options.workload, cases)
    section.targets = [
        Target.at_least("the server: efficiency of raw HTTP", 0.98, _efficiency(found, RAW)),
        Target.at_least(
            "core, durable after every chunk: efficiency", 0.88, _efficiency(found, CORE)
        ),
        Target.at_most("– CPU per call", 4.5, _cpu(found, CORE), unit=" ms"),
        Target.at_least(
            "Dagster, an event per document: efficiency", 0.88, _efficiency(found, QUIET)
        ),
        Target.at_most("– CPU per call", 4.5, _cpu(found, QUIET), unit=" ms"),
        Target.at_least("– with its checks: efficiency", 0.88, _efficiency(found, CHECKED)),
        Target.at_least(
            "Dagster, an event per chunk, all stored: efficiency", 0.45, _efficiency(found, TOLD)
        ),
        _all_stored(found, options.workload),
    ]
    return section


def slow(options: Options) -> Section:
    """The model answers in 1.0 s."""
    section, found = _measure(
        options, options.slow, (TOLD,) if options.is_quick else (CORE, TOLD, ALL)
    )
    section.targets = [
        Target.at_least(
            f"{options.slow.delay:g} s a call, an event per chunk, all stored: efficiency",
            0.95,
            _efficiency(found, TOLD),
        ),
        _all_stored(found, options.slow),
    ]
    return section


def _measure(
    options: Options, workload: Workload, cases: Sequence[Case]
) -> tuple[Section, dict[str, dict[str, Any]]]:
    runs: dict[str, list[dict[str, Any]]] = {}
    skipped: dict[str, str] = {}
    for _ in range(options.repetitions):  # one after the other, so that all have the same weather
        for case in cases:
            if case.name in skipped:
                continue
            try:
                runs.setdefault(case.name, []).append(_run(case, workload, options))
            except CaseFailed as failed:
                skipped[case.name] = str(failed)
                runs.pop(case.name, None)
    found = {name: medians(measured) for name, measured in runs.items()}
    rows = [_row(case, found.get(case.name), skipped.get(case.name)) for case in cases]
    title = f"{workload.documents} documents, a model that answers in {workload.delay:g} s"
    about = (
        f"{workload.chunks} chunks of up to 2,000 tokens each, strictly in order,"
        f" {workload.in_flight} calls in flight: {workload.calls} calls,"
        f" ideally in {workload.ideal:.1f} s. Medians of {options.repetitions}."
    )
    return Section(title, about, COLUMNS, rows), found


def _run(case: Case, workload: Workload, options: Options) -> dict[str, Any]:
    if case.is_peer and options.peers is None:
        raise CaseFailed("skipped: without the peers' environment")
    sys.stderr.write(f"{case.name}, {workload.delay:g} s a call\n")
    with serving(workload.delay) as url:
        result = run_case(
            case.module,
            python=options.peers if case.is_peer and options.peers else sys.executable,
            url=url,
            workload=asdict(workload),
            folder=options.scratch,
            **case.parameters,
        )
        seen = stats_of(url)
    if seen["most_in_flight"] > workload.in_flight or seen["calls"] < workload.calls:
        raise CaseFailed(f"{seen['calls']} calls, {seen['most_in_flight']} at once")
    result["efficiency"] = workload.ideal / result["seconds"]
    result["cpu"] = 1000 * result["cpu_seconds"] / workload.calls
    return result


def _row(case: Case, found: dict[str, Any] | None, skipped: str | None) -> Row:
    if found is None:
        return (case.name, skipped, *([""] * (len(COLUMNS) - 2)))
    is_run = "start" in found
    return (
        case.name,
        f"{found['efficiency']:.2f}",
        f"{found['seconds']:.2f}",
        f"{found['cpu']:.1f}",
        f"{found['peak_mb']:.0f}",
        f"{found['events']:.0f}" if is_run else "",
        f"{found['drain']:.1f}" if is_run else "",
        f"{found['start']:.1f}" if is_run else "",
        case.durable,
    )


def _efficiency(found: dict[str, dict[str, Any]], case: Case) -> float | None:
    return found[case.name]["efficiency"] if case.name in found else None


def _cpu(found: dict[str, dict[str, Any]], case: Case) -> float | None:
    return found[case.name]["cpu"] if case.name in found else None


def _all_stored(found: dict[str, dict[str, Any]], workload: Workload) -> Target:
    stored = found.get(TOLD.name, {}).get("chunk_events", 0)
    wanted = f"{workload.calls}"
    return Target(
        "– chunk events stored at the end", wanted, f"{stored:.0f}", stored == workload.calls
    )
