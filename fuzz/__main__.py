"""Fuzz every target for some seconds, one after the other: `python -m fuzz [--seconds N] [NAME…]`.

What is found lies in the folder that is printed. Its minimal input goes to `corpus/NAME/`, where
the tests run it from then on.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from fuzz.targets import TARGETS

LIMITS = ("-max_len=4096", "-timeout=20", "-rss_limit_mb=2048", "-print_final_stats=1")


def main() -> int:
    """The exit status: 1 where a target failed."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--seconds", type=int, default=20, help="for each target")
    parser.add_argument("--work", type=Path, default=Path(".promptchain") / "fuzz")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(TARGETS))
    options = parser.parse_args()
    if unknown := sorted(set(options.names) - TARGETS.keys()):
        parser.error(f"no such target: {', '.join(unknown)}")
    failed = [
        name
        for name in options.names or TARGETS
        if not _fuzz(name, options.seconds, options.work / name)
    ]
    print(f"{len(failed)} of the targets failed: {', '.join(failed)}" if failed else "no fault")  # noqa: T201
    return 1 if failed else 0


def _fuzz(name: str, seconds: int, work: Path) -> bool:
    grown = work / "corpus"
    grown.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "fuzz.worker", name, *LIMITS]
    command += [f"-max_total_time={seconds}", f"-artifact_prefix={work}{os.sep}", str(grown)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    told = ended.stdout + ended.stderr
    runs = [line.split()[-1] for line in told.splitlines() if "number_of_executed_units" in line]
    well = ended.returncode == 0
    verdict = "no fault" if well else f"FAULT, its input is in {work}"
    print(f"{name}: {verdict}; {(runs or ['?'])[0]} inputs", flush=True)  # noqa: T201
    if not well:
        print(told[-6000:], flush=True)  # noqa: T201
    return well


if __name__ == "__main__":
    sys.exit(main())
