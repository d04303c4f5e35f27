"""The sensor and the schedule, evaluated on an instance on disk (f18, f20)."""

import os
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.library import requests
from promptchain_dagster.library.recipe import digest_of
from promptchain_dagster.library.registry import Registry
from promptchain_dagster.library.state import Kind, State
from promptchain_dagster.pipelines.automation import new_documents, nightly_summaries
from promptchain_dagster.pipelines.collections.recipe import summary_recipe
from promptchain_dagster.pipelines.collections.watch import VARIABLE, in_work
from promptchain_dagster.pipelines.collections.worklog import SET_ASIDE, WAITING, WAITING_COST
from promptchain_dagster.pipelines.resources import HomeResource, ModelResource
from promptchain_dagster.refine.documents import document_key
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.store import Store, open_store

NIGHT = datetime(2031, 5, 4, 2, tzinfo=timezone.utc)


@dg.op
def nothing() -> None:
    pass


@dg.job(name="summarize_documents", config=dg.ConfigMapping(lambda _: {}, dg.Permissive()))
def stand_in() -> None:
    """What the ticks ask for, as far as they see it: runs with tags and a config."""
    nothing()


class Deployment:
    """A folder, a home and an instance; what the ticks on them ask for."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance) -> None:
        self.root, self.home, self.instance = folder / "documents", folder / "home", instance
        self.root.mkdir()
        self.cursor: str | None = None
        self.model = ModelResource(model="gpt-4o-mini", base_url="http://127.0.0.1:9/v1")

    @property
    def store(self) -> Store:
        return open_store(str(self.home))

    @property
    def state(self) -> State:
        return State.read(self.store)

    def write(self, path: str, text: str) -> str:
        """Write a document that is old enough to be settled; its key."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return document_key(path)

    def tick(self, *, saved: bool = True, **options: Any) -> Any:
        """One tick; `saved` False: the daemon was killed before it made anything of it."""
        with dg.build_sensor_context(
            self.instance, cursor=self.cursor, resources=self._resources()
        ) as context:
            data = new_documents(**options).evaluate_tick(context)
        if saved:
            self.cursor = data.cursor
            self.launch(data)
        return data

    def night(self, at: datetime | None = NIGHT, **options: Any) -> Any:
        with dg.build_schedule_context(
            self.instance, scheduled_execution_time=at, resources=self._resources()
        ) as context:
            return nightly_summaries(**options).evaluate_tick(context)

    def launch(self, data: Any) -> list[dg.DagsterRun]:
        """Make the runs that were asked for, once for each run key, as the daemon does."""
        runs: list[dg.DagsterRun] = []
        for request in data.run_requests or ():
            tags = {**request.tags, "dagster/run_key": request.run_key}
            filters = dg.RunsFilter(tags={"dagster/run_key": request.run_key})
            if not self.instance.get_runs(filters):
                runs.append(
                    self.instance.create_run_for_job(
                        stand_in, run_config=request.run_config, tags=tags
                    )
                )
        return runs

    def end_runs(self) -> None:
        """Every run has failed, without a word about its documents."""
        for run in self.instance.get_runs():
            if not run.is_finished:
                self.instance.report_run_failed(run)

    def summarize_all(self) -> None:
        """Every run has done what it was asked for."""
        for key in self.working():
            self.state.mark_done(key, self.digest(key))
        self.end_runs()

    def working(self) -> set[str]:
        return in_work(self.instance, self.instance.get_dynamic_partitions("documents"))

    def digest(self, key: str) -> str:
        entry = Registry(self.store).find(key)
        assert entry is not None and entry.content_hash is not None
        return digest_of(entry.content_hash, self.recipe)

    @property
    def recipe(self) -> str:
        return summary_recipe(RefineSettings(), self.model.settings())

    def asked(self, data: Any) -> list[str]:
        """The keys of the documents that were asked for, a list for all requests."""
        places = list(self.instance.get_dynamic_partitions("documents"))
        found: list[str] = []
        for request in data.run_requests or ():
            tags = request.tags
            config = request.run_config["ops"]["document_summary"]["config"]
            first = tags.get("dagster/asset_partition_range_start")
            if first:
                last = tags["dagster/asset_partition_range_end"]
                found += places[places.index(first) : places.index(last) + 1]
            else:
                found += config.get("only") or [tags["dagster/partition"]]
        return found

    def versions(self) -> dict[str, str]:
        """The data version that Dagster has of each document."""
        tags = self.instance.event_log_storage.get_latest_tags_by_partition(
            dg.AssetKey("document"),
            dg.DagsterEventType.ASSET_MATERIALIZATION,
            ["dagster/data_version"],
        )
        return {key: values["dagster/data_version"] for key, values in tags.items()}

    def events(self) -> int:
        fetched = self.instance.fetch_materializations(dg.AssetKey("document"), limit=10_000)
        return len(fetched.records)

    def _resources(self) -> dict[str, Any]:
        return {"model": self.model, "home": HomeResource(home=str(self.home))}


