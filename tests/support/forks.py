"""`promptchain` in a process of its own, forked from one that has done the imports.

An interpreter with Dagster in it takes a second and a half to start, and as long to end, and the
tests start hundreds. A fork has its own memory, working folder, environment, standard output and
signals, and ends by `sys.exit` as the command does. What is about the start itself is tested with a
real start.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from promptchain_dagster.cli import main
from promptchain_dagster.tokens import get_encoder

ROOT = Path(__file__).parents[2]
# What a command imports late, and Dagster and the SDK too.
PRELOADED = (
    "anyio._backends._asyncio",
    "dagster._core.execution.api",
    "dagster._core.instance.factory",
    "dagster._core.launcher.default_run_launcher",
    "dagster._core.run_coordinator",
    "dagster._core.secrets.env_file",
    "dagster._core.storage.event_log.sqlite.sqlite_event_log",
    "dagster._core.storage.legacy_storage",
    "dagster._core.storage.local_compute_log_manager",
    "promptchain_dagster.pipelines.definitions",
    "genai_prices.data",
    "genai_prices.decompose",
    "httpcore2",
    "openai.resources.chat.completions",
    "opentelemetry.trace",
    "promptchain_dagster.models.openai",
    "promptchain_dagster.pipelines.event_log",
    "promptchain_dagster.report",
    "rich.progress",
    "upath.implementations.local",
)


class Forked:
    """A process like a `subprocess.Popen` whose output is read as text."""

    def __init__(self, server: str, args: tuple[str, ...], cwd: Path, env: Mapping[str, str]):
        (out, theirs), (err, theirs_too) = os.pipe(), os.pipe()
        self._channel = socket.socket(socket.AF_UNIX)
        self._channel.connect(server)
        asked = json.dumps({"args": args, "cwd": str(cwd), "env": dict(env)}).encode()
        socket.send_fds(self._channel, [len(asked).to_bytes(4, "big")], [theirs, theirs_too])
        os.close(theirs)
        os.close(theirs_too)
        self._channel.sendall(asked)
        self._said = self._channel.makefile("r")
        self.pid = int(self._said.readline())
        self._out, self._err = os.fdopen(out), os.fdopen(err)
        self.returncode: int | None = None

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def communicate(self, timeout: float) -> tuple[str, str]:
        """Both outputs to their end; the process is killed where that takes too long."""
        killer = threading.Timer(timeout, self.send_signal, (signal.SIGKILL,))
        killer.start()
        errors: list[str] = []
        reader = threading.Thread(target=lambda: errors.append(self._err.read()))
        reader.start()
        with self._channel, self._said, self._out, self._err:
            out = self._out.read()
            reader.join()
            self.returncode = int(self._said.readline())
            killer.cancel()
        return out, errors[0]


class ForkServer:
    """The process that is forked; it takes a socket in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._path = str(folder / "forks")
        command = [sys.executable, "-m", "tests.support.forks", self._path]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"

    def __enter__(self) -> ForkServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def start(self, *args: str, cwd: Path, env: Mapping[str, str]) -> Forked:
        return Forked(self._path, args, cwd, env)


def serve(path: str) -> None:
    """Fork for each that connects, until killed."""
    for module in PRELOADED:
        __import__(module)
    get_encoder()
    gc.freeze()  # else each fork looks through all of it, and copies it, when it ends
    # A fork has the thread alone that made it, and would wait for ever for locks of the others.
    assert sys.platform != "linux" or len(os.listdir("/proc/self/task")) == 1
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen(64)
    # Nobody waits for the ones between, which wait for the command.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    os.write(1, b"ready\n")
    while True:
        channel = server.accept()[0]
        if os.fork() == 0:
            server.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            return _run(channel)
        channel.close()


def _run(channel: socket.socket) -> None:
    size, (out, err), _, _ = socket.recv_fds(channel, 4, 2)
    with channel.makefile("rb") as file:
        asked = json.loads(file.read(int.from_bytes(size, "big")))
    command = os.fork()
    if command == 0:
        channel.close()
        for number, stream in ((1, out), (2, err)):
            os.dup2(stream, number)
            os.close(stream)
        os.chdir(asked["cwd"])
        os.environ.clear()
        os.environ.update(asked["env"])
        sys.argv = ["promptchain", *asked["args"]]
        main()
    os.close(out)
    os.close(err)
    channel.sendall(f"{command}\n".encode())
    # Standard output is the tests', who would wait for its end.
    status = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
    channel.sendall(f"{status}\n".encode())
    os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1])
