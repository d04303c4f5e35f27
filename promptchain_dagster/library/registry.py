"""What is known of each document: `documents/<key>.json` in the home, from which it is found again.

Objects are never deleted; a document that is gone is marked absent.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, cast

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.library.bucket import documents_at
from promptchain_dagster.library.folder import Documents
from promptchain_dagster.refine.documents import Document, document_key, load_document
from promptchain_dagster.refine.source import Source
from promptchain_dagster.store import Store


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One document. `path` is relative to `root`, a folder or a bucket's URL, or absolute where
    `root` is None: a document given by hand.

    `content_hash` (SHA-256, hex) is of its clean text, None where it could not be read, for the
    reason `unreadable`; `size` is the file's, in bytes; `registered_at` (UTC, ISO 8601) the time
    it was first seen.
    """

    key: str
    path: str
    root: str | None
    content_hash: str | None
    size: int
    registered_at: str
    absent: bool = False
    unreadable: str | None = None


@dataclass(frozen=True, slots=True)
class Content:
    """What reading a document came to: the hash of its clean text, or why there is none.

    `may_pass`: reading it failed, which may be the disk's or the network's doing; `vanished`: it
    was not there.
    """

    content_hash: str | None
    unreadable: str | None = None
    may_pass: bool = False
    vanished: bool = False


def read_content(load: Callable[[], Document]) -> Content:
    """Read a document to the end, keeping its hash alone. Blocks."""
    try:
        text = load().text
    except InvalidInput as error:
        cause = error.__cause__
        vanished = isinstance(cause, FileNotFoundError | NotADirectoryError)
        return Content(None, str(error), isinstance(cause, OSError), vanished)
    return Content(hashlib.sha256(text.encode()).hexdigest())


class Registry:
    """The documents that the home knows.

    `root` is where the documents lie for this machine; without it, where they lay when they were
    registered. Methods block, and raise `StoreError` when the home fails.
    """

    def __init__(self, store: Store, root: str | None = None) -> None:
        self._store = store
        self._documents = documents_at(root) if root else None
        self._opened: dict[str, Documents] = {}

    def find(self, key: str) -> Entry | None:
        """The document of that key, absent ones included; None where there is none."""
        data = self._store.read(f"documents/{key}.json")
        return None if data is None else _unpack(key, data)

    def put(self, entry: Entry) -> None:
        """Keep what is known of a document now; the time it was first seen stays."""
        known = self.find(entry.key)
        if known is not None:
            entry = dataclasses.replace(entry, registered_at=known.registered_at)
        if entry != known:
            data = json.dumps(dataclasses.asdict(entry), indent=2).encode()
            self._store.write(f"documents/{entry.key}.json", data)

    def mark_absent(self, path: str) -> None:
        """The document at the relative `path` is gone from its folder."""
        known = self.find(document_key(path))
        if known is not None:
            self.put(dataclasses.replace(known, absent=True))

    def register(self, path: str, now: datetime | None = None) -> Entry:
        """Know the file at `path`, given by hand; what can't be read says so in `unreadable`.

        Inside the documents folder it is the document that a scan finds there.
        """
        full = os.path.abspath(path)
        relative = self._relative(full)
        name = full if relative is None else relative
        root = self._documents.root if self._documents and relative is not None else None
        content = read_content(lambda: self._load(name, root))
        entry = Entry(
            key=document_key(name),
            path=name,
            root=root,
            content_hash=content.content_hash,
            size=os.path.getsize(full) if content.content_hash else 0,
            registered_at=utc(now),
            unreadable=content.unreadable,
        )
        self.put(entry)
        return entry

    def source(self, key: str) -> Source:
        """The document of that key, looked up and read when its turn comes."""

        def load() -> Document:
            entry = self.find(key)
            if entry is None:
                raise InvalidInput(f"no document is registered under the key {key!r}")
            return self._load(entry.path, entry.root)

        return Source(key, load)

    def _load(self, path: str, root: str | None) -> Document:
        if root is None:
            return load_document(path)
        if self._documents is not None:
            return self._documents.load(path)
        # One connection to a bucket serves all of its documents.
        if root not in self._opened:
            self._opened[root] = documents_at(root)
        return self._opened[root].load(path)

    def _relative(self, full: str) -> str | None:
        """The path inside the documents folder; None where it lies elsewhere."""
        if self._documents is None:
            return None
        top = os.path.join(self._documents.root, "")
        return full.removeprefix(top) if full.startswith(top) else None


def utc(now: datetime | None) -> str:
    """The time, by default this moment, as it is written down."""
    now = now or datetime.now(timezone.utc)
    return now.astimezone(timezone.utc).isoformat(timespec="seconds")


def _unpack(key: str, data: bytes) -> Entry | None:
    """The entry in `data`; None where it is damaged, or stands for another document."""
    try:
        held = cast("dict[str, Any]", json.loads(data))
        entry = Entry(**held)
        right = entry.key == key == document_key(entry.path)
    except (ValueError, TypeError, AttributeError):
        return None
    return entry if right else None
