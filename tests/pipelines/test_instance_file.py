"""The `dagster.yaml` that a local instance is given."""

import shutil
from pathlib import Path

import dagster as dg
import pytest

SHIPPED = Path(__file__).parents[2] / "promptchain_dagster" / "pipelines" / "dagster.yaml"


@pytest.fixture
def instance(tmp_path, monkeypatch):
    shutil.copyfile(SHIPPED, tmp_path / "dagster.yaml")
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    with dg.DagsterInstance.get() as made:
        yield made


def test_f13_few_runs_write_to_sqlite_at_once(instance):
    """A locked database failed a third of somebody's nightly runs."""
    assert instance.get_concurrency_config().run_queue_config.max_concurrent_runs <= 4


def test_f17_f24_a_killed_run_is_ended_and_gives_its_place_in_a_pool_back(instance):
    """Both are off unless they are asked for."""
    assert instance.run_monitoring_enabled
    assert instance.get_settings("run_monitoring")["free_slots_after_run_end_seconds"] > 0


def test_nothing_is_told_to_anybody(instance):
    """No telemetry, and no invitation to sign up."""
    assert not instance.telemetry_enabled
    assert not instance.nux_enabled
