"""The assets over documents: real runs on an instance on disk, many documents each."""

import asyncio
import shutil
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest

from promptchain_dagster.library.prune import prune
from promptchain_dagster.library.quarantine import quarantine
from promptchain_dagster.library.state import Done, Kind, SetAside, State, Tried
from promptchain_dagster.models.base import CallError, Problem
from promptchain_dagster.pipelines import metadata as md
from promptchain_dagster.pipelines.collections.batches import MAX_PARTITIONS_PER_RUN
from promptchain_dagster.pipelines.collections.recipe import summary_recipe
from promptchain_dagster.pipelines.summary_assets import summary_assets
from promptchain_dagster.testing import Reply, ScriptedChatModel
from tests.pipelines.document_collection import QUIET, RUNNING, SUMMARY, Collection, answer
from tests.pipelines.scripted import failure_of, resources

CHECKS = {
    "within_cap",
    "every_chunk_folded",
    "no_sudden_shrinking",
    "no_heavy_repetition",
    "names_and_numbers_kept",
}


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    """An instance on disk, with no partitions but those of the test."""
    folder = tmp_path / "dagster"
    folder.mkdir()
    with dg.DagsterInstance.local_temp(str(folder)) as instance:
        yield instance


@pytest.fixture
def collection(tmp_path: Path, instance: dg.DagsterInstance) -> Collection:
    return Collection(tmp_path, instance)


def refusing(*names: str, problem: Problem = Problem.REFUSED) -> ScriptedChatModel:
    """Answers about all documents but those named."""

    def reply(prompt: str) -> Reply:
        if any(f"of {name} says" in prompt for name in names):
            return CallError(problem, "I cannot help with that.")
        return answer(prompt)

    return ScriptedChatModel(reply)


def states(collection: Collection, key: str) -> object:
    """How the document stands, whatever the digest."""
    state = State.read(collection.store)
    digests = {one.digest for one in state.failures(key)} | {state.done_digest(key)}
    return [state.status(key, digest) for digest in sorted(filter(None, digests))]


def test_a_run_takes_many_documents_and_materializes_each_once(collection: Collection) -> None:
    """Each summary is a file and an event with what it took; so is each chunk."""
    keys = [collection.add(f"d{n}.txt", chunks=n) for n in (1, 2, 3)]
    model = ScriptedChatModel(answer)

    done = collection.run(keys, model)

    assert done.success
    assert sorted(collection.materialized(done.run_id)) == sorted(keys)
    assert len(collection.materialized(done.run_id, RUNNING)) == len(model.prompts) == 6
    assert [collection.summary(key) for key in keys] == [
        f"d{n}.txt up to part {n} of {n}" for n in (1, 2, 3)
    ]
    for event in collection.materializations(done.run_id):
        if event.asset_key == SUMMARY and event.partition == keys[2]:
            told = {name: value.value for name, value in event.metadata.items()}
            assert (told[md.STATUS], told[md.CHUNKS], told[md.MODEL_CALLS]) == ("completed", 3, 3)
            assert told[md.PREVIEW_KEY] == "d3.txt up to part 3 of 3"
            assert {md.WORDS, md.COMPRESSIONS, md.RESUMED_FROM, md.INPUT_TOKENS} <= set(told)
            assert {md.SECONDS, md.PATH, md.TRACE, md.RESULT, md.CONTENT_HASH} <= set(told)
            assert len(list(Path(told[md.TRACE]).rglob("*.json"))) == 3
    result = collection.run_result(done.run_id)
    assert (result["status"], result["documents"]) == ("completed", {"completed": 3})
    assert result["model_calls"] == 6
    assert all(isinstance(states(collection, key)[0], Done) for key in keys)


