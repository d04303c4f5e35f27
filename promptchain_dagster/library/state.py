"""What was done with each document, told by names alone: one listing of `state/`, and no reads.

A marker is `state/<document key>.<digest>.<what>.json`. The digest is of the text and the recipe,
so a new text or a new prompt finds no marker, and the document is to do again.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.library.registry import utc
from promptchain_dagster.models.base import Problem
from promptchain_dagster.refine.outcome import DocumentOutcome, Stopped, Unreadable
from promptchain_dagster.store import Store

MAX_TRIES = 3
_AT_ONCE = 16
"""Markers read, where an object store takes its time for each."""
_DONE = "done"
_NAME = re.compile(
    r"state/([a-z0-9_-]+)\.([0-9a-f]{16}-[0-9a-f]{16})"
    r"\.(done|failed|refused|too-long|unreadable)(?:\.[0-9a-f]{16})?\.json"
)


class Kind(str, Enum):
    """Why a document failed. All but `FAILED` are for good: the same call can't end otherwise."""

    FAILED = "failed"
    """A call that may succeed another time; for good after `MAX_TRIES` runs."""
    REFUSED = "refused"
    """A refusal or a content filter."""
    TOO_LONG = "too-long"
    """Prompt and reply don't fit the model's context."""
    UNREADABLE = "unreadable"
    """No text of a known kind."""


_KIND_OF = {Problem.REFUSED: Kind.REFUSED, Problem.TOO_LONG: Kind.TOO_LONG}


def failure_of(outcome: DocumentOutcome) -> Kind | None:
    """What the outcome counts as; None where it is no failed try: done, or the run ended early."""
    if isinstance(outcome, Unreadable):
        return Kind.FAILED if outcome.may_pass else Kind.UNREADABLE
    if not isinstance(outcome, Stopped) or outcome.ends_run:
        return None
    return Kind.FAILED if outcome.problem is None else _KIND_OF.get(outcome.problem, Kind.FAILED)


@dataclass(frozen=True, slots=True)
class Todo:
    """Never tried with this text and recipe."""


@dataclass(frozen=True, slots=True)
class Tried:
    """Failed in `tries` runs, and to be tried again."""

    tries: int


@dataclass(frozen=True, slots=True)
class SetAside:
    """Failed for good, in `tries` runs; not to be paid for again."""

    kind: Kind
    tries: int


@dataclass(frozen=True, slots=True)
class Done:
    """The summary that is kept is of this text, by this recipe."""


Status = Todo | Tried | SetAside | Done


@dataclass(frozen=True, slots=True)
class Marker:
    """What one marker's name says; `what` is "done" or a `Kind`'s value."""

    name: str
    key: str
    digest: str
    what: str


