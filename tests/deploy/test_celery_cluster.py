"""`deploy/celery` for real: PostgreSQL, Redis, two Celery workers and an S3 server."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from promptchain_dagster.library.state import State
from promptchain_dagster.testing import ScriptedChatModel
from tests.deploy.cluster import CHUNKS, Cluster, lose
from tests.deploy.services import until
from tests.pipelines.document_collection import PART, Collection
from tests.pipelines.test_backfill_daemon import (
    BACKFILL,
    BACKFILL_STATUS,
    LAUNCH,
    launched,
)
from tests.support.chat_server import HANG, Answer, ChatServer, Request

DOCUMENTS, RUNS = 40, 8
TERMINATE = """mutation($id: String!) {
  terminateRun(runId: $id) { __typename ... on PythonError { message } }
}"""
DEFINITIONS = f"""
from promptchain_dagster.pipelines.executor import in_process_by_default
from promptchain_dagster.pipelines.resources import chain_resources
from promptchain_dagster.pipelines.summary_assets import summary_assets
from promptchain_dagster.refine.settings import RefineSettings
import dagster as dg

summaries = summary_assets(
    settings=RefineSettings(chunk_tokens=30, max_words=50),
    max_partitions_per_run={DOCUMENTS // RUNS},
)
defs = dg.Definitions(
    assets=[*summaries.assets],
    jobs=[summaries.job],
    resources=chain_resources(),
    executor=in_process_by_default,
)
"""
CONFIG = {"max_in_flight": 4}


def answer(prompt: str) -> str:
    """A summary that only this very prompt gives: a chunk lost or folded twice changes the last."""
    found = PART.search(prompt)
    assert found, prompt
    return f"Part {found[1]} of {found[2]}, {hashlib.sha256(prompt.encode()).hexdigest()}."


class Answers:
    """What `answer` says; the machine `lost` is told so much, and then hangs with `hanging`.

    Once there are `none`, every machine hangs.
    """

    def __init__(self, lost: str, *, good: int, hanging: int) -> None:
        self._key, self._good, self._hanging = f"Bearer sk-{lost}", good, hanging
        self.hung = 0
        self.hang = threading.Event()
        self.none = False
        self.asked = threading.Event()

    def __call__(self, request: Request) -> Answer | str:
        if self.none:
            self.asked.set()
            return HANG
        if request.headers["authorization"] == self._key:
            self._good -= 1
            if self._good < 0:
                self.hung += 1
                if self.hung == self._hanging:
                    self.hang.set()
                return HANG
        return answer(request.prompt)


def on_one_machine(folder: Path, paths: list[str]) -> dict[str, str]:
    """The summary of each document from one run in one process, SQLite and a folder."""
    folder.mkdir()
    with dg.DagsterInstance.ephemeral() as instance:
        collection = Collection(folder, instance)
        keys = [collection.add(path, chunks=CHUNKS) for path in paths]
        assert collection.run(keys, ScriptedChatModel(answer), **CONFIG).success
        return {key: collection.summary(key) for key in keys}


@pytest.mark.timeout(900)
def test_40_documents_in_8_runs_on_two_workers_one_of_which_is_lost_in_the_middle(
    tmp_path: Path, services: Mapping[str, str]
) -> None:
    """The summaries are those of one machine, and only what was in flight is paid twice."""
    definitions = tmp_path / "deployed.py"
    definitions.write_text(DEFINITIONS)
    paths = [f"d{number:02}.txt" for number in range(DOCUMENTS)]
    answers = Answers("one", good=7, hanging=4)
    with ChatServer(answers) as server, ExitStack() as stack:
        cluster = Cluster(tmp_path, definitions, server.url, services)
        stack.enter_context(cluster.instance)
        keys = [cluster.add(path) for path in paths]
        stack.enter_context(cluster.webserver())
        stack.enter_context(cluster.worker("two"))
        one = stack.enter_context(cluster.worker("one"))
        asked = cluster.ask(BACKFILL, params=backfill(CONFIG))
        assert asked["__typename"] == "LaunchBackfillSuccess", asked
        seen: dict[str, Any] = {}

        def ended() -> bool:
            seen.update(cluster.ask(BACKFILL_STATUS, id=asked["backfillId"]))
            return seen["status"] not in ("REQUESTED", "FAILING")

        stack.enter_context(cluster.daemon())
        until(answers.hang.is_set, "the first worker to be in the middle of a run")
        lose(one)
        until(ended, "the backfill's end")

        assert seen["status"] == "COMPLETED_SUCCESS", seen
        assert cluster.partitions()["materialized"] == set(keys)
        runs = cluster.instance.get_runs()
        (failed,) = [run for run in runs if run.status is dg.DagsterRunStatus.FAILURE]
        (again,) = [run for run in runs if run.parent_run_id == failed.run_id]
        assert Counter(run.status for run in runs) == {
            dg.DagsterRunStatus.SUCCESS: RUNS,
            dg.DagsterRunStatus.FAILURE: 1,
        }
        assert again.status is dg.DagsterRunStatus.SUCCESS
        told = [entry.message for entry in cluster.instance.all_logs(failed.run_id)]
        assert any(re.search(r"Celery worker one@\S+ is gone", message) for message in told)

        assert {key: cluster.summary(key) for key in keys} == {
            key: f"{summary}\n" for key, summary in on_one_machine(tmp_path / "one", paths).items()
        }
        state = State.read(cluster.store)
        assert all(state.done_digest(key) for key in keys)
        by_machine = Counter(request.headers["authorization"] for request in server.requests)
        assert by_machine.keys() == {"Bearer sk-one", "Bearer sk-two"}
        # What hung, and at most as many replies were on their way to the bucket.
        twice = len(server.requests) - CHUNKS * DOCUMENTS - answers.hung
        assert 0 <= twice <= CONFIG["max_in_flight"]

        pool = cluster.instance.event_log_storage.get_concurrency_info
        until(lambda: pool("llm").active_slot_count == 0, "the lost run's place in the pool")
        spends_nothing(cluster, server, keys[0])
        answers.none = True
        ends_when_terminated(cluster, answers, keys[0])


def backfill(config: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "assetSelection": [{"path": ["document_summary"]}],
        "allPartitions": True,
        "runConfigData": json.dumps({"ops": {"document_summary": {"config": dict(config)}}}),
    }


def launch(cluster: Cluster, key: str, **config: Any) -> str:
    """A run over one document, paid again; its id."""
    configs = {"document_summary": {"config": {**CONFIG, "fresh": True, **config}}}
    job = {"repositoryLocationName": "here", "repositoryName": "__repository__"}
    params = {
        "selector": {**job, "jobName": "summarize_documents"},
        "runConfigData": json.dumps({"ops": configs}),
        "executionMetadata": {"tags": [{"key": "dagster/partition", "value": key}]},
    }
    return launched(cluster.ask(LAUNCH, params=params))


def error_of(cluster: Cluster, run_id: str) -> str:
    result = cluster.store.read(f"results/{run_id}.json")
    assert result is not None
    return json.loads(result)["error"]


def spends_nothing(cluster: Cluster, server: ChatServer, key: str) -> None:
    """A run whose day's budget the other machines' runs have used up asks for nothing."""
    before = len(server.requests)
    run_id = launch(cluster, key, max_tokens_per_day=500)
    until(lambda: cluster.run_status(run_id) in ("SUCCESS", "FAILURE"), "the run over the budget")
    assert "all runs of this UTC day is exhausted" in error_of(cluster, run_id)
    assert len(server.requests) == before


def ends_when_terminated(cluster: Cluster, answers: Answers, key: str) -> None:
    """From the UI, on whichever machine it is; it writes down what it has."""
    run_id = launch(cluster, key)
    until(answers.asked.is_set, "the run to be under way")
    said = cluster.ask(TERMINATE, id=run_id)
    assert said["__typename"] == "TerminateRunSuccess", said
    until(lambda: cluster.run_status(run_id) == "CANCELED", "the run to be canceled")
    assert error_of(cluster, run_id) == "interrupted"
