"""The code location of this folder: what is deployed here, and the place for what is your own."""

from promptchain_dagster.pipelines.definitions import defs

__all__ = ["defs"]