class State:
    """The markers as they were listed, kept in step with what is marked through this object.

    Methods that mark block and raise `StoreError`. Several runs at once are safe; what another run
    marks is seen by the next `read`.
    """

    def __init__(self, store: Store, markers: Iterable[Marker], max_tries: int = MAX_TRIES) -> None:
        if max_tries < 1:
            raise InvalidInput(f"max_tries is {max_tries}, must be 1 or more")
        self._store = store
        self._max_tries = max_tries
        self._markers: dict[str, list[Marker]] = {}
        for marker in markers:
            self._markers.setdefault(marker.key, []).append(marker)

    @classmethod
    def read(cls, store: Store, *, max_tries: int = MAX_TRIES) -> State:
        """One listing, whatever the number of documents."""
        found = filter(None, map(_marker, store.list("state/")))
        return cls(store, found, max_tries)

    def status(self, key: str, digest: str) -> Status:
        """What is left to do about the document, its text and recipe being those of `digest`."""
        if self.done_digest(key) == digest:
            return Done()
        failures = [one for one in self.failures(key) if one.digest == digest]
        for_good = [one.what for one in failures if one.what != Kind.FAILED.value]
        if for_good or len(failures) >= self._max_tries:
            kind = Kind(for_good[0]) if for_good else Kind.FAILED
            return SetAside(kind, len(failures))
        return Tried(len(failures)) if failures else Todo()

    def done_digest(self, key: str) -> str | None:
        """What the document's kept summary is of; None where it has none, or two runs disagree."""
        done = [one.digest for one in self._of(key) if one.what == _DONE]
        return done[0] if len(done) == 1 else None

    def failures(self, key: str) -> list[Marker]:
        """The document's failed tries, of every digest."""
        return [one for one in self._of(key) if one.what != _DONE]

    def failed_keys(self) -> list[str]:
        """The documents with failed tries, sorted."""
        return sorted(key for key in self._markers if self.failures(key))

    def mark_done(
        self,
        key: str,
        digest: str,
        run_id: str | None = None,
        now: datetime | None = None,
        *,
        checkpoints: Sequence[str] = (),
    ) -> None:
        """The document's summary is kept, and `prune` is to keep its `checkpoints`. What was marked
        before, of whatever digest, goes first: a text that later returns to an earlier state must
        not be taken for done."""
        marker = Marker(f"state/{key}.{digest}.{_DONE}.json", key, digest, _DONE)
        self._delete(one for one in self._of(key) if one != marker)
        body = {"run_id": run_id, "when": utc(now), "checkpoints": list(checkpoints)}
        self._write(marker, body)

    def unmark_done(self, key: str, digest: str) -> None:
        """The kept summary is about to give way to that of `digest`. Until `mark_done`, a text that
        returns to an earlier state must not be taken for done: the summary may be the new one."""
        self._delete(one for one in self._of(key) if one.what == _DONE and one.digest != digest)

    def mark_failed(
        self,
        key: str,
        digest: str,
        kind: Kind,
        reason: str,
        run_id: str,
        now: datetime | None = None,
    ) -> None:
        """One failed try; marking the same run again counts once."""
        run = hashlib.sha256(run_id.encode()).hexdigest()[:16]
        marker = Marker(f"state/{key}.{digest}.{kind.value}.{run}.json", key, digest, kind.value)
        self._write(marker, {"reason": reason, "run_id": run_id, "when": utc(now)})

    def checkpoints(self) -> set[str]:
        """The store's keys that `mark_done` was given; reads the marker of every document done."""
        done = [one.name for of in self._markers.values() for one in of if one.what == _DONE]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return {key for data in pool.map(self._store.read, done) for key in _named_in(data)}

    def release(self, key: str) -> bool:
        """Forget the document's failed tries; whether there were any."""
        failures = self.failures(key)
        self._delete(failures)
        return bool(failures)

    def _of(self, key: str) -> list[Marker]:
        return self._markers.get(key, [])

    def _write(self, marker: Marker, body: Mapping[str, str | list[str] | None]) -> None:
        if not _NAME.fullmatch(marker.name):
            raise InvalidInput(f"{marker.key!r}, {marker.digest!r} are no document key and digest")
        self._store.write(marker.name, json.dumps(body, indent=2).encode())
        self._markers[marker.key] = [one for one in self._of(marker.key) if one != marker]
        self._markers[marker.key].append(marker)

    def _delete(self, markers: Iterable[Marker]) -> None:
        for marker in list(markers):
            self._store.delete(marker.name)
            self._markers[marker.key] = [one for one in self._of(marker.key) if one != marker]


def _marker(name: str) -> Marker | None:
    found = _NAME.fullmatch(name)
    return Marker(name, found[1], found[2], found[3]) if found else None


def _named_in(done: bytes | None) -> list[str]:
    """The checkpoints that a marker names; none where it is damaged."""
    try:
        held: Any = json.loads(done or b"")["checkpoints"]
        return [key for key in held if isinstance(key, str)]
    except (ValueError, LookupError, TypeError):
        return []
