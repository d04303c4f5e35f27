"""What a config or a command names by its import path."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from promptchain_dagster.errors import ChainDefinitionError


def imported(path: str, what: str) -> Any:
    """The object at `module.name`; raises `ChainDefinitionError` that says `what` named it."""
    module, _, name = path.rpartition(".")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ChainDefinitionError(f"{what}: {path!r} can't be imported: {error}") from None
