"""What must hold of a document, whatever its bytes and its name."""

from __future__ import annotations

import os
import re
import tempfile
from functools import cache
from pathlib import Path

import regex

from fuzz.inputs import refused, text_of
from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.refine.chunking import split_text
from promptchain_dagster.refine.cleaning import clean_text
from promptchain_dagster.refine.documents import document_key, load_document
from promptchain_dagster.store.keys import is_key
from promptchain_dagster.tokens import get_encoder

_MOST = 20_000  # a chunk may be of 12 tokens, and each is counted again
_UNUSABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff]")
_KEY = re.compile(r"[a-z0-9_-]{1,40}-[0-9a-f]{16}")


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="fuzz-")


def read_document(data: bytes) -> None:
    """Bytes become text that can be sent and kept, or are refused; cleaning is done at once."""
    path = Path(_folder().name) / f"{os.getpid()}.txt"
    path.write_bytes(data)
    try:
        document = load_document(path)
    except InvalidInput as error:
        refused(error, str(path))
        return
    assert not _UNUSABLE.search(document.text), ascii(document.text)
    assert clean_text(document.text) == (document.text, ())
    document.text.encode()
    assert isinstance(document.has_content, bool)
    if re.fullmatch(rb"[!-~ \n]*", data) and b" " * 1000 not in data and b"\n" * 1000 not in data:
        assert document.text == data.decode() or re.search(rb"[ \n]{1000}", data)
        assert not document.warnings


def chunked_text(data: bytes) -> None:
    """Spans join up to the text, counts are exact and in the limit, characters stay whole."""
    limit, name = 12, "o200k_base"
    if data:
        limit += data[0] % 128
        name = "cl100k_base" if data[0] > 127 else name
    encoder = get_encoder(name)
    text = clean_text(text_of(data[1:], _MOST))[0]
    chunks = split_text(text, limit, encoder)
    assert "".join(text[chunk.start : chunk.end] for chunk in chunks) == (text if chunks else "")
    assert bool(chunks) == bool(text.strip())
    ends = {match.end() for match in regex.finditer(r"\X", text)}
    for at, chunk in enumerate(chunks, 1):
        assert (chunk.index, chunk.total) == (at, len(chunks))
        assert chunk.text.strip() == text[chunk.start : chunk.end].strip() != ""
        assert chunk.tokens == len(encoder.encoding.encode_ordinary(chunk.text))
        assert chunk.tokens <= limit
        if chunk.end not in ends:
            character = regex.search(r"\X", text[max(e for e in {0, *ends} if e < chunk.end) :])
            assert character and encoder.count(character[0]) > limit


def partition_keys(data: bytes) -> None:
    """A key is bounded, of plain characters, and another for another path, as a mapping key too."""
    first, second = (os.fsdecode(part) for part in (*data.split(b"\n", 1), b"")[:2])
    keys = [document_key(path) for path in (first, second)]
    for key in keys:
        assert _KEY.fullmatch(key) and is_key(key) and len(key) <= 57
    assert (keys[0] == keys[1]) == (first == second)
    as_mapping = [key.replace("-", "_") for key in keys]
    assert (as_mapping[0] == as_mapping[1]) == (first == second)
