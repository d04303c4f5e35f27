"""A backfill, and a retry from failure, as the UI asks for them: GraphQL, daemon, run workers."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import dagster as dg
import yaml

from promptchain_dagster.pipelines.collections.batches import batches
from tests.pipelines.document_collection import SUMMARY, Collection
from tests.pipelines.document_collection import answer as summary_of
from tests.pipelines.test_summary_processes import CONFIG, Answers
from tests.support.chat_server import Answer, ChatServer, Request, free_port_url, reply
from tests.support.dagster_home import instance_at

ROOT = Path(__file__).parents[2]
PATIENCE = 120.0

DEFINITIONS = """
import dagster as dg
from promptchain_dagster.pipelines.executor import in_process_by_default
from promptchain_dagster.pipelines.resources import chain_resources
from promptchain_dagster.pipelines.summary_assets import summary_assets

summaries = summary_assets(max_partitions_per_run=25)
defs = dg.Definitions(
    assets=[*summaries.assets],
    jobs=[summaries.job],
    resources=chain_resources(),
    executor=in_process_by_default,
)
"""

BACKFILL = """mutation($params: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $params) {
    __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message }
  }
}"""
BACKFILL_STATUS = """query($id: String!) {
  partitionBackfillOrError(backfillId: $id) {
    ... on PartitionBackfill {
      status
      assetBackfillData { assetBackfillStatuses { ... on AssetPartitionsStatusCounts {
        numPartitionsTargeted numPartitionsMaterialized numPartitionsFailed
      } } }
    }
  }
}"""
PARTITIONS = """query {
  assetNodeOrError(assetKey: {path: ["document_summary"]}) {
    ... on AssetNode { assetPartitionStatuses { ... on DefaultPartitionStatuses {
      materializedPartitions failedPartitions unmaterializedPartitions materializingPartitions
    } } }
  }
}"""
LAUNCH = """mutation($params: ExecutionParams!) {
  launchRun(executionParams: $params) {
    __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message }
  }
}"""
RETRY = """mutation($params: ReexecutionParams!) {
  launchRunReexecution(reexecutionParams: $params) {
    __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message }
  }
}"""
RUN_STATUS = "query($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }"


class Deployment:
    """A DAGSTER_HOME, a collection, and the webserver and the daemon over one code location."""

    def __init__(self, folder: Path, model_url: str, definitions: Path) -> None:
        self._folder, dagster_home = folder, folder / "dagster"
        dagster_home.mkdir()
        ours = yaml.safe_load((ROOT / "promptchain_dagster/pipelines/dagster.yaml").read_text())
        ours["run_monitoring"]["poll_interval_seconds"] = 1
        (dagster_home / "dagster.yaml").write_text(yaml.safe_dump(ours))
        file = {"relative_path": str(definitions), "location_name": "here"}
        (folder / "workspace.yaml").write_text(
            yaml.safe_dump({"load_from": [{"python_file": file}]})
        )
        self.instance = instance_at(dagster_home)
        self.collection = Collection(folder, self.instance)
        self._url = free_port_url().removesuffix("/v1")
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "DAGSTER_HOME": str(dagster_home),
            "PROMPTCHAIN_HOME": str(self.collection.home),
            "OPENAI_API_KEY": "sk-none",
            "OPENAI_BASE_URL": model_url,
            "PROMPTCHAIN_MODEL": "gpt-4o-mini",
        }

    @contextmanager
    def webserver(self) -> Iterator[None]:
        port = self._url.rpartition(":")[2]
        with self._process("dagster_webserver", "-h", "127.0.0.1", "-p", port):
            until(self._is_up, "the webserver")
            yield

    @contextmanager
    def daemon(self) -> Iterator[None]:
        with self._process("dagster._daemon", "run"):
            yield

    def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        """What the one field of a GraphQL query or mutation holds."""
        body = json.dumps({"query": query, "variables": variables}).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self._url}/graphql", body, headers)
        with _opener.open(request, timeout=60) as response:
            said = json.load(response)
        assert "errors" not in said, said
        (held,) = said["data"].values()
        return held

    def partitions(self) -> dict[str, set[str]]:
        held = self.ask(PARTITIONS)["assetPartitionStatuses"]
        return {kind.removesuffix("Partitions"): set(keys) for kind, keys in held.items()}

    def materializations(self) -> Counter[str]:
        """How often each partition of `document_summary` was materialized."""
        records = self.instance.fetch_materializations(SUMMARY, limit=1000).records
        return Counter(str(record.partition_key) for record in records)

    def run_status(self, run_id: str) -> str:
        return self.ask(RUN_STATUS, id=run_id)["status"]

    def worker_pid(self, run_id: str) -> int:
        """The process in which a run works, as its events tell."""
        messages = [entry.message for entry in self.instance.all_logs(run_id)]
        (pid,) = [
            m[1] for m in (re.search(r"Started process.*pid: (\d+)", x) for x in messages) if m
        ]
        return int(pid)

    def _is_up(self) -> bool:
        try:
            with _opener.open(f"{self._url}/server_info", timeout=5):
                return True
        except OSError:
            return False

    @contextmanager
    def _process(self, module: str, *arguments: str) -> Iterator[None]:
        log = self._folder / f"{module}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments, "-w", "workspace.yaml"],
                cwd=self._folder,
                env=self._environment,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        try:
            yield
        except BaseException:
            sys.stderr.write(log.read_text(errors="replace")[-8000:])
            raise
        finally:
            process.terminate()
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            # Code servers and run workers are of its group, and may outlive it.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def until(holds: Callable[[], bool], what: str) -> None:
    """Look again and again, and give up in the end."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, f"waited in vain: {what}"
        time.sleep(0.3)


