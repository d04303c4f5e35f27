"""When summaries are made: the sensor `new_documents` and the schedule `nightly_summaries`.

Both are off until somebody turns them on. Neither reads the environment, the folder or the home
before it is evaluated (f18).
"""

import json
from bisect import bisect_right
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

import dagster as dg
from dagster._check import CheckError

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.library.requests import Pending, Requests
from promptchain_dagster.library.state import State
from promptchain_dagster.library.worklist import worklist
from promptchain_dagster.pipelines.collections import worklog
from promptchain_dagster.pipelines.collections.batches import MAX_PARTITIONS_PER_RUN, run_requests
from promptchain_dagster.pipelines.collections.config import SummarizeConfig
from promptchain_dagster.pipelines.collections.recipe import summary_recipe
from promptchain_dagster.pipelines.collections.watch import (
    JOB,
    Look,
    documents_folder,
    in_work,
    look,
    record_versions,
)
from promptchain_dagster.pipelines.resources import HomeResource, ModelResource
from promptchain_dagster.refine.settings import RefineSettings

DOCUMENTS_PER_TICK = 250
"""Read, recorded and asked for by one tick, which takes some 5 s then."""
READ_PER_NIGHT = 1000
"""Files that a night reads which no tick of the sensor has read before."""
_BATCH = "promptchain/batch"

DEFAULTS = RefineSettings()


def new_documents(
    *,
    settings: RefineSettings = DEFAULTS,
    config: Mapping[str, Any] | None = None,
    documents_per_run: int = MAX_PARTITIONS_PER_RUN,
    documents_per_tick: int = DOCUMENTS_PER_TICK,
    seconds_between_ticks: int = 30,
) -> dg.SensorDefinition:
    """The sensor that has new and changed documents summarized.

    `settings` are those of the assets; `config` holds fields of `SummarizeConfig` for the runs, and
    may set others. What is merely out of date, after a
    prompt or a model changed, is left to the night.
    """
    settings = SummarizeConfig(**(config or {})).settings(settings)

    @dg.sensor(
        name="new_documents",
        job_name=JOB,
        minimum_interval_seconds=seconds_between_ticks,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description="New and changed documents in PROMPTCHAIN_DOCUMENTS are summarized.",
    )
    def sensor(
        context: dg.SensorEvaluationContext, model: ModelResource, home: HomeResource
    ) -> dg.SensorResult | dg.SkipReason:
        try:
            root = documents_folder()
        except InvalidInput as error:
            return dg.SkipReason(str(error))
        cursor = _read_cursor(context.cursor)
        instance, store, limit = context.instance, home.store(), documents_per_tick
        now = datetime.now(timezone.utc)
        seen = look(instance, store, root, cursor["scan"], limit=limit)
        todo = worklist(
            seen.documents, State.read(store), summary_recipe(settings, model.settings())
        )
        requests = Requests.read(store)
        requests.settle(todo.work, lambda batch: _has_run(instance, batch))
        due = requests.due(todo.work, in_work(instance, seen.partitions), now, limit=limit)
        requests.ask(due, now, size=documents_per_run)
        requests.write(store)
        cursor = {"scan": seen.scan.cursor, "versions": _record(instance, seen, cursor, limit)}
        runs = [
            request
            for batch in requests.pending
            for request in run_requests(
                batch.documents,
                seen.partitions,
                config=config,
                tags={_BATCH: batch.name},
                max_partitions_per_run=len(batch.documents),
                run_key_prefix=f"{batch.name}-",
            )
        ]
        worklog.log_look(context, seen)
        return dg.SensorResult(
            run_requests=runs,
            skip_reason=None if runs else f"nothing new: {worklog.counts(todo)}",
            cursor=json.dumps(cursor),
        )

    return sensor


def nightly_summaries(
    *,
    cron: str = "0 2 * * *",
    timezone: str = "UTC",
    max_documents_per_night: int = 500,
    settings: RefineSettings = DEFAULTS,
    config: Mapping[str, Any] | None = None,
    documents_per_run: int = MAX_PARTITIONS_PER_RUN,
) -> dg.ScheduleDefinition:
    """The schedule that has all summarized that is missing or out of date, so much of it a night.

    Documents set aside are skipped, and not paid for again. How many documents wait, about what
    they would cost, and which are set aside stands in the tick's log and in its runs' tags.
    `settings` and `config` are as for `new_documents`.
    """
    if max_documents_per_night < 1:
        raise InvalidInput(
            f"max_documents_per_night is {max_documents_per_night}, must be 1 or more"
        )
    settings = SummarizeConfig(**(config or {})).settings(settings)

    @dg.schedule(
        name="nightly_summaries",
        job_name=JOB,
        cron_schedule=cron,
        execution_timezone=timezone,
        default_status=dg.DefaultScheduleStatus.STOPPED,
        description="Summaries that are missing or out of date are made, so many a night.",
    )
    def schedule(
        context: dg.ScheduleEvaluationContext, model: ModelResource, home: HomeResource
    ) -> list[dg.RunRequest] | dg.SkipReason:
        try:
            root = documents_folder()
        except InvalidInput as error:
            return dg.SkipReason(str(error))
        instance, store = context.instance, home.store()
        seen = look(instance, store, root, limit=READ_PER_NIGHT)
        busy = in_work(instance, seen.partitions)
        todo = worklist(
            [one for one in seen.documents if one.key not in busy],
            State.read(store),
            summary_recipe(settings, model.settings()),
            limit=max_documents_per_night,
        )
        chosen = {one.key for one in todo.work}
        record_versions(instance, [one for one in seen.documents if one.key in chosen])
        worklog.log_look(context, seen)
        tags = worklog.log_night(context, todo, seen, settings, model.settings())
        if not todo.work:
            return dg.SkipReason(f"nothing to do: {worklog.counts(todo, busy=len(busy))}")
        return run_requests(
            {one.key: one.digest for one in todo.work},
            seen.partitions,
            config=config,
            tags=tags,
            max_partitions_per_run=documents_per_run,
            run_key_prefix=f"{_night_of(context)}-",
        )

    return schedule


def _read_cursor(text: str | None) -> dict[str, str]:
    """Where the scan and the data versions go on; from the start where it is damaged."""
    start = {"scan": "", "versions": ""}
    try:
        held = json.loads(text or "{}")
        return start | {name: str(held[name]) for name in start if name in held}
    except (ValueError, TypeError):
        return start


def _record(instance: dg.DagsterInstance, seen: Look, cursor: Mapping[str, str], limit: int) -> str:
    """Record the data versions of what changed, and see to `limit` others, round robin: what a
    killed tick did not record. Where these go on."""
    paths = [one.path for one in seen.documents]
    place = bisect_right(paths, cursor["versions"])
    turn = seen.documents[place : place + limit]
    record_versions(instance, [*seen.scan.new, *seen.scan.changed, *turn])
    return turn[-1].path if place + limit < len(paths) else ""


def _night_of(context: dg.ScheduleEvaluationContext) -> str:
    """Names the night, so that what failed in one is asked for again in the next."""
    try:
        return context.scheduled_execution_time.isoformat()
    except CheckError:  # evaluated by hand
        return datetime.now().astimezone().isoformat()


def _has_run(instance: dg.DagsterInstance, batch: Pending) -> bool:
    return bool(instance.get_runs(dg.RunsFilter(tags={_BATCH: batch.name}), limit=1))