@pytest.fixture
def deployment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployment]:
    folder = tmp_path / "dagster"
    folder.mkdir()
    with dg.DagsterInstance.local_temp(str(folder)) as instance:
        made = Deployment(tmp_path, instance)
        monkeypatch.setenv(VARIABLE, str(made.root))
        yield made


def keys(*paths: str) -> set[str]:
    return {document_key(path) for path in paths}


def test_both_are_off_until_turned_on() -> None:
    """Nothing is spent by a deployment that was only loaded."""
    assert new_documents().default_status is dg.DefaultSensorStatus.STOPPED
    assert nightly_summaries().default_status is dg.DefaultScheduleStatus.STOPPED


def test_cron_time_zone_and_interval_are_the_callers_to_set() -> None:
    """As parameters, where the definitions are wired."""
    schedule = nightly_summaries(cron="30 4 * * 1", timezone="Asia/Kolkata")
    assert (schedule.cron_schedule, schedule.execution_timezone) == ("30 4 * * 1", "Asia/Kolkata")
    assert new_documents(seconds_between_ticks=45).minimum_interval_seconds == 45


@pytest.mark.parametrize("wrong", [0, -1])
def test_a_night_without_documents_is_refused_when_it_is_defined(wrong: int) -> None:
    """The error names the value and the bound."""
    with pytest.raises(InvalidInput, match=f"max_documents_per_night is {wrong}, must be 1"):
        nightly_summaries(max_documents_per_night=wrong)


