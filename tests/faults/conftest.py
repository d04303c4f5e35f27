"""A disk that a test can fill up or turn read-only."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


class Disk:
    """A file system in memory, mounted at `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def mount(self, options: str) -> None:
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(self.folder)]
        subprocess.run(command, check=True, capture_output=True, text=True)

    def change(self, options: str) -> None:
        """Give it another size (`size=1m`), or turn it read-only (`ro`) and back (`rw`)."""
        self.mount(f"remount,{options}")

    def fill(self) -> None:
        """Leave no byte of it."""
        with (self.folder / "ballast").open("wb", buffering=0) as ballast:
            try:
                while ballast.write(b"\0" * 4096):
                    pass
            except OSError:
                return

    def clear(self) -> None:
        """Give back what `fill` took."""
        (self.folder / "ballast").unlink()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """16 MB, to be filled."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        pytest.skip("a file system can be mounted by root on Linux alone")
    disk = Disk(tmp_path / "disk")
    try:
        disk.mount("size=16m")
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no file system can be mounted here: {getattr(error, 'stderr', error)}")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk.folder)], check=True)
