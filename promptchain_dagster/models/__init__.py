"""Talking to a language model: the settings, the connection, the calls.

`connect` gives a `ChatModel`; `calls.Calls` makes the calls of one run to it, and is where they are
retried and counted. `base.PROBLEMS` is the table of what can come back and what follows from it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.models.base import (
    CallError,
    ChatModel,
    Completion,
    Problem,
    Usage,
)
from promptchain_dagster.models.budget import Budget
from promptchain_dagster.models.calls import Call, Calls
from promptchain_dagster.models.ledger import Ledger
from promptchain_dagster.models.local import TIMEOUT_SECONDS as EMBEDDED_TIMEOUT_SECONDS
from promptchain_dagster.models.local import connect_embedded
from promptchain_dagster.models.openai import connect_openai, has_key
from promptchain_dagster.models.settings import DEFAULT_TIMEOUT_SECONDS, ModelSettings

__all__ = [
    "Budget",
    "Call",
    "CallError",
    "Calls",
    "ChatModel",
    "Completion",
    "Ledger",
    "ModelSettings",
    "Problem",
    "Usage",
    "connect",
    "is_embedded",
    "timeout_seconds",
]


@asynccontextmanager
async def connect(settings: ModelSettings) -> AsyncGenerator[ChatModel]:
    """The model that `settings` and the environment name, for the event loop that asks.

    An endpoint where there is a base URL or a key; a `.gguf` file, or SmolLM2 where there is
    neither, in this process. Raises `InvalidInput` where no such model can be had.
    """
    model = connect_embedded if is_embedded(settings) else connect_openai
    async with model(settings) as connected:
        yield connected


def timeout_seconds(settings: ModelSettings) -> float:
    """How long one request to the model of `settings` may take."""
    if settings.timeout_seconds is not None:
        return settings.timeout_seconds
    return EMBEDDED_TIMEOUT_SECONDS if is_embedded(settings) else DEFAULT_TIMEOUT_SECONDS


def is_embedded(settings: ModelSettings) -> bool:
    """Whether the embedded model answers; raises `InvalidInput` for a name it doesn't have."""
    if settings.base_url is not None:
        return False
    if settings.model is not None and settings.model.lower().endswith(".gguf"):
        return True
    if has_key():
        return False
    if settings.model is not None:
        raise InvalidInput(
            f"model {settings.model!r} needs OPENAI_API_KEY or OPENAI_BASE_URL; without either, "
            "name a .gguf file, or no model for the embedded one"
        )
    return True