def test_without_a_folder_both_skip_and_say_what_to_set(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment is read when they are evaluated."""
    monkeypatch.delenv(VARIABLE)
    assert "PROMPTCHAIN_DOCUMENTS is not set" in deployment.tick().skip_message
    assert "PROMPTCHAIN_DOCUMENTS is not set" in deployment.night().skip_message


def test_a_folder_that_cannot_be_listed_fails_the_tick_and_changes_nothing(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tick is red, so that somebody sees it."""
    monkeypatch.setenv(VARIABLE, str(deployment.root / "nowhere"))
    for evaluate in (deployment.tick, deployment.night):
        with pytest.raises((InvalidInput, dg.DagsterError)) as raised:
            evaluate()
        assert "can't be listed" in f"{raised.value}{raised.value.__cause__}"
    assert deployment.instance.get_dynamic_partitions("documents") == []


def test_new_documents_are_registered_recorded_and_asked_for_in_batches(
    deployment: Deployment,
) -> None:
    """A partition each, its data version the hash of its text, its path in the metadata."""
    names = [f"part {n}/Report, Q{n}.md" for n in range(5)]
    for name in names:
        deployment.write(name, f"The text of {name}.\r\n")
    data = deployment.tick(documents_per_run=2)
    assert len(data.run_requests) == 3
    assert deployment.asked(data) == [document_key(name) for name in names]
    assert set(deployment.instance.get_dynamic_partitions("documents")) == keys(*names)
    entries = {key: Registry(deployment.store).find(key) for key in keys(*names)}
    hashes = {key: entry.content_hash for key, entry in entries.items() if entry}
    assert deployment.versions() == hashes
    event = deployment.instance.fetch_materializations(
        dg.AssetRecordsFilter(dg.AssetKey("document"), asset_partitions=[document_key(names[3])]),
        limit=1,
    ).records[0]
    assert event.asset_materialization is not None
    assert event.asset_materialization.metadata["promptchain/document"].value == names[3]
    # What Dagster goes by where it says what is out of date.
    seen = deployment.instance.get_latest_data_version_record(
        dg.AssetKey("document"), is_source=True, partition_key=document_key(names[3])
    )
    assert seen is not None and seen.event_log_entry.tags is not None
    assert seen.event_log_entry.tags["dagster/data_version"] == hashes[document_key(names[3])]


def test_f20_the_same_content_is_not_asked_for_twice(deployment: Deployment) -> None:
    """While its run waits, while it works, and when it is done."""
    deployment.write("a.txt", "some words of a document")
    deployment.tick()
    for _ in range(2):
        again = deployment.tick()
        assert again.run_requests == []
        assert "nothing new" in again.skip_message
    deployment.summarize_all()
    assert deployment.tick().run_requests == []
    assert deployment.events() == 1


def test_f20_an_edited_document_is_asked_for_again_and_no_other(deployment: Deployment) -> None:
    """Also when size and time stay, and also back to an earlier text."""
    for name in ("a.txt", "b.txt"):
        deployment.write(name, "some words of a document")
    run_keys = [request.run_key for request in deployment.tick().run_requests]
    deployment.summarize_all()
    before = (deployment.root / "a.txt").stat()
    for text in ("some words OF a document", "some words of a document", "some WORDS"):
        deployment.write("a.txt", text)
        os.utime(deployment.root / "a.txt", ns=(before.st_atime_ns, before.st_mtime_ns))
        data = deployment.tick()
        assert deployment.asked(data) == [document_key("a.txt")]
        run_keys += [request.run_key for request in data.run_requests]
        deployment.summarize_all()
    assert len(set(run_keys)) == len(run_keys)


def test_an_edit_during_the_run_is_asked_for_when_it_has_ended(deployment: Deployment) -> None:
    """Two runs at one document would pay twice."""
    key = deployment.write("a.txt", "some words of a document")
    deployment.tick()
    before = deployment.digest(key)
    deployment.write("a.txt", "other words of the document")
    assert deployment.tick().run_requests == []
    deployment.state.mark_done(key, before)
    deployment.end_runs()
    assert deployment.asked(deployment.tick()) == [key]


@pytest.mark.parametrize("ticks_lost", [1, 3])
def test_what_a_killed_daemon_made_nothing_of_is_asked_for_under_the_same_run_key(
    deployment: Deployment, ticks_lost: int
) -> None:
    """The scan doesn't tell twice, and yet nothing is lost, and nothing runs twice."""
    for n in range(3):
        deployment.write(f"{n}.txt", f"some words of document {n}")
    lost = [deployment.tick(saved=False, documents_per_run=2) for _ in range(ticks_lost)]
    deployment.write("3.txt", "some words of one more")
    data = deployment.tick(documents_per_run=2)
    assert set(deployment.asked(data)) == keys("0.txt", "1.txt", "2.txt", "3.txt")
    for tick in lost:
        assert {one.run_key for one in tick.run_requests} < {r.run_key for r in data.run_requests}
        assert deployment.launch(tick) == []
    assert deployment.tick(documents_per_run=2).run_requests == []


def test_an_edit_before_the_lost_request_is_made_up_for_is_not_lost_either(
    deployment: Deployment,
) -> None:
    """The batch that never ran is out of date; all of its documents are asked for anew."""
    for n in range(3):
        deployment.write(f"{n}.txt", f"some words of document {n}")
    lost = deployment.tick(saved=False)
    deployment.write("1.txt", "quite other words of the document")
    data = deployment.tick()
    assert sorted(deployment.asked(data)) == sorted(keys("0.txt", "1.txt", "2.txt"))
    assert data.run_requests[0].run_key != lost.run_requests[0].run_key


@pytest.mark.parametrize("lost", ["documents.asked.json", "documents.scan.json"])
def test_a_damaged_object_in_the_home_costs_no_more_than_a_look(
    deployment: Deployment, lost: str
) -> None:
    """What was done stays done; what wasn't is asked for again."""
    done, open_ = deployment.write("a.txt", "some words"), deployment.write("b.txt", "others")
    deployment.tick()
    deployment.state.mark_done(done, deployment.digest(done))
    deployment.end_runs()
    deployment.store.write(lost, b'{"format": 1, "asked": [')
    assert set(deployment.asked(deployment.tick())) <= {open_}
    assert deployment.events() == 2


def test_data_versions_that_a_killed_tick_did_not_record_are_made_up_for(
    deployment: Deployment,
) -> None:
    """Round robin over all documents, so many a tick; another instance gets them all."""
    names = [f"{n}.txt" for n in range(5)]
    for name in names:
        deployment.write(name, f"the words of {name}")
    deployment.tick()
    deployment.instance.wipe_assets([dg.AssetKey("document")])
    recorded: list[int] = []
    for _ in range(3):
        deployment.tick(documents_per_tick=2)
        recorded.append(deployment.events())
    assert recorded == [2, 4, 5]
    assert deployment.versions().keys() == keys(*names)


def test_a_text_that_returns_before_it_was_summarized_gets_its_data_version_back(
    deployment: Deployment,
) -> None:
    """No run is needed, and yet the lineage shows what the document is now."""
    key = deployment.write("a.txt", "some words of a document")
    deployment.tick()
    version = deployment.versions()[key]
    deployment.summarize_all()
    deployment.write("a.txt", "other words of the document")
    deployment.tick(saved=False)
    assert deployment.versions()[key] != version
    deployment.write("a.txt", "some words of a document")
    assert deployment.tick().run_requests == []
    assert deployment.versions()[key] == version


def test_a_renamed_document_is_a_new_one_and_the_old_one_absent(deployment: Deployment) -> None:
    """Its content being known, its run calls nothing; no partition is deleted."""
    old = deployment.write("old.txt", "some words of a document")
    deployment.tick()
    deployment.summarize_all()
    (deployment.root / "old.txt").rename(deployment.root / "new.txt")
    data = deployment.tick()
    assert deployment.asked(data) == [document_key("new.txt")]
    entry = Registry(deployment.store).find(old)
    assert entry is not None and entry.absent
    assert set(deployment.instance.get_dynamic_partitions("documents")) == keys(
        "old.txt", "new.txt"
    )


def test_an_emptied_folder_changes_nothing(deployment: Deployment) -> None:
    """Neither marks anything absent, nor asks for what is not there."""
    done, failed = deployment.write("a.txt", "some words"), deployment.write("b.txt", "others")
    deployment.tick()
    deployment.state.mark_done(done, deployment.digest(done))
    deployment.end_runs()
    for path in deployment.root.iterdir():
        path.unlink()
    assert deployment.tick().run_requests == []
    assert not deployment.night().run_requests
    for key in (done, failed):
        entry = Registry(deployment.store).find(key)
        assert entry is not None and not entry.absent
    assert set(deployment.instance.get_dynamic_partitions("documents")) == {done, failed}
    assert deployment.versions().keys() == {done, failed}


def test_a_folder_inside_that_is_gone_for_a_while_is_not_paid_for_in_tries(
    deployment: Deployment,
) -> None:
    """What the listing doesn't show is not asked for by a night."""
    deployment.write("a.txt", "some words of a document")
    gone = deployment.write("mount/b.txt", "some words of another")
    deployment.night()
    (deployment.root / "mount").rename(deployment.root.parent / "mount")
    assert deployment.asked(deployment.night()) == [document_key("a.txt")]
    (deployment.root.parent / "mount").rename(deployment.root / "mount")
    assert gone in deployment.asked(deployment.night())


def test_an_unreadable_document_gets_no_partition_and_no_run(deployment: Deployment) -> None:
    """It is counted as set aside, by both."""
    (deployment.root / "a.txt").write_bytes(b"PK\x03\x04 a zip")
    data = deployment.tick()
    assert data.run_requests == [] and "1 set aside" in data.skip_message
    assert "1 set aside" in deployment.night().skip_message
    assert deployment.instance.get_dynamic_partitions("documents") == []


def test_a_name_that_is_no_unicode_is_a_document_like_any_other(deployment: Deployment) -> None:
    """Its path is in the metadata, and the tick's log can hold it."""
    (deployment.root / os.fsdecode(b"caf\xe9.txt")).write_text("some words of a document")
    assert len(deployment.asked(deployment.tick())) == 1
    assert len(deployment.versions()) == 1


def test_f20_a_document_whose_run_came_to_nothing_is_asked_for_again_later(
    deployment: Deployment,
) -> None:
    """After an hour, at most 3 times; a failing endpoint isn't asked twice a minute."""
    key = deployment.write("a.txt", "some words of a document")
    deployment.tick()
    run_keys: set[str] = set()
    for _ in range(2):
        deployment.end_runs()
        assert deployment.tick().run_requests == []
        an_hour_passes(deployment.store)
        data = deployment.tick()
        assert deployment.asked(data) == [key]
        run_keys |= {request.run_key for request in data.run_requests}
    deployment.end_runs()
    an_hour_passes(deployment.store)
    assert deployment.tick().run_requests == []
    assert len(run_keys) == 2
    assert deployment.asked(deployment.night()) == [key]


def test_what_another_run_has_failed_at_waits_as_long(deployment: Deployment) -> None:
    """A night's failure is not made up for within the minute."""
    key = deployment.write("a.txt", "some words of a document")
    deployment.launch(deployment.night())
    deployment.state.mark_failed(key, deployment.digest(key), Kind.FAILED, "broke", "run")
    deployment.end_runs()
    assert deployment.tick().run_requests == []
    an_hour_passes(deployment.store)
    assert deployment.asked(deployment.tick()) == [key]


def test_what_is_set_aside_is_asked_for_by_neither_until_its_text_changes(
    deployment: Deployment,
) -> None:
    """The night names and counts it, and has nothing to do."""
    key = deployment.write("a.txt", "some words of a document")
    deployment.tick()
    deployment.state.mark_failed(key, deployment.digest(key), Kind.REFUSED, "I can't", "run")
    deployment.end_runs()
    an_hour_passes(deployment.store)
    assert deployment.tick().run_requests == []
    assert deployment.night().skip_message == "nothing to do: 1 set aside"
    deployment.write("b.txt", "some words of another")
    (request,) = deployment.night().run_requests
    assert request.tags[SET_ASIDE] == "1"
    deployment.write("a.txt", "other words of the document")
    assert key in deployment.asked(deployment.tick())


def test_a_released_document_is_asked_for_again(deployment: Deployment) -> None:
    """By the next night."""
    key = deployment.write("a.txt", "some words of a document")
    deployment.night()
    deployment.state.mark_failed(key, deployment.digest(key), Kind.REFUSED, "I can't", "run")
    assert not deployment.night().run_requests
    deployment.state.release(key)
    assert deployment.asked(deployment.night()) == [key]


def test_f20_after_a_model_change_the_night_takes_so_many_and_says_what_waits(
    deployment: Deployment,
) -> None:
    """What merely went out of date is none of the sensor's."""
    for n in range(5):
        deployment.write(f"{n}.txt", "some words of a document. " * 1000)
    deployment.tick()
    deployment.summarize_all()
    deployment.model = ModelResource(model="gpt-4o", base_url="http://127.0.0.1:9/v1")
    tick = deployment.tick()
    assert tick.run_requests == [] and "5 out of date" in tick.skip_message
    data = deployment.night(max_documents_per_night=2)
    assert len(deployment.asked(data)) == 2
    (request,) = data.run_requests
    assert request.tags[WAITING] == "3"
    assert request.tags[WAITING_COST].startswith("about 0.")
    deployment.model = ModelResource(model="of-no-list", base_url="http://127.0.0.1:9/v1")
    (request,) = deployment.night(max_documents_per_night=2).run_requests
    assert request.tags[WAITING_COST] == "unknown"


def test_nights_take_one_after_another_what_is_left(deployment: Deployment) -> None:
    """Those that a run is at are left alone; the same night asks under the same run keys."""
    for n in range(5):
        deployment.write(f"{n}.txt", f"some words of document {n}")
    first = deployment.night(max_documents_per_night=3)
    again = deployment.night(max_documents_per_night=3)
    assert [r.run_key for r in first.run_requests] == [r.run_key for r in again.run_requests]
    deployment.launch(first)
    second = deployment.night(max_documents_per_night=3)
    assert len(deployment.asked(second)) == 2
    deployment.launch(second)
    assert "5 in runs that are under way" in deployment.night().skip_message
    deployment.summarize_all()
    assert deployment.night().skip_message == "nothing to do: 5 summarized"


def test_a_night_works_without_the_sensor_and_again_the_night_after(
    deployment: Deployment,
) -> None:
    """It registers, records and asks; what failed is asked for under another run key."""
    key = deployment.write("a.txt", "some words of a document")
    first = deployment.night()
    assert deployment.asked(first) == [key]
    assert deployment.versions().keys() == {key}
    second = deployment.night(NIGHT + timedelta(days=1))
    assert deployment.asked(second) == [key]
    assert first.run_requests[0].run_key != second.run_requests[0].run_key


def test_config_goes_into_the_runs_and_into_what_is_out_of_date(deployment: Deployment) -> None:
    """One setting where the definitions are wired; summaries by another one are out of date."""
    deployment.write("a.txt", "some words of a document")
    config = {"max_words": 100}
    (request,) = deployment.tick(config=config).run_requests
    assert request.run_config["ops"]["document_summary"]["config"]["max_words"] == 100
    deployment.summarize_all()  # by the default settings
    (request,) = deployment.night(config=config).run_requests
    assert request.run_config["ops"]["document_summary"]["config"]["max_words"] == 100
    assert not deployment.night().run_requests


def test_a_tick_is_bounded_and_the_next_go_on(deployment: Deployment) -> None:
    """So many files read, recorded and asked for; all in the end."""
    names = [f"{n:02}.txt" for n in range(7)]
    for name in names:
        deployment.write(name, f"the words of {name}")
    seen: list[set[str]] = []
    for _ in range(4):
        data = deployment.tick(documents_per_tick=3, documents_per_run=2)
        seen.append(set(deployment.asked(data)))
        assert deployment.events() <= 3 * len(seen)
    assert [len(one) for one in seen] == [3, 3, 1, 0]
    assert set().union(*seen) == keys(*names)


def test_a_night_can_be_evaluated_by_hand_without_a_time(deployment: Deployment) -> None:
    """As the UI's "test schedule" does, and any script."""
    deployment.write("a.txt", "the words of a")
    deployment.tick(saved=False)
    assert deployment.night(at=None).run_requests


def an_hour_passes(store: Store) -> None:
    held = requests.Requests.read(store)
    for key, one in held.asked.items():
        before = datetime.fromisoformat(one.when) - requests.RETRY_AFTER
        held.asked[key] = requests.Asked(one.digest, one.times, before.isoformat())
    held.write(store)