def test_every_check_is_told_for_every_partition(collection: Collection) -> None:
    """Each points at the materialization it is about; one that fails blocks nothing."""
    good, bad = collection.add("good.txt"), collection.add("bad.txt", chunks=1)

    def reply(prompt: str) -> str:
        return "The mayor of Atlantis spoke 77 times." if "of bad" in prompt else answer(prompt)

    done = collection.run([good, bad], ScriptedChatModel(reply))

    assert done.success
    told = collection.evaluations(done.run_id)
    assert {(one.partition, one.check_name) for one in told} == {
        (key, name) for key in (good, bad) for name in CHECKS
    }
    assert len(told) == 2 * len(CHECKS)
    (failed,) = [one for one in told if not one.passed]
    assert (failed.partition, failed.check_name) == (bad, "names_and_numbers_kept")
    assert failed.severity is dg.AssetCheckSeverity.WARN
    assert "Atlantis" in (failed.description or "") and "77" in (failed.description or "")
    assert all(one.target_materialization_data.run_id == done.run_id for one in told)


def test_f23_one_document_that_fails_loses_no_other(collection: Collection) -> None:
    """It is recorded with its reason and the summary so far; the run fails, naming it."""
    keys = [collection.add(f"d{n}.txt") for n in range(5)]

    def reply(prompt: str) -> Reply:
        if "Part 2 of d3.txt" in prompt:
            return CallError(Problem.REFUSED, "I cannot help with that.")
        return answer(prompt)

    done = collection.run(keys, ScriptedChatModel(reply))

    assert not done.success
    assert sorted(collection.materialized(done.run_id)) == sorted(set(keys) - {keys[3]})
    failure = failure_of(done, "document_summary")
    assert "1 of 5 documents failed" in failure.description and keys[3] in failure.description
    result = collection.result(done.run_id, keys[3])
    assert (result["status"], result["failed_chunk"]) == ("failed", 2)
    assert result["summary"] == "d3.txt up to part 1 of 2"
    (check,) = [one for one in collection.evaluations(done.run_id) if one.partition == keys[3]]
    assert (check.check_name, check.passed) == ("every_chunk_folded", False)
    assert check.metadata[md.PREVIEW_KEY].value == result["summary"]
    assert "I cannot help" in (check.description or "")


def test_f5_a_document_and_one_in_a_folder_of_its_name_keep_their_summaries(
    collection: Collection,
) -> None:
    """Whichever is first: `a` and `a/b`, `x` and `x.txt/x`."""
    one = ["a.txt", "a/b.txt", "a_b.txt"]
    keys = [collection.add(path) for path in one]
    for key in [*keys, *reversed(keys)]:
        assert collection.run([key], ScriptedChatModel(answer)).success
    assert [collection.summary(key) for key in keys] == [f"{p} up to part 2 of 2" for p in one]


def test_f14_the_events_of_long_summaries_stay_small(collection: Collection) -> None:
    """Only previews are in the event log; the whole lies under the home."""
    key = collection.add("long.txt", "\n\n".join(f"Part {n}. " + "It rained. " * 900 for n in "ab"))
    model = ScriptedChatModel(lambda prompt: "It rained all day. " * 300)

    done = collection.run([key], model, chunk_tokens=3000, max_words=5000)

    assert done.success
    records = collection.instance.get_records_for_run(done.run_id, limit=1000).records
    sizes = [len(dg.serialize_value(record.event_log_entry)) for record in records]
    assert max(sizes) < 8_000
    assert len(collection.summary(key)) > 5_000


def test_e2_exhausted_quota_stops_the_whole_run_at_once(collection: Collection) -> None:
    """What is done stays done; what was not begun says so, and none is held against a document."""
    keys = [collection.add(f"d{n:02}.txt", chunks=1) for n in range(20)]
    replies: list[Reply] = ["A first summary of boats."] * 3
    model = ScriptedChatModel([*replies, CallError(Problem.UNUSABLE, "quota exhausted")])

    done = collection.run(keys, model, max_in_flight=1)

    assert not done.success
    assert len(model.prompts) == 4
    statuses = list(collection.statuses(done.run_id).values())
    assert (statuses.count("completed"), statuses.count("failed")) == (3, 1)
    assert statuses.count("not_started") == 16
    left = collection.result(done.run_id, keys[-1])
    assert "quota exhausted" in left["error"]
    description = failure_of(done, "document_summary").description
    assert "16 of 20 documents were not started" in description
    assert State.read(collection.store).failed_keys() == []


