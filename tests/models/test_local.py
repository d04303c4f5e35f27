"""The embedded model: a real llama.cpp in this process."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.models import Call, Calls, ModelSettings, connect
from promptchain_dagster.models.local import gguf_file

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"heading": {"type": "string"}, "words": {"type": "integer"}},
    "required": ["heading", "words"],
}


@pytest.fixture
def installed() -> None:
    """Skips where the embedded model is not installed; in CI that is a failure."""
    try:
        gguf_file(None)
        import_module("xllamacpp")
    except (InvalidInput, ImportError) as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"the embedded model is not installed: {error}")


def ask(prompt: str, schema: dict[str, Any] | None = None, **settings: Any) -> Call:
    """One call, in an event loop of its own."""

    async def call() -> Call:
        async with connect(ModelSettings(**settings)) as model:
            return await Calls(model).complete(prompt, schema=schema)

    return asyncio.run(call())


@pytest.mark.usefixtures("installed")
def test_the_embedded_model_answers_the_same_in_each_event_loop() -> None:
    """A real completion with a real usage and no price; the server outlives the loop."""
    first, second = (ask("Say hello.", max_output_tokens=24) for _ in range(2))
    assert first.completion is not None
    assert first.completion.text
    assert first.completion == second.completion
    assert first.model.startswith("SmolLM2-135M-Instruct")
    assert first.usage.input_tokens
    assert first.usage.output_tokens
    assert first.usage.cost_usd is None
    assert first.usage.calls_without_usage == 0


@pytest.mark.usefixtures("installed")
def test_the_embedded_model_is_held_to_a_schema() -> None:
    """What a model this small says is JSON of that shape, without being asked to."""
    made = ask("Name a blog post about tea.", SCHEMA, max_output_tokens=120)
    assert made.completion is not None
    assert set(json.loads(made.completion.text)) == {"heading", "words"}


@pytest.mark.usefixtures("installed")
def test_an_embedded_prompt_over_the_context_is_too_long() -> None:
    """And ends that call alone."""
    made = ask("word " * 2000, context_tokens=512)
    assert made.error is not None
    assert made.error.problem.value == "too long"


@pytest.mark.usefixtures("installed")
def test_the_embedded_model_prints_nothing_and_ends_with_the_process() -> None:
    """Standard output may be read as JSON, and the process must not hang or crash at its end."""
    program = (
        "import asyncio\n"
        "from promptchain_dagster.models import Calls, ModelSettings, connect\n"
        "async def main():\n"
        "    async with connect(ModelSettings()) as model:\n"
        "        assert (await Calls(model).complete('Say hello.')).error is None\n"
        "asyncio.run(main())\n"
    )
    proxied = {**os.environ, "HTTP_PROXY": "http://127.0.0.1:9", "ALL_PROXY": "http://127.0.0.1:9"}
    ran = subprocess.run([sys.executable, "-c", program], env=proxied, capture_output=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")


@pytest.mark.parametrize("content", [b"", b"GGU", b"PK\x03\x04", b"GGUF", b"GGUF" + b"\xff" * 64])
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, content: bytes) -> None:
    """With its path, before any call."""
    path = tmp_path / "bad.gguf"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=r"bad\.gguf"):
        ask("x", model=str(path))


def test_a_missing_model_file_is_refused(tmp_path: Path) -> None:
    """With its path and the reason."""
    for path in (tmp_path / "no.gguf", tmp_path):
        with pytest.raises(InvalidInput, match="can't be read"):
            gguf_file(str(path))
