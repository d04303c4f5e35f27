"""A batch of kills of the core: `python -m tests.faults.kill_core FOLDER COLLECTION`.

Prints a JSON object for each kill: where it was, what was paid and kept by then, what the run after
it paid, and what is wrong afterwards.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

from promptchain_dagster.chain.trace import read_trace, recorder
from promptchain_dagster.library.recipe import digest_of
from promptchain_dagster.library.registry import Registry
from promptchain_dagster.library.state import State
from promptchain_dagster.models.calls import Calls
from promptchain_dagster.models.ledger import Ledger, read_day, utc_today
from promptchain_dagster.refine.checkpoints import Checkpoints
from promptchain_dagster.refine.collection import summarize_collection
from promptchain_dagster.refine.outcome import DocumentOutcome, Summarized
from promptchain_dagster.refine.source import Source
from promptchain_dagster.store import Store, open_store
from promptchain_dagster.testing import ScriptedChatModel
from promptchain_dagster.tokens import get_encoder
from tests.faults.documents import SETTINGS, answer, summary_of, text_of
from tests.faults.killing import DyingStore, Journal, Place, forked, was_killed
from tests.support.folding import no_wait

ENCODING = "o200k_base"
RECIPE = "0123456789abcdef"
AT_ONCE = 8
COLLECTIONS = {"one of six chunks": (1, 6), "twenty of two chunks": (20, 2)}


class Trial:
    """One collection in a folder of its own, and the processes that have worked on it."""

    def __init__(self, folder: Path, documents: int, chunks: int) -> None:
        self.folder, self.chunks = folder, chunks
        self.names = [f"d{n:02}" for n in range(documents)]
        (folder / "documents").mkdir(parents=True)
        for name in self.names:
            (folder / "documents" / f"{name}.txt").write_text(text_of(name, chunks), "utf-8")
        self.home = folder / "home"
        self.calls = Journal(folder / "calls")
        self.summaries = Journal(folder / "summaries")

    def run(self, run_id: str, at: int | None = None, place: Place = Place.AFTER) -> int:
        """One process over the whole collection; how it ended."""
        return forked(lambda: asyncio.run(self.work(run_id, at, place)))

    async def work(self, run_id: str, at: int | None = None, place: Place = Place.AFTER) -> None:
        """What that process does."""
        store = DyingStore(self.home, at, place)
        registry = Registry(store, str(self.folder / "documents"))
        files = [self.folder / "documents" / f"{name}.txt" for name in self.names]
        entries = {one.key: one for one in (registry.register(str(file)) for file in files)}
        state = State.read(store)

        async def reply(prompt: str) -> str:
            self.calls.add()
            await asyncio.sleep(0)
            return answer(prompt)

        async def on_document(source: Source, outcome: DocumentOutcome) -> None:
            assert isinstance(outcome, Summarized), outcome
            self.summaries.add(json.dumps([run_id, entries[source.key].path, outcome.summary]))
            digest = digest_of(entries[source.key].content_hash or "", RECIPE)
            await asyncio.to_thread(state.mark_done, source.key, digest, run_id)

        async with Ledger(store, run_id) as ledger:
            calls = Calls(
                ScriptedChatModel(reply), max_in_flight=AT_ONCE // 2, ledger=ledger, sleep=no_wait
            )
            await summarize_collection(
                [registry.source(key) for key in entries],
                SETTINGS,
                calls,
                Checkpoints(store),
                get_encoder(ENCODING),
                on_document=on_document,
                record=lambda source, index: recorder(store, run_id, f"{source.key}/{index:06}"),
                documents_in_flight=AT_ONCE,
            )
        (self.folder / f"{run_id}.json").write_text(json.dumps(store.changes), "utf-8")

    def kept(self) -> int:
        """Replies that are on the disk: each has a checkpoint of its own."""
        return len(open_store(str(self.home), read_only=True).list("checkpoints/"))

    def changes(self, run_id: str) -> list[str]:
        """The keys that a run which came to its end wrote and deleted, in order."""
        return json.loads((self.folder / f"{run_id}.json").read_text("utf-8"))

    def wrong(self, run_id: str) -> list[str]:
        """What is not as an undisturbed run leaves it, `run_id` being the last one."""
        store = open_store(str(self.home))
        told = [json.loads(line) for line in self.summaries.lines()]
        last = sorted((path, summary) for run, path, summary in told if run == run_id)
        expected = [(f"{name}.txt", summary_of(name, self.chunks)) for name in self.names]
        faults = [f"{last} is not {expected}"] if last != expected else []
        return [*faults, *self._wrong_in(store)]

    def _wrong_in(self, store: Store) -> Iterator[str]:
        state = State.read(store)
        for key in store.list("documents/"):
            name = key.removeprefix("documents/").removesuffix(".json")
            if state.done_digest(name) is None:
                yield f"{name} is not done"
        for run_id in ("killed", "again"):
            for attempt in read_trace(store, run_id):
                if not attempt["accepted"]:
                    yield f"{run_id}: {attempt['errors']}"
        store.sweep(datetime.now(timezone.utc) + timedelta(minutes=1))
        left = [str(path) for path in self.home.rglob(".*")]
        if left:
            yield f"left behind: {left}"

    def ledger_calls(self, run_id: str) -> int:
        """The requests that the run has in the ledger of today."""
        runs = read_day(open_store(str(self.home)), utc_today()).runs
        return runs[run_id].requests if run_id in runs else 0


def kills(folder: Path, documents: int, chunks: int) -> Iterator[dict[str, object]]:
    """Every change is the last one once; of a single document in each place, of more in turn."""
    whole = Trial(folder / "whole", documents, chunks)
    # In this process, so that the forked ones find all that is made once already made.
    asyncio.run(whole.work("again"))
    gc.freeze()
    changes, total = whole.changes("again"), len(whole.calls.lines())
    assert not whole.wrong("again"), whole.wrong("again")
    assert whole.kept() == total
    for at in range(1, len(changes) + 1):
        for place in _places(at, documents):
            trial = Trial(folder / f"{at}-{place.name}", documents, chunks)
            status = trial.run("killed", at, place)
            begun, kept = len(trial.calls.lines()), trial.kept()
            again = trial.run("again")
            paid_again = len(trial.calls.lines()) - begun
            yield {
                "at": at,
                "place": place.value,
                "of": len(changes),
                "killed": was_killed(status),
                "begun": begun,
                "kept": kept,
                "total": total,
                "paid_again": paid_again,
                "in_ledger": trial.ledger_calls("again"),
                "wrong": trial.wrong("again") if again == 0 else [f"it ended with {again}"],
            }


def _places(at: int, documents: int) -> Sequence[Place]:
    places = list(Place)
    return places if documents == 1 else [places[at % len(places)]]


if __name__ == "__main__":
    for kill in kills(Path(sys.argv[1]), *COLLECTIONS[sys.argv[2]]):
        sys.stdout.write(json.dumps(kill) + "\n")
