"""What a run does for a document, be it the op job's or the assets': what is kept of it under the
home, and what Dagster is told."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import dagster as dg

from promptchain_dagster.chain import trace
from promptchain_dagster.chain.run import Record
from promptchain_dagster.pipelines import metadata as md
from promptchain_dagster.refine.checkpoints import Checkpoints
from promptchain_dagster.refine.outcome import (
    ChunkFolded,
    DocumentOutcome,
    Stopped,
    Summarized,
)
from promptchain_dagster.store import Store
from promptchain_dagster.words import count_words

RUNNING_SUMMARY = dg.AssetKey("running_summary")


@dataclass(frozen=True, slots=True)
class Kept:
    """A summary's file, that of a typed state beside it, and the summary that was kept before;
    None where there is none."""

    path: str
    state: str | None
    earlier: str | None

    @property
    def metadata(self) -> md.Metadata:
        """Where they lie."""
        told: md.Metadata = {md.PATH: dg.MetadataValue.path(self.path)}
        if self.state is not None:
            told[md.STATE] = dg.MetadataValue.path(self.state)
        return told


class DocumentRun:
    """One run's documents: where it keeps what, and how it tells of it. Methods block."""

    def __init__(self, run: dg.DagsterRun, store: Store) -> None:
        self.run_id, self.store = run.run_id, store
        self._root_run_id = run.root_run_id or run.run_id

    def checkpoints(self, *, fresh: bool) -> Checkpoints:
        """A fresh run's own; it and those that retry it are one generation, and resume."""
        return Checkpoints(self.store, self._root_run_id if fresh else None)

    def record(self, key: str | None, index: int, settings: Mapping[str, Any]) -> Record:
        """Writes down the attempts at chunk `index` of the document `key`, and by what settings
        (`refine.replay.settings_of`) they were made."""
        return trace.recorder(self.store, self.run_id, f"{key}/{index:06}", settings)

    def keep_summary(self, key: str, outcome: Summarized) -> Kept:
        """Write the summary as Markdown, and a typed state as JSON beside it; what they take the
        place of is kept under other names."""
        text, state = f"summaries/{key}.md", f"summaries/{key}.json"
        if outcome.state is None:
            earlier = self._put(text, f"{outcome.readable}\n")
            if earlier not in (None, outcome.readable):
                self._put(state, None)  # of a typed state that it may have been before
            return Kept(self.store.url_of(text), None, earlier)
        earlier = self._put(state, f"{outcome.summary}\n")
        self._put(text, f"{outcome.readable}\n")
        return Kept(self.store.url_of(text), self.store.url_of(state), earlier)

    def keep_no_summary(self, key: str) -> None:
        """The document has no content; a summary that it had is kept under another name."""
        if self._put(f"summaries/{key}.md", None) is not None:
            self._put(f"summaries/{key}.json", None)

    def running_summary(self, key: str | None, folded: ChunkFolded) -> dg.AssetMaterialization:
        """The event of one chunk; small, since there is one for each (f14)."""
        told = {
            md.INDEX: folded.index,
            md.TOTAL: folded.total,
            md.WORDS: folded.words,
            md.TOKENS: folded.tokens,
            md.COMPRESSED: folded.compressed,
            md.PREVIEW_KEY: md.preview(folded.summary),
            md.PATH: dg.MetadataValue.path(self.store.url_of(folded.checkpoint)),
            **md.of_usage(folded.usage, folded.model_calls),
        }
        return dg.AssetMaterialization(
            RUNNING_SUMMARY,
            description=f"chunk {folded.index} of {folded.total}, {folded.words} words",
            metadata=told,
            partition=key,
        )

    def metadata(self, outcome: DocumentOutcome, result: dict[str, Any]) -> md.Metadata:
        """What is told of a document that is done, `result` being its `document_result`."""
        told: md.Metadata = {
            md.STATUS: result["status"],
            md.DOCUMENT: md.preview(result["path"]),
        }
        if key := result["document_key"]:
            told[md.DOCUMENT_KEY] = key
        if result["warnings"]:
            told[md.WARNINGS] = md.lines(result["warnings"])
        if result["error"]:
            told[md.ERROR] = md.preview(result["error"])
        if isinstance(outcome, Summarized | Stopped):
            folder = f"{trace.folder_of(self.run_id)}{key or ''}".rstrip("/")
            told |= {
                md.PREVIEW_KEY: dg.MetadataValue.md(
                    md.without_images(md.preview(outcome.readable))
                ),
                md.WORDS: count_words(outcome.summary),
                md.CHUNKS: outcome.chunks,
                md.RESUMED_FROM: outcome.resumed_from,
                md.COMPRESSIONS: outcome.compressions,
                md.TRACE: dg.MetadataValue.path(self.store.url_of(folder)),
                **md.of_usage(outcome.usage, outcome.model_calls),
            }
        if isinstance(outcome, Stopped):
            told[md.FAILED_CHUNK] = outcome.failed_chunk
            told[md.ENDS_RUN] = outcome.ends_run
        return told

    def _put(self, name: str, text: str | None) -> str | None:
        """Write `text`, or have no such file; what was there before, kept under another name."""
        data = None if text is None else text.encode()
        earlier = self.store.read(name)
        if earlier is None and data is None:
            return None
        if earlier is not None and earlier != data:
            stem, _, ending = name.rpartition(".")
            mark = hashlib.sha256(earlier).hexdigest()[:16]
            self.store.write(f"{stem}.earlier-{mark}.{ending}", earlier)
        if data is None:
            self.store.delete(name)
        elif earlier != data:
            self.store.write(name, data)
        return None if earlier is None else earlier.decode("utf-8", "replace").removesuffix("\n")
