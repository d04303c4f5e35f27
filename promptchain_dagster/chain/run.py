"""Running a chain: each step's output meets its AcceptSpec, or the chain halts there."""

from __future__ import annotations

import dataclasses
import inspect
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timezone
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import to_jsonable_python

from promptchain_dagster.chain.accept import FailedCheck, Judgement
from promptchain_dagster.chain.chain import Chain
from promptchain_dagster.chain.outcome import Accepted, Attempt, Completed, Halted, Reason
from promptchain_dagster.chain.replies import Unparsed, clean_text, parse_object
from promptchain_dagster.chain.step import PromptStep, Step, ToolStep
from promptchain_dagster.errors import GuardRejection
from promptchain_dagster.models.base import PROBLEMS, Problem
from promptchain_dagster.models.calls import Call, Calls, Interrupted
from promptchain_dagster.telemetry import step_span, tell

Record = Callable[[Attempt], Awaitable[None]]
"""Called with every attempt as soon as it is judged; a trace writes it down."""


async def run_chain(
    chain: Chain,
    inputs: BaseModel | Mapping[str, Any],
    calls: Calls,
    *,
    record: Record | None = None,
) -> Completed | Halted:
    """Run every step in order and return the last output, or halt at the first step that fails.

    Raises `GuardRejection` where `inputs` are not what the chain declares, before any call.
    """
    given = dict(inputs) if isinstance(inputs, BaseModel) else inputs
    fields = chain.guard.admit(given)
    chain.inputs.model_validate(fields)  # what only the whole model checks: min not over max
    attempts: tuple[Attempt, ...] = ()
    for step in chain.steps:
        outcome = await run_step(step, fields, calls, record=record)
        attempts += outcome.attempts
        if isinstance(outcome, Halted):
            return dataclasses.replace(outcome, attempts=attempts)
        fields[step.output] = outcome.output
    outputs = {step.output: fields[step.output] for step in chain.steps}
    return Completed(attempts=attempts, outputs=outputs, output=fields[chain.output])


async def run_step(
    step: Step,
    fields: Mapping[str, Any],
    calls: Calls,
    *,
    record: Record | None = None,
) -> Accepted | Halted:
    """Run one step on the fields it reads, with its re-attempts; other fields it never sees."""
    with step_span(step.name) as span:
        outcome = await _outcome_of(step, fields, calls, record)
        tell(span, *_of_outcome(outcome))
    return outcome


async def _outcome_of(
    step: Step, fields: Mapping[str, Any], calls: Calls, record: Record | None
) -> Accepted | Halted:
    try:
        values = step.guard.admit({name: fields[name] for name in step.reads if name in fields})
        if isinstance(step, PromptStep):
            return await _PromptRun(step, values, calls, record).outcome()
        return await _run_tool(step, values, record)
    except GuardRejection as rejection:
        failed = tuple(FailedCheck("input", problem) for problem in rejection.problems)
        return Halted(
            attempts=(),
            step=step.name,
            reason=Reason.REJECTED,
            failed_checks=failed,
            messages=(str(rejection),),
        )


def _of_outcome(outcome: Accepted | Halted) -> tuple[dict[str, Any], str | None]:
    attributes: dict[str, Any] = {"promptchain.attempts": len(outcome.attempts)}
    if isinstance(outcome, Accepted):
        return attributes, None
    checks = tuple(one.check for one in outcome.failed_checks)
    return attributes | {"promptchain.failed_checks": checks or None}, outcome.reason.value


class _PromptRun:
    """The attempts at one prompt step."""

    def __init__(
        self, step: PromptStep, values: Mapping[str, Any], calls: Calls, record: Record | None
    ) -> None:
        self._step, self._values, self._calls, self._record = step, values, calls, record
        self._inputs = as_inputs(values)

    async def outcome(self) -> Accepted | Halted:
        step = self._step
        attempts: list[Attempt] = []
        while True:
            attempt, output, call = await self._attempt(attempts)
            attempts.append(attempt)
            if self._record:
                await self._record(attempt)
            if attempt.accepted:
                return Accepted(attempts=tuple(attempts), step=step.name, output=output)
            spent = len(attempts) > step.max_retries_per_step
            if spent or attempt.call_error or self._would_repeat_in_vain(call):
                return _halted(step, attempts, call)

    async def _attempt(self, before: list[Attempt]) -> tuple[Attempt, Any, Call]:
        """The attempt after those `before`, with the output it gave and the call it made."""
        step = self._step
        if before:
            await step.reattempt.wait(len(before))
        prompt = step.prompt.render(self._values, before[-1].errors if before else ())
        attempt = Attempt(step.name, len(before) + 1, utc_now(), inputs=self._inputs, prompt=prompt)
        schema = step.schema_for(self._values)
        try:
            call = await self._calls.complete(prompt, schema=schema, at_gate=step.is_gate)
        except Interrupted as interrupted:
            if self._record:
                await self._record(self._judge(attempt, interrupted.call)[0])
            raise
        return *self._judge(attempt, call), call

    def _judge(self, attempt: Attempt, call: Call) -> tuple[Attempt, Any]:
        """The attempt with its reply, output and verdict; and the output itself, if accepted."""
        completion = call.completion
        told = dataclasses.replace(
            attempt,
            seconds=call.seconds,
            reply=completion.text if completion else None,
            output=(completion.text or None) if completion else None,
            model=completion.model if completion else call.model,
            finish_reason=completion.finish_reason if completion else None,
            requests=call.requests,
            usage=call.usage,
            problem=call.error.problem if call.error else None,
            paid=call.paid,
        )
        if call.error is not None:
            if self._step.is_gate and PROBLEMS[call.error.problem].rejects_attempt:
                judgement = Judgement("reply", (call.error.message,))
                return dataclasses.replace(told, judgements=(judgement,)), None
            return dataclasses.replace(told, call_error=call.error.message), None
        assert completion is not None
        output, refused = _parse(self._step, completion.text)
        if refused is not None:
            return dataclasses.replace(told, judgements=(refused,), output=output), None
        return _judged(self._step, told, output, self._values), output

    def _would_repeat_in_vain(self, call: Call) -> bool:
        # A reply cut at the output limit is cut again unless the prompt can ask for a shorter one.
        cut = call.error is not None and call.error.problem is Problem.OUTPUT_LIMIT
        return cut and not self._step.prompt.has_errors_slot


