"""An S3 server of the tests' own on loopback, and a bucket in it, as fixtures to import."""

from __future__ import annotations

import importlib.util
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass

import pytest


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
    server = subprocess.Popen(
        command,
        env={**os.environ, "MOTO_S3_DEFAULT_MAX_KEYS": str(PAGE)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(port, server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
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


PAGE = 100
"""Objects that the server lists at once; the real one 1,000."""

_SIGNED = "AWS4-HMAC-SHA256 Credential=AKIAPLANTEDKEY/20260101/us-east-1/s3/aws4_request"


@dataclass(frozen=True)
class Objects:
    """What a test puts into a bucket, byte for byte under the key that it names."""

    endpoint: str
    bucket: str

    def url(self, prefix: str = "") -> str:
        return f"s3://{self.bucket}{prefix and '/'}{prefix}"

    def put(self, key: str, text: str | bytes = "one two three") -> None:
        self._ask("PUT", key, text.encode() if isinstance(text, str) else text)

    def delete(self, key: str) -> None:
        self._ask("DELETE", key, None)

    def _ask(self, method: str, key: str, data: bytes | None) -> None:
        url = f"{self.endpoint}/{self.bucket}/{urllib.parse.quote(key, safe='/')}"
        headers = {"Authorization": _SIGNED, "Content-Type": "application/octet-stream"}
        urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method)).close()


@pytest.fixture
def objects(s3_environment: str, bucket: str) -> Objects:
    return Objects(s3_environment, bucket)
