"""The home as a folder: files that are renamed into place, and no link followed."""

from __future__ import annotations

import builtins
import errno
import os
import re
import secrets
import stat
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from typing import TypeVar

from promptchain_dagster.errors import StoreError
from promptchain_dagster.store.keys import check_key, check_prefix, is_key, is_probe

T = TypeVar("T")

_FOLDER = os.O_RDONLY | os.O_DIRECTORY
_SUBFOLDER = _FOLDER | os.O_NOFOLLOW
_ATTEMPTS = 100
_UNFINISHED = re.compile(r"\.\d+-[0-9a-f]{16}\.tmp")
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


class FolderStore:
    """Objects as files under the folder `root`, an absolute path.

    The way to a file is walked from `root` by directory descriptors that follow no link, so
    nothing under the home can lead a read or a write out of it; `root` itself may be a link.
    """

    def __init__(self, root: str) -> None:
        self._root = root

    def url_of(self, key: str) -> str:
        return os.path.join(self._root, check_key(key))

    def read(self, key: str) -> bytes | None:
        *folders, name = check_key(key).split("/")
        try:
            with self._folder(folders) as folder:
                file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
                with open(file, "rb") as stream:
                    return stream.read()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        except OSError as error:
            raise self._failed("read", key, error) from error

    def write(self, key: str, data: bytes) -> None:
        *folders, name = check_key(key).split("/")
        try:
            self._write(folders, name, data)
        except (OSError, ValueError) as error:
            raise self._failed("written", key, error) from error

    def _write(self, folders: builtins.list[str], name: str, data: bytes) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                with self._folder(folders, make=True) as folder:
                    _replace(folder, name, data)
                return
            except FileNotFoundError:  # the folder was emptied, and removed, this moment
                if attempt == _ATTEMPTS:
                    raise

    def list(self, prefix: str) -> list[str]:
        return [key for key, _ in self._listed(prefix, lambda folder, name: None)]

    def list_aged(self, prefix: str) -> builtins.list[tuple[str, datetime]]:
        return [(key, age) for key, age in self._listed(prefix, _written_at) if age is not None]

    def _listed(self, prefix: str, told: Callable[[int, str], T]) -> builtins.list[tuple[str, T]]:
        top = check_prefix(prefix)
        try:
            with self._folder(top.split("/")) as folder:
                found = [one for one in _files(folder, prefix, told) if is_key(one[0])]
                return sorted(found, key=lambda one: one[0])
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise self._failed("listed", top, error) from error

    def delete(self, key: str) -> None:
        *folders, name = check_key(key).split("/")
        try:
            with self._folder(folders) as folder:
                os.unlink(name, dir_fd=folder)
                os.fsync(folder)
            self._remove_empty(folders)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return
        except OSError as error:
            raise self._failed("deleted", key, error) from error

    def _remove_empty(self, folders: builtins.list[str]) -> None:
        """Remove the folder when nothing is left in it, and those above it, but the top one."""
        with suppress(OSError):  # as a rule something is left
            while len(folders) > 1:
                *folders, name = folders
                with self._folder(folders) as folder:
                    os.rmdir(name, dir_fd=folder)

    def sweep(self, before: datetime, *, dry_run: bool = False) -> int:
        try:
            with self._folder([]) as root:
                return _sweep(root, before, dry_run, at_top=True)
        except (FileNotFoundError, NotADirectoryError):
            return 0
        except OSError as error:
            reason = error.strerror
            raise StoreError(f"{self._root!r} can't be swept: {reason}") from error

    def _failed(self, verb: str, key: str, error: OSError | ValueError) -> StoreError:
        reason = error.strerror if isinstance(error, OSError) else error
        return StoreError(f"{self.url_of(key)!r} can't be {verb}: {reason}")

    @contextmanager
    def _folder(
        self, folders: builtins.list[str], *, make: bool = False
    ) -> Generator[int, None, None]:
        """A descriptor of the folder, opened anew each time: it may have been deleted since."""
        if make and not os.path.isdir(self._root):
            _make_folders(self._root)
        current = os.open(self._root, _FOLDER)
        try:
            for name in folders:
                inner = _open_subfolder(current, name, make)
                os.close(current)
                current = inner
            yield current
        finally:
            os.close(current)


def _make_folders(path: str) -> None:
    """Make the folder and what is missing above it, each durable in the one above."""
    above = os.path.dirname(path)
    if not os.path.isdir(above):
        _make_folders(above)
    with suppress(FileExistsError):  # made by another process, or no folder: opening it tells
        os.mkdir(path)
    descriptor = os.open(above, _FOLDER)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _open_subfolder(folder: int, name: str, make: bool) -> int:
    try:
        return os.open(name, _SUBFOLDER, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            raise
    except NotADirectoryError:
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            reason = f"{name} is a link, and no link inside the home is followed"
            raise OSError(errno.ELOOP, reason) from None
        raise
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=folder)
        os.fsync(folder)
    return os.open(name, _SUBFOLDER, dir_fd=folder)


def _replace(folder: int, name: str, data: bytes) -> None:
    """Write beside the file under a hidden name of our own, then rename over it."""
    hidden = f".{os.getpid()}-{secrets.token_hex(8)}.tmp"
    file = os.open(hidden, _NEW_FILE, 0o666, dir_fd=folder)
    try:
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(file, left) :]
            os.fsync(file)
        finally:
            os.close(file)
        os.replace(hidden, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(hidden, dir_fd=folder)
        raise
    os.fsync(folder)


def _entries(folder: int) -> list[tuple[str, bool]]:
    """The names in the folder, links left out, and whether each is a file."""
    with os.scandir(folder) as scan:
        entries = [entry for entry in scan if not entry.is_symlink()]
        return [(entry.name, entry.is_file(follow_symlinks=False)) for entry in entries]


@contextmanager
def _inside(folder: int, name: str) -> Generator[int | None, None, None]:
    """A descriptor of the folder in the folder; None when it was deleted since, or is none."""
    try:
        inner = os.open(name, _SUBFOLDER, dir_fd=folder)
    except (FileNotFoundError, NotADirectoryError):
        yield None
        return
    try:
        yield inner
    finally:
        os.close(inner)


def _files(folder: int, prefix: str, told: Callable[[int, str], T]) -> Iterator[tuple[str, T]]:
    for name, is_file in _entries(folder):
        if is_file:
            yield prefix + name, told(folder, name)
        elif not name.startswith("."):
            with _inside(folder, name) as inner:
                if inner is not None:
                    yield from _files(inner, f"{prefix}{name}/", told)


def _written_at(folder: int, name: str) -> datetime | None:
    try:
        seconds = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime
    except FileNotFoundError:
        return None
    return datetime.fromtimestamp(seconds, timezone.utc)


def _sweep(folder: int, before: datetime, dry_run: bool, *, at_top: bool = False) -> int:
    swept = 0
    for name, is_file in _entries(folder):
        if not is_file:
            with _inside(folder, name) as inner:
                if inner is not None and not name.startswith("."):
                    swept += _sweep(inner, before, dry_run)
        elif _UNFINISHED.fullmatch(name) or (at_top and is_probe(name)):
            written = _written_at(folder, name)
            if written is not None and written < before:
                with suppress(FileNotFoundError):
                    if not dry_run:
                        os.unlink(name, dir_fd=folder)
                    swept += 1
    return swept
