"""Which documents are to be summarized now, in what order, and which are left alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.library.recipe import digest_of
from promptchain_dagster.library.scanned import Known
from promptchain_dagster.library.state import Done, Kind, SetAside, State, Tried


class Why(str, Enum):
    """Why a document is to do."""

    NEW = "new"
    """It has no summary."""
    CHANGED = "changed"
    """Its summary is of an earlier text."""
    OUT_OF_DATE = "out of date"
    """Its summary is of this text, by an earlier prompt, model or parameter."""


@dataclass(frozen=True, slots=True)
class Work:
    """One document to do; `tries` counts the runs in which it failed, with this text and recipe."""

    key: str
    path: str
    content_hash: str
    digest: str
    why: Why
    tries: int = 0


@dataclass(frozen=True, slots=True)
class LeftAside:
    """A document that is not tried again; `reason` is known here only where it can't be read."""

    key: str
    path: str
    kind: Kind
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Worklist:
    """`work` is to do now, `waiting` what is beyond the limit, both in order; `done` counts."""

    work: tuple[Work, ...]
    waiting: tuple[Work, ...]
    set_aside: tuple[LeftAside, ...]
    done: int


def worklist(
    documents: Iterable[Known], state: State, recipe: str, *, limit: int | None = None
) -> Worklist:
    """What is missing or out of date, at most `limit` of it to be done now.

    `documents` are those present (`Scanned.documents.values()`). Those without a summary of their
    text go before those merely out of date; among these the less often tried, then by path.
    """
    if limit is not None and limit < 1:
        raise InvalidInput(f"limit is {limit}, must be 1 or more")
    work: list[Work] = []
    aside: list[LeftAside] = []
    done = 0
    for one in documents:
        key = one.key
        if one.content_hash is None:
            aside.append(LeftAside(key, one.path, Kind.UNREADABLE, one.unreadable))
            continue
        digest = digest_of(one.content_hash, recipe)
        status = state.status(key, digest)
        if isinstance(status, Done):
            done += 1
        elif isinstance(status, SetAside):
            aside.append(LeftAside(key, one.path, status.kind))
        else:
            tries = status.tries if isinstance(status, Tried) else 0
            why = _why(state.done_digest(key), digest)
            work.append(Work(key, one.path, one.content_hash, digest, why, tries))
    work.sort(key=lambda one: (one.why is Why.OUT_OF_DATE, one.tries, one.path))
    aside.sort(key=lambda one: one.path)
    now = len(work) if limit is None else limit
    return Worklist(tuple(work[:now]), tuple(work[now:]), tuple(aside), done)


def _why(done: str | None, digest: str) -> Why:
    if done is None:
        return Why.NEW
    same_text = done.partition("-")[0] == digest.partition("-")[0]
    return Why.OUT_OF_DATE if same_text else Why.CHANGED
