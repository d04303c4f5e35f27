"""A chain's input model as Dagster config, so that the launchpad knows its fields and defaults."""

from collections.abc import Mapping
from typing import Any

import dagster as dg
from pydantic import BaseModel

Schema = Mapping[str, Any]

_SCALARS: Mapping[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool}


def config_of(model: type[BaseModel]) -> dict[str, dg.Field]:
    """The fields of `model` as a config schema.

    Config is typed but knows no bounds: these the model itself checks when the run begins.
    """
    schema = model.model_json_schema()
    return _fields(schema, schema)


def _fields(schema: Schema, root: Schema) -> dict[str, dg.Field]:
    required = schema.get("required", ())
    fields: dict[str, dg.Field] = {}
    for name, field in schema.get("properties", {}).items():
        default = {"default_value": field["default"]} if "default" in field else {}
        fields[name] = dg.Field(
            _type(field, root),
            is_required=name in required,
            description=field.get("description"),
            **default,
        )
    return fields


def _type(schema: Schema, root: Schema) -> Any:
    if "$ref" in schema:
        return _type(root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    kinds = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
    if len(kinds) == 1:
        return dg.Noneable(_type(kinds[0], root))
    kind = schema.get("type")
    if kind == "array":
        return dg.Array(_type(schema.get("items", {}), root))
    if kind == "object":
        return _fields(schema, root) if schema.get("properties") else dg.Permissive()
    return _SCALARS.get(str(kind), dg.Any)
