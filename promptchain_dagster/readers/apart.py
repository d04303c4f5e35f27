"""Parse a file in a process of its own, which has little memory, little time and no secrets.

A parser in C or Python that is led astray, by chance or on purpose, ends that process, not the
run; and while it works, the event loop here does too.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from promptchain_dagster.readers.base import EXTRA, Refused
from promptchain_dagster.readers.kinds import NEEDS

MEMORY = 2 * 1024**3
"""Bytes of address space that one file may take; not limited on macOS."""
SECONDS = 120
"""CPU seconds that one file may take."""
_PATIENCE = 10
"""How many times as long it may take by the clock: other processes want to work too."""

# The package's own `__init__` would load all of the core first, several times what this takes.
_START = """
import sys, types
sys.path[:] = sys.argv[3:]
package = types.ModuleType("promptchain_dagster")
package.__path__ = [sys.argv[1]]
sys.modules["promptchain_dagster"] = package
from promptchain_dagster.readers.child import main
main(sys.argv[2])
"""
_PACKAGE = str(Path(__file__).parents[1])
_KEPT = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONDONTWRITEBYTECODE")
_ENDED_BY_OTHERS = (-signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT)
_turn = threading.BoundedSemaphore(os.cpu_count() or 1)


def read_apart(
    data: bytes,
    kind: str,
    encoding: str | None,
    fallback: str,
    *,
    memory: int = MEMORY,
    seconds: int = SECONDS,
) -> tuple[str, list[str]]:
    """The text of a file of that `kind` (see `kinds.KINDS`) and what was lost on the way to it.

    `encoding` and `fallback` are for HTML and e-mail. At most as many files are read at once as
    there are processors. Blocks. Raises `Refused`.
    """
    if (module := NEEDS.get(kind)) and find_spec(module) is None:
        raise Refused(f"can't be read without {module}: {EXTRA}", may_pass=True)
    asked = {
        "kind": kind,
        "encoding": encoding,
        "fallback": fallback,
        "memory": memory,
        "seconds": seconds,
    }
    paths = [path for path in sys.path if path]
    command = [sys.executable, "-I", "-S", "-c", _START, _PACKAGE, json.dumps(asked), *paths]
    with _turn:
        try:
            done = subprocess.run(
                command,
                input=data,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=seconds * _PATIENCE,
                env={name: os.environ[name] for name in _KEPT if name in os.environ},
                check=False,
            )
        except OSError as error:
            raise Refused(f"can't be read: {error}", may_pass=True) from error
        except subprocess.TimeoutExpired:
            wait = seconds * _PATIENCE
            raise Refused(f"is not read after {wait:,} seconds", may_pass=True) from None
    return _understood(done, seconds)


def _understood(done: subprocess.CompletedProcess[bytes], seconds: int) -> tuple[str, list[str]]:
    if done.returncode == -signal.SIGXCPU:
        raise Refused(f"takes over {seconds} seconds to read")
    try:
        answer = cast("dict[str, Any]", json.loads(done.stdout))
    except ValueError:
        raise Refused(
            f"can't be read: its parser ended with exit status {done.returncode}",
            may_pass=done.returncode in _ENDED_BY_OTHERS,
        ) from None
    if "refused" in answer:
        raise Refused(answer["refused"], may_pass=answer["may_pass"])
    return answer["text"], answer["warnings"]
