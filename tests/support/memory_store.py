"""A `Store` in memory that counts what is asked of it, and can be told to die."""

from __future__ import annotations

import builtins
from datetime import datetime, timezone


class Killed(BaseException):
    """The process ended here."""


class MemoryStore:
    """Objects in a dict. `dies_at` is the number of the write (from 1) at which the process ends,
    after it when `after_write` is set, or else before it."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.reads = self.writes = self.lists = 0
        self.dies_at: int | None = None
        self.after_write = False

    def read(self, key: str) -> bytes | None:
        self.reads += 1
        return self.objects.get(key)

    def write(self, key: str, data: bytes) -> None:
        self.writes += 1
        dies = self.writes == self.dies_at
        if dies and not self.after_write:
            raise Killed
        self.objects[key] = data
        if dies:
            raise Killed

    def list(self, prefix: str) -> list[str]:
        self.lists += 1
        return sorted(key for key in self.objects if key.startswith(prefix))

    def list_aged(self, prefix: str) -> builtins.list[tuple[str, datetime]]:
        return [(key, datetime.now(timezone.utc)) for key in self.list(prefix)]

    def sweep(self, before: datetime, *, dry_run: bool = False) -> int:
        return 0

    def delete(self, key: str) -> None:
        self.objects.pop(key, None)

    def url_of(self, key: str) -> str:
        return f"memory/{key}"
