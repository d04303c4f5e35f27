"""InputGuard: what enters a chain, a step or a prompt is checked strictly, or refused whole."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    PydanticSchemaGenerationError,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import ErrorDetails, PydanticSerializationError

from promptchain_dagster.errors import ChainDefinitionError, GuardRejection
from promptchain_dagster.prompts import one_line_problem

_log = logging.getLogger(__name__)

_PREVIEW_CHARACTERS = 100


def _one_line(text: str) -> str:
    problem = one_line_problem(text)
    if problem is not None:
        raise ValueError(problem)
    return text


OneLine = Annotated[str, AfterValidator(_one_line)]
"""Text that may stand outside a prompt's tags: one line, not empty, at most 200 characters."""


class InputGuard:
    """Admits named values of the declared `types`, nothing else, to what it `guards`.

    Nothing is coerced: "4", 4.0 and True are no int. Models are validated again, whoever made
    them. Text with NUL or a lone surrogate, which no model could be sent, is refused wherever it
    stands.

    Raises ChainDefinitionError for a type that can't be validated.
    """

    def __init__(self, guards: str, types: Mapping[str, Any]) -> None:
        self.guards = guards
        self._adapters = {name: self._adapter(name, kind) for name, kind in types.items()}

    def _adapter(self, name: str, kind: Any) -> TypeAdapter[Any]:
        try:
            return TypeAdapter(kind)
        except PydanticSchemaGenerationError as error:
            raise ChainDefinitionError(
                f"{self.guards}: {name} has a type that can't be validated: {kind!r}"
            ) from error

    def admit(self, values: Mapping[str, object]) -> dict[str, Any]:
        """The validated values; raises GuardRejection with every problem, and logs it."""
        problems = [f"{name}: missing" for name in self._adapters if name not in values]
        admitted: dict[str, Any] = {}
        for name, value in values.items():
            adapter = self._adapters.get(name)
            if adapter is None:
                problems.append(f"{name}: not a field here")
                continue
            try:
                admitted[name] = _validated(adapter, value)
                problems += _unusable_text(name, admitted[name])
            except ValidationError as error:
                problems += [_problem(name, detail) for detail in error.errors()]
            except (PydanticSerializationError, RecursionError) as error:
                problems.append(f"{name}: cannot be read: {_preview(error)}")
        if problems:
            _log.warning("%s: refused: %s", self.guards, "; ".join(problems))
            raise GuardRejection(self.guards, problems)
        return admitted


def _validated(adapter: TypeAdapter[Any], value: object) -> Any:
    admitted = adapter.validate_python(value, strict=True)
    if isinstance(admitted, BaseModel):
        # An instance counts as valid in itself, though it may have been built or changed unchecked.
        content = admitted.model_dump(by_alias=True, round_trip=True, warnings=False)
        return type(admitted).model_validate(content, strict=True)
    return admitted


def _problem(name: str, detail: ErrorDetails) -> str:
    path = name + "".join(f"[{at}]" if isinstance(at, int) else f".{at}" for at in detail["loc"])
    message = detail["msg"].removeprefix("Value error, ")
    if detail["type"] in ("missing", "value_error"):
        return f"{path}: {message}"
    return f"{path}: {message}, got {_preview(detail['input'])}"


def _preview(value: object) -> str:
    text = repr(value[:_PREVIEW_CHARACTERS] if isinstance(value, str) else value)
    return text if len(text) <= _PREVIEW_CHARACTERS else text[: _PREVIEW_CHARACTERS - 1] + "…"


def _unusable_text(path: str, value: object) -> Iterator[str]:
    """Where in `value` text stands that can't be sent."""
    if isinstance(value, str):
        if "\0" in value:
            yield f"{path}: has a NUL character"
        if not value.isascii() and _has_lone_surrogate(value):
            yield f"{path}: has a lone surrogate, half of a character"
    elif isinstance(value, BaseModel):
        for name, item in value:
            yield from _unusable_text(f"{path}.{name}", item)
    elif isinstance(value, Mapping):
        for key, item in cast("Mapping[object, object]", value).items():
            yield from _unusable_text(f"{path} (a key)", key)
            yield from _unusable_text(f"{path}.{key}", item)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for at, item in enumerate(cast("list[object]", value)):
            yield from _unusable_text(f"{path}[{at}]", item)


def _has_lone_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
