"""The ops of a chain's job: one takes the inputs, one runs each step, one judges it once more."""

import dataclasses
import json
from collections.abc import Iterator, Mapping
from typing import Any

import dagster as dg
from pydantic import ValidationError

from promptchain_dagster.chain import trace
from promptchain_dagster.chain.accept import NOT_EMPTY, FailedCheck
from promptchain_dagster.chain.chain import Chain
from promptchain_dagster.chain.outcome import Accepted, Halted, Reason
from promptchain_dagster.chain.result import chain_result, halted_by
from promptchain_dagster.chain.run import schema_messages
from promptchain_dagster.chain.step import Step
from promptchain_dagster.errors import InvalidInput, PromptChainError
from promptchain_dagster.pipelines import metadata as md
from promptchain_dagster.pipelines.chains import reports
from promptchain_dagster.pipelines.chains.config import config_of
from promptchain_dagster.pipelines.chains.step_run import admit, execute, refused, retries_config
from promptchain_dagster.pipelines.resources import HomeResource, ModelResource
from promptchain_dagster.pipelines.results import keep_result

OpInputs = Mapping[str, Any]


def has_door(step: Step) -> bool:
    """Whether a check op follows the step: it declares criteria beyond "not empty"."""
    return any(criterion is not NOT_EMPTY for criterion in step.accept.criteria)


def door_of(step: Step) -> str:
    """The name of that check op."""
    return f"check_{step.output}"


@dataclasses.dataclass(frozen=True)
class ChainOps:
    """Makes the ops of `chain` for the job called `job`.

    `first_op` names the one that takes the chain's inputs. Since op definitions may not share a
    name in all of a code location, they bear the job's too.
    """

    chain: Chain
    job: str
    first_op: str

    def inputs_op(self) -> dg.OpDefinition:
        """Takes the chain's inputs as config, and lets only valid ones in."""

        def compute(context: dg.OpExecutionContext, _: OpInputs) -> Iterator[dg.Output[Any]]:
            run = _OpRun(self.chain, context)
            try:
                fields = admit(self.chain, context.op_config)
            except ValidationError as error:
                raise run.failure(refused(self.first_op, error)) from None
            except InvalidInput as error:
                raise run.failure(halted_by(error, self.first_op, Reason.REJECTED)) from None
            value = self.chain.inputs(**fields).model_dump(mode="json")
            told = {md.INPUT: md.bounded(value)}
            yield dg.Output(value, self.first_op, metadata=told)

        return dg.OpDefinition(
            compute_fn=compute,
            name=f"{self.job}__{self.first_op}",
            description=f"What the chain {self.chain.name!r} is given, validated.",
            outs={self.first_op: dg.Out()},
            config_schema=config_of(self.chain.inputs),
            required_resource_keys={"home"},
        )

    def step_op(self, step: Step, ins: Mapping[str, dg.In], *, is_last: bool) -> dg.OpDefinition:
        """Runs the step with its re-attempts; without an accepted output it fails."""

        def compute(context: dg.OpExecutionContext, inputs: OpInputs) -> Iterator[dg.Output[Any]]:
            run = _OpRun(self.chain, context)
            outcome = self._run_step(run, step, inputs)
            for attempt in outcome.attempts:
                say = context.log.info if attempt.accepted else context.log.warning
                say(reports.log_line(attempt))
            if isinstance(outcome, Halted):
                raise run.failure(outcome)
            value = step.adapter.dump_python(outcome.output, mode="json")
            told = reports.of_accepted(outcome, run.trace)
            if is_last:
                told[md.RESULT] = run.complete(value)
            yield dg.Output(value, step.output, metadata=told)

        return dg.OpDefinition(
            compute_fn=compute,
            name=f"{self.job}__{step.name}",
            ins=ins,
            outs={step.output: dg.Out()},
            config_schema=retries_config(step),
            required_resource_keys={"home", "model"},
        )

    def check_op(self, step: Step, ins: Mapping[str, dg.In], *, is_last: bool) -> dg.OpDefinition:
        """The only door to what follows: judges what was stored, by schema and AcceptSpec."""

        def compute(context: dg.OpExecutionContext, inputs: OpInputs) -> Iterator[dg.Output[Any]]:
            run = _OpRun(self.chain, context)
            stored = inputs[step.output]
            try:
                fields = self._fields(inputs)
                verdict = step.accept.judge(fields[step.output], fields)
                failed = verdict.failed_checks
            except ValidationError as error:
                failed = tuple(FailedCheck("schema", told) for told in schema_messages(error))
            if failed:
                raise run.failure(
                    Halted(
                        attempts=(),
                        step=step.name,
                        reason=Reason.REJECTED,
                        failed_checks=failed,
                        messages=tuple(one.message for one in failed),
                        rejected_output=stored,
                    )
                )
            context.log.info(f"{step.name}: accepted as stored")
            told: md.Metadata = {md.GATE: "accepted", md.PREVIEW_KEY: md.preview(stored)}
            if is_last:
                told[md.RESULT] = run.complete(stored)
            yield dg.Output(stored, step.output, metadata=told)

        return dg.OpDefinition(
            compute_fn=compute,
            name=f"{self.job}__{door_of(step)}",
            ins=ins,
            outs={step.output: dg.Out()},
            required_resource_keys={"home"},
        )

    def _fields(self, inputs: OpInputs) -> dict[str, Any]:
        """What earlier ops stored, validated again as the types that the chain proved to fit."""
        makers = {step.output: step for step in self.chain.steps}
        fields: dict[str, Any] = {}
        for name, value in inputs.items():
            if name == self.first_op:
                fields.update(admit(self.chain, value))
            else:
                text = json.dumps(value)
                fields[name] = makers[name].adapter.validate_json(text, strict=True)
        return fields

    def _run_step(self, run: "_OpRun", step: Step, inputs: OpInputs) -> Accepted | Halted:
        try:
            fields = self._fields(inputs)
        except ValidationError as error:
            return refused(step.name, error)
        except PromptChainError as error:
            return halted_by(error, step.name)
        return execute(self.chain, step, fields, run.model, run.store, run.run_id, run.config)


class _OpRun:
    """One execution of one op: where it keeps things, and how it ends the run."""

    def __init__(self, chain: Chain, context: dg.OpExecutionContext) -> None:
        self._chain, self._context = chain, context
        home: HomeResource = context.resources.home
        self.store = home.store()
        self.run_id = context.run_id

    @property
    def config(self) -> Mapping[str, Any]:
        return self._context.op_config or {}

    @property
    def model(self) -> ModelResource:
        return self._context.resources.model

    @property
    def trace(self) -> str:
        # A folder has no address of its own in a store.
        return self.store.url_of(trace.folder_of(self.run_id).rstrip("/"))

    def complete(self, output: Any) -> dg.MetadataValue:
        return dg.MetadataValue.path(self._keep(output=output))

    def failure(self, halted: Halted) -> dg.Failure:
        try:
            path = self._keep(halted=halted)
        except PromptChainError as error:
            self._context.log.error(f"the result could not be kept: {error}")
            path = None
        return reports.failure(halted, self.trace, path)

    def _keep(self, **ending: Any) -> str:
        attempts = trace.read_trace(self.store, self.run_id)
        result = chain_result(self.run_id, self._chain.output, attempts, **ending)
        return keep_result(self._context.instance, self.store, self.run_id, result)
