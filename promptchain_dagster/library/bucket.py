"""The documents in a bucket: its objects, by their key after the prefix that the URL names."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta, timezone

from promptchain_dagster.library.folder import Documents, Folder, Listed, Listing
from promptchain_dagster.refine.documents import (
    MAX_BYTES,
    SUPPORTED,
    Document,
    check_kind,
    document_key,
    document_of,
)
from promptchain_dagster.store.bucket import Object, ObjectReader
from promptchain_dagster.store.places import place_of

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)


def documents_at(root: str) -> Documents:
    """The documents at a path or a URL; raises `InvalidInput` where it is neither, before it
    touches disk or network."""
    place = place_of(root, "documents")
    return Bucket(place.where) if place.in_bucket else Folder(place.where)


class Bucket:
    """The documents under a bucket's URL, at any depth, with a `Folder`'s notion of what is one.

    Needs the extra `cloud`; credentials and settings are the environment's.
    """

    readers = 8  # each waits for its answer most of the time

    def __init__(self, url: str) -> None:
        self.root = url
        self._objects = ObjectReader(url, "documents")

    def list(self) -> Listing:
        """What there is; reads no document. Raises `InvalidInput` where it can't be listed."""
        objects = self._objects.list(SUPPORTED)
        return Listing(tuple(map(_listed, objects.found)), tuple(objects.unlisted))

    def load(self, path: str) -> Document:
        """The document at the relative `path`; raises `InvalidInput` where it can't be read."""
        name = f"{self.root}/{path}"
        check_kind(name)
        document = document_of(self._objects.read(path, MAX_BYTES, f"document {name!r}"), name)
        return dataclasses.replace(document, path=path, key=document_key(path))


def _listed(one: Object) -> Listed:
    modified = (one.modified - _EPOCH) // _MICROSECOND * 1000
    return Listed(one.path, one.size, modified, modified, one.etag)
