"""The home as a folder: files that are renamed into place, and no link followed."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress

from promptchain_dagster.errors import StoreError
from promptchain_dagster.store.keys import check_key, check_prefix, is_key

_FOLDER = os.O_RDONLY | os.O_DIRECTORY
_SUBFOLDER = _FOLDER | os.O_NOFOLLOW
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
            with self._folder(folders, make=True) as folder:
                _replace(folder, name, data)
        except (OSError, ValueError) as error:
            raise self._failed("written", key, error) from error

    def list(self, prefix: str) -> list[str]:
        top = check_prefix(prefix)
        try:
            with self._folder(top.split("/")) as folder:
                return sorted(filter(is_key, _files(folder, prefix)))
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
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return
        except OSError as error:
            raise self._failed("deleted", key, error) from error

    def _failed(self, verb: str, key: str, error: OSError | ValueError) -> StoreError:
        reason = error.strerror if isinstance(error, OSError) else error
        return StoreError(f"{self.url_of(key)!r} can't be {verb}: {reason}")

    @contextmanager
    def _folder(self, folders: list[str], *, make: bool = False) -> Generator[int, None, None]:
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


def _files(folder: int, prefix: str) -> Iterator[str]:
    with os.scandir(folder) as scan:
        entries = list(scan)
        kinds = [(e.name, e.is_file(follow_symlinks=False)) for e in entries if not e.is_symlink()]
    for name, is_file in kinds:
        if is_file:
            yield prefix + name
        elif not name.startswith("."):
            try:
                inner = os.open(name, _SUBFOLDER, dir_fd=folder)
            except (FileNotFoundError, NotADirectoryError):  # deleted since, or no folder
                continue
            try:
                yield from _files(inner, f"{prefix}{name}/")
            finally:
                os.close(inner)
