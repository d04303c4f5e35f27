"""Loading the definitions, and going on where a killed run ended."""

from __future__ import annotations

import sys
from statistics import median

from benchmarks.child import run_case
from benchmarks.options import Options
from benchmarks.report import Section, Target


def imports(options: Options) -> Section:
    """`definitions.py` beside Dagster alone."""
    seconds: dict[str, list[float]] = {"dagster": [], "definitions": []}
    sys.stderr.write("imports\n")
    for _ in range(options.imports):
        for module, measured in seconds.items():
            measured.append(_import(module))
    above = median(seconds["definitions"]) - median(seconds["dagster"])
    rows = [(f"`import {name}`", f"{median(times):.2f}") for name, times in seconds.items()]
    about = f"Each in a fresh process, with its byte code at hand. Medians of {options.imports}."
    target = Target.at_most("definitions.py, above `import dagster`", 0.3, above, unit=" s")
    return Section("Loading", about, ("", "seconds"), list(rows), [target])


def resuming(options: Options) -> Section:
    """A document of which most chunks are folded already."""
    at, total = options.resume
    sys.stderr.write("resuming\n")
    runs = [
        run_case("cases.long_document", folder=options.scratch, chunks=total, stop_at=at)
        for _ in range(options.repetitions)
    ]
    before = median(run["before_next_call"] for run in runs)
    calls = {run["calls"] for run in runs}
    about = (
        "`refine_document` on chunks that are split already, in a process that has all loaded."
        f" Medians of {options.repetitions}."
    )
    columns = ("", "before the next call, s", "calls made")
    row = (f"resumed at chunk {at:,} of {total:,}", f"{before:.3f}", *calls)
    targets = [
        Target.at_most("resuming, before the next call", 0.2, before, form=".3f", unit=" s"),
        Target("– calls made", str(total - at), ", ".join(map(str, calls)), calls == {total - at}),
    ]
    return Section("Resuming", about, columns, [row], targets)


def _import(module: str) -> float:
    return run_case("cases.importing", module=module)["seconds"]
