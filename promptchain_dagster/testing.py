"""`ScriptedChatModel`: a model that says what a test wrote down, and keeps what it heard."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from promptchain_dagster.models.base import Completion, Usage

Reply = str | Completion | Exception
"""What one call brings; an exception (a `CallError`, say) is raised."""

Script = Iterable[Reply] | Callable[[str], Reply | Awaitable[Reply]]


class ScriptedChatModel:
    """A `ChatModel` whose replies are given: one after another, or by a function of the prompt.

    The function may be async, so that a test can hold a call open. A reply given as text gets a
    usage of its own: one token for each word that white space sets apart, at no known cost.

    `prompts`, `schemas` and `output_caps` hold what each call was given, in order. A call beyond
    the last reply raises `AssertionError`, which nothing in this package catches.
    """

    def __init__(
        self,
        replies: Script,
        *,
        name: str = "scripted",
        parameters: Mapping[str, Any] = MappingProxyType({}),
        context_tokens: int | None = None,
        max_output_tokens: int | None = None,
        max_in_flight: int | None = None,
    ) -> None:
        self.name = name
        self.parameters = parameters
        self.context_tokens = context_tokens
        self.max_output_tokens = max_output_tokens
        self.max_in_flight = max_in_flight
        self.prompts: list[str] = []
        self.schemas: list[Mapping[str, Any] | None] = []
        self.output_caps: list[int | None] = []
        self._reply = replies if callable(replies) else _in_order(iter(replies))

    async def complete(
        self,
        prompt: str,
        *,
        schema: Mapping[str, Any] | None = None,
        max_output_tokens: int | None = None,
    ) -> Completion:
        """Keep the prompt; give or raise the next reply."""
        self.prompts.append(prompt)
        self.schemas.append(schema)
        self.output_caps.append(max_output_tokens or self.max_output_tokens)
        reply = self._reply(prompt)
        if inspect.isawaitable(reply):
            reply = await reply
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, Completion):
            return reply
        usage = Usage(len(prompt.split()), len(reply.split()), None)
        return Completion(reply, self.name, usage=usage)


def _in_order(replies: Iterator[Reply]) -> Callable[[str], Reply]:
    given = 0

    def next_reply(prompt: str) -> Reply:
        nonlocal given
        for reply in replies:
            given += 1
            return reply
        raise AssertionError(f"call {given + 1}, but the script has only {given} replies: {prompt}")

    return next_reply
