"""A batch of kills of runs of `summarize_documents`, on an instance on disk:
`python -m tests.faults.kill_dagster FOLDER BATCH`.

Prints a JSON object for each kill: where it was, what was paid and kept by then, what the run after
it paid, and what is wrong afterwards.
"""

import gc
import json
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import dagster as dg

from promptchain_dagster.library.registry import Registry
from promptchain_dagster.library.state import State
from promptchain_dagster.pipelines.collections.batches import batches
from promptchain_dagster.pipelines.resources import HomeResource
from promptchain_dagster.pipelines.results import read_document_result, read_result
from promptchain_dagster.pipelines.summary_assets import summary_assets
from promptchain_dagster.store import Store, open_store
from promptchain_dagster.testing import ScriptedChatModel
from tests.faults.documents import SETTINGS, answer, summary_of, text_of
from tests.faults.dying_events import DEATH
from tests.faults.killing import DyingStore, Journal, Place, forked, was_killed
from tests.pipelines.document_collection import QUIET
from tests.pipelines.scripted import resources
from tests.support.dagster_home import instance_at

PRODUCT_FILE = Path("promptchain_dagster/pipelines/dagster.yaml")
KINDS = ("checkpoints/", "traces/", "summaries/", "results/", "state/", "ledger/")
EVENTS = "events"
AT_ONCE = 4
# Without the checks, which come after all that is kept, and would take half of the time.
CONFIG = {"max_in_flight": AT_ONCE, "checks": False}


class DyingHome(HomeResource):
    """The store that this process was given."""

    def store(self) -> Store:
        assert GIVEN is not None
        return GIVEN


GIVEN: DyingStore | None = None


@dataclass(frozen=True)
class Kill:
    """At change number `at` (from 1) of those that begin with `kind`, or at an event."""

    at: int
    place: Place
    kind: str = ""


