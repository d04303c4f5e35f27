"""Processes that end at the n-th change they make to the home, and what is counted over them."""

from __future__ import annotations

import builtins
import os
import resource
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import NoReturn

from promptchain_dagster.store import Store, open_store


class Place(str, Enum):
    """Where in a write the process ends; a delete has only before and after."""

    BEFORE = "before"
    HALF = "half written"
    """Half of the bytes are in the hidden file. The kernel ends the process inside `write`."""
    UNPUBLISHED = "unpublished"
    """The hidden file is whole and not yet renamed."""
    AFTER = "after"


def die() -> NoReturn:
    """No handler, no `finally`, no flush."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still alive")


class DyingStore:
    """A folder store whose process ends at change number `at` (from 1), in `place`; only the keys
    that begin with `kind` count."""

    def __init__(self, home: Path, at: int | None, place: Place, kind: str = "") -> None:
        self._inner: Store = open_store(str(home))
        self._at, self._place, self._kind = at, place, kind
        self._lock = threading.Lock()
        self._renaming = threading.local()
        self.changes: builtins.list[str] = []
        if at is not None:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            sys.addaudithook(self._hear)

    def _hear(self, event: str, args: tuple[object, ...]) -> None:
        if event == "os.rename" and getattr(self._renaming, "last", False):
            die()

    def _is_last(self, key: str) -> bool:
        with self._lock:
            if not key.startswith(self._kind):
                return False
            self.changes.append(key)
            return len(self.changes) == self._at

    def write(self, key: str, data: bytes) -> None:
        last = self._is_last(key)
        if last and self._place is Place.BEFORE:
            die()
        if last and self._place is Place.HALF:
            resource.setrlimit(resource.RLIMIT_FSIZE, (len(data) // 2, resource.RLIM_INFINITY))
        self._renaming.last = last and self._place is Place.UNPUBLISHED
        self._inner.write(key, data)
        if last:
            die()

    def delete(self, key: str) -> None:
        last = self._is_last(key)
        if last and self._place is not Place.AFTER:
            die()
        self._inner.delete(key)
        if last:
            die()

    def read(self, key: str) -> bytes | None:
        return self._inner.read(key)

    def list(self, prefix: str) -> list[str]:
        return self._inner.list(prefix)

    def list_aged(self, prefix: str) -> builtins.list[tuple[str, datetime]]:
        return self._inner.list_aged(prefix)

    def sweep(self, before: datetime, *, dry_run: bool = False) -> int:
        raise NotImplementedError("no run sweeps")

    def url_of(self, key: str) -> str:
        return self._inner.url_of(key)


class Journal:
    """Counts over processes that may be killed: a line is there once `add` has returned."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._path = path

    def add(self, line: str = "") -> None:
        os.write(self._file, f"{line}\n".encode())

    def lines(self) -> list[str]:
        return self._path.read_text("utf-8").splitlines()

    def close(self) -> None:
        os.close(self._file)


def forked(work: Callable[[], None]) -> int:
    """Run `work` in a process of its own: 0, or what ended it (minus the number of a signal).

    A fork, because an interpreter and its imports take a second. The process that forks must have
    no other thread, whose locks the child would inherit.
    """
    assert threading.active_count() == 1
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = 70
        try:
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def was_killed(status: int) -> bool:
    """Whether the process ended as `DyingStore` ends it."""
    return -status in (signal.SIGKILL, signal.SIGXFSZ)
