"""The summary assets with a refine of one's own: a typed state for each document."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from promptchain_dagster.library.replay import replay_run
from promptchain_dagster.library.scanned import Known
from promptchain_dagster.library.state import Done, Kind, SetAside, State, Tried
from promptchain_dagster.library.worklist import Why, worklist
from promptchain_dagster.models import ModelSettings
from promptchain_dagster.pipelines import metadata as md
from promptchain_dagster.pipelines.collections.recipe import summary_recipe
from promptchain_dagster.pipelines.components import DocumentSummariesComponent
from promptchain_dagster.pipelines.plan_job import plan
from promptchain_dagster.pipelines.summary_assets import summary_assets
from promptchain_dagster.refine.definition import Refine
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.refine.steps import summary_refine
from promptchain_dagster.testing import ScriptedChatModel
from tests.pipelines.document_collection import QUIET, RUNNING, SUMMARY, Collection, answer
from tests.pipelines.scripted import resources
from tests.pipelines.test_components import _defs
from tests.support.minutes import PROMPT, minutes, noting

OWN = minutes()


class Minutes(Collection):
    """A collection that is folded by `refine`."""

    refine: Refine = OWN

    @property
    def settings(self) -> RefineSettings:
        return RefineSettings(chunk_tokens=30, max_words=50, refine=self.refine)

    def state(self, key: str) -> Any:
        return json.loads((self.home / "summaries" / f"{key}.json").read_text("utf-8"))

    def kept(self, key: str) -> list[str]:
        """The names of all that is kept of a document's summaries, without the key."""
        found = (self.home / "summaries").glob(f"{key}.*")
        return sorted(one.name.removeprefix(key) for one in found)

    def why(self, key: str, model: ScriptedChatModel) -> list[Why]:
        """Why a night would do the document."""
        entry = self.registry.find(key)
        assert entry is not None
        recipe = summary_recipe(self.settings, resources(self.home, model)["model"].settings())
        known = Known(entry.path, None, entry.content_hash)
        return [one.why for one in worklist([known], State.read(self.store), recipe).work]


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    folder = tmp_path / "dagster"
    folder.mkdir()
    with dg.DagsterInstance.local_temp(str(folder)) as instance:
        yield instance


@pytest.fixture
def collection(tmp_path: Path, instance: dg.DagsterInstance) -> Minutes:
    return Minutes(tmp_path, instance)


def told_of(collection: Collection, run_id: str, key: str) -> dict[str, Any]:
    (event,) = [
        one
        for one in collection.materializations(run_id)
        if one.asset_key == SUMMARY and one.partition == key
    ]
    return {name: value.value for name, value in event.metadata.items()}


def test_each_document_has_its_state_as_json_and_as_markdown_beside_it(
    collection: Minutes,
) -> None:
    """Programs read the one and people the other; the event has the Markdown, and both paths."""
    keys = [collection.add(f"d{n}.txt", chunks=n) for n in (1, 3)]
    model = ScriptedChatModel(noting)

    done = collection.run(keys, model)

    assert done.success
    assert len(model.prompts) == len(collection.materialized(done.run_id, RUNNING)) == 4
    assert collection.state(keys[1]) == {
        "open": [{"what": f"part {n}", "who": "Part"} for n in (1, 2, 3)],
        "seen": 3,
    }
    assert collection.summary(keys[0]) == "\n".join(
        ["- **open:**", "  - **what:** part 1; **who:** Part", "- **seen:** 1"]
    )
    told = told_of(collection, done.run_id, keys[0])
    assert told[md.PREVIEW_KEY] == collection.summary(keys[0])
    assert Path(told[md.PATH]).suffix == ".md"
    assert json.loads(Path(told[md.STATE]).read_text("utf-8")) == collection.state(keys[0])
    assert json.loads(collection.result(done.run_id, keys[0])["summary"])["seen"] == 1
    assert all(one.passed for one in collection.evaluations(done.run_id))


def test_a_document_that_grew_costs_its_new_part_and_its_earlier_state_is_kept(
    collection: Minutes,
) -> None:
    """Nothing is folded twice, and both files of the earlier one stay under other names."""
    key = collection.add("a.txt", chunks=2)
    collection.run([key], ScriptedChatModel(noting))
    collection.add("a.txt", chunks=3)
    model = ScriptedChatModel(noting)
    assert collection.run([key], model).success
    assert len(model.prompts) == 1
    assert collection.state(key)["seen"] == 3
    assert [one[:9] for one in collection.kept(key)] == [".earlier-", ".earlier-", ".json", ".md"]


def test_a_changed_prompt_puts_its_states_out_of_date(collection: Minutes) -> None:
    """So does another refine; nothing of the one is found by the other."""
    key = collection.add("a.txt")
    model = ScriptedChatModel(noting)
    collection.run([key], model)
    assert collection.why(key, model) == []
    collection.refine = minutes(prompt=PROMPT + "\nBe brief.")
    assert collection.why(key, model) == [Why.OUT_OF_DATE]
    versions = {
        str(summary_assets(settings=collection.settings).assets[2].code_versions_by_key[SUMMARY])
        for collection.refine in (OWN, minutes(prompt=PROMPT + "\nBe brief."), summary_refine())
    }
    assert len(versions) == 3


