"""Real Dagster runs, in this process, against the instance in DAGSTER_HOME."""

from __future__ import annotations

import json
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from promptchain_dagster.cli.bad_input import BadInput
from promptchain_dagster.cli.options import Common
from promptchain_dagster.store import Store

if TYPE_CHECKING:
    from dagster import DagsterEvent, DagsterInstance, DagsterRun, JobDefinition
    from dagster._core.remote_origin import RemoteJobOrigin

INTERRUPTED = 130
DAGSTER_FOLDER = Path(".promptchain") / "dagster"
DEFINITIONS = "promptchain_dagster.pipelines.definitions"

OnEvent = Callable[["DagsterEvent", str], None]
"""Hears each event of a run, with the run's id, in whichever thread it comes up."""


@dataclass(frozen=True)
class Ended:
    """A run that ended: its result, the same as its file under the home, None where none was kept.

    `step` is the one that failed, and `error` its reason, where the run did not come to its end.
    """

    run_id: str
    result: dict[str, Any] | None
    interrupted: bool = False
    step: str | None = None
    error: str | None = None

    def status(self, completed: bool) -> int:
        """The command's exit status."""
        return INTERRUPTED if self.interrupted else 0 if completed else 1


def set_dagster_home() -> Path:
    """DAGSTER_HOME, absolute and existing; unset, it becomes `.promptchain/dagster` here."""
    given = os.environ.get("DAGSTER_HOME", "").strip()
    folder = Path(given).expanduser().absolute() if given else DAGSTER_FOLDER.absolute()
    try:
        if not given or not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            _add_instance_file(folder)
    except OSError as error:
        raise BadInput(
            f"DAGSTER_HOME {str(folder)!r} can't be made or written: {error.strerror}"
        ) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise BadInput(f"DAGSTER_HOME {str(folder)!r} can't be written")
    os.environ["DAGSTER_HOME"] = str(folder)
    return folder


def _add_instance_file(folder: Path) -> None:
    if not (folder / "dagster.yaml").exists():
        ours = resources.files("promptchain_dagster.pipelines") / "dagster.yaml"
        with resources.as_file(ours) as path:
            shutil.copyfile(path, folder / "dagster.yaml")


class Runner:
    """Makes runs on one instance, their results under one home."""

    def __init__(self, instance: DagsterInstance, store: Store, common: Common) -> None:
        self.instance, self.store = instance, store
        self._resources = _resource_config(common)

    def run(
        self,
        job: JobDefinition,
        ops: Mapping[str, Any],
        on_event: OnEvent,
        *,
        tags: Mapping[str, str] | None = None,
    ) -> Ended:
        """Run `job`, which has its resources, with `ops` as the config of its ops; `on_event` hears
        each event."""
        from dagster._core.definitions.job_base import InMemoryJob
        from dagster._core.execution.api import execute_run_iterator

        config = {
            "ops": ops,
            "resources": self._resources,
            # What the console would show is in the run's own log, and in the result.
            "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
        }
        run = self.instance.create_run_for_job(
            job,
            run_config=config,
            tags={**job.run_tags, **(tags or {})},
            remote_job_origin=_origin(job.name),
        )
        self.instance.add_event_listener(
            run.run_id,
            lambda entry: entry.dagster_event and on_event(entry.dagster_event, entry.run_id),
        )
        failed: DagsterEvent | None = None
        interrupted = False
        try:
            for event in execute_run_iterator(InMemoryJob(job), run, self.instance):
                if not event.is_failure:
                    continue
                failed = failed or event
                if event.is_step_failure and _is_interrupt(event):
                    interrupted = True
                    # So that it ends as canceled, not failed.
                    self.instance.report_run_canceling(run)
        except KeyboardInterrupt:  # outside of every step
            interrupted = True
            self.instance.report_run_canceled(run)
        return Ended(
            run.run_id,
            self._result(run),
            interrupted,
            failed.step_key if failed else None,
            _reason(failed) if failed else None,
        )

    def _result(self, run: DagsterRun) -> dict[str, Any] | None:
        data = self.store.read(result_key(run.run_id))
        return json.loads(data) if data is not None else None


def result_key(run_id: str) -> str:
    """Where the result of a run is kept, relative to the home."""
    return f"results/{run_id}.json"


@contextmanager
def runner(store: Store, common: Common) -> Iterator[Runner]:
    """A `Runner` on the instance in DAGSTER_HOME."""
    folder = set_dagster_home()
    import dagster as dg

    warnings.simplefilter("ignore", dg.BetaWarning)
    warnings.simplefilter("ignore", dg.PreviewWarning)
    try:
        instance = dg.DagsterInstance.get()
    except dg.DagsterError as error:
        raise BadInput(f"the Dagster instance in {str(folder)!r} can't be used: {error}") from None
    with instance:
        yield Runner(instance, store, common)


def _resource_config(common: Common) -> dict[str, Any]:
    """All of it explicit, so that a retry from the UI asks the same model and finds the home."""
    settings = common.model_settings()
    model = {"model": settings.model, "base_url": settings.base_url}
    home = common.home if ":/" in common.home else os.path.abspath(common.home)
    return {
        "model": {"config": {name: value for name, value in model.items() if value is not None}},
        "home": {"config": {"home": home}},
    }


def _origin(job_name: str) -> RemoteJobOrigin:
    """The job in the code location that is loaded, from this folder's `workspace.yaml` or from the
    installed package: the UI retries the run there."""
    from dagster._core.definitions.repository_definition import SINGLETON_REPOSITORY_NAME
    from dagster._core.remote_origin import (
        ManagedGrpcPythonEnvCodeLocationOrigin,
        RemoteJobOrigin,
        RemoteRepositoryOrigin,
    )
    from dagster._core.types.loadable_target_origin import LoadableTargetOrigin

    file = Path(str(resources.files("promptchain_dagster"))).parent / "definitions.py"
    if file.is_file():
        name = file.name
        where = {"python_file": str(file), "working_directory": str(file.parent)}
    else:
        name, where = DEFINITIONS, {"module_name": DEFINITIONS}
    target = LoadableTargetOrigin(executable_path=sys.executable, **where)
    location = ManagedGrpcPythonEnvCodeLocationOrigin(target, location_name=name)
    return RemoteJobOrigin(RemoteRepositoryOrigin(location, SINGLETON_REPOSITORY_NAME), job_name)


def _is_interrupt(event: DagsterEvent) -> bool:
    error: Any = getattr(event.event_specific_data, "error", None)
    return error is not None and error.cls_name in (
        "DagsterExecutionInterruptedError",
        "KeyboardInterrupt",
    )


def _reason(event: DagsterEvent) -> str:
    """The innermost cause of a failure, in one line without a traceback."""
    error: Any = getattr(event.event_specific_data, "error", None)
    while error is not None and error.cause is not None:
        error = error.cause
    said = error.message.strip().splitlines() if error else []
    return said[0] if said else event.message or "the run failed"
