"""The documents set aside, for people: which, why, and since when."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from promptchain_dagster.library.recipe import WITHOUT_TEXT, digest_of
from promptchain_dagster.library.registry import Entry, Registry
from promptchain_dagster.library.scanned import Scanned
from promptchain_dagster.library.state import MAX_TRIES, Kind, Marker, SetAside, State
from promptchain_dagster.store import Store


@dataclass(frozen=True, kw_only=True)
class Quarantined:
    """A document set aside. `path` is None where no document is registered under `key` any more;
    `when` (UTC, ISO 8601) and `run_id` are those of the last try, None where reading it, without a
    run, was enough to see."""

    key: str
    path: str | None
    reason: str
    kind: Kind
    tries: int
    when: str | None
    run_id: str | None = None


def quarantine(
    store: Store, *, recipe: str | None = None, max_tries: int = MAX_TRIES
) -> list[Quarantined]:
    """Every document set aside, sorted by path, but those that are gone or whose text has changed
    since, and with a `recipe` those that failed by another one. Reads no others."""
    state = State.read(store, max_tries=max_tries)
    registry = Registry(store)
    found: list[Quarantined] = []
    for key in state.failed_keys():
        found += _of(key, registry.find(key), state, store, recipe)
    found += _seen_by_scans(store, registry, {one.key for one in found})
    return sorted(found, key=lambda one: (one.path or "", one.key))


def _seen_by_scans(
    store: Store, registry: Registry, told: Collection[str]
) -> Iterator[Quarantined]:
    """What the last scans could not read, but those `told` of, and those read by hand since."""
    for one in Scanned.read(store).documents.values():
        if one.unreadable is None or one.key in told:
            continue
        entry = registry.find(one.key)
        if entry is None or entry.content_hash is None:
            yield Quarantined(
                key=one.key,
                path=one.path,
                reason=one.unreadable,
                kind=Kind.UNREADABLE,
                tries=0,
                when=None,
            )


def _of(
    key: str, entry: Entry | None, state: State, store: Store, recipe: str | None
) -> Iterator[Quarantined]:
    """The document's quarantine: none, or, while its text is the one that failed, one a recipe."""
    if entry is not None and entry.absent:
        return
    failures = state.failures(key)
    for digest in sorted({one.digest for one in failures}):
        by = digest.partition("-")[2]
        if entry and digest != _digest(entry, by):
            continue
        if recipe is not None and digest != WITHOUT_TEXT and by != recipe[:16]:
            continue
        status = state.status(key, digest)
        if isinstance(status, SetAside):
            decisive = [one for one in failures if one.digest == digest]
            decisive = [one for one in decisive if one.what == status.kind.value]
            last = max((_body(store, one) for one in decisive), key=lambda body: body["when"])
            yield Quarantined(
                key=key,
                path=entry.path if entry else None,
                reason=last["reason"],
                kind=status.kind,
                tries=status.tries,
                when=last["when"] or None,
                run_id=last["run_id"] or None,
            )


def _digest(entry: Entry, recipe: str) -> str:
    return digest_of(entry.content_hash, recipe) if entry.content_hash else WITHOUT_TEXT


def _body(store: Store, marker: Marker) -> dict[str, str]:
    told = {"reason": "unknown: its marker is damaged", "when": "", "run_id": ""}
    try:
        held = json.loads(store.read(marker.name) or b"")
    except ValueError:
        return told
    if isinstance(held, dict):
        told |= {name: str(held[name]) for name in told if name in held}  # pyright: ignore
    return told