def test_a_summary_in_place_of_a_state_leaves_no_json_that_is_not_of_it(
    collection: Minutes,
) -> None:
    """It is kept under another name, as the Markdown is; and back again."""
    key = collection.add("a.txt")
    collection.run([key], ScriptedChatModel(noting))
    collection.refine = summary_refine()
    collection.run([key], ScriptedChatModel(answer))
    assert collection.summary(key) == "a.txt up to part 2 of 2"
    assert ".json" not in collection.kept(key)
    collection.refine = OWN
    model = ScriptedChatModel(noting)
    collection.run([key], model)
    assert (len(model.prompts), collection.state(key)["seen"]) == (0, 2)


def test_what_its_gate_rejects_in_every_run_is_set_aside(collection: Minutes) -> None:
    """Bounded re-attempts in a run, and a bounded number of runs; other documents go on."""
    good, bad = collection.add("good.txt", chunks=1), collection.add("bad.txt", chunks=2)

    def reply(prompt: str) -> str:
        return '{"open": [{"what": "x", "who": ""}]}' if "of bad" in prompt else noting(prompt)

    for tries in (1, 2, 3):
        model = ScriptedChatModel(reply)
        done = collection.run([good, bad], model)
        assert not done.success
        assert sum("of bad" in prompt for prompt in model.prompts) == 2
        state = State.read(collection.store)
        (failed,) = {one.digest for one in state.failures(bad)}
        kept = state.status(bad, failed)
        assert kept == (Tried(tries) if tries < 3 else SetAside(Kind.FAILED, 3))
    result = collection.result(done.run_id, bad)
    assert (result["status"], result["failed_chunk"]) == ("failed", 1)
    assert "note, chunk 1 of 2: 'x' is nobody's" in result["error"]
    assert json.loads(result["summary"]) == {"open": [], "seen": 0}
    assert isinstance(state.status(good, state.done_digest(good) or ""), Done)


def test_the_collection_summary_folds_the_markdown_of_the_states(
    collection: Minutes, instance: dg.DagsterInstance
) -> None:
    """By the built-in refine: what comes of many states is text that people read."""
    keys = [collection.add(f"d{n}.txt", chunks=1) for n in (1, 2)]
    collection.run(keys, ScriptedChatModel(noting))
    seen = ScriptedChatModel(lambda prompt: "All of it.")
    made = summary_assets(settings=collection.settings)
    done = dg.materialize(
        [*made.assets],
        selection=["collection_summary"],
        instance=instance,
        resources=resources(collection.home, seen),
        run_config={"loggers": QUIET},
        tags={"home": str(collection.home)},
    )
    assert done.success
    assert "- **open:**\n" in "".join(seen.prompts)
    assert collection.kept("collection_summary") == [".md"]


def test_a_run_over_many_documents_can_be_replayed_with_its_refine(collection: Minutes) -> None:
    """And without it can not."""
    keys = [collection.add(f"d{n}.txt", chunks=n) for n in (1, 2)]
    done = collection.run(keys, ScriptedChatModel(noting))
    statuses = [
        asyncio.run(replay_run(collection.store, done.run_id, {}, refine)).status
        for refine in (OWN, None)
    ]
    assert statuses == ["same", "not_replayable"]


def test_the_plan_job_takes_the_refine_by_its_import_path(
    collection: Minutes, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was done by it is left out, and only that."""
    monkeypatch.setenv("PROMPTCHAIN_DOCUMENTS", str(collection.folder))
    key = collection.add("a.txt")
    collection.run([key], ScriptedChatModel(noting))
    collection.add("b.txt")
    job = dg.Definitions(
        jobs=[plan], resources=resources(collection.home, ScriptedChatModel([]))
    ).resolve_job_def("plan")

    def statuses(**config: Any) -> list[str]:
        shape = {"chunk_tokens": 30, "max_words": 50, **config}
        ops = {"plan_documents": {"config": shape}}
        done = job.execute_in_process({"ops": ops, "loggers": QUIET}, instance=instance)
        return [one["status"] for one in done.output_for_node("plan_documents")["documents"]]

    assert statuses(refine=f"{__name__}.OWN") == ["done", "planned"]
    assert statuses() == ["planned", "planned"]


@pytest.mark.filterwarnings("ignore:`parse_obj_as`")
def test_the_component_takes_the_refine_by_its_import_path() -> None:
    """A path that is none fails to load, naming the component's folder and the path."""
    defs = _defs(DocumentSummariesComponent, {"refine": f"{__name__}.OWN"})
    (summary,) = [
        one
        for one in defs.assets or ()
        if isinstance(one, dg.AssetsDefinition) and SUMMARY in one.keys
    ]
    recipe = summary_recipe(RefineSettings(refine=OWN), ModelSettings.from_environment())
    assert summary.code_versions_by_key[SUMMARY] == recipe[:16]
    for path, told in (("nowhere.refine", "can't be imported"), (f"{__name__}.QUIET", "no Refine")):
        with pytest.raises(Exception, match="mine") as caught:
            _defs(DocumentSummariesComponent, {"refine": path})
        assert told in str(caught.value) + str(caught.value.__cause__)
