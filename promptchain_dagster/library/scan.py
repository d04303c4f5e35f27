"""One bounded look at where the documents lie: what is new, changed or gone since the last one.

The order of writes is what makes a kill harmless. A document's own object is written before the
scan's, so what was lost in between is read again. One that is gone is first noted as leaving, then
marked absent, then forgotten, so a return in between is never taken for an unchanged file.
"""

from __future__ import annotations

import copy
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timezone

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.library.folder import Documents, Listed, Listing, Stamp
from promptchain_dagster.library.registry import Content, Entry, Registry, read_content, utc
from promptchain_dagster.library.scanned import Known, Scanned
from promptchain_dagster.refine.documents import document_key
from promptchain_dagster.store import Store

SETTLED_NS = 2_000_000_000
"""How old a file's time must be before an equal time means an equal file (f20): some file systems
keep whole seconds, and a file may still be being written."""


@dataclass(frozen=True, kw_only=True)
class ScanResult:
    """What one scan saw. What a killed caller made nothing of is not told again: the worklist is
    what finds everything that is left to do.

    `new` were never read before, or came back; `changed` have another clean text; `unreadable` are
    those newly so; `removed` are paths, now marked absent; `remaining` counts the files that are
    to be read, and the gone ones to be marked, by the next scans; `cursor` is where these go on.
    """

    new: tuple[Known, ...] = ()
    changed: tuple[Known, ...] = ()
    unreadable: tuple[Known, ...] = ()
    removed: tuple[str, ...] = ()
    unlisted: tuple[str, ...] = ()
    remaining: int = 0
    cursor: str = ""


def scan(
    folder: Documents,
    store: Store,
    cursor: str = "",
    *,
    limit: int = 200,
    now: datetime | None = None,
) -> ScanResult:
    """List the folder, read at most `limit` new or changed files, from `cursor` on, round robin.

    A file whose size and times are those it was read with is not read. An empty listing changes
    nothing; one that fails raises `InvalidInput` and changes nothing either; what lies in a folder
    inside that can't be listed stays as it is.
    """
    if limit < 1:
        raise InvalidInput(f"limit is {limit}, must be 1 or more")
    now = now or datetime.now(timezone.utc)
    listing = folder.list()
    if not listing.files:
        return ScanResult(cursor=cursor, unlisted=listing.unlisted)
    return _Scan(folder, store, listing, now).run(cursor, limit)


class _Scan:
    def __init__(self, folder: Documents, store: Store, listing: Listing, now: datetime) -> None:
        self._folder, self._store, self._listing, self._now = folder, store, listing, now
        self._registry = Registry(store)
        self._scanned = Scanned.read(store)
        self._before = copy.copy(self._scanned.documents)
        self._new: list[Known] = []
        self._changed: list[Known] = []
        self._unreadable: list[Known] = []

    def run(self, cursor: str, limit: int) -> ScanResult:
        self._note_leaving()
        known = self._scanned.documents
        files = self._listing.files
        pending = [f for f in files if f.path not in known or not known[f.path].is_current(f)]
        turn = _from(pending, cursor)[:limit]
        for file, content in zip(turn, self._contents(turn), strict=True):
            self._look_at(file, content)
        removed = sorted(self._scanned.leaving)[:limit]
        for path in removed:
            self._registry.mark_absent(path)
        self._scanned.leaving.difference_update(removed)
        if removed or self._scanned.documents != self._before:
            self._scanned.write(self._store)
        return ScanResult(
            new=tuple(self._new),
            changed=tuple(self._changed),
            unreadable=tuple(self._unreadable),
            removed=tuple(removed),
            unlisted=self._listing.unlisted,
            remaining=len(pending) - len(turn) + len(self._scanned.leaving),
            cursor=turn[-1].path if turn else cursor,
        )

    def _note_leaving(self) -> None:
        there = {file.path for file in self._listing.files}
        scanned = self._scanned
        gone = [
            path
            for path in scanned.documents
            if path not in there and not path.startswith(self._listing.unlisted)
        ]
        # One that came back is no longer known, so it is read, and found present again.
        scanned.leaving -= there
        if gone:
            scanned.leaving.update(gone)
            for path in gone:
                del scanned.documents[path]
            scanned.write(self._store)

    def _contents(self, turn: Sequence[Listed]) -> Iterator[Content]:
        def content(file: Listed) -> Content:
            return read_content(lambda: self._folder.load(file.path))

        if self._folder.readers == 1:
            yield from map(content, turn)
        else:
            with ThreadPoolExecutor(self._folder.readers) as pool:
                yield from pool.map(content, turn)

    def _look_at(self, file: Listed, content: Content) -> None:
        if content.vanished:
            return  # the next listing tells
        entry = Entry(
            key=document_key(file.path),
            path=file.path,
            root=self._folder.root,
            content_hash=content.content_hash,
            size=file.size,
            registered_at=utc(self._now),
            unreadable=content.unreadable,
        )
        self._registry.put(entry)
        found = Known(
            file.path, self._stamp(file, content), content.content_hash, content.unreadable
        )
        self._scanned.documents[file.path] = found
        self._tell(self._before.get(file.path), found)

    def _stamp(self, file: Listed, content: Content) -> Stamp | None:
        age = self._now.timestamp() * 1e9 - max(file.mtime_ns, file.ctime_ns)
        settled = file.etag is not None or abs(age) > SETTLED_NS
        return file.stamp if settled and not content.may_pass else None

    def _tell(self, before: Known | None, found: Known) -> None:
        if found.content_hash is None:
            if before is None or before.unreadable is None:
                self._unreadable.append(found)
        elif before is None or before.content_hash is None:
            self._new.append(found)
        elif before.content_hash != found.content_hash:
            self._changed.append(found)


def _from(files: Sequence[Listed], cursor: str) -> list[Listed]:
    """The files after the cursor, then the others."""
    place = bisect_right(files, cursor, key=lambda file: file.path)
    return [*files[place:], *files[:place]]
