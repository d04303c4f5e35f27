"""Form: a regular expression, a JSON schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from promptchain_dagster.chain.accept import Bar, Criterion
from promptchain_dagster.errors import ChainDefinitionError

_SECONDS = 2.0
"""How long a pattern may take for one text; the worst ones would take for ever."""

_SHOWN = 5


def matches(pattern: str, *, bar: Bar = Bar.NORMAL, name: str = "matches") -> Criterion:
    """Text that `pattern` matches: with a lenient bar anywhere, with a normal one a whole line,
    with a strict one the whole text, white space around it apart.

    Raises `ChainDefinitionError` for a pattern that is none.
    """
    import regex  # the only one that can be stopped

    try:
        compiled = regex.compile(pattern)
    except regex.error as error:
        raise ChainDefinitionError(
            f"criterion {name!r}: {pattern!r} is no pattern: {error}"
        ) from None

    def check(text: str, fields: Mapping[str, Any], where: str) -> Iterable[str]:
        try:
            if where == "anywhere":
                found = compiled.search(text, timeout=_SECONDS)
            elif where == "a line":
                lines = (line.strip() for line in text.splitlines())
                found = any(compiled.fullmatch(line, timeout=_SECONDS) for line in lines)
            else:
                found = compiled.fullmatch(text.strip(), timeout=_SECONDS)
        except TimeoutError:
            yield f"{pattern!r} takes over {_SECONDS:g} s on this text"
            return
        if not found:
            what = {"anywhere": "nothing in the text", "a line": "no line of the text"}
            yield f"{what.get(where, 'not the whole text')} matches {pattern!r}"

    bars = {Bar.LENIENT: "anywhere", Bar.NORMAL: "a line", Bar.STRICT: "the whole"}
    return Criterion(name, check, bars, bar)


def fits_schema(
    schema: Mapping[str, Any], *, bar: Bar = Bar.NORMAL, name: str = "fits_schema"
) -> Criterion:
    """An output (object, list, model) that fits a JSON schema (2020-12 unless it names another).

    With a lenient bar, keys that the schema doesn't allow are let through; with a strict one,
    `format` is held to as well. A reference out of the schema is not followed. Raises
    `ChainDefinitionError` for a schema that is none.
    """
    from jsonschema import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing import Registry

    kind: Any = validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(schema)
    except SchemaError as error:
        raise ChainDefinitionError(f"criterion {name!r}: no JSON schema: {error.message}") from None
    plain = kind(schema, registry=Registry())
    formats = kind(schema, registry=Registry(), format_checker=kind.FORMAT_CHECKER)

    def check(output: Any, fields: Mapping[str, Any], bar: Bar) -> Iterable[str]:
        from pydantic_core import to_jsonable_python

        errors = (formats if bar is Bar.STRICT else plain).iter_errors(to_jsonable_python(output))
        if bar is Bar.LENIENT:
            extra = {"additionalProperties", "unevaluatedProperties"}
            errors = (error for error in errors if error.validator not in extra)
        told = [f"{error.json_path}: {error.message[:200]}" for error in errors]
        yield from told[:_SHOWN]
        if len(told) > _SHOWN:
            yield f"and {len(told) - _SHOWN} more that the schema does not allow"

    return Criterion(name, check, {bar: bar for bar in Bar}, bar)
