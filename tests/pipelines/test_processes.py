"""Runs in processes of their own, as `dagster job execute` makes them, against a real server."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml

from promptchain_dagster.pipelines.resources import with_resources
from promptchain_dagster.pipelines.results import read_result
from promptchain_dagster.pipelines.summaries import incremental_refine
from promptchain_dagster.store import open_store
from tests.pipelines.scripted import outline
from tests.support.chat_server import HANG, Answer, ChatServer, Request
from tests.support.dagster_home import instance_at

ROOT = Path(__file__).parents[2]
KEY = "sk-planted-0123456789abcdefghijkl"


class Deployment:
    """A DAGSTER_HOME and a home, and `dagster job execute` on them."""

    def __init__(self, folder: Path, url: str) -> None:
        self.dagster_home = folder / "dagster"
        self.home = folder / "home"
        self.dagster_home.mkdir()
        shutil.copyfile(
            ROOT / "promptchain_dagster/pipelines/dagster.yaml", self.dagster_home / "dagster.yaml"
        )
        self.environment = {
            **os.environ,
            "DAGSTER_HOME": str(self.dagster_home),
            "PROMPTCHAIN_HOME": str(self.home),
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": url,
            "PROMPTCHAIN_MODEL": "gpt-4o-mini",
        }

    def start(self, job: str, config: str | Path) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "dagster", "job", "execute"]
        return subprocess.Popen(
            [*command, "-f", "definitions.py", "-j", job, "-c", str(config)],
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def result(self, run_id: str) -> dict[str, Any]:
        result = read_result(open_store(str(self.home)), run_id)
        assert result is not None
        return result

    def files_with(self, text: str) -> list[str]:
        folders = (self.dagster_home, self.home)
        files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
        assert len(files) > 5
        return [str(path) for path in files if text.encode() in path.read_bytes()]


def only_run(instance: dg.DagsterInstance) -> dg.DagsterRun:
    (run,) = instance.get_runs()
    return run


def test_f26_the_example_runs_as_the_readme_shows_and_the_key_is_nowhere(tmp_path: Path) -> None:
    """`dagster job execute -j gated_exit` sends the key, and keeps it in no file."""
    with ChatServer([outline(4), "A whole draft.", "A whole post."]) as server:
        deployment = Deployment(tmp_path, server.url)
        process = deployment.start("gated_exit", "examples/gated_exit.yaml")
        said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert len(server.requests) == 3
    sent = [{k.lower(): v for k, v in one.headers.items()} for one in server.requests]
    assert {headers["authorization"] for headers in sent} == {f"Bearer {KEY}"}
    with instance_at(deployment.dagster_home) as instance:
        result = deployment.result(only_run(instance).run_id)
    assert (result["status"], result["post"]) == ("completed", "A whole post.")
    assert KEY not in said
    assert deployment.files_with(KEY) == []
    assert deployment.files_with("A whole post.") != []


def test_each_op_may_have_a_process_of_its_own(tmp_path: Path) -> None:
    """Under the multiprocess executor values, chunks and the client find their way (e7, e8)."""
    config = yaml.safe_load((ROOT / "examples/incremental_refine.yaml").read_text("utf-8"))
    config["execution"] = {"config": {"multiprocess": {"max_concurrent": 1}}}
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(config), "utf-8")
    with ChatServer(summary_of_its_number) as server:
        deployment = Deployment(tmp_path, server.url)
        process = deployment.start("incremental_refine", file)
        said, _ = process.communicate(timeout=200)
    assert process.returncode == 0, said
    with instance_at(deployment.dagster_home) as instance:
        run_id = only_run(instance).run_id
        pids = {entry.pid for entry in _starts(instance, run_id)}
    result = deployment.result(run_id)
    assert result["chunks"] == len(server.requests) > 2
    assert result["summary"] == f"The boats after part {result['chunks']}"
    assert len(pids) == 3


def test_f1_f24_a_killed_run_leaves_no_lock_and_its_retry_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed in its third call, the run is retried from failure: only what is left is paid."""
    asked_thrice = threading.Event()

    def answer(request: Request) -> Answer | str:
        if 'number="3"' in request.prompt and not asked_thrice.is_set():
            asked_thrice.set()
            return HANG
        return summary_of_its_number(request)

    with ChatServer(answer) as server:
        deployment = Deployment(tmp_path, server.url)
        process = deployment.start("incremental_refine", "examples/incremental_refine.yaml")
        assert asked_thrice.wait(timeout=60)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        for name in ("PROMPTCHAIN_HOME", "OPENAI_API_KEY", "OPENAI_BASE_URL", "PROMPTCHAIN_MODEL"):
            monkeypatch.setenv(name, deployment.environment[name])
        monkeypatch.chdir(ROOT)
        with instance_at(deployment.dagster_home) as instance:
            killed = only_run(instance)
            assert killed.status is dg.DagsterRunStatus.STARTED
            instance.report_run_failed(killed)  # what run monitoring does
            again = dg.execute_job(
                dg.reconstructable(bound_incremental_refine),
                instance=instance,
                run_config=killed.run_config,
                reexecution_options=dg.ReexecutionOptions.from_failure(killed.run_id, instance),
            )
    assert again.success
    result = deployment.result(again.run_id)
    assert result["resumed_from"] == 2
    assert result["model_calls"] == result["chunks"] - 2
    assert result["summary"] == f"The boats after part {result['chunks']}"


def bound_incremental_refine() -> dg.JobDefinition:
    return with_resources(incremental_refine)


def summary_of_its_number(request: Request) -> str:
    number = request.prompt.split('<part number="')[1].split('"')[0]
    return f"The boats after part {number}"


def _starts(instance: dg.DagsterInstance, run_id: str) -> list[Any]:
    events = instance.all_logs(run_id, of_type=dg.DagsterEventType.STEP_START)
    return [entry.dagster_event for entry in events]
