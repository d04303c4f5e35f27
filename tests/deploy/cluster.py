"""Machines that share a database, a broker and a bucket, and nothing else but the documents."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import yaml

from promptchain_dagster.library.registry import Registry
from promptchain_dagster.store import open_store
from tests.pipelines.document_collection import text_of
from tests.pipelines.test_backfill_daemon import ROOT, Deployment
from tests.support.chat_server import free_port_url
from tests.support.dagster_home import instance_at

DEPLOY = ROOT / "deploy" / "celery"
CHUNKS = 3


class Cluster(Deployment):
    """The machine with webserver and daemon; `worker` adds others. Its environment is the test's,
    so that `instance` and `store` are reached as from a machine of it."""

    def __init__(
        self, folder: Path, definitions: Path, model_url: str, services: Mapping[str, str]
    ) -> None:
        self._folder = folder
        self.documents = folder / "documents"
        self.documents.mkdir()
        self._environment = {
            **os.environ,
            **services,
            # The workers call `celery`.
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "PROMPTCHAIN_DOCUMENTS": str(self.documents),
            "OPENAI_BASE_URL": model_url,
            "OPENAI_API_KEY": "sk-head",
            "PROMPTCHAIN_MODEL": "gpt-4o-mini",
        }
        self._environment["DAGSTER_HOME"] = self._dagster_home("head")
        file = {"relative_path": str(definitions), "location_name": "here"}
        (folder / "workspace.yaml").write_text(
            yaml.safe_dump({"load_from": [{"python_file": file}]})
        )
        self.instance = instance_at(self._environment["DAGSTER_HOME"])
        self.store = open_store(services["PROMPTCHAIN_HOME"])
        self._url = free_port_url().removesuffix("/v1")

    def add(self, path: str) -> str:
        """Write a document and register it; its key."""
        file = self.documents / path
        file.write_text(text_of(path, CHUNKS), "utf-8")
        key = Registry(self.store, str(self.documents)).register(str(file)).key
        self.instance.add_dynamic_partitions("documents", [key])
        return key

    def summary(self, key: str) -> str:
        kept = self.store.read(f"summaries/{key}.md")
        assert kept is not None, f"{key} has no summary"
        return kept.decode()

    @contextmanager
    def worker(self, name: str) -> Iterator[subprocess.Popen[bytes]]:
        """A machine whose one process takes runs; the model knows it by its key, `sk-NAME`."""
        command = [str(Path(sys.executable).parent / "dagster-celery"), "worker", "start"]
        command += ["-A", "dagster_celery.app", "-y", str(DEPLOY / "worker.yaml")]
        command += ["-q", "dagster", "-n", name, "--", "--concurrency=1"]
        environment = {
            **self._environment,
            "DAGSTER_HOME": self._dagster_home(name),
            "OPENAI_API_KEY": f"sk-{name}",
        }
        log = self._folder / f"{name}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                command,
                cwd=self._folder,
                env=environment,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        try:
            yield process
        except BaseException:
            sys.stderr.write(log.read_text(errors="replace")[-8000:])
            raise
        finally:
            lose(process)

    def _dagster_home(self, machine: str) -> str:
        """A copy of what is shipped, for two workers, and in which a loss is noticed within 1 s."""
        home = self._folder / f"dagster-{machine}"
        home.mkdir()
        settings = yaml.safe_load((DEPLOY / "dagster.yaml").read_text("utf-8"))
        settings["concurrency"]["runs"]["max_concurrent_runs"] = 2
        settings["run_monitoring"]["poll_interval_seconds"] = 1
        settings["run_monitoring"]["free_slots_after_run_end_seconds"] = 1
        (home / "dagster.yaml").write_text(yaml.safe_dump(settings), "utf-8")
        return str(home)


def lose(machine: subprocess.Popen[bytes]) -> None:
    """All processes of a machine end at once, and none can say anything."""
    with suppress(ProcessLookupError):
        os.killpg(machine.pid, signal.SIGKILL)
    machine.wait()
