"""Jobs whose model says what a test wrote down, runnable and retryable on an instance on disk."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import dagster as dg

from promptchain_dagster.models.base import ChatModel
from promptchain_dagster.pipelines.resources import HomeResource, ModelResource, chain_resources
from promptchain_dagster.testing import ScriptedChatModel

_MODELS: dict[str, ScriptedChatModel] = {}


class ScriptedModelResource(ModelResource):
    """Connects to the scripted model that is kept under `script` in this process."""

    script: str

    def connect(self) -> AbstractAsyncContextManager[ChatModel]:
        return _scripted(_MODELS[self.script])


@asynccontextmanager
async def _scripted(model: ScriptedChatModel) -> AsyncIterator[ChatModel]:
    yield model


def resources(home: Path, model: ScriptedChatModel) -> dict[str, Any]:
    """The resources of a run under `home` that is answered by `model`."""
    _MODELS[str(home)] = model
    return {
        **chain_resources(),
        "model": ScriptedModelResource(script=str(home)),
        "home": HomeResource(home=str(home)),
    }


def run(
    job: dg.JobDefinition,
    ops: Mapping[str, Any],
    home: Path,
    model: ScriptedChatModel,
    instance: dg.DagsterInstance,
) -> dg.ExecuteInProcessResult:
    """One run of `job` in this process; a run that fails raises nothing."""
    return job.execute_in_process(
        {"ops": {name: {"config": config} for name, config in ops.items()}},
        instance=instance,
        resources=resources(home, model),
        raise_on_error=False,
        tags={"home": str(home)},
    )


def result_of(home: Path, run_id: str) -> dict[str, Any]:
    """The run's result as it lies under the home."""
    return json.loads((home / "results" / f"{run_id}.json").read_text("utf-8"))


def outputs_of(home: Path, run_id: str) -> set[str]:
    """What the run stored for its later ops: `step/output`."""
    folder = home / "runs" / run_id
    return {str(path.relative_to(folder))[:-5] for path in folder.rglob("*.json")}


def succeeded(result: Any) -> list[str]:
    """The ops that succeeded, in order."""
    return [event.step_key for event in result.all_events if event.is_step_success]


def failure_of(result: Any, op: str) -> Any:
    """What the failed op left: its description, metadata and whether it may be retried."""
    (event,) = [e for e in result.all_events if e.is_step_failure and e.step_key == op]
    return event.step_failure_data.user_failure_data


def outline(sections: int) -> str:
    """An outline as a model writes it."""
    listed = [
        {"heading": f"Reason {n} to test", "point": f"It proves claim {n}."}
        for n in range(1, sections + 1)
    ]
    return json.dumps({"sections": listed})


_RETRIED: dict[tuple[str, str], dg.JobDefinition] = {}


def job_of(name: str, home: str) -> dg.JobDefinition:
    """What Dagster rebuilds a job from; it remembers each answer for ever, hence the home."""
    return _RETRIED[name, home]


def retry_from_failure(
    job: dg.JobDefinition,
    failed: dg.ExecuteInProcessResult,
    instance: dg.DagsterInstance,
    steps: Sequence[str] | None = None,
) -> dg.JobExecutionResult:
    """What "retry from failure" does, or a re-execution of `steps`, with the same resources."""
    home = Path(failed.dagster_run.tags["home"])
    bound = dg.Definitions(jobs=[job], resources=resources(home, _MODELS[str(home)]))
    _RETRIED[job.name, str(home)] = bound.resolve_job_def(job.name)
    options = (
        dg.ReexecutionOptions(failed.run_id, step_selection=steps)
        if steps
        else dg.ReexecutionOptions.from_failure(failed.run_id, instance)
    )
    return dg.execute_job(
        dg.build_reconstructable_job("tests.pipelines.scripted", "job_of", (job.name, str(home))),
        instance=instance,
        run_config=failed.dagster_run.run_config,
        reexecution_options=options,
    )