def test_a_budget_ends_the_run_with_what_is_done_saved(collection: Collection) -> None:
    """The next run goes on where it ended."""
    keys = [collection.add(f"d{n}.txt", chunks=2) for n in range(6)]
    model = ScriptedChatModel(answer)

    first = collection.run(keys, model, max_in_flight=1, max_tokens=500)

    assert not first.success
    assert "max_tokens is 500" in failure_of(first, "document_summary").description
    spent = len(model.prompts)
    assert 2 <= spent < 12
    again = collection.run(keys, model, max_in_flight=1)
    assert again.success
    assert len(model.prompts) == 12


def test_a_cost_budget_without_a_price_is_refused_before_any_call(collection: Collection) -> None:
    """The failure names the model."""
    key = collection.add("d.txt")
    model = ScriptedChatModel([])
    done = collection.run([key], model, max_cost_usd=1.0)
    assert "no known price" in failure_of(done, "document_summary").description
    assert model.prompts == []
    assert collection.result(done.run_id, key)["status"] == "not_started"


def test_c9_a_document_without_content_is_recorded_and_no_failure(collection: Collection) -> None:
    """Materialized as `no_content`, so that a backfill is done with it; no call."""
    full, empty = collection.add("full.txt"), collection.add("empty.txt", "1\n\f\n2\n")
    model = ScriptedChatModel(answer)

    done = collection.run([full, empty], model)

    assert done.success
    assert len(model.prompts) == 2
    (event,) = [e for e in collection.materializations(done.run_id) if e.partition == empty]
    assert event.metadata[md.STATUS].value == "no_content"
    assert collection.result(done.run_id, empty)["status"] == "no_content"
    assert isinstance(states(collection, empty)[0], Done)


def test_a_summary_of_what_has_no_content_any_more_is_kept_under_another_name(
    collection: Collection,
) -> None:
    """The collection must not tell what no document says."""
    key = collection.add("d.txt")
    collection.run([key], ScriptedChatModel(answer))
    collection.add("d.txt", "")
    assert collection.run([key], ScriptedChatModel([])).success
    names = [file.name for file in (collection.home / "summaries").iterdir()]
    assert len(names) == 1 and names[0].startswith(f"{key}.earlier-")


def test_a_refused_document_is_set_aside_and_costs_nothing_the_next_night(
    collection: Collection,
) -> None:
    """The run says so and is green; a new text, or asking for it, tries it again."""
    good, bad = collection.add("good.txt"), collection.add("bad.txt")
    assert not collection.run([good, bad], refusing("bad.txt")).success
    (status,) = states(collection, bad)
    assert isinstance(status, SetAside)

    silent = ScriptedChatModel([])
    night = collection.run([good, bad], silent)

    assert night.success
    assert silent.prompts == []
    assert collection.run_result(night.run_id)["documents"] == {"completed": 1, "set_aside": 1}
    assert bad in collection.run_result(night.run_id)["set_aside"]
    assert "set aside: refused" in collection.result(night.run_id, bad)["error"]
    assert collection.materialized(night.run_id) == [good]

    assert not collection.run([bad], refusing("bad.txt"), retry_set_aside=True).success
    collection.add("bad.txt", "Another text that says nothing bad at all.")
    assert collection.run([bad], ScriptedChatModel(["A summary."])).success
    assert [type(one) for one in states(collection, bad)] == [Done]


def test_three_runs_that_failed_set_a_document_aside(collection: Collection) -> None:
    """A call that may succeed another time is tried in three runs, and no more."""
    key = collection.add("d.txt", chunks=1)
    for tries in (1, 2):
        collection.run([key], refusing("d.txt", problem=Problem.OUTPUT_LIMIT))
        assert states(collection, key) == [Tried(tries)]
    assert not collection.run([key], refusing("d.txt", problem=Problem.OUTPUT_LIMIT)).success
    assert collection.run([key], ScriptedChatModel([])).success


