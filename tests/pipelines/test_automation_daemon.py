"""The sensor and the schedule under a real daemon, with a model that is a real server."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg

from promptchain_dagster.library.registry import Registry
from promptchain_dagster.refine.documents import document_key
from promptchain_dagster.store import open_store
from tests.support.chat_server import Answer, ChatServer, Request, reply
from tests.support.dagster_home import instance_at

ROOT = Path(__file__).parents[2]
PATIENCE = 150.0

DEFINITIONS = """
import dagster as dg
from promptchain_dagster.pipelines.automation import new_documents, nightly_summaries
from promptchain_dagster.pipelines.executor import in_process_by_default
from promptchain_dagster.pipelines.resources import chain_resources
from promptchain_dagster.pipelines.summary_assets import summary_assets

summaries = summary_assets()
defs = dg.Definitions(
    assets=[*summaries.assets],
    jobs=[summaries.job],
    sensors=[new_documents(seconds_between_ticks=1)],
    schedules=[nightly_summaries(cron="* * * * *")],
    resources=chain_resources(),
    executor=in_process_by_default,
)
"""


class Deployment:
    """A DAGSTER_HOME, a home, a folder of documents and a workspace."""

    def __init__(self, folder: Path, url: str) -> None:
        self.dagster_home, self.home = folder / "dagster", folder / "home"
        self.root, self._folder = folder / "documents", folder
        self.dagster_home.mkdir()
        self.root.mkdir()
        ours = ROOT / "promptchain_dagster" / "pipelines" / "dagster.yaml"
        shutil.copyfile(ours, self.dagster_home / "dagster.yaml")
        (folder / "workspace.yaml").write_text(
            "load_from: [{python_file: {relative_path: deployed.py}}]"
        )
        (folder / "deployed.py").write_text(DEFINITIONS)
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "DAGSTER_HOME": str(self.dagster_home),
            "PROMPTCHAIN_HOME": str(self.home),
            "PROMPTCHAIN_DOCUMENTS": str(self.root),
            "OPENAI_API_KEY": "sk-none",
            "OPENAI_BASE_URL": url,
            "PROMPTCHAIN_MODEL": "gpt-4o-mini",
        }

    def dagster(self, *arguments: str) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "dagster", *arguments, "-w", "workspace.yaml"],
            cwd=self._folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    @contextmanager
    def daemon(self) -> Iterator[None]:
        log = self._folder / "daemon.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "dagster._daemon", "run", "-w", "workspace.yaml"],
                cwd=self._folder,
                env=self.environment,
                stdout=out,
                stderr=out,
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


def until(holds: Callable[[], bool], what: str) -> None:
    """Look again and again, and give up in the end."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, f"waited in vain: {what}"
        time.sleep(0.2)


def answer(request: Request) -> Answer | str:
    if "forbidden" in request.prompt:
        return reply(None, refusal="I can't help with that.")
    return f"It tells of {request.prompt.split('animal: ')[1].split()[0]}."


def test_f20_the_daemon_summarizes_what_is_new_or_changed_once_and_nothing_else(
    tmp_path: Path,
) -> None:
    """New, edited, renamed and removed documents, an emptied folder, and one that is refused."""
    with ChatServer(answer) as server:
        deployed = Deployment(tmp_path, server.url)
        root, home = deployed.root, deployed.home

        def write(name: str, text: str) -> None:
            beside = root.parent / f"{name}.new"
            beside.write_text(text)
            beside.replace(root / name)

        def summary(name: str) -> str:
            file = home / "summaries" / f"{document_key(name)}.md"
            return file.read_text() if file.exists() else ""

        for animal in ("ant", "bee", "cat"):
            write(f"{animal}.txt", f"The story of an animal: {animal} by name.")
        with instance_at(deployed.dagster_home) as instance:

            def ended(runs: int) -> bool:
                found = instance.get_runs()
                return len(found) >= runs and all(run.is_finished for run in found)

            def ticks(name: str) -> int:
                states = [s for s in instance.all_instigator_state() if s.name == name]
                found = [
                    tick
                    for state in states
                    for tick in instance.get_ticks(state.instigator_origin_id, state.selector_id)
                ]
                return sum(tick.is_completed for tick in found)

            def more_ticks(name: str, count: int = 2) -> None:
                least = ticks(name) + count
                until(lambda: ticks(name) >= least, f"{count} more ticks of {name}")

            deployed.dagster("sensor", "start", "new_documents")
            with deployed.daemon():
                until(lambda: all(map(summary, ("ant.txt", "bee.txt", "cat.txt"))), "3 summaries")
                until(lambda: ended(1), "the first run's end")
                assert len(server.requests) == 3

                write("bee.txt", "Another story of an animal: wasp by name.")
                until(lambda: "wasp" in summary("bee.txt"), "the edited one's summary")
                until(lambda: ended(2), "the second run's end")
                assert len(server.requests) == 4

                (root / "ant.txt").rename(root / "emmet.txt")
                until(lambda: "ant" in summary("emmet.txt"), "the renamed one's summary")
                until(lambda: ended(3), "the third run's end")
                assert len(server.requests) == 4

                (root / "cat.txt").unlink()
                registry = Registry(open_store(str(home)))

                def is_absent(name: str) -> bool:
                    entry = registry.find(document_key(name))
                    return entry is not None and entry.absent

                until(lambda: is_absent("cat.txt"), "the removed one's mark")
                assert is_absent("ant.txt") and summary("cat.txt")

                (root.parent / "away").mkdir()
                for file in list(root.iterdir()):
                    file.rename(root.parent / "away" / file.name)
                more_ticks("new_documents")
                assert not is_absent("bee.txt") and not is_absent("emmet.txt")
                for file in list((root.parent / "away").iterdir()):
                    file.rename(root / file.name)
                more_ticks("new_documents")
                assert len(server.requests) == 4 and len(instance.get_runs()) == 3

                write("dog.txt", "A forbidden story of an animal: dog by name.")
                until(lambda: ended(4), "the refused one's run")
                assert instance.get_runs(limit=1)[0].status is dg.DagsterRunStatus.FAILURE
                paid = len(server.requests)

                write("eel.txt", "The story of an animal: eel by name.")
                until(lambda: bool(summary("eel.txt")) and ended(5), "a good one's summary")
                deployed.dagster("schedule", "start", "nightly_summaries")
                more_ticks("nightly_summaries", 1)

            assert len(server.requests) == paid + 1
            assert [run.status for run in instance.get_runs()][1:] == [
                dg.DagsterRunStatus.FAILURE,
                *[dg.DagsterRunStatus.SUCCESS] * 3,
            ]
            partitions = set(instance.get_dynamic_partitions("documents"))
            names = ("ant", "bee", "cat", "dog", "eel", "emmet")
            assert partitions == {document_key(f"{name}.txt") for name in names}
            (schedule,) = [
                s for s in instance.all_instigator_state() if s.name == "nightly_summaries"
            ]
            (night, *_) = instance.get_ticks(schedule.instigator_origin_id, schedule.selector_id)
            assert night.error is None
            assert night.skip_reason == "nothing to do: 3 summarized, 1 set aside"
