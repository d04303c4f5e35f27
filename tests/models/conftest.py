"""The real SDK against a real server on 127.0.0.1, with the waits recorded instead of waited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from promptchain_dagster.models import Call, CallError, Calls, ModelSettings, connect
from tests.support.chat_server import Answer, ChatServer

KEY = "sk-planted-0123456789abcdefghijkl"


@dataclass
class Asked:
    """What came of some calls, made one after another to one server."""

    calls: list[Call]
    waits: list[float]
    server: ChatServer
    ended: bool

    @property
    def error(self) -> CallError:
        error = self.calls[0].error
        assert error is not None
        return error

    @property
    def text(self) -> str:
        """The text of the first call's usable reply."""
        call = self.calls[0]
        assert call.error is None, call.error
        assert call.completion is not None
        return call.completion.text

    @property
    def sent(self) -> int:
        """Requests that reached the server, which `Call.requests` must agree with."""
        assert sum(call.requests for call in self.calls) == len(self.server.requests)
        return len(self.server.requests)


Ask = Callable[..., Asked]


def ask_server(
    *answers: Answer | str,
    times: int = 1,
    settings: dict[str, Any] | None = None,
    schema: dict[str, Any] | None = None,
    at_gate: bool = False,
    **options: Any,
) -> Asked:
    """Ask a server that gives `answers`; `settings` go to the model, `options` to `Calls`."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def ask(server: ChatServer) -> Asked:
        given: dict[str, Any] = {"model": "stub", "base_url": server.url, **(settings or {})}
        async with connect(ModelSettings(**given)) as model:
            calls = Calls(model, sleep=sleep, **options)
            made = [
                await calls.complete("Say hello.", schema=schema, at_gate=at_gate)
                for _ in range(times)
            ]
            return Asked(made, waits, server, calls.ended_by is not None)

    with ChatServer(answers) as server:
        return asyncio.run(ask(server))


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Asks a misbehaving server, with a planted key in the environment."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return ask_server
