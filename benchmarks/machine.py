"""On what it was measured."""

from __future__ import annotations

import os
import platform
import re
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from statistics import median

_SHOWN = ("dagster", "openai", "tiktoken", "pydantic", "sqlalchemy")


def described(folder: str) -> str:
    """The machine and the versions, in one paragraph."""
    versions = ", ".join(f"{name} {version(name)}" for name in _SHOWN)
    return (
        f"{os.cpu_count()} cores ({_cpu()}), {platform.system()} {platform.release()},"
        f" {platform.python_implementation()} {platform.python_version()}; {versions}."
        f" An fsync takes {1000 * _fsync_seconds(folder):.2f} ms; the load before was"
        f" {os.getloadavg()[0]:.1f}."
    )


def _cpu() -> str:
    try:
        names = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    except OSError:
        names = None
    return names[1].strip() if names else platform.processor() or platform.machine()


def _fsync_seconds(folder: str) -> float:
    times: list[float] = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(20):
            file.write(b"x" * 4096)
            file.flush()
            began = time.perf_counter()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - began)
    return median(times)
