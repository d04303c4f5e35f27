"""`Refine`: what is carried from chunk to chunk, and by which prompts; proved when it is defined.

A running state is text, or of any type that a JSON object validates as. A typed one is shown to
the model, kept in checkpoints and carried on as one and the same JSON; whatever does not come back
from that as it was, is rejected like any other output that breaks its step's contract.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Annotated, Any

from pydantic import Field, PydanticUserError, ValidationError
from pydantic_core import PydanticSerializationError

from promptchain_dagster.chain.accept import AcceptSpec, Criterion
from promptchain_dagster.chain.chain import shape_of
from promptchain_dagster.chain.fit import misfits
from promptchain_dagster.chain.guard import InputGuard, OneLine
from promptchain_dagster.chain.run import schema_messages
from promptchain_dagster.chain.step import PromptStep
from promptchain_dagster.errors import ChainDefinitionError, GuardRejection
from promptchain_dagster.importing import imported
from promptchain_dagster.prompts.values import to_text
from promptchain_dagster.refine.replies import sendable, summary_in

_Count = Annotated[int, Field(ge=1)]
_OF_CHUNK: Mapping[str, Any] = {
    "document_type": OneLine,
    "index": _Count,
    "total": _Count,
    "chunk": str,
    "max_words": _Count,
}
_OF_STATE: Mapping[str, Any] = {"document_type": OneLine, "max_words": _Count}

SUMMARY = "summary"
"""A text state of this name is read as a summary is (`refine.replies`)."""

CAN_BE_CARRIED_ON = "can_be_carried_on"
"""The criterion that every typed state is held to, beside those of its step."""


class Refine:
    """One step for each chunk, and one, if any, for a state over the length cap.

    `step` reads its own output, the running state, and `chunk`; beside them it may read
    `document_type`, `index`, `total` and `max_words`. `compress` reads the state, and may read
    `document_type` and `max_words`; it gives the same type, and the shorter of two is kept.
    Without it, a state over the cap is carried on with a warning.

    `output_type` is `str`, or a type that a JSON object validates as, the empty one too: that is
    the state before the first chunk. The cap counts the words of a typed state's JSON, names of
    fields included. Re-attempts are the step's own (`max_retries_per_step`).

    Raises `ChainDefinitionError` for what can't work, naming step and field.
    """

    def __init__(self, step: PromptStep, *, compress: PromptStep | None = None) -> None:
        self.field = step.output
        self.gives_text = step.gives_text
        self._of_state = InputGuard(f"step {step.name!r}", {self.field: step.output_type})
        self._adapter = step.adapter
        _prove_output(step)
        self.start: Any = "" if self.gives_text else self._empty(step)
        """The state before the first chunk."""
        _prove(step, {**_OF_CHUNK, self.field: step.output_type}, (self.field, "chunk"))
        if compress is not None:
            _prove_compress(compress, step)
        self.step = self._guarded(step)
        self.compress = None if compress is None else self._guarded(compress)

    @classmethod
    def named(cls, path: str) -> Refine:
        """The one at an import path, such as `minutes.refine`."""
        found = imported(path, "refine")
        if not isinstance(found, Refine):
            raise ChainDefinitionError(f"refine: {path!r} is no Refine")
        return found

    def __repr__(self) -> str:
        compress = self.compress.name if self.compress else None
        return f"Refine({self.step.name!r}, compress={compress!r})"

    @cached_property
    def fingerprint(self) -> str:
        """A hash (SHA-256, hex) of what shapes the states: both steps' prompts, types, criteria."""
        shapes = [shape_of(one) for one in (self.step, self.compress) if one is not None]
        return hashlib.sha256(json.dumps(shapes, sort_keys=True).encode()).hexdigest()

    def text_of(self, state: Any) -> str:
        """The state as it is shown, kept and measured: text as it is, anything else as JSON."""
        return to_text(state)

    def state_in(self, text: str) -> Any:
        """The state that was kept as `text`; None where it does not validate (any more)."""
        if self.gives_text:
            return text
        try:
            state = self._adapter.validate_json(text, strict=True)
            self._of_state.admit({self.field: state})
        except (ValidationError, GuardRejection):
            return None
        return state

    def taken(self, output: Any, earlier: Any) -> Any:
        """The state that an accepted `output` brings; None where it only says that the `earlier`
        one needs no change, which is looked for in a summary alone."""
        if not self.gives_text:
            return self.state_in(self.text_of(output))  # as a resumed run will find it
        return summary_in(output, earlier) if self.field == SUMMARY else sendable(output)

    def _empty(self, step: PromptStep) -> Any:
        where = f"step {step.name!r}"
        kind = getattr(step.output_type, "__name__", repr(step.output_type))
        try:
            step.adapter.json_schema()
            start = step.adapter.validate_json("{}", strict=True)
        except PydanticUserError as error:
            raise ChainDefinitionError(f"{where}: {kind} has no JSON schema: {error}") from None
        except ValidationError as error:
            raise ChainDefinitionError(
                f"{where}: the state before the first chunk is the empty object, which {kind} does"
                f" not admit: {'; '.join(schema_messages(error))}; give each field a default"
            ) from None
        try:
            lost = list(self._does_not_come_back(start, {}))
        except (PydanticSerializationError, ValueError) as error:
            lost = [str(error)]
        if lost:
            raise ChainDefinitionError(f"{where}: {kind} can't be carried on: {lost[0]}")
        return start

    def _guarded(self, step: PromptStep) -> PromptStep:
        """`step`, its output held to coming back from a checkpoint."""
        if self.gives_text:
            return step
        comes_back = Criterion(CAN_BE_CARRIED_ON, self._does_not_come_back)
        # The step may be that of another refine, and held to it already.
        given = [one for one in step.accept.criteria if one.name != CAN_BE_CARRIED_ON]
        return dataclasses.replace(step, accept=AcceptSpec(*given, comes_back))

    def _does_not_come_back(self, state: Any, fields: Mapping[str, Any]) -> Iterable[str]:
        text = self.text_of(state)
        try:
            again = self._adapter.validate_json(text, strict=True)
            self._of_state.admit({self.field: again})
        except ValidationError as error:
            yield f"its own JSON does not validate: {'; '.join(schema_messages(error))}"
        except GuardRejection as rejection:
            yield "; ".join(rejection.problems)
        else:
            if again != state and self.text_of(again) != text:
                yield f"its own JSON comes back as something else: {self.text_of(again)[:200]}"


