"""A document of a run from when it is read until it is done, and what is known of it by then."""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from promptchain_dagster.library.recipe import WITHOUT_TEXT, digest_of
from promptchain_dagster.library.registry import Registry
from promptchain_dagster.library.state import SetAside, State, Status
from promptchain_dagster.refine.documents import Document
from promptchain_dagster.refine.outcome import ChunkFolded
from promptchain_dagster.refine.quality import shrinks
from promptchain_dagster.refine.source import Source


@dataclass
class Opened:
    """A document under way. `document` is None where it could not be read; `digest` names what is
    to be summarized, `WITHOUT_TEXT` where the text never was known."""

    key: str
    path: str
    document: Document | None
    content_hash: str | None
    digest: str
    status: Status
    source: Source
    began: float = field(default_factory=time.monotonic)
    last: ChunkFolded | None = None
    shrinkings: dict[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])

    @property
    def seconds(self) -> float:
        """Since it was read."""
        return round(time.monotonic() - self.began, 3)

    def add(self, folded: ChunkFolded) -> None:
        """One chunk more is in the running summary."""
        before, self.last = self.last, folded
        if before and shrinks(before.words, folded.words, compressed=folded.compressed):
            self.shrinkings[folded.index] = (before.words, folded.words)


def open_document(registry: Registry, state: State, key: str, recipe: str) -> Opened:
    """Read the document `key`, and what was done about it before. Blocks."""
    entry = registry.find(key)
    content_hash, document = entry.content_hash if entry else None, None
    load: Callable[[], Document]
    try:
        document = registry.source(key).load()
    except Exception as error:  # raised once more, where a document is read
        load = _raising(error)
    else:
        content_hash = hashlib.sha256(document.text.encode()).hexdigest()
        load = _giving(document)
    digest = digest_of(content_hash, recipe) if content_hash else WITHOUT_TEXT
    return Opened(
        key=key,
        path=entry.path if entry else key,
        document=document,
        content_hash=content_hash,
        digest=digest,
        status=state.status(key, digest),
        source=Source(key, load),
    )


def why_set_aside(opened: Opened) -> str | None:
    """Why the document is not tried again; None where it is."""
    if not isinstance(opened.status, SetAside):
        return None
    kind, tries = opened.status.kind.value, opened.status.tries
    times = "once" if tries == 1 else f"{tries} times"
    of = "" if opened.digest == WITHOUT_TEXT else " with this text and these prompts"
    return f"set aside: {kind}, tried {times}{of}"


def _giving(document: Document) -> Callable[[], Document]:
    return lambda: document


def _raising(error: Exception) -> Callable[[], Document]:
    def load() -> Document:
        raise error

    return load
