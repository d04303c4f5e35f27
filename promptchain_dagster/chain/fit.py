"""Schema Continuity: does every value of the type one step gives satisfy the type the next reads?

Both types are compared as JSON schemas. A reason is given only for what is proved not to fit;
what a schema cannot show (a validator's code, a pattern) is validated at the boundary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter

Schema = Mapping[str, Any]

_LOWER_BOUNDS = ("minimum", "exclusiveMinimum", "minLength", "minItems")
_UPPER_BOUNDS = ("maximum", "exclusiveMaximum", "maxLength", "maxItems")


def misfits(given: Any, required: Any, path: str) -> list[str]:
    """Every reason why a value of type `given` may not be passed as `required`; none if it fits."""
    if given is required or required is Any or given is Any:
        return []
    given_schema, required_schema = _schema_of(given), _schema_of(required)
    if given_schema is None or required_schema is None:
        return []  # not expressible as a JSON schema, so left to the boundary
    return list(_Comparison(given_schema, required_schema).reasons(path))


def _schema_of(annotation: Any) -> Schema | None:
    try:
        return TypeAdapter(annotation).json_schema()
    except (PydanticSchemaGenerationError, PydanticUserError):
        return None


class _Comparison:
    """One walk over two schemas, each with definitions of its own."""

    def __init__(self, given: Schema, required: Schema) -> None:
        self._given, self._required = given, required
        self._open: set[tuple[str, str]] = set()  # pairs of references under way: recursive types

    def reasons(self, path: str) -> Iterator[str]:
        return self._compare(self._given, self._required, path)

    def _compare(self, given: Schema, required: Schema, path: str) -> Iterator[str]:
        pair = (str(given.get("$ref", "")), str(required.get("$ref", "")))
        if all(pair):
            if pair in self._open:
                return
            self._open.add(pair)
        given, required = _resolve(given, self._given), _resolve(required, self._required)
        if not required.keys() - {"title", "description", "default", "examples"}:
            return  # anything will do
        if alternatives := _alternatives(given):
            for one in alternatives:
                yield from self._compare(one, required, path)
        elif alternatives := _alternatives(required):
            told = [list(self._compare(given, one, path)) for one in alternatives]
            if all(told):
                yield min(told, key=len)[0]
        else:
            yield from self._compare_plain(given, required, path)

    def _compare_plain(self, given: Schema, required: Schema, path: str) -> Iterator[str]:
        given_values, required_values = _values(given), _values(required)
        if required_values is not None:
            if given_values is None:
                yield f"{path} may be any {given.get('type', 'value')}, must be {required_values}"
            elif extra := [value for value in given_values if value not in required_values]:
                yield f"{path} may be {extra}, must be one of {required_values}"
            return
        given_type = given.get("type") or _type_of_values(given_values)
        required_type = required.get("type")
        if given_type is None or required_type is None:
            return
        if given_type != required_type and (given_type, required_type) != ("integer", "number"):
            yield f"{path} is {_article(given_type)}, must be {_article(required_type)}"
            return
        yield from _bounds(given, required, path)
        if required_type == "object":
            yield from self._compare_objects(given, required, path)
        elif required_type == "array":
            yield from self._compare_arrays(given, required, path)

    def _compare_objects(self, given: Schema, required: Schema, path: str) -> Iterator[str]:
        given_fields: Mapping[str, Schema] = given.get("properties", {})
        required_fields: Mapping[str, Schema] = required.get("properties", {})
        sure = _always_present(given)
        for name, wanted in required_fields.items():
            at = f"{path}.{name}"
            if name in given_fields:
                if name in required.get("required", ()) and name not in sure:
                    yield f"{at} may be missing, is required"
                yield from self._compare(given_fields[name], wanted, at)
            elif name in required.get("required", ()):
                yield f"{at} is missing, is required"
        if required.get("additionalProperties") is False:
            for name in given_fields.keys() - required_fields.keys():
                yield f"{path}.{name} is not allowed"
        given_rest, required_rest = _rest(given), _rest(required)
        if given_rest and required_rest:
            yield from self._compare(given_rest, required_rest, f"{path}[*]")

    def _compare_arrays(self, given: Schema, required: Schema, path: str) -> Iterator[str]:
        if "items" in given and "items" in required:
            yield from self._compare(given["items"], required["items"], f"{path}[*]")
        elif "prefixItems" in given and "prefixItems" in required:
            pairs = zip(given["prefixItems"], required["prefixItems"], strict=False)
            for place, (one, other) in enumerate(pairs):
                yield from self._compare(one, other, f"{path}[{place}]")


def _resolve(schema: Schema, root: Schema) -> Schema:
    while "$ref" in schema:
        name = str(schema["$ref"]).removeprefix("#/$defs/")
        schema = {**root["$defs"][name], **{k: v for k, v in schema.items() if k != "$ref"}}
    if len(parts := schema.get("allOf", ())) == 1:
        return _resolve(parts[0], root)
    return schema


def _alternatives(schema: Schema) -> list[Schema]:
    return list(schema.get("anyOf") or schema.get("oneOf") or ())


def _values(schema: Schema) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    return cast("list[Any] | None", schema.get("enum"))


def _type_of_values(values: list[Any] | None) -> str | None:
    # A bool is an int too, so it is asked for first.
    kinds = {"boolean": bool, "string": str, "integer": int, "number": float}
    for name, kind in kinds.items():
        if values and all(isinstance(value, kind) for value in values):
            return name
    return None


def _always_present(schema: Schema) -> set[str]:
    # An instance of a model has its defaulted fields too: they are filled in before it is given.
    fields: Mapping[str, Schema] = schema.get("properties", {})
    return {*schema.get("required", ()), *(name for name, s in fields.items() if "default" in s)}


def _rest(schema: Schema) -> Schema | None:
    rest = schema.get("additionalProperties")
    return cast("Schema", rest) if isinstance(rest, Mapping) else None


def _bounds(given: Schema, required: Schema, path: str) -> Iterator[str]:
    for bound in (*_LOWER_BOUNDS, *_UPPER_BOUNDS):
        if bound not in required:
            continue
        limit, lower = required[bound], bound in _LOWER_BOUNDS
        has = _tightest(given, bound, lower)
        if has is None or (has < limit if lower else has > limit):
            unbounded = "has no bound" if has is None else f"may be {has}"
            yield f"{path} {unbounded}, must keep {bound} {limit}"


def _tightest(schema: Schema, bound: str, lower: bool) -> Any:
    """The bound of `schema` that shows `bound` kept: an exclusive one proves the inclusive too."""
    twins = {"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"}
    known = [schema[name] for name in (bound, twins.get(bound, bound)) if name in schema]
    values = _values(schema)
    if values and bound in ("minimum", "maximum"):
        known.append(min(values) if lower else max(values))
    if not known:
        return 0 if bound in ("minLength", "minItems") else None
    return max(known) if lower else min(known)


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
