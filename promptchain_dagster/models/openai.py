"""The OpenAI SDK as a `ChatModel`, for every endpoint that speaks Chat Completions.

The only module that imports `openai`, and only once a model is connected.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
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
from promptchain_dagster.models.prices import context_window
from promptchain_dagster.models.redact import redact, without_key
from promptchain_dagster.models.settings import (
    DEFAULT_OPENAI_MODEL,
    DEFAULT_TIMEOUT_SECONDS,
    OPENAI_URL,
    ModelSettings,
)

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai._types import RequestOptions

KEY_VARIABLE = "OPENAI_API_KEY"
_NO_KEY = "none"
"""What a local server without keys is sent: the SDK insists on one."""

_AS_ADDRESSED: RequestOptions = {"follow_redirects": False}
"""A prompt goes where the settings say; a redirect followed would turn POST into GET anyway."""

_NOT_SENT = ("ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError", "UnsupportedProtocol")
"""What the SDK's transport calls a request that never reached a server, and so cost nothing."""


def has_key() -> bool:
    """Whether the environment holds a key."""
    return bool(os.environ.get(KEY_VARIABLE, "").strip())


@asynccontextmanager
async def connect_openai(settings: ModelSettings) -> AsyncGenerator[OpenAIModel]:
    """A client for `settings`, made and closed in the event loop that uses it (case e7).

    Raises `InvalidInput` for a key that no header can carry.
    """
    key = _key()
    name = settings.model or DEFAULT_OPENAI_MODEL
    settings = replace(
        settings,
        model=name,
        timeout_seconds=settings.timeout_seconds or DEFAULT_TIMEOUT_SECONDS,
        base_url=settings.base_url or OPENAI_URL,
        # Loads the price list too, while no call waits for it.
        context_tokens=settings.context_tokens or context_window(name),
    )
    async with new_client(settings, key) as client:
        yield OpenAIModel(settings, client, key=key)


def new_client(
    settings: ModelSettings, key: str | None, *, past_proxies: bool = False
) -> AsyncOpenAI:
    """The SDK's client, without retries of its own: `calls.Calls` owns those (case e1)."""
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient

    return AsyncOpenAI(
        api_key=key or _NO_KEY,
        base_url=settings.base_url,
        timeout=settings.timeout_seconds,
        max_retries=0,
        http_client=DefaultAsyncHttpxClient(trust_env=False) if past_proxies else None,
    )


class OpenAIModel:
    """One message a call, never a conversation, and no parameter that was not set (case e4)."""

    def __init__(
        self,
        settings: ModelSettings,
        client: AsyncOpenAI,
        *,
        key: str | None = None,
        priced: bool = True,
        max_in_flight: int | None = None,
    ) -> None:
        self.name = settings.model or DEFAULT_OPENAI_MODEL
        self.context_tokens = settings.context_tokens
        self.max_output_tokens = settings.max_output_tokens
        self.max_in_flight = max_in_flight
        self._settings = settings
        self._client = client
        self._key = key
        self._priced = priced

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The set ones of temperature, max_output_tokens and seed."""
        names = ("temperature", "max_output_tokens", "seed")
        values = {name: getattr(self._settings, name) for name in names}
        return {name: value for name, value in values.items() if value is not None}

    async def complete(
        self,
        prompt: str,
        *,
        schema: Mapping[str, Any] | None = None,
        max_output_tokens: int | None = None,
    ) -> Completion:
        """One request; raises `CallError` where no reply came."""
        body = self._body(prompt, schema, max_output_tokens or self.max_output_tokens)
        try:
            # The SDK's own parsing takes longer and lets cut bodies and web pages through.
            answer = await self._client.post(
                "/chat/completions", cast_to=str, body=body, options=_AS_ADDRESSED
            )
            answer = without_key(answer, self._key)
            return wire.completion_of(answer, self.name, priced=self._priced)
        except Exception as error:
            failure = self._call_error(error)
        # Raised out here, so that the SDK's error, which quotes the server, is not chained to it.
        raise failure

    def _body(
        self, prompt: str, schema: Mapping[str, Any] | None, cap: int | None
    ) -> dict[str, Any]:
        settings = self._settings
        body: dict[str, Any] = {
            "model": self.name,
            "messages": [{"role": "user", "content": prompt}],
        }
        if cap is not None:
            body[settings.output_limit_parameter] = cap
        if settings.temperature is not None:
            body["temperature"] = settings.temperature
        if settings.seed is not None:
            body["seed"] = settings.seed
        if schema is not None and settings.use_schema:
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "reply", "schema": schema},
            }
        return body

    def _call_error(self, error: Exception) -> CallError:
        """What `error` means; the words of a server are bounded, and never hold the key."""
        from openai import APIConnectionError, APIStatusError, APITimeoutError

        if isinstance(error, CallError):
            message = f"{self._endpoint}: {self._shown(error.message)}"
            return CallError(error.problem, message, usage=error.usage)
        if isinstance(error, APIStatusError):
            return self._status_error(error.status_code, error.body, error.response.headers)
        usage = UNKNOWN_USAGE
        words = str(error)
        if isinstance(error, APIConnectionError):
            cause = error.__cause__
            words = str(cause or "") or type(cause).__name__
            usage = NO_USAGE if type(cause).__name__ in _NOT_SENT else UNKNOWN_USAGE
        message = f"no usable answer from {self._endpoint}: {self._shown(words)}"
        if isinstance(error, APITimeoutError):
            message = f"no reply within {self._settings.timeout_seconds:g} s"
        return CallError(Problem.UNAVAILABLE, message, usage=usage)

    def _status_error(self, status: int, body: object, headers: Mapping[str, str]) -> CallError:
        problem = wire.problem_in(status, body)
        words = wire.error_message(body) or headers.get("location") or "without a message"
        message = f"HTTP {status}: {self._shown(words)}"
        if PROBLEMS[problem].ends_run:
            advice = wire.advice(status, body, self.name, self._endpoint)
            message = f"{self._shown(advice)} ({message})"
        return CallError(
            problem,
            message,
            # A server that broke down, or gave up waiting, may have worked all the same.
            usage=UNKNOWN_USAGE if status >= 500 or status == 408 else NO_USAGE,
            retry_after=wire.retry_after(headers),
            rate_limited=status == 429,
        )

    @property
    def _endpoint(self) -> str:
        return self._settings.base_url or OPENAI_URL

    def _shown(self, text: str) -> str:
        return redact(text, self._key)


def _key() -> str | None:
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if not all("!" <= character <= "~" for character in key):
        raise InvalidInput(f"{KEY_VARIABLE} holds a character that no key has; it is not shown")
    return key or None