def test_an_unreadable_document_fails_alone(collection: Collection) -> None:
    """And is set aside, since its bytes are what they are."""
    good, bad = collection.add("good.txt"), collection.add("bad.txt")
    (collection.folder / "bad.txt").write_bytes(b"%PDF-1.7 not text")
    done = collection.run([good, bad], ScriptedChatModel(answer))
    assert not done.success
    assert collection.materialized(done.run_id) == [good]
    assert "is not text but a PDF" in collection.result(done.run_id, bad)["error"]
    assert collection.run([bad], ScriptedChatModel([])).success


def test_what_was_never_read_is_set_aside_like_what_was(collection: Collection) -> None:
    """Registered by hand when it was unreadable already; a run that comes again is green."""
    key = collection.add("bad.txt")
    (collection.folder / "bad.txt").write_bytes(b"%PDF-1.7 not text")
    collection.registry.register(str(collection.folder / "bad.txt"))
    assert not collection.run([key], ScriptedChatModel([])).success
    (found,) = quarantine(collection.store)
    assert (found.key, found.kind, found.tries) == (key, Kind.UNREADABLE, 1)
    again = collection.run([key], ScriptedChatModel([]))
    assert again.success
    told = collection.result(again.run_id, key)["error"]
    assert told == "set aside: unreadable, tried once"
    collection.add("bad.txt", "It says something by now.")
    assert collection.run([key], ScriptedChatModel(["A summary."])).success
    assert quarantine(collection.store) == []


def test_where_the_home_fails_what_documents_took_adds_up(collection: Collection) -> None:
    """Those under way are failed, for what the run ended for, and each has its calls."""
    keys = [collection.add(f"d{n}.txt", chunks=3) for n in range(3)]
    waiting = 0

    async def reply(prompt: str) -> Reply:
        nonlocal waiting
        if 'number="2"' not in prompt:
            return answer(prompt)
        waiting += 1
        if waiting == 3:  # all three are under way; the place for what comes next is taken
            shutil.rmtree(collection.home / "checkpoints")
            (collection.home / "checkpoints").write_text("")
            return answer(prompt)
        await asyncio.Event().wait()
        raise AssertionError("never")

    done = collection.run(keys, ScriptedChatModel(reply))
    assert not done.success
    results = [collection.result(done.run_id, key) for key in keys]
    whole = collection.run_result(done.run_id)
    assert whole["documents"] == {"failed": 3}
    assert [one["model_calls"] for one in results] == [2, 2, 2]
    assert whole["model_calls"] == sum(one["model_calls"] for one in results)
    assert {(one["status"], one["failed_chunk"]) for one in results} == {("failed", 2)}
    assert all("can't be written" in one["error"] for one in results)


def test_the_collections_summary_costs_nothing_after_a_prune(collection: Collection) -> None:
    """Neither do the documents': of each the last two checkpoints stay."""
    keys = [collection.add(f"d{n}.txt", chunks=4) for n in range(3)]
    collection.run(keys, ScriptedChatModel(answer))
    made = summary_assets(settings=collection.settings)

    def fold(model: ScriptedChatModel) -> bool:
        return dg.materialize(
            made.assets,
            selection=["collection_summary"],
            instance=collection.instance,
            resources=resources(collection.home, model),
            run_config={"loggers": QUIET},
        ).success

    assert fold(ScriptedChatModel(lambda prompt: "All about boats."))
    later = datetime.now(timezone.utc) + timedelta(days=2)
    assert prune(collection.store, timedelta(days=1), later).checkpoints
    assert fold(ScriptedChatModel([]))
    assert collection.run(keys, ScriptedChatModel([])).success


