"""What documents there are: a folder's files, by their path relative to it.

`Documents` is all that the rest knows of where documents lie: a listing that reads none of them,
and one document's text.
"""

from __future__ import annotations

import dataclasses
import os
import stat
from dataclasses import dataclass
from typing import Protocol

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.refine.documents import (
    SUPPORTED,
    Document,
    document_key,
    load_document,
)

Stamp = tuple[int, int, int] | tuple[int, int, int, str]


@dataclass(frozen=True, slots=True)
class Listed:
    """A file as the listing shows it: `path` is relative, with "/"; sizes in bytes, times in ns.

    `ctime_ns` tells of a new content that keeps size and time of the old (f20); in a bucket the
    `etag` does, which changes with every content.
    """

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int
    etag: str | None = None

    @property
    def stamp(self) -> Stamp:
        """What is another when the file is."""
        times = (self.size, self.mtime_ns, self.ctime_ns)
        return times if self.etag is None else (*times, self.etag)


@dataclass(frozen=True, slots=True)
class Listing:
    """The documents, sorted by path, and the folders inside that could not be listed ("a/b/")."""

    files: tuple[Listed, ...]
    unlisted: tuple[str, ...] = ()


class Documents(Protocol):
    """Where documents lie: a folder, or a bucket.

    `root` names the place; `readers` is how many documents are best read at once.
    """

    root: str
    readers: int

    def list(self) -> Listing:
        """What there is; reads no document. Raises `InvalidInput` where `root` can't be listed."""
        ...

    def load(self, path: str) -> Document:
        """The document at the relative `path`; raises `InvalidInput` where it can't be read, its
        cause an `OSError` where the next try may succeed."""
        ...


class Folder:
    """The documents in the folder `root`, at any depth: files of a supported kind, none hidden.

    A link to a file inside the folder is a document like any other; one that leads out of it is
    neither listed nor read, and linked folders are not entered.
    """

    readers = 1

    def __init__(self, root: str) -> None:
        self.root = os.path.abspath(os.path.expanduser(root))

    def list(self) -> Listing:
        """What there is; reads no document. Raises `InvalidInput` where `root` can't be listed."""
        files: list[Listed] = []
        unlisted: list[str] = []
        inside = os.path.join(os.path.realpath(self.root), "")
        pending = [""]
        while pending:
            place = pending.pop()
            try:
                with os.scandir(os.path.join(self.root, place)) as scan:
                    for entry in scan:
                        if entry.name.startswith("."):
                            continue
                        if entry.is_dir(follow_symlinks=False):
                            pending.append(f"{place}{entry.name}/")
                        elif found := _listed(entry, place, inside):
                            files.append(found)
            except OSError as error:
                if not place:
                    reason = error.strerror
                    message = f"documents folder {self.root!r} can't be listed: {reason}"
                    raise InvalidInput(message) from error
                if not isinstance(error, FileNotFoundError):
                    unlisted.append(place)
        return Listing(tuple(sorted(files, key=lambda file: file.path)), tuple(sorted(unlisted)))

    def load(self, path: str) -> Document:
        """The document at the relative `path`; raises `InvalidInput` where it can't be read."""
        document = load_document(os.path.join(self.root, path), within=self.root)
        return dataclasses.replace(document, path=path, key=document_key(path))


def _listed(entry: os.DirEntry[str], place: str, inside: str) -> Listed | None:
    """The entry, where it is a document; `inside` is the folder that no link may lead out of."""
    if os.path.splitext(entry.name)[1].lower() not in SUPPORTED:
        return None
    try:
        if entry.is_symlink() and not os.path.realpath(entry.path).startswith(inside):
            return None
        found = entry.stat()
    except OSError:  # deleted since, or a link to nothing
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return Listed(place + entry.name, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
