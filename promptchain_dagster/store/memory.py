"""A home that nobody keeps: what is tried out is forgotten with the process."""

from __future__ import annotations

import builtins
from datetime import datetime, timezone

from promptchain_dagster.store.keys import check_key, check_prefix


class MemoryStore:
    """Objects in this process alone."""

    def __init__(self) -> None:
        self._objects: dict[str, tuple[bytes, datetime]] = {}

    def read(self, key: str) -> bytes | None:
        held = self._objects.get(check_key(key))
        return held[0] if held else None

    def write(self, key: str, data: bytes) -> None:
        self._objects[check_key(key)] = data, datetime.now(timezone.utc)

    def list(self, prefix: str) -> list[str]:
        return [key for key, _ in self.list_aged(prefix)]

    def list_aged(self, prefix: str) -> builtins.list[tuple[str, datetime]]:
        check_prefix(prefix)
        return sorted(
            (key, written) for key, (_, written) in self._objects.items() if key.startswith(prefix)
        )

    def delete(self, key: str) -> None:
        self._objects.pop(check_key(key), None)

    def sweep(self, before: datetime, *, dry_run: bool = False) -> int:
        return 0

    def url_of(self, key: str) -> str:
        return f"memory:{check_key(key)}"
