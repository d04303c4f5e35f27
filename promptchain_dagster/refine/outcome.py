"""What becomes of a document: told apart by type, never raised."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from promptchain_dagster.models.base import NO_USAGE, Problem, Usage
from promptchain_dagster.refine.readable import as_markdown


@dataclass(frozen=True, slots=True)
class ChunkFolded:
    """One chunk is folded in, and the summary after it is kept.

    `words` counts the summary's, `tokens` the chunk's. `compressed`: the summary was over the cap
    and a compression made it shorter. `over_cap`: it is over the cap still. `unchanged`: the reply
    only said that nothing needs changing, and the earlier summary was kept. `checkpoint` is the
    store's key of what was kept. `model_calls` and `usage` are those of this chunk.
    """

    index: int
    total: int
    summary: str
    words: int
    tokens: int
    compressed: bool
    over_cap: bool
    unchanged: bool
    checkpoint: str
    model_calls: int
    usage: Usage


@dataclass(frozen=True, kw_only=True)
class _Folded:
    summary: str
    """The running summary, so far or in the end; of a typed state, its JSON."""
    chunks: int
    """How many chunks the document has."""
    resumed_from: int = 0
    """The last chunk that was taken from a checkpoint; 0 when none was."""
    compressions: int = 0
    """Compress calls made in this run."""
    over_cap: bool = False
    """Whether the summary is longer than the cap."""
    model_calls: int = 0
    """Requests sent in this run, retries included."""
    usage: Usage = NO_USAGE
    """Tokens and cost of this run."""
    warnings: tuple[str, ...] = ()
    state: Any = None
    """The running state where the refine's is typed; None where it is the summary itself."""

    @property
    def readable(self) -> str:
        """The summary as people read it: text as it is, a typed state as Markdown."""
        return self.summary if self.state is None else as_markdown(json.loads(self.summary))


@dataclass(frozen=True, kw_only=True)
class Summarized(_Folded):
    """Every chunk is folded in. `earlier` is the summary that a fresh run took the place of;
    `checkpoints` are the store's keys of the last two, which spare the next run most."""

    earlier: str | None = None
    checkpoints: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Stopped(_Folded):
    """The call for chunk `failed_chunk` (from 1) failed; `summary` is the summary so far.

    `ends_run` says that no other document's calls can succeed either (wrong key, quota, …);
    `problem` is what came back instead of the last reply, where that is what ended it.
    """

    failed_chunk: int
    error: str
    ends_run: bool = False
    problem: Problem | None = None


@dataclass(frozen=True, kw_only=True)
class NoContent:
    """Fewer than 3 words: no call was made and no checkpoint written (c9, d14)."""

    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Unreadable:
    """The document could not be read or is of no known kind.

    `may_pass`: reading it failed, which may be the disk's or the network's doing, not the text's.
    """

    error: str
    may_pass: bool = False


@dataclass(frozen=True, kw_only=True)
class NotStarted:
    """The run had ended before this document's turn; `reason` is what ended it."""

    reason: str


DocumentOutcome = Summarized | Stopped | NoContent | Unreadable | NotStarted
