"""How much is measured, and where the peers are."""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmarks.workload import Workload


@dataclass(frozen=True)
class Options:
    """Sizes of every part; the defaults are those that the targets are for.

    `peers` is the Python of the peers' environment, None to leave them out; `scratch` is a folder
    on the disk that is measured.
    """

    scratch: str
    peers: str | None = None
    repetitions: int = 3
    workload: Workload = field(default_factory=Workload)
    slow: Workload = field(default_factory=lambda: Workload(delay=1.0))
    split_characters: int = 24_000_000
    hostile_characters: int = 2_000_000
    hostile_seconds: float = 10.0
    resume: tuple[int, int] = (900, 1000)
    documents: tuple[int, ...] = (10, 100, 1000)
    chunks: tuple[int, ...] = (10, 100, 1000, 10_000)
    imports: int = 5
    is_quick: bool = False


def quick(scratch: str) -> Options:
    """Everything of ours once, as small as it gets: that it works, not how fast."""
    return Options(
        scratch,
        repetitions=1,
        workload=Workload(documents=3, chunks=2, in_flight=2, delay=0.01),
        slow=Workload(documents=2, chunks=2, in_flight=2, delay=0.01),
        split_characters=100_000,
        hostile_characters=20_000,
        resume=(4, 6),
        documents=(2, 4),
        chunks=(2, 4),
        imports=1,
        is_quick=True,
    )
