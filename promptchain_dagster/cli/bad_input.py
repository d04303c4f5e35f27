"""Bad input as one plain line each: the option, its value and what is allowed; exit status 2."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from promptchain_dagster.errors import InvalidInput, PromptChainError

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError


class BadInput(click.ClickException):
    """Bad usage or bad input, found before any model call."""

    exit_code = 2


@contextmanager
def expected_errors() -> Iterator[None]:
    """The package's own errors as one line without a traceback."""
    try:
        yield
    except InvalidInput as error:
        raise BadInput(as_options(str(error))) from None
    except PromptChainError as error:
        raise click.ClickException(str(error)) from None


OPTIONS = (
    "min_sections",
    "max_sections",
    "word_count",
    "max_attempts",
    "chunk_tokens",
    "max_words",
    "max_in_flight",
    "document_type",
    "base_url",
)


def as_options(text: str) -> str:
    """`text` with each setting that is also an option named as that option."""
    return re.sub(rf"\b({'|'.join(OPTIONS)})\b", lambda m: option_of(m[1]), text)


def option_of(field: str) -> str:
    return "--" + field.replace("_", "-")


def validated(model: type[BaseModel], values: Mapping[str, Any]) -> Any:
    """`values`, options not given left out, as `model`; raises `BadInput`, one line a fault."""
    from pydantic import ValidationError

    given = {name: value for name, value in values.items() if value is not None}
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise BadInput("\n".join(lines(model, error))) from None


def lines(model: type[BaseModel], error: ValidationError) -> list[str]:
    """Each fault that `error` tells of, as "--min-sections is 0, must be from 1 to 50"."""
    schema = model.model_json_schema().get("properties", {})
    return [_line(one, schema) for one in error.errors(include_url=False)]


def _line(error: Any, schema: Mapping[str, Any]) -> str:
    name = str(error["loc"][0]) if error["loc"] else ""
    if not name:  # of the whole model: the validator names the fields itself
        return as_options(error["msg"].removeprefix("Value error, "))
    value, option, allowed = error["input"], option_of(name), schema.get(name, {})
    if isinstance(value, str) and not value.strip():
        return f"{option} is empty"
    if "minimum" in allowed and "maximum" in allowed:
        return f"{option} is {value}, must be from {allowed['minimum']} to {allowed['maximum']}"
    if "minimum" in allowed:
        return f"{option} is {value}, must be {allowed['minimum']} or more"
    said = error["msg"].removeprefix("Value error, ")
    return f"{option} is {_shown(value)}: {said[:1].lower()}{said[1:]}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"