def launched(said: Mapping[str, Any]) -> str:
    assert said["__typename"] == "LaunchRunSuccess", said
    return said["run"]["runId"]


def named(request: Request) -> str:
    """The document that a request is about."""
    (name,) = set(re.findall(r"of (\S+\.txt) says", request.prompt))
    return name


def test_a_backfill_of_50_documents_makes_two_runs_and_names_the_two_that_fail(
    tmp_path: Path,
) -> None:
    """One refused in each run: the 48 others are materialized, each once, each paid once."""
    refused = ("d07.txt", "d33.txt")

    def answer(request: Request) -> Answer | str:
        if named(request) in refused:
            return reply(None, refusal="I can't help with that.")
        return summary_of(request.prompt)

    definitions = tmp_path / "deployed.py"
    definitions.write_text(DEFINITIONS)
    with ChatServer(answer) as server, ExitStack() as stack:
        deployed = Deployment(tmp_path, server.url, definitions)
        stack.enter_context(deployed.instance)
        collection = deployed.collection
        for number in range(50):
            collection.add(f"d{number:02}.txt")
        stack.enter_context(deployed.webserver())
        said = deployed.ask(
            BACKFILL,
            params={"assetSelection": [{"path": ["document_summary"]}], "allPartitions": True},
        )
        assert said["__typename"] == "LaunchBackfillSuccess", said
        seen: dict[str, Any] = {}

        def ended() -> bool:
            seen.update(deployed.ask(BACKFILL_STATUS, id=said["backfillId"]))
            return seen["status"] not in ("REQUESTED", "FAILING")

        # Its backfills are looked at when it starts, and every 30 s.
        with deployed.daemon():
            until(ended, "the backfill's end")

        bad = {key for key, path in collection.paths.items() if path in refused}
        good = set(collection.paths) - bad
        assert seen["status"] == "COMPLETED_FAILED"
        assert seen["assetBackfillData"]["assetBackfillStatuses"] == [
            {
                "numPartitionsTargeted": 50,
                "numPartitionsMaterialized": 48,
                "numPartitionsFailed": 2,
            }
        ]
        assert deployed.partitions() == {
            "materialized": good,
            "failed": bad,
            "unmaterialized": bad,
            "materializing": set(),
        }
        assert deployed.materializations() == dict.fromkeys(good, 1)
        runs = deployed.instance.get_runs()
        assert [run.status for run in runs] == [dg.DagsterRunStatus.FAILURE] * 2
        statuses = Counter(
            collection.result(run.run_id, key)["status"]
            for run in runs
            for key in collection.materialized(run.run_id)
        )
        assert statuses == {"completed": 48}
        # Each is one chunk here; how often a refused one is tried is of no interest.
        asked = Counter(named(request) for request in server.requests)
        assert {name: times for name, times in asked.items() if name not in refused} == {
            collection.paths[key]: 1 for key in good
        }
        assert all(asked[name] for name in refused)


def test_f24_a_run_of_40_killed_in_the_middle_is_retried_from_failure_as_the_ui_does(
    tmp_path: Path,
) -> None:
    """Its worker gets a SIGKILL; nothing is lost, and only what was in flight is paid twice."""
    answers = Answers(good=41, hanging=4)
    with ChatServer(answers) as server, ExitStack() as stack:
        deployed = Deployment(tmp_path, server.url, ROOT / "definitions.py")
        stack.enter_context(deployed.instance)
        collection = deployed.collection
        keys = [collection.add(f"d{number:02}.txt", chunks=2) for number in range(40)]
        stack.enter_context(deployed.webserver())
        stack.enter_context(deployed.daemon())
        (batch,) = batches(keys, deployed.instance.get_dynamic_partitions("documents"))
        killed = launched(
            deployed.ask(
                LAUNCH,
                params={
                    "selector": {
                        "repositoryLocationName": "here",
                        "repositoryName": "__repository__",
                        "jobName": "summarize_documents",
                    },
                    "runConfigData": batch.run_config(CONFIG),
                    "executionMetadata": {
                        "tags": [{"key": k, "value": v} for k, v in batch.tags.items()]
                    },
                },
            )
        )
        assert answers.hang.wait(timeout=PATIENCE)
        # Events are stored beside the calls, which a model as quick as this one outruns.
        until(lambda: bool(deployed.materializations()), "a document's record")
        os.kill(deployed.worker_pid(killed), signal.SIGKILL)
        until(lambda: deployed.run_status(killed) == "FAILURE", "the killed run to be noticed")
        assert 0 < len(deployed.materializations()) <= 20

        answers.released = True
        again = launched(
            deployed.ask(RETRY, params={"parentRunId": killed, "strategy": "FROM_FAILURE"})
        )
        ends = ("SUCCESS", "FAILURE", "CANCELED")
        until(lambda: deployed.run_status(again) in ends, "the retry's end")
        assert deployed.run_status(again) == "SUCCESS"
        assert deployed.partitions()["materialized"] == set(keys)
        assert sorted(collection.materialized(again)) == sorted(keys)
    # Four hung, and at most as many replies were on their way to the disk.
    assert 0 <= len(server.requests) - 2 * len(keys) - 4 <= 4
    assert {collection.summary(key) for key in keys} == {
        f"d{number:02}.txt up to part 2 of 2" for number in range(40)
    }
    assert collection.run_result(again)["documents"] == {"completed": 40}
