"""The steps of a chain: a prompt for the model, or a function (ToolInvoke).

Either way a step names what it reads, the one output it passes on, and what that output must be.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, get_type_hints

from pydantic import TypeAdapter

from promptchain_dagster.chain.accept import NOT_EMPTY, AcceptSpec
from promptchain_dagster.chain.guard import InputGuard
from promptchain_dagster.errors import ChainDefinitionError
from promptchain_dagster.prompts import PromptTemplate
from promptchain_dagster.reattempt import ReAttempt

MAX_RETRIES_PER_STEP = 3
"""The pattern's bound on `max_retries_per_step` (spec: an integer in [0, 3])."""


@dataclass(frozen=True, kw_only=True)
class _Step:
    name: str
    output: str = ""
    """The field that the step passes on; by default it bears the step's name."""
    accept: AcceptSpec = field(default_factory=AcceptSpec)
    """What the output must meet to be passed on."""
    advise: AcceptSpec = field(default_factory=AcceptSpec)
    """What is worth a warning, and stops nothing."""
    max_retries_per_step: int = 0
    """Re-attempts after a rejected output, 0 to 3."""
    retry_delay_seconds: float = 0.0
    """Before a re-attempt: none by default, the provider not being at fault."""

    def __post_init__(self) -> None:
        _require_name("a step's name", self.name)
        if not self.output:
            object.__setattr__(self, "output", self.name)
        _require_name(f"step {self.name!r}: output", self.output)
        retries: object = self.max_retries_per_step
        if type(retries) is not int or not 0 <= retries <= MAX_RETRIES_PER_STEP:
            raise ChainDefinitionError(
                f"step {self.name!r}: max_retries_per_step is {retries!r},"
                f" must be an integer from 0 to {MAX_RETRIES_PER_STEP}"
            )

    @property
    def reattempt(self) -> ReAttempt:
        return ReAttempt(self.max_retries_per_step, self.retry_delay_seconds)


@dataclass(frozen=True, kw_only=True)
class PromptStep(_Step):
    """One model call: `prompt` filled in with the fields of `reads`, its reply parsed and judged.

    `reads` maps each field to its type, and must be the prompt's variables, no more and no fewer.
    With `output_type` `str` the reply is passed on as text, and must say something unless `accept`
    has criteria of its own; with any other type it must be a JSON object that validates as that.
    """

    prompt: PromptTemplate
    reads: Mapping[str, Any]
    output_type: Any = str
    hold_to: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    """The JSON schema that a model which can be held to one gets, from the step's fields; by
    default that of `output_type`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gives_text and not self.accept.criteria:
            object.__setattr__(self, "accept", AcceptSpec(NOT_EMPTY))
        wants, has = set(self.prompt.variables), set(self.reads)
        if wants != has:
            parts = [
                f"its prompt uses {_names(wants - has)}, which it does not read"
                if wants - has
                else "",
                f"it reads {_names(has - wants)}, which its prompt does not use"
                if has - wants
                else "",
            ]
            raise ChainDefinitionError(
                f"step {self.name!r}: " + "; ".join(part for part in parts if part)
            )
        for name in self.reads:
            _require_name(f"step {self.name!r}: field", name)

    @property
    def gives_text(self) -> bool:
        return self.output_type is str

    @property
    def is_gate(self) -> bool:
        """Whether an unusable reply is an attempt that its gate rejects, not a call that errored.

        A step that parses its reply, or has re-attempts, judges such a reply itself.
        """
        return not self.gives_text or self.max_retries_per_step > 0

    @cached_property
    def guard(self) -> InputGuard:
        return InputGuard(f"step {self.name!r}", self.reads)

    @cached_property
    def adapter(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.output_type)

    def schema_for(self, fields: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The JSON schema that the reply should follow; None for text."""
        if self.hold_to is not None:
            return self.hold_to(fields)
        return None if self.gives_text else self._output_schema

    @cached_property
    def _output_schema(self) -> Mapping[str, Any]:
        return self.adapter.json_schema()


@dataclass(frozen=True, kw_only=True)
class ToolStep(_Step):
    """One call of a Python function, sync or async (ToolInvoke).

    Its parameters are the fields it reads and must all be annotated, as must its return value;
    arguments and result are validated strictly. An error it raises ends the chain.
    """

    function: Callable[..., Any]

    def __post_init__(self) -> None:
        super().__post_init__()
        for parameter in inspect.signature(self.function).parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise ChainDefinitionError(
                    f"step {self.name!r}: parameter {str(parameter)!r} of its function names no"
                    " field; give each field a parameter of its own"
                )
            if parameter.kind is parameter.POSITIONAL_ONLY:
                raise ChainDefinitionError(
                    f"step {self.name!r}: parameter {parameter.name!r} of its function is"
                    " positional-only; fields are passed by name"
                )
            if parameter.name not in self._hints:
                raise ChainDefinitionError(
                    f"step {self.name!r}: parameter {parameter.name!r} of its function has no type"
                )
        if "return" not in self._hints:
            raise ChainDefinitionError(f"step {self.name!r}: its function declares no return type")

    @cached_property
    def _hints(self) -> Mapping[str, Any]:
        return get_type_hints(self.function, include_extras=True)

    @cached_property
    def reads(self) -> Mapping[str, Any]:
        return {name: hint for name, hint in self._hints.items() if name != "return"}

    @property
    def output_type(self) -> Any:
        return self._hints["return"]

    @cached_property
    def guard(self) -> InputGuard:
        return InputGuard(f"step {self.name!r}", self.reads)

    @cached_property
    def adapter(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.output_type)


Step = PromptStep | ToolStep


def _require_name(what: str, name: str) -> None:
    # A name becomes an op, an output and a template variable, and must be valid as each.
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ChainDefinitionError(
            f"{what} is {name!r}; it must be letters, digits and underscores, not a digit first"
        )


def _names(names: set[str]) -> str:
    return ", ".join(repr(name) for name in sorted(names))
