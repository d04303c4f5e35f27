"""Real runs against servers that echo the secrets they are sent; all that is left is searched."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from promptchain_dagster.store import open_store
from tests.support.chat_server import Answer, ChatServer, Request, raw, reply
from tests.support.s3 import wait_for as _s3_wait

KEY = "sk-planted-0123456789abcdefghijkl"
PASSWORD = "planted-password-98765"
ROOT = Path(__file__).parents[2]

OUTLINE = {
    "sections": [{"heading": f"Part {n} {KEY}", "point": f"It proves {KEY}."} for n in range(1, 6)]
}


def error(status: int, message: str, **details: str) -> Answer:
    return raw({"error": {"message": message, **details}}, status)


# By the word that the document holds; none of them ends the run.
ECHOES: dict[str, Answer] = {
    "in-a-summary": reply(f"Anna has the key {KEY}.", model=KEY),
    "in-a-finish-reason": reply("Anna is well.", finish_reason=KEY),
    "in-a-refusal": reply(None, refusal=f"I refuse {KEY}"),
    "too-long": error(400, f"context_length_exceeded {KEY}", code="context_length_exceeded"),
    "filtered": error(400, f"content_filter {KEY} {KEY[:9]}", code="content_filter"),
    "broken-down": error(500, f"Authorization: Bearer {KEY}", type=KEY),
    "text": Answer(f"key={KEY}", 500),
    "page": Answer(f"<html>{KEY}</html>", 502, {"Content-Type": "text/html"}),
    "redirect": Answer("", 307, {"Location": f"/login?key={KEY}"}),
    "cut": Answer(f'{{"choices": [{{"message": {{"content": "{KEY}'),
    "other-keys": raw({KEY: KEY}),
    "broke-off": raw({"choices": [{"message": {"content": "x"}, "error": {"message": KEY}}]}),
}


@dataclass
class Place:
    """An empty place for one command, and what it leaves there."""

    folder: Path
    env: dict[str, str] = field(default_factory=dict[str, str])

    def run(self, *args: str, **env: str) -> tuple[int, str]:
        """Run `promptchain`; its exit status and all that it printed."""
        given = {
            **os.environ,
            "OPENAI_API_KEY": KEY,
            "DAGSTER_HOME": str(self.folder / "dagster"),
            "PROMPTCHAIN_HOME": str(self.folder / "home"),
            "PYTHONPATH": str(ROOT),
            "OPENAI_LOG": "debug",
            **env,
        }
        command = [sys.executable, "-m", "promptchain_dagster.cli", *args]
        done = subprocess.run(
            command, cwd=self.folder, env=given, capture_output=True, timeout=250, check=False
        )
        (self.folder / "stdout").write_bytes(done.stdout)
        (self.folder / "stderr").write_bytes(done.stderr)
        return done.returncode, (done.stdout + done.stderr).decode()

    def holding(self, *planted: str) -> list[str]:
        """The files, by name or content, that hold one of the secrets, as it is or in base64."""
        forms = [form for one in planted for form in (one.encode(), b64encode(one.encode())[:-4])]
        forms += [one[:12].encode() for one in planted]
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        assert files
        return [
            str(path.relative_to(self.folder))
            for path in files
            if any(form in path.read_bytes() or form.decode() in str(path) for form in forms)
        ]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_the_search_finds_what_is_there(place: Place) -> None:
    """As it is, in its beginning, in base64 (as of a user and a password), in a file's name."""
    for name, data in (
        ("whole", KEY),
        ("beginning", f"x{KEY[:12]}y"),
        ("base64", b64encode(KEY.encode()).decode()),
        (KEY, ""),
        ("nothing", KEY[1:]),
    ):
        (place.folder / name).write_text(data)
    assert sorted(place.holding(KEY)) == ["base64", "beginning", KEY, "whole"]