def _parse(step: PromptStep, reply: str) -> tuple[Any, Judgement | None]:
    """The output in the reply; or what there is of it, and why it is none."""
    if step.gives_text:
        return clean_text(reply), None
    parsed = parse_object(reply)
    if isinstance(parsed, Unparsed):
        return reply, Judgement("json", parsed.messages)
    try:
        # As JSON, so that strictness takes what JSON has no type for (enums, dates) from strings.
        return step.adapter.validate_json(json.dumps(parsed.value), strict=True), None
    except ValidationError as error:
        return parsed.value, Judgement("schema", tuple(schema_messages(error)))


def schema_messages(error: ValidationError) -> list[str]:
    """One message for each place that does not validate, items counted from 1."""
    return [f"{_path(e['loc'])}: {e['msg']}" if e["loc"] else e["msg"] for e in error.errors()]


def _path(location: tuple[int | str, ...]) -> str:
    text = ""
    for part in location:
        text += f"[{part + 1}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


async def _run_tool(step: ToolStep, values: Mapping[str, Any], record: Record | None) -> Any:
    attempts: list[Attempt] = []
    for number in range(1, step.max_retries_per_step + 2):
        if number > 1:
            await step.reattempt.wait(number - 1)
        attempt, output = await _attempt_tool(step, values, number)
        attempts.append(attempt)
        if record:
            await record(attempt)
        if attempt.accepted:
            return Accepted(attempts=tuple(attempts), step=step.name, output=output)
        if attempt.call_error:
            break
    return _halted(step, attempts, None)


async def _attempt_tool(
    step: ToolStep, values: Mapping[str, Any], number: int
) -> tuple[Attempt, Any]:
    attempt = Attempt(step.name, number, utc_now(), inputs=as_inputs(values))
    started = time.perf_counter()
    try:
        result = step.function(**values)
        if inspect.isawaitable(result):
            result = await result
    except Exception as error:  # the function is the user's code; its error is observed
        told = f"{step.name}: {type(error).__name__}: {error}"
        seconds = time.perf_counter() - started
        return dataclasses.replace(attempt, seconds=seconds, call_error=told), None
    attempt = dataclasses.replace(attempt, seconds=time.perf_counter() - started)
    try:
        output = step.adapter.validate_python(result, strict=True)
    except ValidationError as error:
        judgement = Judgement("schema", tuple(schema_messages(error)))
        return dataclasses.replace(attempt, output=repr(result), judgements=(judgement,)), None
    return _judged(step, attempt, output, values), output


def _judged(step: Step, attempt: Attempt, output: Any, values: Mapping[str, Any]) -> Attempt:
    verdict = step.accept.judge(output, values)
    advice = step.advise.judge(output, values).messages if verdict.accepted else ()
    dumped = step.adapter.dump_python(output, mode="json")
    return dataclasses.replace(
        attempt, output=dumped, judgements=verdict.judgements, warnings=advice
    )


def _halted(step: Step, attempts: list[Attempt], call: Call | None) -> Halted:
    last = attempts[-1]
    failed = tuple(
        FailedCheck(judgement.check, message)
        for judgement in last.judgements
        for message in judgement.messages
    )
    error = call.error if call else None
    return Halted(
        attempts=tuple(attempts),
        step=step.name,
        reason=Reason.FAILED if last.call_error else Reason.REJECTED,
        failed_checks=failed,
        messages=tuple(message for attempt in attempts for message in attempt.errors),
        rejected_output=last.output,
        ends_run=error is not None and PROBLEMS[error.problem].ends_run,
        problem=error.problem if error else None,
    )


def as_inputs(values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields as an attempt bears them: a trace takes any type that a step may read."""
    return to_jsonable_python(dict(values), fallback=repr)


def utc_now() -> str:
    """This moment, as attempts bear it (ISO 8601, milliseconds)."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")
