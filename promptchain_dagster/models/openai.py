"""The OpenAI SDK as a `ChatModel`, for every endpoint that speaks Chat Completions.

The only module that imports `openai`, and only once a model is connected.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.models import wire
from promptchain_dagster.models.base import (
    NO_USAGE,
    PROBLEMS,
    UNKNOWN_USAGE,
    CallError,
    Completion,
    Problem,
)
from promptchain_dagster.models.prices import cost_usd
from promptchain_dagster.models.redact import redact
from promptchain_dagster.models.settings import DEFAULT_OPENAI_MODEL, OPENAI_URL, ModelSettings

if TYPE_CHECKING:
    from openai import AsyncOpenAI

KEY_VARIABLE = "OPENAI_API_KEY"
_NO_KEY = "none"
"""What a local server without keys is sent: the SDK insists on one."""

_NOT_SENT = ("ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError", "UnsupportedProtocol")
"""What the SDK's transport calls a request that never reached a server, and so cost nothing."""


def has_key() -> bool:
    """Whether the environment holds a key."""
    return bool(os.environ.get(KEY_VARIABLE, "").strip())


@asynccontextmanager
async def connect_openai(
    settings: ModelSettings, *, max_in_flight: int | None = None
) -> AsyncIterator[OpenAIModel]:
    """A client for `settings`, made and closed in the event loop that uses it (case e7)."""
    key = _key()
    async with _client(settings, key) as client:
        cost_usd(settings.model or DEFAULT_OPENAI_MODEL, 0, 0)
        yield OpenAIModel(settings, client, key=key, max_in_flight=max_in_flight)


class OpenAIModel:
    """One message a call, no conversation, no parameter that was not set (case e4)."""

    def __init__(
        self,
        settings: ModelSettings,
        client: AsyncOpenAI,
        *,
        key: str | None = None,
        name: str | None = None,
        max_in_flight: int | None = None,
        priced: bool = True,
    ) -> None:
        self.name = settings.model or DEFAULT_OPENAI_MODEL
        self.context_tokens = settings.context_tokens
        self.max_output_tokens = settings.max_output_tokens
