"""A case in a process of its own: what starts it, and what it tells when it is done."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).parents[1]
_MARK = "RESULT "
_QUIET = {
    "PYTHONDONTWRITEBYTECODE": "",
    "OPENAI_API_KEY": "none",
    "DO_NOT_TRACK": "1",
    "DAGSTER_DISABLE_TELEMETRY": "1",
    "LANGSMITH_TRACING": "false",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_LOGGING_LEVEL": "ERROR",
    "PYTHONWARNINGS": "ignore",
}


class CaseFailed(Exception):
    """A case that came to nothing; the message says why, in a line."""


def run_case(
    case: str, *, python: str = sys.executable, timeout: float = 900, **parameters: Any
) -> dict[str, Any]:
    """Run the module `benchmarks.<case>` with `parameters` and return what it told."""
    command = [python, "-m", f"benchmarks.{case}", json.dumps(parameters)]
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, **_QUIET},
            capture_output=True,
            text=True,
            timeout=timeout,
        )
    except subprocess.TimeoutExpired:
        raise CaseFailed(f"over {timeout:g} s") from None
    told = [line for line in done.stdout.splitlines() if line.startswith(_MARK)]
    if done.returncode or not told:
        last = (done.stderr.strip().splitlines() or ["ended without a word"])[-1]
        raise CaseFailed(f"fails: {_kind_of(last)}")
    return json.loads(told[-1].removeprefix(_MARK))


def _kind_of(error: str) -> str:
    """The error's own name and its first words, without any path or address of this machine."""
    name, _, words = error.partition(": ")
    shown = " ".join(word for word in words.split()[:8] if "/" not in word and "://" not in word)
    return f"{name.rpartition('.')[2]}: {shown}".replace("|", "/").rstrip(": ")


def parameters() -> dict[str, Any]:
    """Those that `run_case` was given."""
    return json.loads(sys.argv[1])


def tell(**result: Any) -> None:
    """Say what the case came to, and the most memory (MB) that its process held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(f"\n{_MARK}{json.dumps({'peak_mb': peak, **result})}\n")


def new_folder(inside: str) -> str:
    """A folder for the case, deleted with all others at the very end: where many files were deleted
    lately, ext4 takes half a millisecond to find room for a new one."""
    return tempfile.mkdtemp(dir=inside)


class Clock:
    """Measures its block: `seconds`, and the `cpu_seconds` of this process, all threads."""

    def __enter__(self) -> Clock:
        self._began, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.seconds = time.perf_counter() - self._began
        self.cpu_seconds = time.process_time() - self._cpu
