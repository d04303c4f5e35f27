"""Runs over many documents in processes of their own: killed, terminated, under multiprocess."""

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml

from promptchain_dagster.library.state import State
from promptchain_dagster.pipelines.collections.batches import batches
from promptchain_dagster.pipelines.documents import document_assets, summarize_documents
from promptchain_dagster.pipelines.resources import chain_resources
from tests.pipelines.document_collection import Collection, answer
from tests.pipelines.test_processes import ROOT, Deployment, only_run
from tests.support.chat_server import HANG, Answer, ChatServer, Request
from tests.support.dagster_home import instance_at

CONFIG = {"chunk_tokens": 30, "max_words": 50, "max_in_flight": 4}


class Answers:
    """Summaries; every request from number `good` + 1 on hangs, until `released`."""

    def __init__(self, good: int, hanging: int) -> None:
        self._good, self._hanging = good, hanging
        self.hang = threading.Event()
        self.released = False

    def __call__(self, request: Request) -> Answer | str:
        self._good -= 1
        if self._good >= 0 or self.released:
            return answer(request.prompt)
        self._hanging -= 1
        if self._hanging == 0:
            self.hang.set()
        return HANG


class Deployed:
    """A collection, and `dagster job execute` over it."""

    def __init__(self, folder: Path, url: str) -> None:
        self._deployment, self._folder = Deployment(folder, url), folder
        self.environment = self._deployment.environment
        self.instance = instance_at(self.environment["DAGSTER_HOME"])
        self.collection = Collection(folder, self.instance)

    def start(self, keys: list[str], **execution: Any) -> subprocess.Popen[str]:
        (batch,) = batches(keys, self.instance.get_dynamic_partitions("documents"))
        config = {**batch.run_config(CONFIG), **execution}
        file = self._folder / "config.yaml"
        file.write_text(yaml.safe_dump(config), "utf-8")
        tags = json.dumps(dict(batch.tags))
        command = [sys.executable, "-m", "dagster", "job", "execute", "-f", "definitions.py"]
        return subprocess.Popen(
            [*command, "-j", "summarize_documents", "-c", str(file), "--tags", tags],
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def materialized(self) -> set[str]:
        return self.instance.get_materialized_partitions(dg.AssetKey("document_summary"))


def bound_summarize_documents() -> dg.JobDefinition:
    defs = dg.Definitions(
        assets=document_assets, jobs=[summarize_documents], resources=chain_resources()
    )
    return defs.resolve_job_def("summarize_documents")


def test_f24_a_killed_run_is_retried_from_failure_and_nothing_is_lost_or_paid_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what was in flight is asked for once more; no lock is left behind."""
    answers = Answers(good=17, hanging=4)
    with ChatServer(answers) as server:
        deployed = Deployed(tmp_path, server.url)
        keys = [deployed.collection.add(f"d{n:02}.txt", chunks=2) for n in range(14)]
        process = deployed.start(keys)
        assert answers.hang.wait(timeout=60), process.communicate(timeout=5)[0]
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        for name, value in deployed.environment.items():
            if name.startswith(("PROMPTCHAIN_", "OPENAI_")):
                monkeypatch.setenv(name, value)
        answers.released = True
        with deployed.instance as instance:
            killed = only_run(instance)
            assert killed.status is dg.DagsterRunStatus.STARTED
            instance.report_run_failed(killed)  # what run monitoring does
            again = dg.execute_job(
                dg.reconstructable(bound_summarize_documents),
                instance=instance,
                run_config=killed.run_config,
                tags={k: v for k, v in killed.tags.items() if "partition" in k},  # as the UI does
                reexecution_options=dg.ReexecutionOptions.from_failure(killed.run_id, instance),
            )
            assert again.success
            assert deployed.materialized() == set(keys)
    # Four hung, and at most as many replies were on their way to the disk.
    twice = len(server.requests) - 2 * len(keys) - 4
    assert 0 <= twice <= 4
    state = State.read(deployed.collection.store)
    assert all(state.done_digest(key) for key in keys)
    assert {deployed.collection.summary(key) for key in keys} == {
        f"d{n:02}.txt up to part 2 of 2" for n in range(14)
    }
    result = deployed.collection.run_result(again.run_id)
    assert (result["documents"], result["model_calls"]) == (
        {"completed": 14},
        28 - 17 + twice,
    )


def test_a_terminated_run_is_canceled_and_keeps_what_is_done(tmp_path: Path) -> None:
    """Those under way have their calls and the summary so far, the others were not started."""
    answers = Answers(good=5, hanging=4)
    with ChatServer(answers) as server:
        deployed = Deployed(tmp_path, server.url)
        collection = deployed.collection
        # Four at a time: of the first eight, one chunk each is folded before the second.
        keys = [collection.add(f"d{n}.txt", chunks=2) for n in range(12)]
        process = deployed.start(keys)
        assert answers.hang.wait(timeout=60), process.communicate(timeout=5)[0]
        with deployed.instance as instance:
            run = only_run(instance)
            instance.report_run_canceling(run)  # what the launcher's terminate does first
            process.send_signal(signal.SIGTERM)
            said, _ = process.communicate(timeout=20)
            ended = instance.get_run_by_id(run.run_id)
            assert ended and ended.status is dg.DagsterRunStatus.CANCELED, said
            done = deployed.materialized()
        statuses = collection.statuses(run.run_id)
        assert {p for p, status in statuses.items() if status == "completed"} == {
            collection.paths[key] for key in done
        }
        for key in keys:
            result = collection.result(run.run_id, key)
            if result["status"] == "failed":
                assert result["error"] == "interrupted"
                so_far = f"{result['path']} up to part 1 of 2"
                assert (result["failed_chunk"], result["summary"]) in ((1, ""), (2, so_far))
                folded = result["failed_chunk"] - 1
                assert result["model_calls"] in {max(folded, 1), folded + 1}
            elif result["status"] == "not_started":
                assert result["error"] == "interrupted"
        # Five were answered, and four hang.
        calls = [collection.result(run.run_id, key)["model_calls"] for key in keys]
        assert sum(calls) == collection.run_result(run.run_id)["model_calls"] == 5 + 4
        assert "not_started" in statuses.values()
        assert collection.run_result(run.run_id)["error"] == "interrupted"


def test_e8_the_assets_run_under_the_multiprocess_executor(tmp_path: Path) -> None:
    """The step, the client and the events in a process of their own."""
    with ChatServer(lambda request: answer(request.prompt)) as server:
        deployed = Deployed(tmp_path, server.url)
        keys = [deployed.collection.add(f"d{n}.txt") for n in range(3)]
        process = deployed.start(
            [keys[0], keys[2]],
            execution={"config": {"multiprocess": {"max_concurrent": 1}}},
        )
        said, _ = process.communicate(timeout=120)
        assert process.returncode == 0, said
        with deployed.instance:
            assert deployed.materialized() == {keys[0], keys[2]}
    assert len(server.requests) == 4
