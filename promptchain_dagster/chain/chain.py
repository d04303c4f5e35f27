"""Chain: a fixed, ordered list of steps, proved to fit when it is defined."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, get_type_hints

from pydantic import BaseModel

from promptchain_dagster.chain.fit import misfits
from promptchain_dagster.chain.guard import InputGuard
from promptchain_dagster.chain.step import PromptStep, Step
from promptchain_dagster.errors import ChainDefinitionError


class Chain:
    """Steps run in the order given; each reads fields given at the start or passed on before it.

    `inputs` is the pydantic model of what is given at the start. A chain that cannot work raises
    `ChainDefinitionError` here, naming step and field: a field nothing produces, an output that is
    named twice or does not satisfy the type a later step declares, a prompt whose variables are
    not the step's fields.
    """

    def __init__(self, name: str, *, inputs: type[BaseModel], steps: Sequence[Step]) -> None:
        if not steps:
            raise ChainDefinitionError(f"chain {name!r} has no steps")
        self.name = name
        self.inputs = inputs
        self.steps = tuple(steps)
        self.input_types = _field_types(inputs)
        self.guard = InputGuard(f"chain {name!r}", self.input_types)
        self._prove()

    @property
    def output(self) -> str:
        """The field that the last step passes on: the chain's result."""
        return self.steps[-1].output

    @property
    def fingerprint(self) -> str:
        """A hash (hex, 64 characters) of what shapes the outputs: steps, prompts and types."""
        parts = [shape_of(step) for step in self.steps]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def step(self, name: str) -> Step:
        """The step called `name`; `KeyError` where there is none."""
        return {step.name: step for step in self.steps}[name]

    def _prove(self) -> None:
        known: dict[str, Any] = dict(self.input_types)
        makers = dict.fromkeys(known, "the chain's inputs")
        names: set[str] = set()
        for step in self.steps:
            if step.name in names:
                raise ChainDefinitionError(f"chain {self.name!r}: two steps named {step.name!r}")
            names.add(step.name)
            for name, required in step.reads.items():
                self._prove_field(step, name, required, known, makers)
            if step.output in known:
                raise ChainDefinitionError(
                    f"chain {self.name!r}, step {step.name!r}: its output {step.output!r} is"
                    f" already given by {makers[step.output]}; name it otherwise"
                )
            known[step.output] = step.output_type
            makers[step.output] = f"step {step.name!r}"

    def _prove_field(
        self,
        step: Step,
        name: str,
        required: Any,
        known: Mapping[str, Any],
        makers: Mapping[str, str],
    ) -> None:
        if name not in known:
            raise ChainDefinitionError(
                f"chain {self.name!r}, step {step.name!r}: reads {name!r}, which nothing before it"
                f" gives; it may read: {', '.join(sorted(known))}"
            )
        if reasons := misfits(known[name], required, name):
            raise ChainDefinitionError(
                f"chain {self.name!r}, step {step.name!r}: {name!r} as {makers[name]} gives it does"
                f" not fit: {'; '.join(reasons)}"
            )


def shape_of(step: Step) -> dict[str, Any]:
    """What of a step shapes its outputs, as JSON values: the part of it in a fingerprint."""
    return {
        "name": step.name,
        "output": step.output,
        "reads": sorted(step.reads),
        "prompt": step.prompt.text if isinstance(step, PromptStep) else None,
        "schema": step.adapter.json_schema(),
        "criteria": [
            [criterion.name, criterion.bar.value, repr(criterion.bars)]
            for criterion in step.accept.criteria
        ],
    }


def _field_types(model: type[BaseModel]) -> dict[str, Any]:
    hints = get_type_hints(model, include_extras=True)
    return {name: hints[name] for name in model.model_fields}