class Trial:
    """A collection, its home and its DAGSTER_HOME in a folder of their own."""

    def __init__(self, folder: Path, template: Path, documents: int, chunks: int) -> None:
        self.folder, self.chunks = folder, chunks
        self.names = [f"d{n:02}" for n in range(documents)]
        (folder / "documents").mkdir(parents=True)
        shutil.copytree(template, folder / "dagster")
        self.home = folder / "home"
        self.calls = Journal(folder / "calls")

    def write(self, chunks: int, *, mark: str = "") -> None:
        """The documents, in a version of so many chunks that names them with `mark`."""
        for name in self.names:
            text = text_of(f"{name}{mark}", chunks)
            (self.folder / "documents" / f"{name}.txt").write_text(text, "utf-8")

    def run(self, kill: Kill | None = None) -> int:
        """One process with one run over the whole collection; how it ended."""
        return forked(lambda: self.work(kill))

    def work(self, kill: Kill | None = None) -> None:
        """What that process does; in the end it writes down what it changed."""
        global GIVEN
        instance = instance_at(self.folder / "dagster")
        with instance:
            for run in instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED])):
                instance.report_run_failed(run)  # what run monitoring does
            registry = Registry(open_store(str(self.home)), str(self.folder / "documents"))
            files = [self.folder / "documents" / f"{name}.txt" for name in self.names]
            keys = [registry.register(str(file)).key for file in files]
            instance.add_dynamic_partitions("documents", keys)
            of_store = kill is not None and kill.kind != EVENTS
            GIVEN = DyingStore(
                self.home,
                kill.at if kill and of_store else None,
                kill.place if kill else Place.AFTER,
                kill.kind if kill else "",
            )
            DEATH.events = 0
            if kill is not None and not of_store:
                DEATH.at, DEATH.place = kill.at, kill.place
            (batch,) = batches(keys, instance.get_dynamic_partitions("documents"))
            result = self._job().execute_in_process(
                {**batch.run_config(CONFIG), "loggers": QUIET},
                instance=instance,
                tags=dict(batch.tags),
                raise_on_error=False,
            )
            told = {"run_id": result.run_id, "success": result.success, "keys": keys}
            told |= {"changes": GIVEN.changes, "events": DEATH.events}
            (self.folder / "run.json").write_text(json.dumps(told), "utf-8")

    def _job(self) -> dg.JobDefinition:
        def reply(prompt: str) -> str:
            self.calls.add()
            return answer(prompt)

        made = summary_assets(settings=SETTINGS)
        given = {
            **resources(self.home, ScriptedChatModel(reply)),
            "home": DyingHome(home=str(self.home)),
        }
        defs = dg.Definitions(assets=made.assets, jobs=[made.job], resources=given)
        return defs.resolve_job_def("summarize_documents")

    def last_run(self) -> Mapping[str, Any]:
        """What the last run that came to its end wrote down."""
        return json.loads((self.folder / "run.json").read_text("utf-8"))

    def kept(self) -> int:
        """Replies that are on the disk: each has a checkpoint of its own."""
        return len(open_store(str(self.home)).list("checkpoints/"))

    def wrong(self) -> list[str]:
        """What is not as an undisturbed run leaves it."""
        store, last = open_store(str(self.home)), self.last_run()
        return [*self._wrong_in(store, last), *self._wrong_in_dagster(last)]

    def wrongly_done(self, before: "Trial") -> Iterator[str]:
        """Documents that no night would take up, since they are marked as they were `before`, but
        whose summary is another."""
        store, earlier = open_store(str(self.home)), open_store(str(before.home))
        state, done = State.read(store), State.read(earlier)
        for key in self.last_run()["keys"]:
            name = f"summaries/{key}.md"
            same = state.done_digest(key) == done.done_digest(key)
            if same and store.read(name) != earlier.read(name):
                yield f"{key} holds {store.read(name)!r}"

    def _wrong_in(self, store: Store, last: Mapping[str, Any]) -> Iterator[str]:
        state = State.read(store)
        result = read_result(store, last["run_id"]) or {}
        if result.get("documents") != {"completed": len(self.names)}:
            yield f"the run came to {result}"
        for name, key in zip(self.names, last["keys"], strict=True):
            expected = summary_of(name, self.chunks)
            kept = (store.read(f"summaries/{key}.md") or b"").decode().strip()
            told = read_document_result(store, last["run_id"], key, name)["summary"]
            if not kept == told == expected:
                yield f"{name}: {kept!r} is kept, {told!r} told, and not {expected!r}"
            if state.done_digest(key) is None:
                yield f"{name} is not done"
        store.sweep(datetime.now(timezone.utc) + timedelta(minutes=1))
        left = [str(path) for path in self.home.rglob(".*")]
        if left:
            yield f"left behind: {left}"

    def _wrong_in_dagster(self, last: Mapping[str, Any]) -> Iterator[str]:
        with instance_at(self.folder / "dagster") as instance:
            there = instance.get_materialized_partitions(dg.AssetKey("document_summary"))
            if there != set(last["keys"]):
                yield f"materialized: {sorted(there)}"
            run = instance.get_run_by_id(last["run_id"])
            if run is None or run.status is not dg.DagsterRunStatus.SUCCESS:
                yield f"the run is {run}"


