"""One document's recorded fold, run again without a model (`chain.replay`)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from promptchain_dagster.chain.replay import (
    NotReplayable,
    Recorded,
    RecordedModel,
    Recording,
    Replayed,
    compare_results,
    replayed,
)
from promptchain_dagster.models.base import ChatModel
from promptchain_dagster.refine.checkpoints import Checkpoints
from promptchain_dagster.refine.chunking import Chunk
from promptchain_dagster.refine.definition import Refine
from promptchain_dagster.refine.fold import refine_document
from promptchain_dagster.refine.result import document_result
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.refine.steps import summary_refine
from promptchain_dagster.store.memory import MemoryStore
from promptchain_dagster.tokens import Encoder, get_encoder

OWN_REFINE = "refine"
"""In the settings of a trace: the step of a refine of one's own; the built-in one is not named."""


def settings_of(settings: RefineSettings, model: ChatModel, encoder: Encoder) -> dict[str, Any]:
    """What the trace holds of a fold for `replay_document`, beside the inputs."""
    own = {} if settings.refine is summary_refine() else {OWN_REFINE: settings.refine.step.name}
    return {
        **settings.numbers,
        **own,
        "encoding": encoder.name,
        "context_tokens": model.context_tokens,
        "max_output_tokens": model.max_output_tokens,
    }


async def replay_document(
    attempts: Sequence[Recorded], result: Recorded, refine: Refine | None = None
) -> Replayed:
    """Fold again what `attempts`, those at one document in one run, tell, and compare its `result`.

    It begins where that run did, with the summary that a checkpoint had given it, and with the
    chunks of then: reading and splitting the document are not part of it. What a refine of one's
    own has made needs that `refine`, as it is now.
    """
    own = attempts[0]["settings"].get(OWN_REFINE) if attempts else None
    if own is None:
        refine = summary_refine()
    elif refine is None or refine.step.name != own:
        given = f", not {refine.step.name!r}" if refine else ""
        return NotReplayable(0, f"it was made by a refine of one's own, {own!r}{given}; name that")
    ordered = sorted(attempts, key=lambda one: _order(one, refine))
    recording = Recording(ordered, lambda attempt: attempt["label"])
    fold = _Fold(ordered, result, refine)
    if (missing := fold.missing) is not None:
        return NotReplayable(0, f"the trace has no attempt at chunk {missing}")
    if fold.begins_with is None:
        return NotReplayable(0, f"the {refine.field} it began with no longer validates")

    async def work() -> None:
        calls = recording.calls(fold.model)
        outcome = await refine_document(
            fold.chunks,
            fold.settings,
            calls,
            fold.checkpoints(),
            record=lambda index: recording.at(f"{fold.key}/{index:06}"),
        )
        recording.finish()
        told = {name: result[name] for name in ("path", "document_key", "run_id")}
        now = document_result(outcome, **told)
        # What came up before the first call is not of the trace: how the file was decoded, …
        before = len(result["warnings"]) - len(now["warnings"])
        now["warnings"] = [*result["warnings"][: max(0, before)], *now["warnings"]]
        compare_results(recording, result, now)

    return await replayed(work, recording)


class _Fold:
    """What a run had before it when it came to the document."""

    def __init__(self, ordered: Sequence[Recorded], result: Recorded, refine: Refine) -> None:
        first = ordered[0]
        used: Mapping[str, Any] = first["settings"]
        self._encoding, self._used = used["encoding"], used
        self.settings = RefineSettings(
            used["document_type"], used["chunk_tokens"], used["max_words"], refine
        )
        self.model = RecordedModel(
            context_tokens=used["context_tokens"], max_output_tokens=used["max_output_tokens"]
        )
        self.key, at = _place(first)
        before = first["inputs"][refine.field]
        self.begins_with = refine.state_in(before if refine.gives_text else json.dumps(before))
        self._uncompressed = _compresses(first, refine)
        self._from = at if self._uncompressed else at - 1
        self._texts: dict[int, str] = {
            _place(one)[1]: one["inputs"]["chunk"] for one in ordered if "chunk" in one["inputs"]
        }
        self._total = int(result["chunks"])
        self.chunks = [self._chunk(index) for index in range(1, self._total + 1)]

    @property
    def missing(self) -> int | None:
        """The first chunk, after that at which the run began, that only later ones are there of."""
        last = max(self._texts, default=0)
        return next((n for n in range(self._from + 1, last) if n not in self._texts), None)

    def checkpoints(self) -> Checkpoints:
        """Those that the run had found."""
        checkpoints = Checkpoints(MemoryStore())
        if self._from:
            trail = checkpoints.of(self.chunks, self.settings, self.model)
            text = self.settings.refine.text_of(self.begins_with)
            trail.save(self._from, text, uncompressed=self._uncompressed)
        return checkpoints

    def _chunk(self, index: int) -> Chunk:
        text = self._texts.get(index, "")  # not asked for: before the beginning, after the end
        limited = self.model.context_tokens is not None
        tokens = get_encoder(self._encoding).count(text) if limited else 0
        return Chunk(index, self._total, text, 0, 0, tokens)


def _place(attempt: Recorded) -> tuple[str, int]:
    """The document's key, and the number of the chunk."""
    key, _, index = str(attempt["label"]).rpartition("/")
    return key, int(index)


def _order(attempt: Recorded, refine: Refine) -> tuple[int, bool, int]:
    return _place(attempt)[1], _compresses(attempt, refine), attempt["attempt"]


def _compresses(attempt: Recorded, refine: Refine) -> bool:
    return refine.compress is not None and attempt["step"] == refine.compress.name
