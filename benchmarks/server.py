"""A Chat Completions endpoint in a process of its own that answers after a given delay.

What a request costs it is the same for each: no JSON is read, and one prepared reply is sent.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from benchmarks.workload import REPLY

_BACKLOG = 1024


@dataclass
class Stats:
    """What the server saw. `first_at` and `last_at` are the times (Unix, seconds) of the first
    request and of the last reply; `cpu_seconds` is what its process took from the first on."""

    calls: int = 0
    in_flight: int = 0
    most_in_flight: int = 0
    first_at: float = 0.0
    last_at: float = 0.0
    cpu_seconds: float = 0.0


class _Server:
    def __init__(self, delay: float) -> None:
        self.delay = delay
        self.stats = Stats()
        self.answer = _http(_completion())
        self._cpu_before = 0.0

    def begin(self) -> None:
        stats = self.stats
        if not stats.calls:
            stats.first_at, self._cpu_before = time.time(), time.process_time()
        stats.calls += 1
        stats.in_flight += 1
        stats.most_in_flight = max(stats.most_in_flight, stats.in_flight)

    def end(self) -> None:
        self.stats.in_flight -= 1
        self.stats.last_at = time.time()

    def told(self) -> bytes:
        self.stats.cpu_seconds = time.process_time() - self._cpu_before
        return _http(json.dumps(self.stats.__dict__).encode())


class _Connection(asyncio.Protocol):
    """Keeps the connection; one request after another."""

    def __init__(self, server: _Server) -> None:
        self._server = server
        self._received = bytearray()
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        head_end = self._received.find(b"\r\n\r\n")
        if head_end < 0:
            return
        head = bytes(self._received[:head_end])
        if len(self._received) < head_end + 4 + _length(head):
            return
        self._received.clear()
        if head.startswith(b"POST"):
            self._server.begin()
            asyncio.get_running_loop().call_later(self._server.delay, self._answer)
        else:
            self._transport.write(self._server.told())

    def _answer(self) -> None:
        self._server.end()
        self._transport.write(self._server.answer)


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


def _http(body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return f"{head}\r\n".encode() + body


def _completion() -> bytes:
    message = {"role": "assistant", "content": REPLY}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    usage = {"prompt_tokens": 2100, "completion_tokens": 200, "total_tokens": 2300}
    kind = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-4o-mini"}
    return json.dumps({**kind, "choices": [choice], "usage": usage}).encode()


@contextmanager
def serving(delay: float) -> Generator[str]:
    """The base URL of a server that answers in `delay` seconds, for as long as it lasts."""
    command = [sys.executable, "-m", "benchmarks.server", str(delay)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def stats_of(url: str) -> dict[str, Any]:
    """The `Stats` of the server at `url` so far."""
    with urllib.request.urlopen(f"{url}/stats") as answer:
        return json.load(answer)


async def _serve(delay: float) -> None:
    server = _Server(delay)
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(
        lambda: _Connection(server), "127.0.0.1", 0, backlog=_BACKLOG
    )
    port = listening.sockets[0].getsockname()[1]
    sys.stdout.write(f"http://127.0.0.1:{port}/v1\n")
    sys.stdout.flush()
    await listening.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(float(sys.argv[1])))
