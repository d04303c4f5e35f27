"""The summary after every chunk, kept so that no chunk is paid for twice (d10, d11, d12, d14).

A checkpoint's key is a chain of hashes: over all that shapes a summary, then over each chunk so
far. It knows nothing of the document's name, of the endpoint or of how many chunks follow, so a
renamed or grown document finds its own, and an edited one those before its first edit. There is
no lock: whoever writes one key writes what that key stands for.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from promptchain_dagster.errors import StoreError
from promptchain_dagster.models.base import ChatModel
from promptchain_dagster.refine.chunking import Chunk
from promptchain_dagster.refine.definition import Refine
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.refine.steps import shapes_of
from promptchain_dagster.store import Store

FORMAT = 1
"""Part of every key: a change of how summaries come about or are kept starts over."""


@dataclass(frozen=True, slots=True)
class Found:
    """The furthest checkpoint of a document: `index` chunks are folded into `summary`, the text
    of the running state (`Refine.text_of`).

    `uncompressed`: what is kept is the reply to chunk `index`, over the cap, before its
    compression.
    """

    index: int = 0
    summary: str = ""
    uncompressed: bool = False
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Checkpoints:
    """Where checkpoints are kept.

    With a `generation` (any text, the same when a killed run is resumed) what is stored without
    one is not taken: everything is paid for again, in a place of its own (`--fresh`).
    """

    store: Store
    generation: str | None = None

    def of(self, chunks: Sequence[Chunk], settings: RefineSettings, model: ChatModel) -> Trail:
        """The checkpoints of one document; `chunks` is all of it."""
        plain = Trail(self.store, _keys(chunks, settings, model, None), settings.refine)
        if self.generation is None:
            return plain
        keys = _keys(chunks, settings, model, self.generation)
        return Trail(self.store, keys, settings.refine, plain)


class Trail:
    """The checkpoints of one document's chunks. Its methods block: call them off the event loop."""

    def __init__(
        self, store: Store, keys: Sequence[str], refine: Refine, plain: Trail | None = None
    ) -> None:
        self._store = store
        self._keys = keys
        self._refine = refine
        self._plain = plain
        self._folder = f"checkpoints/{keys[0][:2]}/{keys[0]}/"

    @property
    def key(self) -> str:
        """The same for two documents exactly when the one's summary is the other's."""
        return self._keys[-1]

    @property
    def last_two(self) -> tuple[str, ...]:
        """The store's keys from which, once all is folded, the next run goes on: with the last one
        where the document is unchanged, with the one before where it has grown."""
        last, trail = len(self._keys), self._plain or self
        return tuple(trail.object_of(index) for index in (last - 1, last) if index)

    def object_of(self, index: int, *, uncompressed: bool = False) -> str:
        """The store's key of the checkpoint after chunk `index`."""
        return self._folder + self._name(index, uncompressed)

    def save(self, index: int, summary: str, *, uncompressed: bool = False) -> None:
        """Keep the summary after chunk `index`, durable when this returns."""
        key = self.object_of(index, uncompressed=uncompressed)
        self._store.write(key, _pack(self._keys[index - 1], uncompressed, summary))

    def furthest(self) -> Found:
        """The last good checkpoint; each damaged one that stood after it is named in a warning.

        An unchanged document costs one read, any other one listing more.
        """
        last = len(self._keys)
        warnings: list[str] = []
        if (summary := self._read(last, False, warnings)) is not None:
            return Found(last, summary)
        places = {
            self.object_of(index, uncompressed=uncompressed): (index, not uncompressed)
            for index in range(1, last + 1)
            for uncompressed in (False, True)
        }
        listed = self._store.list(self._folder)
        there = {places[key] for key in listed if key in places} - {(last, True)}
        others = [_index_in(key) for key in listed if key not in places]
        for index, compressed in sorted(there, reverse=True):
            if (summary := self._read(index, not compressed, warnings)) is not None:
                warnings += _why_not_further(index, others)
                return Found(index, summary, not compressed, tuple(warnings))
        return Found(warnings=(*warnings, *_why_not_further(0, others)))

    def publish(self) -> str | None:
        """Make the finished run of a generation the one that later runs take up.

        Returns the summary that stood there before, which is kept beside the new one; None where
        there was none, and without a generation.
        """
        if self._plain is None:
            return None
        last = len(self._keys)
        earlier = self._plain._read(last, False, [])
        if earlier is not None and earlier == self._read(last, False, []):
            return None
        if earlier is not None:
            self._plain._set_aside(last, earlier)
        # The last one goes last: once it is there, all are.
        for index in range(1, last + 1):
            summary = self._read(index, False, [])
            if summary is not None:
                self._plain.save(index, summary)
        return earlier

    def _set_aside(self, index: int, summary: str) -> None:
        data = _pack(self._keys[index - 1], False, summary)
        stem = self.object_of(index).removesuffix(".json")
        mark = hashlib.sha256(data).hexdigest()[:16]
        self._store.write(f"{stem}.earlier-{mark}.json", data)

    def _name(self, index: int, uncompressed: bool) -> str:
        kind = ".uncompressed" if uncompressed else ""
        return f"{index:06}-{self._keys[index - 1]}{kind}.json"

    def _read(self, index: int, uncompressed: bool, warnings: list[str]) -> str | None:
        key = self.object_of(index, uncompressed=uncompressed)
        try:
            data = self._store.read(key)
        except StoreError:  # a link in its place, say
            data = b""
        if data is None:
            return None
        summary = _unpack(data, self._keys[index - 1], uncompressed)
        good = summary is not None and self._refine.state_in(summary) is not None
        if not good:
            what = "damaged" if summary is None else "no longer valid"
            where = self._store.url_of(key)
            warnings.append(f"the checkpoint of chunk {index} is {what} and was not used: {where}")
        return summary if good else None


def _keys(
    chunks: Sequence[Chunk], settings: RefineSettings, model: ChatModel, generation: str | None
) -> list[str]:
    shapes = [
        FORMAT,
        *shapes_of(settings.refine),
        model.name,
        dict(model.parameters),
        settings.document_type,
        settings.max_words,
        generation,
    ]
    key = hashlib.sha256(json.dumps(shapes, sort_keys=True).encode()).digest()
    keys: list[str] = []
    for chunk in chunks:
        key = hashlib.sha256(key + chunk.text.encode()).digest()
        keys.append(key.hex())
    return keys


def _index_in(key: str) -> int:
    index = key.rpartition("/")[2].partition("-")[0]
    return int(index) if index.isdecimal() else 0


def _why_not_further(index: int, others: Sequence[int]) -> list[str]:
    """Why the chunks after `index` are folded again, where an earlier run had folded `others`."""
    # That the last chunk of a document grew is no surprise.
    if max(others, default=0) <= index + 1:
        return []
    return [
        f"chunk {index + 1} is not the one that an earlier run had folded there; what follows is"
        " folded again"
    ]


def _pack(key: str, uncompressed: bool, summary: str) -> bytes:
    held = {"key": key, "uncompressed": uncompressed, "summary": summary}
    return json.dumps({**held, "checksum": _checksum(held)}, ensure_ascii=False).encode()


def _unpack(data: bytes, key: str, uncompressed: bool) -> str | None:
    """The summary in `data`; None where it is damaged, or stands for something else."""
    try:
        summary = json.loads(data)["summary"]
        # Byte for byte, so that nothing passes that only means the same.
        good = isinstance(summary, str) and data == _pack(key, uncompressed, summary)
    except (ValueError, RecursionError, TypeError, LookupError):
        return None
    return summary if good else None


def _checksum(held: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(held, sort_keys=True).encode()).hexdigest()
