"""One step of a chain as Dagster executes it: its inputs let in, its attempts made and recorded."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import dagster as dg
from pydantic import ValidationError

from promptchain_dagster.chain import trace
from promptchain_dagster.chain.accept import FailedCheck
from promptchain_dagster.chain.chain import Chain
from promptchain_dagster.chain.outcome import Accepted, Halted, Reason
from promptchain_dagster.chain.replay import settings_of
from promptchain_dagster.chain.result import halted_by
from promptchain_dagster.chain.run import run_step, schema_messages
from promptchain_dagster.chain.step import MAX_RETRIES_PER_STEP, Step
from promptchain_dagster.errors import PromptChainError
from promptchain_dagster.pipelines.paid_calls import paid_calls
from promptchain_dagster.pipelines.resources import ModelResource
from promptchain_dagster.pipelines.run_async import run_async
from promptchain_dagster.store import Store


def admit(chain: Chain, values: Mapping[str, Any]) -> dict[str, Any]:
    """The chain's inputs from JSON values, validated, with their defaults.

    Raises `ValidationError`, or `GuardRejection`.
    """
    # As JSON, so that strictness takes what JSON has no type for (enums, dates) from strings.
    inputs = chain.inputs.model_validate_json(json.dumps(values), strict=True)
    return chain.guard.admit(dict(inputs))


def execute(
    chain: Chain,
    step: Step,
    fields: Mapping[str, Any],
    model: ModelResource,
    store: Store,
    run_id: str,
    config: Mapping[str, Any],
) -> Accepted | Halted:
    """Run the step with the re-attempts that `config` allows; every attempt goes to the trace."""

    async def work() -> Accepted | Halted:
        allowed = _with_retries(step, config)
        retries = allowed.max_retries_per_step
        record = trace.recorder(store, run_id, settings=settings_of(chain, retries))
        async with paid_calls(model, store, run_id) as calls:
            return await run_step(allowed, fields, calls, record=record)

    try:
        return run_async(work)
    except PromptChainError as error:
        return halted_by(error, step.name)


def refused(step: str, error: ValidationError) -> Halted:
    """The outcome of a step whose inputs do not validate."""
    messages = tuple(schema_messages(error))
    return Halted(
        attempts=(),
        step=step,
        reason=Reason.REJECTED,
        failed_checks=tuple(FailedCheck("input", message) for message in messages),
        messages=messages,
    )


def retries_config(step: Step) -> dict[str, dg.Field]:
    """What a run may set of a step that has re-attempts."""
    if step.max_retries_per_step == 0:
        return {}
    return {
        "max_retries_per_step": dg.Field(
            int,
            is_required=False,
            default_value=step.max_retries_per_step,
            description=f"Re-attempts after a rejected output, 0 to {MAX_RETRIES_PER_STEP}.",
        )
    }


def _with_retries(step: Step, config: Mapping[str, Any]) -> Step:
    retries = config.get("max_retries_per_step", step.max_retries_per_step)
    return dataclasses.replace(step, max_retries_per_step=retries)
