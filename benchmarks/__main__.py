"""Measures, prints a table, and keeps it in the README when asked to."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from datetime import date
from pathlib import Path

from benchmarks import growth, makespan, splitting, starting
from benchmarks.machine import described
from benchmarks.options import Options, quick
from benchmarks.report import Section, targets_table
from promptchain_dagster.tokens.vocabularies import vocabulary_in_cache

README = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- results -->", "<!-- end of results -->"

PARTS: dict[str, tuple[Callable[[Options], Section], ...]] = {
    "makespan": (makespan.fast, makespan.slow),
    "splitting": (splitting.speed, splitting.hostile),
    "starting": (starting.imports, starting.resuming),
    "growth": (growth.documents, growth.chunks),
}


def main() -> None:
    """See `--help`."""
    given = _arguments()
    with tempfile.TemporaryDirectory(dir=given.folder) as scratch:
        os.environ["TIKTOKEN_CACHE_DIR"] = scratch
        # For the peers too, which would download them.
        with vocabulary_in_cache("o200k_base"), vocabulary_in_cache("cl100k_base"):
            if given.quick:
                options = quick(scratch)
            else:
                peers = given.peers if given.peers and Path(given.peers).exists() else None
                options = Options(scratch, peers, repetitions=given.repetitions)
            parts = [given.only] if given.only else list(PARTS)
            machine = described(scratch)
            sections = [measure(options) for part in parts for measure in PARTS[part]]
    results = _results(machine, sections)
    sys.stdout.write(results + "\n")
    if given.write:
        _write(results)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only see that everything works")
    parser.add_argument("--only", choices=PARTS, help="one part of it")
    parser.add_argument("--repetitions", type=int, default=3, help="the table shows medians")
    parser.add_argument("--peers", metavar="PYTHON", help="the Python that has the peers")
    parser.add_argument("--folder", help="where to work: on the disk that is to be measured")
    parser.add_argument("--write", action="store_true", help=f"keep the table in {README.name}")
    return parser.parse_args()


def _results(machine: str, sections: list[Section]) -> str:
    targets = [target for section in sections for target in section.targets]
    return "\n\n".join(
        [
            f"{date.today().isoformat()}, on {machine}",
            "### The fixed numbers\n\n" + targets_table(targets),
            *(section.to_markdown() for section in sections),
        ]
    )


def _write(results: str) -> None:
    before, _, rest = README.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    README.write_text(f"{before}{BEGIN}\n\n{results}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