def test_fresh_pays_again_and_keeps_the_earlier_beside_the_new(collection: Collection) -> None:
    """Without it, what is unchanged costs nothing."""
    key = collection.add("d.txt")
    collection.run([key], ScriptedChatModel(answer))
    unchanged = collection.run([key], ScriptedChatModel([]))
    assert collection.result(unchanged.run_id, key)["resumed_from"] == 2

    assert collection.run([key], ScriptedChatModel(["T1", "T2"]), fresh=True).success

    assert collection.summary(key) == "T2"
    kept = {f.name: f.read_text("utf-8") for f in (collection.home / "summaries").iterdir()}
    assert sorted(kept.values()) == ["T2\n", "d.txt up to part 2 of 2\n"]


def test_a_changed_document_costs_what_changed(collection: Collection) -> None:
    """One that grew by a part costs one call."""
    key = collection.add("d.txt", chunks=3)
    collection.run([key], ScriptedChatModel(answer))
    collection.add("d.txt", chunks=4)
    model = ScriptedChatModel(answer)
    assert collection.run([key], model).success
    assert len(model.prompts) == 1


def test_calls_in_flight_are_bounded_over_the_whole_run(collection: Collection) -> None:
    """Documents go beside each other, the chunks of each in order."""
    keys = [collection.add(f"d{n}.txt", chunks=3) for n in range(8)]
    in_flight = most = 0
    seen: dict[str, list[str]] = {}

    async def reply(prompt: str) -> str:
        nonlocal in_flight, most
        in_flight += 1
        most = max(most, in_flight)
        await asyncio.sleep(0.01)
        in_flight -= 1
        text = answer(prompt)
        seen.setdefault(text.split()[0], []).append(text)
        return text

    done = collection.run(keys, ScriptedChatModel(reply), max_in_flight=3)

    assert done.success
    assert most == 3
    for name, said in seen.items():
        assert said == [f"{name} up to part {n} of 3" for n in (1, 2, 3)]


@pytest.mark.parametrize("wrong", [{"max_in_flight": 0}, {"chunk_tokens": 0}, {"max_tokens": -1}])
def test_a_setting_that_cannot_work_is_named_before_any_call(
    collection: Collection, wrong: dict[str, int]
) -> None:
    """And no document is held responsible."""
    key = collection.add("d.txt")
    model = ScriptedChatModel([])
    done = collection.run([key], model, **wrong)
    assert next(iter(wrong)) in failure_of(done, "document_summary").description
    assert model.prompts == []
    assert State.read(collection.store).failed_keys() == []


def test_documents_that_lie_apart_are_one_run_and_no_other_is_touched(
    collection: Collection,
) -> None:
    """A failing run over d0 and d2 says nothing of d1."""
    keys = [collection.add(f"d{n}.txt") for n in range(3)]
    collection.run(keys, ScriptedChatModel(answer))

    done = collection.run([keys[0], keys[2]], refusing("d2.txt"), fresh=True)

    assert not done.success
    assert collection.materialized(done.run_id) == [keys[0]]
    planned = dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED
    entries = collection.instance.all_logs(done.run_id, of_type=planned)
    assert [entry.dagster_event.partition for entry in entries] == [keys[0]]


def test_only_names_the_documents_in_place_of_the_partitions(collection: Collection) -> None:
    """Each is done once, and a key that is not registered fails alone."""
    keys = [collection.add(f"d{n}.txt") for n in range(3)]
    tags = {
        "dagster/asset_partition_range_start": keys[0],
        "dagster/asset_partition_range_end": keys[1],
    }
    config = {"ops": {"document_summary": {"config": {"only": [keys[1], keys[1], "unknown-0"]}}}}
    done = collection.execute(config, tags, ScriptedChatModel(answer))
    assert collection.materialized(done.run_id) == [keys[1]]
    assert "unknown-0" in failure_of(done, "document_summary").description


