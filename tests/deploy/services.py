"""PostgreSQL, Redis and an S3 server of a test's own, on loopback, from what is installed."""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PATIENCE = 420.0
POSTGRES_USER = "postgres"
"""Who runs the server where the tests are run by root, which it refuses."""


def need(what: str, found: object) -> Any:
    """What was found; without it the test is skipped, but fails in CI, which is to install it."""
    if found:
        return found
    reason = f"{what} is not installed"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def need_modules(*names: str) -> None:
    for name in names:
        need(name, importlib.util.find_spec(name))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until(holds: Callable[[], bool], what: str) -> None:
    """Look again and again, and give up in the end."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, f"waited in vain: {what}"
        time.sleep(0.3)


@contextmanager
def process(
    command: Sequence[str], log: Path, *, port: int | None = None, user: str | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A process, from when it listens on `port` until it is stopped."""
    with log.open("wb") as out:
        started = subprocess.Popen(command, stdout=out, stderr=out, user=user, cwd="/")
    try:
        if port is not None:
            until(lambda: _listens(port) or started.poll() is not None, f"port {port}")
        assert started.poll() is None, log.read_text(errors="replace")
        yield started
    finally:
        started.terminate()
        try:
            started.wait(timeout=20)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()


@contextmanager
def postgres(logs: Path) -> Iterator[Mapping[str, str]]:
    """A server with an empty database; the variables that `deploy/celery/dagster.yaml` reads."""
    programs = _postgres_programs()
    need("PostgreSQL", programs and (os.geteuid() or _exists(POSTGRES_USER)))
    user = None if os.geteuid() else POSTGRES_USER
    password, port = secrets.token_hex(16), free_port()
    # Not in pytest's own folder, which nobody else may enter.
    folder = Path(tempfile.mkdtemp(prefix="promptchain-pg-", dir="/tmp" if user else None))
    try:
        (folder / "password").write_text(password)
        if user:
            for path in (folder, folder / "password"):
                shutil.chown(path, user)
        data = str(folder / "data")
        initdb = [f"{programs}/initdb", "-D", data, "-U", "dagster", "-E", "UTF8", "--locale", "C"]
        initdb += ["--auth", "scram-sha-256", "--pwfile", str(folder / "password"), "--no-sync"]
        subprocess.run(initdb, check=True, capture_output=True, user=user, cwd="/")
        settings = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off"]
        command = [f"{programs}/postgres", "-D", data, "-p", str(port)]
        command += [part for setting in settings for part in ("-c", setting)]
        with process(command, logs / "postgres.log", port=port, user=user):
            yield {
                "DAGSTER_PG_HOST": "127.0.0.1",
                "DAGSTER_PG_PORT": str(port),
                "DAGSTER_PG_DB": "postgres",
                "DAGSTER_PG_USER": "dagster",
                "DAGSTER_PG_PASSWORD": password,
            }
    finally:
        shutil.rmtree(folder)


@contextmanager
def redis(logs: Path) -> Iterator[Mapping[str, str]]:
    """A server that keeps nothing; broker and result store of Celery."""
    program, port = need("redis-server", shutil.which("redis-server")), free_port()
    command = [program, "--bind", "127.0.0.1", "--port", str(port)]
    command += ["--save", "", "--dir", str(logs)]
    with process(command, logs / "redis.log", port=port):
        url = f"redis://127.0.0.1:{port}"
        yield {"DAGSTER_CELERY_BROKER": f"{url}/0", "DAGSTER_CELERY_BACKEND": f"{url}/1"}


@contextmanager
def s3(logs: Path) -> Iterator[Mapping[str, str]]:
    """A server with one bucket; how to reach it, and a home in it."""
    need_modules("moto", "flask", "obstore")
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with process(command, logs / "s3.log", port=port):
        endpoint = f"http://127.0.0.1:{port}"
        made = urllib.request.Request(f"{endpoint}/summaries", method="PUT")
        _opener.open(made).close()
        yield {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "AKIAPLANTEDKEY",
            "AWS_SECRET_ACCESS_KEY": "planted/secret+value",
            "PROMPTCHAIN_HOME": "s3://summaries/home",
        }


_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def _postgres_programs() -> str | None:
    """Debian keeps the servers of several versions apart, outside of the path."""
    found = shutil.which("initdb")
    if found:
        return str(Path(found).resolve().parent)
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return str(places[-1].parent) if places else None


def _exists(user: str) -> bool:
    import pwd

    return any(entry.pw_name == user for entry in pwd.getpwall())
