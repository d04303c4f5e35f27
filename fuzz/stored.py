"""What must hold of the home's objects, whatever became of their bytes."""

from __future__ import annotations

from functools import cache
from typing import Any

from promptchain_dagster.library.registry import Registry
from promptchain_dagster.library.scanned import SCAN, Scanned
from promptchain_dagster.refine.checkpoints import Found, Trail
from promptchain_dagster.refine.documents import document_key
from promptchain_dagster.refine.steps import summary_refine

KEYS = ["3f" * 32, "9a" * 32]
SUMMARY = 'Anna\'s "ledger" \\ 台帳 \x1f\n\U0001f600 é'


class Objects:
    """A store of what a test puts into it."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}

    def read(self, key: str) -> bytes | None:
        return self.held.get(key)

    def write(self, key: str, data: bytes) -> None:
        self.held[key] = data

    def list(self, prefix: str) -> list[str]:
        return sorted(key for key in self.held if key.startswith(prefix))

    def url_of(self, key: str) -> str:
        return key


@cache
def good_checkpoint() -> bytes:
    """The object that holds SUMMARY after the last chunk of KEYS."""
    store: Any = Objects()
    trail = Trail(store, KEYS, summary_refine())
    trail.save(len(KEYS), SUMMARY)
    return store.held[trail.object_of(len(KEYS))]


def found_in(data: bytes) -> Found:
    """What is found where `data` stands in the place of that object."""
    store: Any = Objects()
    trail = Trail(store, KEYS, summary_refine())
    store.held[trail.object_of(len(KEYS))] = data
    return trail.furthest()


def damaged_checkpoint(data: bytes) -> None:
    """Only what was written is good: neither other bytes, nor the right ones with some changed."""
    good = good_checkpoint()
    changed = bytearray(good)
    for at, mask in zip(data[::2], data[1::2], strict=False):
        changed[(at * 7) % len(good)] ^= mask
    cut = len(data) and data[0] % len(good)
    for one in (data, bytes(changed), good[:cut], good[:cut] + data, good[:cut] + good[cut + 1 :]):
        found = found_in(one)
        if one == good:
            assert found == Found(len(KEYS), SUMMARY)
        else:
            assert (found.index, found.summary) == (0, "")
            assert "damaged" in found.warnings[0]


def damaged_registry(data: bytes) -> None:
    """A damaged entry is none, and a damaged scan knows nothing."""
    store: Any = Objects()
    key = document_key("a.txt")
    store.held = {f"documents/{key}.json": data, SCAN: data}
    entry = Registry(store).find(key)
    assert entry is None or entry.path == "a.txt"
    scanned = Scanned.read(store)
    for path, known in scanned.documents.items():
        assert known.path == path