def test_events_that_are_not_wanted_are_not_made(collection: Collection) -> None:
    """Per chunk, and for the checks."""
    key = collection.add("d.txt")
    model = ScriptedChatModel(answer)
    done = collection.run([key], model, running_summary_events=False, checks=False)
    assert [e.asset_key for e in collection.materializations(done.run_id)] == [SUMMARY]
    assert collection.evaluations(done.run_id) == []


def test_the_ui_can_tell_what_is_out_of_date(collection: Collection) -> None:
    """After a new version of the document was observed, or a prompt or a parameter changed."""
    key = collection.add("d.txt")
    instance = collection.instance
    entry = collection.registry.find(key)
    assert entry and entry.content_hash

    def observe(version: str) -> None:
        instance.report_runless_asset_event(
            dg.AssetObservation("document", partition=key, tags={"dagster/data_version": version})
        )

    def status(settings: object = None) -> StaleStatus:
        made = summary_assets(settings=settings or collection.settings)
        defs = dg.Definitions(
            assets=made.assets, resources=resources(collection.home, ScriptedChatModel([]))
        )
        graph = defs.get_repository_def().asset_graph
        loading = LoadingContextForTest(instance)
        return CachingStaleStatusResolver(instance, graph, loading).get_status(SUMMARY, key)

    observe(entry.content_hash)
    collection.run([key], ScriptedChatModel(answer))
    assert status() is StaleStatus.FRESH
    assert status(type(collection.settings)(max_words=49)) is StaleStatus.STALE
    observe(entry.content_hash)
    assert status() is StaleStatus.FRESH
    observe("0" * 64)
    assert status() is StaleStatus.STALE


def test_the_code_version_is_the_recipe_that_documents_are_marked_with(
    collection: Collection,
) -> None:
    """Another prompt, model or parameter makes another one."""
    made = summary_assets(settings=collection.settings)
    (summary,) = [a for a in made.assets if isinstance(a, dg.AssetsDefinition) and a.key == SUMMARY]
    key = collection.add("d.txt")
    collection.run([key], ScriptedChatModel(answer))
    marked = State.read(collection.store).done_digest(key)
    assert marked and marked.endswith(f"-{summary.code_versions_by_key[SUMMARY]}")
    assert summary.backfill_policy == dg.BackfillPolicy.multi_run(MAX_PARTITIONS_PER_RUN)
    assert summary_recipe(
        collection.settings, resources(collection.home, ScriptedChatModel([]))["model"].settings()
    ).startswith(summary.code_versions_by_key[SUMMARY] or "?")


@pytest.mark.parametrize("count", [0, 1, 2])
def test_f15_the_collection_is_summarized_whatever_the_number_of_documents(
    collection: Collection, count: int
) -> None:
    """None, one and several are alike; those missing, empty and gone are told apart."""
    keys = [collection.add(f"d{n}.txt") for n in range(count)]
    collection.add("missing.txt")
    empty = collection.add("empty.txt", "")
    collection.add("gone.txt")
    collection.registry.mark_absent("gone.txt")
    collection.run([*keys, empty], ScriptedChatModel(answer))
    model = ScriptedChatModel(lambda prompt: "All about boats.")
    made = summary_assets(settings=collection.settings)

    done = dg.materialize(
        made.assets,
        selection=["collection_summary"],
        instance=collection.instance,
        resources=resources(collection.home, model),
        run_config={"loggers": QUIET},
    )

    assert done.success
    (event,) = done.asset_materializations_for_node("collection_summary")
    told = {name: value.value for name, value in event.metadata.items()}
    assert told[md.DOCUMENTS] == count
    assert told[md.MISSING] == "missing.txt"
    assert told[md.NO_CONTENT] == "empty.txt"
    assert len(model.prompts) == count  # so short that each summary is a chunk
    if count:
        assert collection.summary("collection_summary") == "All about boats."
        assert all(f"d{n}.txt up to part 2 of 2" in model.prompts[n] for n in range(count))
        assert not any("gone.txt" in prompt for prompt in model.prompts)
    else:
        assert told[md.STATUS] == "no_content"
