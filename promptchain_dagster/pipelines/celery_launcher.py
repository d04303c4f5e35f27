"""Runs on Celery workers: one whose worker is lost is noticed, one that is terminated stays so.

Dagster's own launcher takes a run for alive while Celery's result store says "STARTED"; and when a
machine is lost, nobody writes anything else there. So the worker itself is asked here. And that one
stops a run without telling that somebody wanted it: the run counts as failed, and is retried.
"""

from dagster import DagsterRun, DagsterRunStatus
from dagster._core.launcher import CheckRunHealthResult, WorkerStatus
from dagster_celery.launcher import CeleryRunLauncher
from dagster_celery.tags import DAGSTER_CELERY_TASK_ID_TAG
from typing_extensions import override

ASKED = 3
ANSWER_SECONDS = 5.0
"""The main process of a worker answers, not the one that is at a run: it is never busy for long."""


class WatchedWorkers(CeleryRunLauncher):
    """`CeleryRunLauncher`, with the same settings; needs `run_monitoring`:

    run_launcher:
      module: promptchain_dagster.pipelines.celery_launcher
      class: WatchedWorkers
    """

    @override
    def check_run_worker_health(self, run: DagsterRun) -> CheckRunHealthResult:
        """As Celery has it; failed where the run's worker is gone, or knows nothing of the run."""
        told = super().check_run_worker_health(run)
        if told.status is not WorkerStatus.RUNNING:
            return told
        task = run.tags[DAGSTER_CELERY_TASK_ID_TAG]
        worker = str(self.celery.AsyncResult(task).info["hostname"])
        if self._is_at_work(worker, task):
            return told
        told = super().check_run_worker_health(run)  # it may have come to its end meanwhile
        if told.status is not WorkerStatus.RUNNING:
            return told
        return CheckRunHealthResult(WorkerStatus.FAILED, f"Celery worker {worker} is gone.")

    @override
    def terminate(self, run_id: str) -> bool:
        """Stop the run; False where there is nothing to stop."""
        run = self._instance.get_run_by_id(run_id)
        if run is None or run.is_finished:
            return False
        if run.status is not DagsterRunStatus.CANCELING:
            self._instance.report_run_canceling(run)
        return super().terminate(run_id)

    def _is_at_work(self, worker: str, task: str) -> bool:
        for _ in range(ASKED):
            inspect = self.celery.control.inspect([worker], timeout=ANSWER_SECONDS)
            if (answers := inspect.active()) and worker in answers:
                return any(active["id"] == task for active in answers[worker])
        return False
