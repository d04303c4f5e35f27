"""What the sensor and the schedule say of the documents, in their ticks' logs and in tags."""

from collections.abc import Iterable, Sequence

import dagster as dg

from promptchain_dagster.library.estimate import estimate
from promptchain_dagster.library.worklist import Why, Worklist
from promptchain_dagster.models import ModelSettings
from promptchain_dagster.pipelines.chains.code_versions import model_name
from promptchain_dagster.pipelines.collections.watch import Look
from promptchain_dagster.refine.settings import RefineSettings

WAITING = "promptchain/waiting"
WAITING_COST = "promptchain/waiting_cost"
SET_ASIDE = "promptchain/set_aside"

_NAMED = 20

Context = dg.SensorEvaluationContext | dg.ScheduleEvaluationContext


def log_look(context: Context, seen: Look) -> None:
    """What the scan saw."""
    scan = seen.scan
    told: dict[str, Sequence[str]] = {
        "new": [one.path for one in scan.new],
        "changed": [one.path for one in scan.changed],
        "unreadable": [one.path for one in scan.unreadable],
        "gone, and now marked absent": scan.removed,
        "folders that can't be listed, left as they were": scan.unlisted,
    }
    for what, paths in told.items():
        if paths:
            context.log.info(f"{len(paths):,} {what}: {_some(paths)}")
    if scan.remaining:
        context.log.info(f"{scan.remaining:,} files are left to the next look")


def log_night(
    context: Context, todo: Worklist, seen: Look, settings: RefineSettings, model: ModelSettings
) -> dict[str, str]:
    """What a night takes, leaves and skips; the tags that say so on its runs."""
    tags: dict[str, str] = {}
    context.log.info(f"{len(todo.work):,} documents to summarize now; {counts(todo)}")
    if todo.waiting:
        sizes = [seen.sizes[one.path] for one in todo.waiting]
        plan = estimate(sizes, settings, model_name(model))
        known = plan.cost_usd is not None
        tags[WAITING] = str(plan.documents)
        tags[WAITING_COST] = f"about {plan.cost_usd:.2f} USD" if known else "unknown"
        context.log.info(
            f"{plan.documents:,} documents wait for a later night:"
            f" about {plan.least_calls:,} calls, {plan.input_tokens:,} tokens in"
            f" and {plan.output_tokens:,} out, cost {tags[WAITING_COST]}"
        )
    if todo.set_aside:
        tags[SET_ASIDE] = str(len(todo.set_aside))
        named = [f"{one.path} ({one.kind.value})" for one in todo.set_aside]
        context.log.info(f"{len(named):,} documents are set aside, and skipped: {_some(named)}")
    return tags


def counts(todo: Worklist, *, busy: int = 0) -> str:
    """How many documents stand where."""
    left = [*todo.work, *todo.waiting]
    out_of_date = sum(one.why is Why.OUT_OF_DATE for one in left)
    told = {
        "summarized": todo.done,
        "out of date": out_of_date,
        "without a summary of their text": len(left) - out_of_date,
        "in runs that are under way": busy,
        "set aside": len(todo.set_aside),
    }
    return ", ".join(f"{count:,} {what}" for what, count in told.items() if count) or "no documents"


def _some(names: Iterable[str]) -> str:
    """The first of the names, in a line that any log can hold."""
    listed = list(names)
    more = f" and {len(listed) - _NAMED:,} more" if len(listed) > _NAMED else ""
    text = ", ".join(listed[:_NAMED])
    return text.encode(errors="backslashreplace").decode() + more
