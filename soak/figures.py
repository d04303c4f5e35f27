"""The figures of a soak, as a table."""

from __future__ import annotations

from collections import Counter

from benchmarks.report import table
from soak.promises import Pass, Soak
from soak.resources import slope


def figures(soaks: dict[str, Soak]) -> str:
    """A column for each place where the documents went through."""
    columns = [_column(soak) for soak in soaks.values()]
    rows = [(name, *(column.get(name, "–") for column in columns)) for name in columns[0]]
    return table(("", *soaks), rows)


def faults(soaks: dict[str, Soak]) -> str:
    """How many requests met which fault."""
    counts = [Counter(seen.fault for seen in soak.first.seen) for soak in soaks.values()]
    names = sorted({name for one in counts for name in one if name})
    rows = [(name, *(str(one[name]) for one in counts)) for name in names]
    unreached = [str(soak.first.unreached) for soak in soaks.values()]
    return table(("", *soaks), [*rows, ("no connection", *unreached)])


def _column(soak: Soak) -> dict[str, str]:
    first, again = soak.first, soak.again
    memory = [mb for _, mb in first.told["memory"]]
    return {
        "documents": str(len(first.results)),
        "summarized": str(len(first.keys("completed"))),
        "without content": str(len(first.keys("no_content"))),
        "failed": str(len(first.keys("failed"))),
        "requests": f"{first.told['requests']:,}",
        "of them without an answer to use": f"{_in_vain(first):,}",
        "seconds": f"{first.told['seconds']:.0f}",
        "memory in the first quarter, at the end": f"{memory[len(memory) // 4]:.0f} MB,"
        f" {memory[-1]:.0f} MB",
        "its slope for 1,000 documents": f"{slope(first.told['memory']):+.1f} MB",
        "again: requests": f"{again.told['requests']:,}",
        "again: summarized, of those that had failed": str(
            len(first.keys("failed") & again.keys("completed"))
        ),
        "again: seconds": f"{again.told['seconds']:.0f}",
    }


def _in_vain(run: Pass) -> int:
    return run.told["requests"] - sum(seen.fault in ("", "slow bytes") for seen in run.seen)
