"""Reading what others put into a bucket: what lies there, and one object at a time."""

from __future__ import annotations

import builtins
import errno
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, cast

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.store.cloud import Connection, cloud_reason

if TYPE_CHECKING:
    from obstore import ObjectMeta

MAX_OBJECTS = 200_000
"""That a listing goes through, of any kind, a thousand to a request: Dagster gives a sensor's tick
a minute."""

_PAGE = 1000
_PATIENCE = timedelta(seconds=20)
_NAMED = re.compile(r'[Pp]ath "(.*?)"(?:: | contained )', re.DOTALL)
_BAD_KEY = "a key with an empty part, one that is . or .., or a control character"


@dataclass(frozen=True, slots=True)
class Object:
    """As the listing shows it: the key after the prefix, the size in bytes, and what tells of a
    change."""

    path: str
    size: int
    modified: datetime
    etag: str | None


@dataclass(frozen=True, slots=True)
class Objects:
    """What was listed, sorted by path, and the folders inside ("a/b/") that could not be."""

    found: builtins.list[Object]
    unlisted: builtins.list[str]


class ObjectReader:
    """The objects under a bucket's URL, which the errors call `what`. Connects when first used.

    Keys are taken as paths: a part that begins with a dot hides what is under it. Safe to use
    from several threads at once.
    """

    def __init__(self, url: str, what: str) -> None:
        self._url, self._what = url, what

    def list(self, suffixes: Sequence[str]) -> Objects:
        """The objects whose names end so, whatever their case, at any depth.

        The client can't list a folder that holds a key of which it can make no path: such a
        folder is told of, and all around it listed. Raises `InvalidInput` where the place itself
        can't be listed, or holds over `MAX_OBJECTS`.
        """
        connection = self._connection
        try:
            return self._walk(connection, tuple(suffixes))
        except connection.errors as error:
            raise self._unlistable(cloud_reason(error)) from None

    def read(self, path: str, most: int, what: str) -> bytes:
        """The object, called `what`, of at most so many bytes, or else `InvalidInput`.

        Its cause is a `FileNotFoundError` where there is no such object, and another `OSError`
        where the next try may succeed.
        """
        try:
            connection = self._connection
        except InvalidInput as error:  # this machine's doing, not the object's
            raise InvalidInput(f"{what} can't be read: {error}") from OSError(str(error))
        if any(part in ("", ".", "..") for part in path.split("/")):
            raise InvalidInput(f"{what} can't be read: it has {_BAD_KEY}")
        try:
            got = connection.obstore.get(connection.bucket, path)
            if got.meta["size"] <= most:
                return bytes(got.bytes())
        except FileNotFoundError:
            cause = FileNotFoundError(errno.ENOENT, "there is no such object")
        except ValueError:  # a control character, half a surrogate pair
            raise InvalidInput(f"{what} can't be read: no object can have this key") from None
        except connection.errors as error:
            cause = OSError(errno.EIO, cloud_reason(error))
        else:
            raise InvalidInput(f"{what} has over {most:,} bytes")
        raise InvalidInput(f"{what} can't be read: {cause.strerror}") from cause

    @cached_property
    def _connection(self) -> Connection:
        return Connection(self._url, self._what, _PATIENCE)

    def _walk(self, connection: Connection, suffixes: tuple[str, ...]) -> Objects:
        found: dict[str, Object] = {}
        unlisted: builtins.list[str] = []
        room = MAX_OBJECTS
        pending = [""]
        while pending:
            place = pending.pop()
            try:
                objects, folders = self._under(connection, place, room)
            except connection.obstore.exceptions.InvalidPathError as error:
                if not place:
                    raise self._unlistable(_told_of_key(error)) from None
                unlisted.append(place)
                continue
            room -= len(objects)
            pending += folders
            for one in objects:
                # A key "a.txt/", a folder as consoles make them, is listed as "a.txt" too.
                if _is_wanted(one["path"], suffixes):
                    found.setdefault(one["path"], _object(one))
        return Objects([found[path] for path in sorted(found)], sorted(unlisted))

    def _under(
        self, connection: Connection, place: str, room: int
    ) -> tuple[Sequence[ObjectMeta], Sequence[str]]:
        """All objects under the folder, or, where one of the keys is no path, those right in it
        and the folders to go on with; at most `room` of them."""
        obstore, bucket = connection.obstore, connection.bucket
        objects: builtins.list[ObjectMeta] = []
        folders: builtins.list[str] = []
        try:
            pages = obstore.list(bucket, place or None, chunk_size=_PAGE)  # pyright: ignore[reportUnknownMemberType]
            for page in cast("Iterable[Sequence[ObjectMeta]]", pages):
                objects += page
                if len(objects) > room:
                    break
        except obstore.exceptions.InvalidPathError as error:
            try:
                level = obstore.list_with_delimiter(bucket, place or None)  # pyright: ignore[reportUnknownMemberType]
            except obstore.exceptions.InvalidPathError:
                raise error from None  # which shows the whole key
            objects = [*cast("Sequence[ObjectMeta]", level["objects"])]
            folders = [f"{one}/" for one in level["common_prefixes"] if not _is_hidden(one)]
        if len(objects) + len(folders) > room:
            told = f"over {MAX_OBJECTS:,} objects are there; name a folder that holds fewer"
            raise self._unlistable(told)
        return objects, folders

    def _unlistable(self, reason: str) -> InvalidInput:
        return InvalidInput(f"{self._what} {self._url!r} can't be listed: {reason}")


def _is_wanted(path: str, suffixes: tuple[str, ...]) -> bool:
    return os.path.splitext(path)[1].lower() in suffixes and not _is_hidden(path)


def _is_hidden(path: str) -> bool:
    return path.startswith(".") or "/." in path


def _object(one: ObjectMeta) -> Object:
    return Object(one["path"], one["size"], one["last_modified"], one["e_tag"])


def _told_of_key(error: Exception) -> str:
    named = _NAMED.search(str(error))
    return f"rename the object{f' {named[1]!r}' if named else ''}: it has {_BAD_KEY}"
