"""Opening files that others may have put there: neither a trap nor a way out of a folder."""

from __future__ import annotations

import os
import stat
from typing import BinaryIO

from promptchain_dagster.errors import InvalidInput

_FOLDER = os.O_RDONLY | os.O_DIRECTORY
# Without waiting: a pipe may have no other end.
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY


def open_regular(path: str, what: str, *, within: str | None = None) -> BinaryIO:
    """The file at `path`, to be read; where it lies `within` a folder, no link leads out of that.

    Raises `InvalidInput`, which calls it `what`, for one that leads out and for a device, a pipe
    or a socket, and `OSError` where it can't be opened.
    """
    descriptor = _descriptor(path, what, within)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InvalidInput(f"{what} is no regular file")
    return os.fdopen(descriptor, "rb")


def _descriptor(path: str, what: str, within: str | None) -> int:
    """Once it is known where all links lead, none is followed on the way there: nothing that is
    put in the place of a file or a folder in between leads out."""
    if within is None:
        return os.open(path, _READ)
    top, place = os.path.realpath(within), os.path.realpath(path)
    inside = place.removeprefix(os.path.join(top, ""))
    if inside == place:
        raise InvalidInput(f"{what} leads out of the folder {within!r}")
    *folders, name = inside.split(os.sep)
    current = os.open(top, _FOLDER)
    try:
        for folder in folders:
            inner = os.open(folder, _FOLDER | os.O_NOFOLLOW, dir_fd=current)
            os.close(current)
            current = inner
        return os.open(name, _READ | os.O_NOFOLLOW, dir_fd=current)
    finally:
        os.close(current)
