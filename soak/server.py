"""A Chat Completions endpoint that misbehaves, in a process of its own, and keeps a log.

Run as `python -m soak.server '{"log": …, "seed": …}'`; the first line it prints is its base URL.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from soak.faults import fault_of
from soak.replies import Told, told

MODEL = "gpt-4o-mini"
SECONDS = 0.02
"""What every answer takes; slow bytes take `SLOW_SECONDS`."""
SLOW_SECONDS = 1.0
_PAGE = b"<!doctype html><html><body>Please log in</body></html>"


@dataclass(frozen=True)
class Behaviour:
    """`seed` of the faults, None for none; after `gone_after` requests the server is gone for
    `gone_seconds`: it takes no connection, and drops what comes over those that are open."""

    seed: int | None = None
    gone_after: int | None = None
    gone_seconds: float = 30.0


@dataclass(frozen=True)
class Seen:
    """One request, in the order in which they came: what it asked for, and the fault it met.

    `at` is Unix time in seconds; `in_flight` the requests under way, itself included; the tokens
    are those that the answer told."""

    number: int
    at: float
    in_flight: int
    document: str
    step: str
    part: int
    fault: str
    input_tokens: int = 0
    output_tokens: int = 0


@contextmanager
def serving(log: Path, behaviour: Behaviour) -> Generator[str]:
    """The base URL of a server, for as long as it lasts."""
    given = json.dumps({"log": str(log), **asdict(behaviour)})
    command = [sys.executable, "-m", "soak.server", given]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def read_log(log: Path) -> list[Seen]:
    """All requests that the server saw."""
    return [Seen(**json.loads(line)) for line in log.read_text(encoding="utf-8").splitlines()]


class _Server:
    def __init__(self, behaviour: Behaviour, log: TextIO) -> None:
        self._behaviour, self._log = behaviour, log
        self._requests = self._in_flight = 0
        self._times: Counter[str] = Counter()
        self._gone = False
        self._listening: asyncio.Server
        self._returning: asyncio.Task[None] | None = None

    async def listen(self, port: int = 0) -> int:
        """Take connections; the port."""
        self._listening = await asyncio.start_server(
            self._serve, "127.0.0.1", port, limit=2**20, backlog=1024
        )
        return self._listening.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (body := await _request(reader)) is not None:
                if not await self._answer(json.loads(body), reader, writer):
                    break
        except ConnectionError:
            pass  # the caller gave up waiting
        finally:
            writer.close()

    async def _answer(
        self, body: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Answer one request; whether the connection is kept."""
        self._requests += 1
        prompt = body["messages"][-1]["content"]
        asked = told(prompt)
        fault = self._fault(prompt, asked)
        seen = _seen(self._requests, self._in_flight + 1, prompt, asked, fault)
        self._log.write(json.dumps(asdict(seen)) + "\n")
        self._log.flush()
        if self._requests == self._behaviour.gone_after:
            self._returning = asyncio.ensure_future(self._be_gone())
        if fault == "no end":  # that the caller has had enough of it shows late
            await _begin(reader, writer)
            return False
        self._in_flight += 1
        try:
            return await _send(seen, asked, writer)
        finally:
            self._in_flight -= 1

    def _fault(self, prompt: str, asked: Told) -> str:
        if self._gone:
            return "gone"
        self._times[prompt] += 1
        seed = self._behaviour.seed
        fault = "" if seed is None else fault_of(seed, prompt, self._times[prompt])
        answered = fault in ("", "slow bytes", "output limit")
        return "refused" if answered and asked.reply is None else fault

    async def _be_gone(self) -> None:
        port = self._listening.sockets[0].getsockname()[1]
        self._gone = True
        self._listening.close()
        await asyncio.sleep(self._behaviour.gone_seconds)
        self._gone = False
        await self.listen(port)


async def _request(reader: asyncio.StreamReader) -> bytes | None:
    """The body of the next request; None where the connection ends instead."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        return await reader.readexactly(length)
    except asyncio.IncompleteReadError:
        return None


def _seen(number: int, in_flight: int, prompt: str, asked: Told, fault: str) -> Seen:
    seen = Seen(number, time.time(), in_flight, asked.document, asked.step, asked.part, fault)
    if fault not in ("", "slow bytes", "no choices", "output limit", "refused"):
        return seen
    tokens = {
        "input_tokens": len(prompt.split()),
        "output_tokens": len((asked.reply or "").split()),
    }
    return Seen(**{**asdict(seen), **tokens})


async def _begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send the beginning of a reply, and wait until the caller has gone."""
    writer.write(_head(200, 1000) + b'{"choices": [')
    await reader.read()


async def _send(seen: Seen, asked: Told, writer: asyncio.StreamWriter) -> bool:
    """Send what goes with the fault; whether the connection is kept."""
    if seen.fault in ("gone", "reset"):
        writer.transport.abort()
        return False
    await asyncio.sleep(SECONDS)
    if seen.fault == "closed":
        return False
    status, headers, body = _reply(seen, asked)
    if seen.fault == "cut body":
        writer.write(_head(status, len(body) // 2) + body[: len(body) // 2])
    elif seen.fault == "slow bytes":
        await _drip(writer, _head(status, len(body)) + body)
    else:
        writer.write(_head(status, len(body), headers) + body)
    await writer.drain()
    return True


def _reply(seen: Seen, asked: Told) -> tuple[int, str, bytes]:
    """Status, further headers and body."""
    match seen.fault:
        case "empty body":
            return 200, "", b""
        case "a page":
            return 200, "", _PAGE
        case "502, a page":
            return 502, "", _PAGE
        case "429, Retry-After":
            return 429, "Retry-After: 1\r\n", _error(seen)
        case "429" | "500" | "503":
            return int(seen.fault), "", _error(seen)
        case _:
            return 200, "", _completion(seen, asked)


def _error(seen: Seen) -> bytes:
    message = f"request {seen.number} of this server"
    return json.dumps({"error": {"message": message}}).encode()


def _completion(seen: Seen, asked: Told) -> bytes:
    message = {"role": "assistant", "content": asked.reply}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    if seen.fault == "output limit":
        message["content"] = (asked.reply or "")[:40]
        choice["finish_reason"] = "length"
    elif seen.fault == "refused":
        message["refusal"] = f"not this text, request {seen.number}"
    usage = {"prompt_tokens": seen.input_tokens, "completion_tokens": seen.output_tokens}
    choices = [] if seen.fault == "no choices" else [choice]
    return json.dumps({"id": "1", "model": MODEL, "choices": choices, "usage": usage}).encode()


def _head(status: int, length: int, headers: str = "") -> bytes:
    kind = "content-type: application/json"
    return f"HTTP/1.1 {status} x\r\n{kind}\r\ncontent-length: {length}\r\n{headers}\r\n".encode()


async def _drip(writer: asyncio.StreamWriter, data: bytes) -> None:
    step = len(data) // 10 + 1
    for start in range(0, len(data), step):
        await asyncio.sleep(SLOW_SECONDS / 10)
        writer.write(data[start : start + step])
        await writer.drain()


async def _serve(behaviour: Behaviour, log: TextIO) -> None:
    port = await _Server(behaviour, log).listen()
    sys.stdout.write(f"http://127.0.0.1:{port}/v1\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    with Path(given.pop("log")).open("w", encoding="utf-8") as file:
        asyncio.run(_serve(Behaviour(**given), file))
