"""The pool `llm`: what its limit is, and that runs share what is for a minute."""

from pathlib import Path

import dagster as dg
import pytest
import yaml

from promptchain_dagster.pipelines.pool import POOL, runs_at_once
from promptchain_dagster.testing import ScriptedChatModel
from tests.pipelines.document_collection import Collection, answer
from tests.support.dagster_home import instance_at


def instance(folder: Path, **settings: object) -> dg.DagsterInstance:
    file = yaml.safe_dump({"telemetry": {"enabled": False}, **settings})
    (folder / "dagster.yaml").write_text(file, "utf-8")
    return instance_at(folder)


def test_a_pool_without_a_limit_is_shared_by_nobody(tmp_path: Path) -> None:
    """As on a local instance: limits are of one run."""
    with instance(tmp_path) as made:
        assert runs_at_once(made) is None


def test_the_limit_is_the_instance_s_default_or_what_was_set(tmp_path: Path) -> None:
    """What was set wins, and another pool's limit says nothing."""
    with instance(tmp_path, concurrency={"pools": {"default_limit": 8}}) as made:
        assert runs_at_once(made) == 8
        made.event_log_storage.set_concurrency_slots("other", 2)
        assert runs_at_once(made) == 8
        made.event_log_storage.set_concurrency_slots(POOL, 3)
        assert runs_at_once(made) == 3


@pytest.mark.parametrize("per_minute", [7, 8])
def test_a_run_takes_one_share_of_what_is_for_a_minute(tmp_path: Path, per_minute: int) -> None:
    """Eight runs can't share seven requests: the run says so and sends none."""
    with instance(tmp_path, concurrency={"pools": {"default_limit": 8}}) as made:
        collection = Collection(tmp_path, made)
        key = collection.add("a.txt", "")
        run = collection.run([key], ScriptedChatModel(answer), requests_per_minute=per_minute)
    if per_minute == 8:
        assert run.success
    else:
        (failed,) = run.get_step_failure_events()
        assert "requests_per_minute is 7, must be 8 or more" in str(failed.event_specific_data)
