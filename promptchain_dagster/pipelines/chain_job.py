"""A Chain as a Dagster job: its steps are ops in a line, its gates are the doors between them."""

import re

import dagster as dg

from promptchain_dagster.chain.chain import Chain
from promptchain_dagster.chain.result import RESERVED
from promptchain_dagster.chain.step import Step
from promptchain_dagster.errors import ChainDefinitionError
from promptchain_dagster.pipelines.chains.ops import ChainOps, door_of, has_door
from promptchain_dagster.pipelines.executor import in_process_by_default

Dependencies = dict[str, dg.DependencyDefinition]


def chain_job(
    chain: Chain,
    *,
    name: str | None = None,
    first_op: str | None = None,
    description: str | None = None,
) -> dg.JobDefinition:
    """A linear op job that runs `chain`, called `name` or as the chain.

    Its first op takes the chain's inputs as config and is called `first_op`, or as the input model
    (`Brief`: `brief`). An op follows for each step; after a step that declares criteria beyond
    "not empty", an op `check_<output>` judges what was stored once more, and whatever follows
    reads the output from there. A step with re-attempts takes the config `max_retries_per_step`.

    The job needs the resources `model`, `home` and `io_manager` (`resources.chain_resources`).
    Its result, good or bad, is `results/<run>.json` under the home (`chain.result`).
    """
    first_op = first_op or _snake_case(chain.inputs.__name__)
    _check_names(chain, first_op)
    job_name = name or chain.name
    line = _Line(ChainOps(chain, job_name, first_op))
    return dg.GraphDefinition(
        name=job_name,
        description=description,
        node_defs=line.ops,
        dependencies=line.dependencies,
    ).to_job(executor_def=in_process_by_default)


class _Line:
    """The ops in order, and where each reads from."""

    def __init__(self, make: ChainOps) -> None:
        self._make = make
        self.ops: list[dg.OpDefinition] = []
        self.dependencies: dict[dg.NodeInvocation, Dependencies] = {}
        self._source = dict.fromkeys(make.chain.input_types, (make.first_op, make.first_op))
        self._before = make.first_op, make.first_op
        self._join(make.inputs_op(), make.first_op, {})
        for step in make.chain.steps:
            self._add(step)

    def _add(self, step: Step) -> None:
        is_last = step is self._make.chain.steps[-1]
        door = has_door(step)
        wiring = self._wiring(set(step.reads))
        op = self._make.step_op(step, _ins(wiring), is_last=is_last and not door)
        self._join(op, step.name, wiring)
        self._source[step.output] = step.name, step.output
        if door:
            wiring = self._wiring({*step.reads, step.output})
            op = self._make.check_op(step, _ins(wiring), is_last=is_last)
            self._join(op, door_of(step), wiring)
            self._source[step.output] = door_of(step), step.output

    def _wiring(self, fields: set[str]) -> Dependencies:
        sources = {self._source[field] for field in fields}
        # The chain's inputs travel together, as the one output of the first op.
        wiring = {output: dg.DependencyDefinition(node, output) for node, output in sorted(sources)}
        before, output = self._before
        if before not in {node for node, _ in sources}:
            wiring[f"{_AFTER}{before}"] = dg.DependencyDefinition(before, output)
        return wiring

    def _join(self, op: dg.OpDefinition, name: str, wiring: Dependencies) -> None:
        self.ops.append(op)
        self.dependencies[dg.NodeInvocation(op.name, alias=name)] = wiring
        self._before = name, op.output_defs[0].name


_AFTER = "after__"
"""Begins the name of an input that carries nothing but the order."""


def _ins(wiring: Dependencies) -> dict[str, dg.In]:
    return {name: dg.In(dg.Nothing if name.startswith(_AFTER) else dg.Any) for name in wiring}


def _check_names(chain: Chain, first_op: str) -> None:
    names = [first_op]
    for step in chain.steps:
        names += [step.name, door_of(step)] if has_door(step) else [step.name]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ChainDefinitionError(
            f"chain {chain.name!r}: two ops of its job would be named {', '.join(twice)};"
            " rename a step, or give another first_op"
        )
    if first_op in (step.output for step in chain.steps):
        raise ChainDefinitionError(
            f"chain {chain.name!r}: {first_op!r} is a step's output; give another first_op"
        )
    if chain.output in RESERVED:
        raise ChainDefinitionError(
            f"chain {chain.name!r}: its output can't be named {chain.output!r},"
            f" which the result of a run uses; nor any of {', '.join(sorted(RESERVED))}"
        )


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
