"""One way to write under the home, whole or not at all: in a folder or in an object store.

A key is a relative name such as `checkpoints/3f/9a.json`; what it names is a whole object or
nothing, whenever the process is killed, because both stores publish an object in one step (a
rename; a put). There is no lock and nothing to clear up after a kill: a file that was being
written keeps a hidden name, which no key can spell.
"""

from __future__ import annotations

import builtins
import os
import secrets
from datetime import datetime
from typing import Protocol

from promptchain_dagster.errors import InvalidInput, StoreError
from promptchain_dagster.store.cloud import ObjectStore
from promptchain_dagster.store.folder import FolderStore
from promptchain_dagster.store.keys import PROBE
from promptchain_dagster.store.places import place_of

__all__ = ["Store", "open_store"]


class Store(Protocol):
    """Whole objects under keys. Safe to use from several threads and processes at once.

    Each method raises `InvalidInput` for a key it can't take and `StoreError`, naming the object
    and the reason, when the store fails. Of two writers of one key the last wins.
    """

    def read(self, key: str) -> bytes | None:
        """The object, or None when there is none."""
        ...

    def write(self, key: str, data: bytes) -> None:
        """Replace the object, whole or not at all; durable when this returns."""
        ...

    def list(self, prefix: str) -> list[str]:
        """The keys under the folder `prefix`, which ends in "/", at any depth, sorted."""
        ...

    def list_aged(self, prefix: str) -> builtins.list[tuple[str, datetime]]:
        """The keys as `list` gives them, each with the time (UTC) of its last write."""
        ...

    def delete(self, key: str) -> None:
        """Remove the object; fine when there is none."""
        ...

    def sweep(self, before: datetime, *, dry_run: bool = False) -> int:
        """Remove what killed processes left unfinished before that time; returns how many files.
        With `dry_run` they are only counted."""
        ...

    def url_of(self, key: str) -> str:
        """The object's path or URL, for people."""
        ...


def open_store(home: str, *, read_only: bool = False) -> Store:
    """The store at `home`: a folder (a path or a file:// URL; made if missing) or s3://, gs://, az://.

    Unless it is only read, a small object is written and deleted to see that it can be written.
    Raises `InvalidInput`, naming the home, when it can't, or when it is no such place. An object
    store needs the extra `cloud` and takes its credentials and settings from the environment.
    """
    store = _store_at(home)
    if read_only:
        return store
    key = f"{PROBE}{secrets.token_hex(8)}"
    try:
        store.write(key, b"")
        store.delete(key)
    except StoreError as error:
        raise InvalidInput(f"home {home!r} can't be used: {error}") from None
    return store


def _store_at(home: str) -> Store:
    refused = "a store without atomic writes is refused"
    place = place_of(home, "home", refused=refused)
    if place.in_bucket:
        return ObjectStore(place.where)
    if os.path.exists(place.where) and not os.path.isdir(place.where):
        raise InvalidInput(f"home {home!r} can't be used: it is no folder")
    return FolderStore(place.where)