def _prove_output(step: PromptStep) -> None:
    if step.output in _OF_CHUNK:
        raise ChainDefinitionError(
            f"step {step.name!r}: its output {step.output!r} is given for each chunk; name the"
            " running state otherwise"
        )


def _prove_compress(compress: PromptStep, step: PromptStep) -> None:
    where = f"step {compress.name!r}"
    if compress.name == step.name:
        raise ChainDefinitionError(f"{where}: refine and compress need names of their own")
    if compress.output != step.output:
        raise ChainDefinitionError(
            f"{where}: its output is {compress.output!r}, must be {step.output!r}, the state that"
            f" step {step.name!r} gives"
        )
    if compress.output_type != step.output_type:
        raise ChainDefinitionError(
            f"{where}: {compress.output!r} must have the type that step {step.name!r} gives,"
            f" {step.output_type!r}; it has {compress.output_type!r}"
        )
    _prove(compress, {**_OF_STATE, step.output: step.output_type}, (step.output,))


def _prove(step: PromptStep, given: Mapping[str, Any], needed: tuple[str, ...]) -> None:
    """That `step` reads what it must, nothing that it isn't given, and that its prompt takes it."""
    where = f"step {step.name!r}"
    for name in needed:
        if name not in step.reads:
            why = "would be lost" if name == step.output else "would not be seen"
            raise ChainDefinitionError(
                f"{where}: does not read {name!r}, which {why}; put it into reads and prompt"
            )
    for name, required in step.reads.items():
        if name not in given:
            raise ChainDefinitionError(
                f"{where}: reads {name!r}, which it is not given; it may read:"
                f" {', '.join(sorted(given))}"
            )
        if reasons := misfits(given[name], required, name):
            raise ChainDefinitionError(
                f"{where}: {name!r} as it is given does not fit: {'; '.join(reasons)}"
            )
    lines = dict.fromkeys((step.output, "chunk"), "a line\nand another")
    try:
        step.prompt.render({name: lines.get(name, "1") for name in step.reads})
    except GuardRejection as rejection:
        raise ChainDefinitionError(
            f"{where}: {rejection}; what has several lines stands between tags, as in"
            " <part>{{ chunk }}</part>"
        ) from None
