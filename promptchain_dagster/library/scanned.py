"""What the last scans saw: one object, `documents.scan.json`, for all documents."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from promptchain_dagster.library.folder import Listed, Stamp
from promptchain_dagster.refine.documents import document_key
from promptchain_dagster.store import Store

SCAN = "documents.scan.json"
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Known:
    """A document that is present. `stamp` is the file's when it was read, None where it is to be
    read once more whatever the listing says."""

    path: str
    stamp: Stamp | None
    content_hash: str | None
    unreadable: str | None = None

    @property
    def key(self) -> str:
        return document_key(self.path)

    def is_current(self, file: Listed) -> bool:
        """Whether the file is the one that was read, as far as a listing tells."""
        return self.stamp == file.stamp


@dataclass
class Scanned:
    """The documents present, by path; `leaving` are gone, and may not yet be marked absent."""

    documents: dict[str, Known] = field(default_factory=dict[str, Known])
    leaving: set[str] = field(default_factory=set[str])

    @classmethod
    def read(cls, store: Store) -> Scanned:
        """What is kept; nothing where that is missing or damaged, so that all is read again."""
        data = store.read(SCAN)
        if data is None:
            return cls()
        try:
            held = json.loads(data)
            if held["format"] != _FORMAT:
                return cls()
            return cls(dict(_known(held["documents"].items())), set(held["leaving"]))
        except (ValueError, TypeError, KeyError, AttributeError):
            return cls()

    def write(self, store: Store) -> None:
        """Replace what is kept, whole."""
        documents = {
            one.path: [one.stamp, one.content_hash, *([one.unreadable] if one.unreadable else [])]
            for one in self.documents.values()
        }
        held = {"format": _FORMAT, "documents": documents, "leaving": sorted(self.leaving)}
        store.write(SCAN, json.dumps(held, separators=(",", ":")).encode())


def _known(items: Iterable[tuple[str, list[Any]]]) -> Iterable[tuple[str, Known]]:
    for path, (stamp, content_hash, *unreadable) in items:
        size_and_times = tuple(stamp) if stamp else None
        yield path, Known(path, size_and_times, content_hash, *unreadable)
