"""The event log that the shipped `dagster.yaml` names."""

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.event_log import SqliteEventLogStorage

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.pipelines.event_log import ENGINES, KeptEngines

SHIPPED = Path(__file__).parents[2] / "promptchain_dagster" / "pipelines" / "dagster.yaml"
CHUNK = dg.AssetKey("chunk")


@dg.asset(name="chunk", check_specs=[dg.AssetCheckSpec("held", asset="chunk")])
def asset(context: dg.AssetExecutionContext):
    for number in range(3):
        context.log_event(dg.AssetMaterialization(CHUNK, metadata={"number": number}))
    yield dg.AssetCheckResult(passed=True, check_name="held")
    yield dg.Output(None)


@pytest.fixture
def home(tmp_path, monkeypatch):
    shutil.copyfile(SHIPPED, tmp_path / "dagster.yaml")
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def instance(home):
    with dg.DagsterInstance.get() as made:
        yield made


def materialize(instance):
    result = dg.materialize([asset], instance=instance)
    assert result.success
    return result.run_id


def materializations(storage):
    records = dg.AssetRecordsFilter(asset_key=CHUNK)
    return [
        record.event_log_entry for record in storage.fetch_materializations(records, 100).records
    ]


def test_the_shipped_instance_keeps_its_events_where_dagster_would(home, instance):
    """A home can go from one class to the other."""
    run_id = materialize(instance)
    assert type(instance.event_log_storage) is KeptEngines
    assert (home / "history" / "runs" / f"{run_id}.db").exists()


def test_dagster_s_own_class_reads_and_adds_to_the_same_files(home, instance):
    """Both at it at once: none misses what the other wrote."""
    materialize(instance)
    own = SqliteEventLogStorage(str(home / "history" / "runs"))
    assert len(materializations(own)) == 4
    entry = materializations(own)[0]
    own.store_event(entry)
    assert len(materializations(instance.event_log_storage)) == 5
    instance.event_log_storage.store_event(entry)
    assert len(materializations(own)) == 6
    assert len(own.get_logs_for_run(entry.run_id)) == len(instance.all_logs(entry.run_id))


def test_what_is_asked_of_a_run_is_the_same_as_with_dagster_s_own_class(home, instance):
    """Logs, steps, checks and assets."""
    run_id = materialize(instance)
    own, ours = SqliteEventLogStorage(str(home / "history" / "runs")), instance.event_log_storage
    assert own.get_logs_for_run(run_id) == ours.get_logs_for_run(run_id)
    assert own.get_stats_for_run(run_id) == ours.get_stats_for_run(run_id)
    assert own.get_step_stats_for_run(run_id) == ours.get_step_stats_for_run(run_id)
    assert own.all_asset_keys() == ours.all_asset_keys()
    check = dg.AssetCheckKey(CHUNK, "held")
    histories = [one.get_asset_check_execution_history(check, limit=5) for one in (own, ours)]
    assert histories[0] == histories[1]
    assert histories[0]


def test_many_threads_and_more_runs_than_engines_lose_no_event(instance):
    """Engines come and go; each event is stored once."""
    materialize(instance)
    storage = instance.event_log_storage
    (first, *_) = materializations(storage)
    runs = [f"run-{number}" for number in range(ENGINES + 8)]

    def store(run_id):
        for _ in range(3):
            storage.store_event(first._replace(run_id=run_id))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(store, runs))
    assert all(len(storage.get_logs_for_run(run_id)) == 3 for run_id in runs)
    assert len(storage._engines) <= ENGINES


def test_a_log_that_is_wiped_or_deleted_under_way_begins_anew(home, instance):
    """What is still open leads to no file; the events after that must not go there."""
    materialize(instance)
    instance.wipe()
    assert len(instance.all_logs(materialize(instance))) > 5
    shutil.rmtree(home / "history" / "runs")
    (home / "history" / "runs").mkdir()
    run_id = materialize(instance)
    assert len(materializations(SqliteEventLogStorage(str(home / "history" / "runs")))) == 4
    assert len(instance.all_logs(run_id)) > 5


def test_an_event_rolled_back_leaves_the_next_one_whole(instance):
    """An error within a transaction ends that transaction alone."""
    materialize(instance)
    storage = instance.event_log_storage
    with pytest.raises(ZeroDivisionError), storage.index_connection():
        raise ZeroDivisionError
    storage.store_event(materializations(storage)[0])
    assert len(materializations(storage)) == 5


def test_a_watcher_is_told_of_events_while_a_run_goes_on(instance):
    """The UI shows them as they come."""
    run_id = materialize(instance)
    told = threading.Event()
    instance.event_log_storage.watch(run_id, None, lambda *_: told.set())
    instance.event_log_storage.store_event(materializations(instance.event_log_storage)[0])
    assert told.wait(20)


def test_an_instance_without_a_folder_says_what_to_set(home, monkeypatch):
    """Neither `base_dir` nor `DAGSTER_HOME`."""
    monkeypatch.delenv("DAGSTER_HOME")
    with pytest.raises(InvalidInput, match="DAGSTER_HOME"):
        KeptEngines.from_config_value(None, {})
