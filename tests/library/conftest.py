from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from promptchain_dagster.library.folder import Folder
from tests.support.memory_store import MemoryStore
from tests.support.s3 import bucket, objects, s3_endpoint, s3_environment

__all__ = ["bucket", "objects", "s3_endpoint", "s3_environment"]

Write = Callable[[str, str], Path]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty documents folder."""
    folder = tmp_path / "documents"
    folder.mkdir()
    return folder


@pytest.fixture
def folder(root: Path) -> Folder:
    return Folder(str(root))


@pytest.fixture
def write(root: Path) -> Write:
    """Writes a document, its folders with it."""

    def write(path: str, text: str) -> Path:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(os.fsencode(text))
        return file

    return write


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()
