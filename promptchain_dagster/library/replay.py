"""A recorded run, run again without a model: every document, or the one chain, that it was of.

Nothing is written: what stands under the home is only read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from promptchain_dagster.chain.chain import Chain
from promptchain_dagster.chain.replay import (
    Different,
    NotReplayable,
    Recorded,
    Replayed,
    Same,
    replay_chain,
)
from promptchain_dagster.chain.trace import read_trace
from promptchain_dagster.refine.definition import Refine
from promptchain_dagster.refine.replay import replay_document
from promptchain_dagster.store import Store

Chains = Mapping[str, Callable[[], Chain]]
"""The chains that can be run again, by name; those of now."""


@dataclass(frozen=True)
class Part:
    """What a document of the run came to, or its chain, whose `key` is None."""

    key: str | None
    path: str | None
    outcome: Replayed


@dataclass(frozen=True)
class Replay:
    """What the replay of a run came to.

    `status` is "same", "different" where anything is, or else "not_replayable" where anything is.
    """

    run_id: str
    parts: tuple[Part, ...]

    @property
    def status(self) -> str:
        if self.difference is not None:
            return "different"
        return "same" if self.reason is None else "not_replayable"

    @property
    def calls(self) -> int:
        """Recorded attempts that came out as they did then."""
        return sum(part.outcome.calls for part in self.parts)

    @property
    def difference(self) -> tuple[Part, Different] | None:
        """The first one."""
        for part in self.parts:
            if isinstance(part.outcome, Different):
                return part, part.outcome
        return None

    @property
    def reason(self) -> str | None:
        """Why a part could not be run again; None where each could."""
        for part in self.parts:
            if isinstance(part.outcome, NotReplayable):
                of = f"{part.key}: " if part.key else ""
                return of + part.outcome.reason
        return None


async def replay_run(
    store: Store, run_id: str, chains: Chains, refine: Refine | None = None
) -> Replay:
    """Run the run again from its trace; raises `StoreError` where that can't be read.

    `refine` is for documents that a refine of one's own has made.
    """
    result = _read(store, f"results/{run_id}.json")
    attempts = read_trace(store, run_id)
    if any(not attempt["label"] for attempt in attempts):
        parts = [Part(None, None, await _chain(attempts, result, chains))]
    else:
        parts = await _documents(store, run_id, attempts, result, refine)
    if result is None and all(isinstance(part.outcome, Same) for part in parts):
        parts.append(Part(None, None, NotReplayable(0, _NO_RESULT)))
    return Replay(run_id, tuple(parts))


_NO_RESULT = "the run left no result: it was killed, is under way, or made assets"


async def _chain(attempts: Sequence[Recorded], result: Recorded | None, chains: Chains) -> Replayed:
    settings: Recorded = attempts[0]["settings"]
    name = settings["chain"]
    if name not in chains:
        return NotReplayable(0, f"the chain {name!r} is not one that can be run again here")
    if result is None:
        return NotReplayable(0, _NO_RESULT)
    return _incomplete(attempts, result) or await replay_chain(chains[name](), attempts, result)


async def _documents(
    store: Store,
    run_id: str,
    attempts: Sequence[Recorded],
    result: Recorded | None,
    refine: Refine | None,
) -> list[Part]:
    by_key: dict[str, list[Recorded]] = {}
    for attempt in attempts:
        by_key.setdefault(str(attempt["label"]).rpartition("/")[0], []).append(attempt)
    results = _results(store, run_id, result)
    return [
        Part(
            key,
            results[key]["path"] if key in results else None,
            await _document(by_key.get(key, []), results.get(key), refine),
        )
        for key in sorted(by_key.keys() | results.keys())
        if key in by_key or results[key]["model_calls"]
    ]


def _results(store: Store, run_id: str, result: Recorded | None) -> dict[str, Recorded]:
    """What became of each document, by its key: files of their own, or the run's."""
    found: dict[str, Recorded] = {}
    for name in store.list(f"results/{run_id}/"):
        one = _read(store, name)
        if one is not None:
            found[name.rpartition("/")[2].removesuffix(".json")] = one
    if result is not None and "path" in result:
        found[str(result["document_key"] or result["path"])] = result
    return found


async def _document(
    attempts: Sequence[Recorded], result: Recorded | None, refine: Refine | None
) -> Replayed:
    if result is None:
        return NotReplayable(0, "it left no result: the run was killed, or is under way")
    return _incomplete(attempts, result) or await replay_document(attempts, result, refine)


def _incomplete(attempts: Sequence[Recorded], result: Recorded) -> NotReplayable | None:
    there, sent = sum(one["requests"] for one in attempts), result["model_calls"]
    if there == sent:
        return None
    why = "it was pruned, or could not be written"
    return NotReplayable(0, f"the trace has {there} of {sent} requests: {why}")


def _read(store: Store, key: str) -> Recorded | None:
    data = store.read(key)
    return cast("dict[str, Any]", json.loads(data)) if data is not None else None
