"""A model as it is, and beside it what a server can't see: the requests that never reached it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from promptchain_dagster.models.base import NO_USAGE, CallError, ChatModel, Completion
from soak.replies import told


@dataclass
class Heard:
    """`asked` counts the requests, `unreached` those of each document that no server saw; `tasks`
    are those left in the event loop when the model is let go of, the main one not counted."""

    asked: int = 0
    unreached: Counter[str] = field(default_factory=Counter[str])
    tasks: int = 0


@asynccontextmanager
async def hearing(
    connecting: AbstractAsyncContextManager[ChatModel], heard: Heard
) -> AsyncGenerator[ChatModel]:
    """The model that is connected, each of its calls counted in `heard`."""
    async with connecting as model:
        yield _HeardModel(model, heard)
        heard.tasks = len(asyncio.all_tasks()) - 1


class _HeardModel:
    def __init__(self, model: ChatModel, heard: Heard) -> None:
        self.name, self.parameters = model.name, model.parameters
        self.context_tokens, self.max_output_tokens = model.context_tokens, model.max_output_tokens
        self.max_in_flight = model.max_in_flight
        self._model, self._heard = model, heard

    async def complete(
        self,
        prompt: str,
        *,
        schema: Mapping[str, Any] | None = None,
        max_output_tokens: int | None = None,
    ) -> Completion:
        self._heard.asked += 1
        try:
            return await self._model.complete(
                prompt, schema=schema, max_output_tokens=max_output_tokens
            )
        except CallError as error:
            # Of what else costs nothing, this server sends only 429.
            if error.usage == NO_USAGE and not error.rate_limited:
                self._heard.unreached[told(prompt).document] += 1
            raise