def command_lines() -> str:
    """Those of all processes on this machine."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(process.read_bytes().decode(errors="replace"))
        except OSError:
            continue
    return "\n".join(found)


@pytest.fixture
def seen() -> list[str]:
    """The command lines of all processes, as they were when each request came."""
    return []


def answering(answer: Callable[[Request], Answer | str], seen: list[str]) -> ChatServer:
    def watched(request: Request) -> Answer | str:
        assert request.headers["authorization"] == f"Bearer {KEY}"
        seen.append(command_lines())
        return answer(request)

    return ChatServer(watched)


def test_f26_no_secret_stays_behind_documents_whose_server_echoes_it(
    place: Place, seen: list[str]
) -> None:
    """In whatever a server sends, with the SDK's log at debug; a good reply that holds the key is
    kept without it."""
    docs = place.folder / "docs"
    docs.mkdir()
    for word in ECHOES:
        (docs / f"{word}.txt").write_text(f"This document is of the kind {word}, as one sees.")

    def answer(request: Request) -> Answer:
        return next(one for word, one in ECHOES.items() if f"the kind {word}," in request.prompt)

    with answering(answer, seen) as server:
        status, told = place.run("summarize", str(docs), "--json", OPENAI_BASE_URL=server.url)
    assert status == 1, told
    result = json.loads((place.folder / "stdout").read_text())
    summaries = {one["path"].split("/")[-1]: one["summary"] for one in result["documents"]}
    assert summaries["in-a-summary.txt"] == "Anna has the key [redacted]."
    assert place.holding(KEY) == []
    assert list((place.folder / "dagster").rglob("*.db"))
    assert len(seen) >= len(ECHOES) and KEY not in "".join(seen)


@pytest.mark.parametrize(
    "refusal",
    [
        error(401, f"Incorrect API key provided: {KEY}. Find it at …", code="invalid_api_key"),
        error(403, f"{KEY[:14]} {KEY[14:]} may not", param=KEY, code=KEY),
        error(429, f"insufficient_quota for {KEY}", code="insufficient_quota"),
    ],
    ids=["401", "403", "429"],
)
def test_f26_no_secret_stays_behind_a_run_that_its_server_refuses(
    place: Place, seen: list[str], refusal: Answer
) -> None:
    """The error that ends the run quotes the key in one way or another."""
    with answering(lambda request: refusal, seen) as server:
        status, told = place.run(
            "post", "--brief", "b", "--audience", "a", "--base-url", server.url
        )
    assert status == 1 and "[redacted]" in told, told
    assert place.holding(KEY) == []
    assert seen and KEY not in "".join(seen)


def test_f26_no_secret_stays_behind_a_post_that_quotes_it(place: Place, seen: list[str]) -> None:
    """Outline, draft and post hold the key as the server sends them, and not as they are kept."""

    def answer(request: Request) -> str:
        return (
            json.dumps(OUTLINE) if "Output JSON" in request.prompt else f"# Part 1 {KEY}\n\nWell."
        )

    with answering(answer, seen) as server:
        status, told = place.run(
            "post", "--brief", "b", "--audience", "a", "--base-url", server.url
        )
    assert status == 0, told
    assert "Part 1 [redacted]" in told
    assert place.holding(KEY) == []
    assert len(seen) == 3 and KEY not in "".join(seen)


@pytest.mark.parametrize(
    ("args", "env"),
    [
        ((), {"OPENAI_BASE_URL": f"http://user:{PASSWORD}@127.0.0.1:1/v1"}),
        ((), {"OPENAI_BASE_URL": f"http://127.0.0.1:1/v1?key={PASSWORD}"}),
        ((), {"PROMPTCHAIN_HOME": f"s3://AKIA:{PASSWORD}@bucket/home"}),
        ((), {"PROMPTCHAIN_HOME": f"redis://:{PASSWORD}@127.0.0.1/0"}),
        (("--base-url", f"http://user:{PASSWORD}@127.0.0.1:1/v1"), {}),
        (("--home", f"s3://AKIA:{PASSWORD}@bucket"), {}),
        ((), {"OPENAI_API_KEY": f"{PASSWORD}\u00e9"}),
        (
            ("--base-url", "http://model.invalid/v1"),
            {"HTTP_PROXY": f"http://user:{PASSWORD}@127.0.0.1:1"},
        ),
    ],
)
def test_f26_a_password_where_none_belongs_is_neither_shown_nor_kept(
    place: Place, args: tuple[str, ...], env: dict[str, str]
) -> None:
    """In a URL, in a key that no header can carry, in a proxy that does not answer."""
    status, told = place.run("post", "--brief", "b", "--audience", "a", *args, **env)
    assert status in (1, 2), told
    assert place.holding(PASSWORD) == []
    assert "Traceback" not in told


@pytest.fixture
def s3_url() -> Iterator[str]:
    """An S3 server of its own on loopback."""
    pytest.importorskip("moto")
    pytest.importorskip("obstore")
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _s3_wait(port, server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def test_f26_no_credential_of_the_bucket_stays_behind(
    place: Place, seen: list[str], s3_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither on this machine nor in the bucket."""
    aws = {
        "AWS_ENDPOINT_URL": s3_url,
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "AKIAPLANTEDKEY12",
        "AWS_SECRET_ACCESS_KEY": "planted/secret+value-0123",
    }
    name = f"bucket-{secrets.token_hex(4)}"
    urllib.request.urlopen(urllib.request.Request(f"{s3_url}/{name}", method="PUT")).close()
    (place.folder / "a.txt").write_text("Three good words.")
    planted = (KEY, aws["AWS_ACCESS_KEY_ID"], aws["AWS_SECRET_ACCESS_KEY"])
    with answering(lambda request: f"Anna has {KEY}.", seen) as server:
        status, told = place.run(
            *("summarize", "a.txt", "--base-url", server.url, "--home", f"s3://{name}/home"), **aws
        )
    assert status == 0, told
    assert place.holding(*planted) == []
    for variable, value in aws.items():
        monkeypatch.setenv(variable, value)
    store = open_store(f"s3://{name}/home", read_only=True)
    kept = [
        key
        for folder in ("checkpoints/", "traces/", "documents/", "summaries/", "results/")
        for key in store.list(folder)
    ]
    assert kept
    for key in kept:
        assert not any(one.encode() in (store.read(key) or b"") for one in planted), key
    assert not any(one in "".join(seen) for one in planted)
