"""A Chat Completions endpoint on 127.0.0.1 that answers as it is told, also badly."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any


@dataclass(frozen=True)
class Request:
    """One request as it came: header names in lower case, `at` the monotonic time in seconds."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    at: float

    @property
    def prompt(self) -> str:
        """The text of its last message."""
        return self.body["messages"][-1]["content"]


@dataclass(frozen=True)
class Answer:
    """What is sent back.

    `fault`: "hang" sends nothing, "reset" and "cut" end the connection after half the body (with a
    reset, or properly), "drip" sends a byte now and then.
    """

    body: str | bytes = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    fault: str | None = None


Answers = Iterable[Answer | str] | Callable[[Request], Answer | str]

HANG = Answer(fault="hang")
HTML = Answer(
    "<!doctype html><html><body>Please log in</body></html>", headers={"Content-Type": "text/html"}
)


def raw(body: object, status: int = 200, **headers: str) -> Answer:
    """Any JSON with any status; header names are given with underscores."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(json.dumps(body), status, named)


def reply(
    text: str | None,
    *,
    finish_reason: str | None = "stop",
    usage: Mapping[str, Any] | None = None,
    model: str = "stub",
    **message: Any,
) -> Answer:
    """A good reply holding `text`, of one token a word unless `usage` says otherwise."""
    words = len((text or "").split())
    return raw(
        {
            "id": "1",
            "object": "chat.completion",
            "model": model,
            "choices": [
                {
                    "index": 0,
                    "finish_reason": finish_reason,
                    "message": {"role": "assistant", "content": text, **message},
                }
            ],
            "usage": usage or {"prompt_tokens": 10, "completion_tokens": words},
        }
    )


def error(
    status: int,
    message: str = "it broke",
    *,
    headers: Mapping[str, str] | None = None,
    **details: Any,
) -> Answer:
    """An error in OpenAI's shape."""
    body = json.dumps({"error": {"message": message, **details}})
    return Answer(body, status, headers or {})


class ChatServer:
    """Serves `answers` in order, the last one for ever, or what a function of the request says.

    A plain text is a good reply. `requests` holds what came, in order.
    """

    def __init__(self, answers: Answers, port: int = 0) -> None:
        self.requests: list[Request] = []
        self.closing = threading.Event()
        self._answers = answers if callable(answers) else _in_order(list(answers))
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", port), _handler(self))
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> ChatServer:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.socket.close()
        self._server.hang_up()

    def answer(self, request: Request) -> Answer:
        """Keep the request; what to send back."""
        with self._lock:
            self.requests.append(request)
            answer = self._answers(request)
        return reply(answer) if isinstance(answer, str) else answer


class _Server(ThreadingHTTPServer):
    """One whose end is the end of its connections too."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._open: list[socket.socket] = []
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.append(request)
        super().process_request(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    def hang_up(self) -> None:
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def free_port_url() -> str:
    """The URL of a port on which nothing listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{bound.getsockname()[1]}/v1"


def _in_order(answers: list[Answer | str]) -> Callable[[Request], Answer | str]:
    def next_answer(request: Request) -> Answer | str:
        return answers.pop(0) if len(answers) > 1 else answers[0]

    return next_answer


def _handler(server: ChatServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = Request(
                self.path,
                {name.lower(): value for name, value in self.headers.items()},
                json.loads(body or b"{}"),
                time.monotonic(),
            )
            answer = server.answer(request)
            if answer.fault == "hang":
                server.closing.wait()
                self.close_connection = True
                return
            self._send(answer)

        do_GET = do_POST

        def _send(self, answer: Answer) -> None:
            body = answer.body.encode() if isinstance(answer.body, str) else answer.body
            self.send_response(answer.status)
            headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
            for name, value in {**headers, **answer.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if answer.fault is None:
                self.wfile.write(body)
                return
            self.close_connection = True
            if answer.fault == "drip":
                self._drip(body)
                return
            self.wfile.write(body[: len(body) // 2])
            if answer.fault == "reset":
                linger = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self.connection.close()

        def _drip(self, body: bytes) -> None:
            for at in range(len(body)):
                if server.closing.wait(0.02):
                    return
                try:
                    self.wfile.write(body[at : at + 1])
                except OSError:
                    return

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
