"""Thousands of documents through a server that misbehaves; the exit status is 1 where a promise
does not hold.

First all of them on the core, from a server that does nothing wrong: what the others are compared
with. Then on the core, and under Dagster, from one that misbehaves and is gone for a while; and
once more from a good one, which is asked only for what failed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.child import ROOT
from benchmarks.machine import described
from soak.documents import write_documents
from soak.figures import faults, figures
from soak.limits import Limits
from soak.promises import Pass, Result, Soak, broken
from soak.server import Behaviour, read_log, serving

DOCS = ROOT / "docs" / "soak.md"
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"

PLACES = {"core": "soak.core", "dagster": "soak.under_dagster"}
_ENVIRONMENT = {"OPENAI_API_KEY": "none", "DAGSTER_DISABLE_TELEMETRY": "1"}
_SHOWN = 20
_MARK = "RESULT "
_LONGEST = 1800
"""Seconds that one place may take."""


def main() -> int:
    """See `--help`; the exit status."""
    given = _arguments()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=given.folder) as scratch, ExitStack() as stack:
        work = _Work(Path(scratch), Limits(given.documents), stack)
        misbehaving = Behaviour(given.seed, given.documents * 6 // 5, given.gone_seconds)
        undisturbed = work.undisturbed()
        places = [given.only] if given.only else PLACES
        soaks = {place: work.soak(place, misbehaving, undisturbed) for place in places}
        problems = [f"{place}: {one}" for place, soak in soaks.items() for one in broken(soak)]
        machine = described(scratch)
    head = f"Seed {given.seed}, {time.monotonic() - began:.0f} s in all, on {machine}"
    told = "\n\n".join([head, figures(soaks), "Requests that met a fault:", faults(soaks)])
    sys.stdout.write(told + "\n")
    if given.write:
        _write(told)
    for one in problems[:_SHOWN]:
        sys.stdout.write(f"BROKEN {one}\n")
    sys.stdout.write(f"{len(problems)} promises broken\n" if problems else "every promise holds\n")
    return 1 if problems else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m soak", description=__doc__)
    parser.add_argument("--documents", type=int, default=2000, help="how many (2000)")
    parser.add_argument("--seed", type=int, default=1, help="of the faults (1)")
    parser.add_argument("--gone-seconds", type=float, default=30.0, help="how long it is away (30)")
    parser.add_argument("--only", choices=PLACES, help="one of the two")
    parser.add_argument("--folder", help="where to work")
    parser.add_argument("--write", action="store_true", help=f"keep the figures in {DOCS.name}")
    return parser.parse_args()


def _write(told: str) -> None:
    before, _, rest = DOCS.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    DOCS.write_text(f"{before}{BEGIN}\n\n{told}\n\n{END}{after}", encoding="utf-8")


class _Work:
    """Servers, and what asks them, each a process; all files are in one folder."""

    def __init__(self, folder: Path, limits: Limits, stack: ExitStack) -> None:
        self._folder, self._limits, self._stack = folder, limits, stack
        write_documents(folder / "documents", limits.documents)
        self._calm, _ = self._serve("calm", Behaviour())

    def undisturbed(self) -> dict[str, Result]:
        """What becomes of each document, by key, where nothing goes wrong."""
        self._run("core", "undisturbed", {"undisturbed": self._calm})
        return {one["document_key"]: one for one in self._results("undisturbed")}

    def soak(self, place: str, behaviour: Behaviour, undisturbed: Mapping[str, Result]) -> Soak:
        """Both passes in that place."""
        names = f"{place}-first", f"{place}-again"
        bad, good = (
            self._serve(n, b) for n, b in zip(names, (behaviour, Behaviour()), strict=True)
        )
        told = self._run(place, place, {names[0]: bad[0], names[1]: good[0]})
        first, again = (
            Pass(one, self._results(name), read_log(log))
            for one, name, (_, log) in zip(told, names, (bad, good), strict=True)
        )
        return Soak(self._folder / place, self._limits, undisturbed, first, again)

    def _serve(self, name: str, behaviour: Behaviour) -> tuple[str, Path]:
        log = self._folder / f"{name}.log"
        return self._stack.enter_context(serving(log, behaviour)), log

    def _results(self, name: str) -> list[Result]:
        lines = (self._folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def _run(self, place: str, home: str, runs: Mapping[str, str]) -> list[dict[str, Any]]:
        given = {
            "folder": str(self._folder / "documents"),
            "home": str(self._folder / home),
            "runs": runs,
            "calm": self._calm,
            "documents": self._limits.documents,
        }
        command = [sys.executable, "-m", PLACES[place], json.dumps(given)]
        errors = self._folder / f"{home}.stderr"
        with errors.open("w") as stderr:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env={**os.environ, **_ENVIRONMENT},
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                timeout=_LONGEST,
            )
        told = [line for line in done.stdout.splitlines() if line.startswith(_MARK)]
        if done.returncode or not told:
            sys.stderr.write(errors.read_text()[-4000:])
            raise SystemExit(f"{place} ended with status {done.returncode}")
        return json.loads(told[-1].removeprefix(_MARK))["runs"]


if __name__ == "__main__":
    sys.exit(main())