class Batch:
    """Kills over collections of one shape."""

    def __init__(self, folder: Path, documents: int, chunks: int) -> None:
        self.folder, self.documents, self.chunks = folder, documents, chunks
        self.template = folder / "dagster"
        self.template.mkdir()
        settings = PRODUCT_FILE.read_text("utf-8")
        ours = settings.replace(
            "promptchain_dagster.pipelines.event_log", "tests.faults.dying_events"
        )
        assert ours != settings
        (self.template / "dagster.yaml").write_text(
            ours.replace("class: KeptEngines", "class: DyingEvents"), "utf-8"
        )
        instance_at(self.template).dispose()
        # In this process, so that the forked ones find all that is made once already made.
        self.whole = self.trial("whole")
        self.whole.work()
        assert not self.whole.wrong(), self.whole.wrong()
        self.total = len(self.whole.calls.lines())
        assert self.whole.kept() == self.total
        gc.freeze()

    def trial(self, name: str) -> Trial:
        """A new one, its documents written."""
        trial = Trial(self.folder / name, self.template, self.documents, self.chunks)
        trial.write(self.chunks)
        return trial

    def killed(self, kills: Sequence[Kill]) -> Iterator[dict[str, Any]]:
        """A run that is killed and another after it, for each of `kills`."""
        for number, kill in enumerate(kills):
            trial = self.trial(str(number))
            status = trial.run(kill)
            begun, kept = len(trial.calls.lines()), trial.kept()
            again = trial.run()
            yield {
                **_told(kill, status),
                "begun": begun,
                "kept": kept,
                "total": self.total,
                "paid_again": len(trial.calls.lines()) - begun,
                "wrong": trial.wrong() if again == 0 else [f"it ended with {again}"],
            }

    def taken_back(self, kills: Sequence[Kill]) -> Iterator[dict[str, Any]]:
        """Summarized, edited, killed while the edit is summarized, and then the edit undone."""
        done = self.trial("done")
        assert done.run() == 0
        for number, kill in enumerate(kills):
            trial = self.trial(str(number))
            shutil.rmtree(trial.folder)
            shutil.copytree(done.folder, trial.folder)
            trial.write(self.chunks, mark="edited")
            status = trial.run(kill)
            trial.write(self.chunks)
            yield {**_told(kill, status), "wrong": list(trial.wrongly_done(done))}

    def each_change(self) -> list[Kill]:
        """Every change once, the places in turn."""
        places = list(Place)
        changes = self.whole.last_run()["changes"]
        return [Kill(at, places[at % 4]) for at in range(1, len(changes) + 1)]

    def each_kind(self) -> list[Kill]:
        """Of each kind of change the one in the middle, the places in turn."""
        changes = self.whole.last_run()["changes"]
        places = (Place.HALF, Place.AFTER, Place.UNPUBLISHED)
        counts = {kind: sum(key.startswith(kind) for key in changes) for kind in KINDS}
        return [
            Kill((count + 1) // 2, places[n % 3], kind)
            for n, (kind, count) in enumerate(counts.items())
        ]

    def events(self, step: int) -> list[Kill]:
        """Every so many events, the places in turn."""
        places = (Place.BEFORE, Place.HALF, Place.AFTER)
        last = self.whole.last_run()["events"]
        numbers = range(4, last + 1, step)
        return [Kill(at, places[n % 3], EVENTS) for n, at in enumerate(numbers)]


def _told(kill: Kill, status: int) -> dict[str, Any]:
    return {
        "at": kill.at,
        "kind": kill.kind,
        "place": kill.place.value,
        "killed": was_killed(status),
    }


def one_of_six_chunks(folder: Path) -> Iterator[dict[str, Any]]:
    batch = Batch(folder, 1, 6)
    return batch.killed([*batch.each_change()[::3], *batch.events(step=12)])


def twenty_of_two_chunks(folder: Path) -> Iterator[dict[str, Any]]:
    batch = Batch(folder, 20, 2)
    return batch.killed([*batch.each_kind(), *batch.events(step=90)])


def an_edit_taken_back(folder: Path) -> Iterator[dict[str, Any]]:
    batch = Batch(folder, 1, 2)
    # Two more than at first: the earlier summary is kept, and the earlier mark deleted. The replies
    # come in the first half.
    changes = len(batch.whole.last_run()["changes"]) + 2
    return batch.taken_back([Kill(at, Place.AFTER) for at in range(changes // 2, changes + 1)])


BATCHES: Mapping[str, Callable[[Path], Iterator[dict[str, Any]]]] = {
    made.__name__: made for made in (one_of_six_chunks, twenty_of_two_chunks, an_edit_taken_back)
}

if __name__ == "__main__":
    warnings.simplefilter("ignore", dg.BetaWarning)
    warnings.simplefilter("ignore", dg.PreviewWarning)
    for told in BATCHES[sys.argv[2]](Path(sys.argv[1])):
        sys.stdout.write(json.dumps(told) + "\n")
