from __future__ import annotations

import importlib.util
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from promptchain_dagster.store import Store, open_store


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """An S3 server of its own on loopback."""
    for module in ("moto", "flask", "obstore"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed, so there is no S3 server to test against")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(port, server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        if server.poll() is not None:
            break
        time.sleep(0.1)
    pytest.skip("the S3 server did not start")


@pytest.fixture
def s3_environment(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The usual variables, with credentials that a test can look for; the endpoint."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_endpoint)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAPLANTEDKEY")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "planted/secret+value")
    return s3_endpoint


@pytest.fixture
def bucket(s3_environment: str) -> str:
    name = f"bucket-{secrets.token_hex(4)}"
    urllib.request.urlopen(urllib.request.Request(f"{s3_environment}/{name}", method="PUT")).close()
    return name


@pytest.fixture(params=["folder", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty store of each kind."""
    if request.param == "folder":
        return open_store(str(tmp_path / "new" / "home"))
    return open_store(f"s3://{request.getfixturevalue('bucket')}/some/prefix/")
