"""What this process holds: memory, open descriptors, threads (Linux)."""

from __future__ import annotations

import gc
import os
import threading
from collections import Counter
from pathlib import Path
from statistics import median

Samples = list[tuple[int, float]]
"""How many documents were done, and the memory (MB) then."""


def held() -> Counter[str]:
    """Open descriptors by what they lead to, and threads by name; garbage is collected before."""
    gc.collect()
    threads = Counter(f"thread {thread.name}" for thread in threading.enumerate())
    return threads + Counter(f"descriptor of {one}" for one in _descriptors())


def _descriptors() -> list[str]:
    found: list[str] = []
    for name in os.listdir("/proc/self/fd"):
        try:
            leads_to = os.readlink(f"/proc/self/fd/{name}")
        except OSError:  # the one of this listing
            continue
        # A socket or a pipe is one like another.
        found.append(leads_to.partition(":[")[0])
    return found


def memory_mb() -> float:
    """The resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def slope(samples: Samples) -> float:
    """MB per 1,000 documents, the first quarter left out: the median slope of all pairs."""
    late = samples[len(samples) // 4 :]
    slopes = [
        1000 * (after - before) / (more - fewer)
        for place, (fewer, before) in enumerate(late)
        for more, after in late[place + 1 :]
    ]
    return median(slopes) if slopes else 0.0
