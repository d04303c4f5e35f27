"""Splitting: one way of it over one file, so many times; what it loses, and what it makes too long.

`library` in the parameters names the function here; the peers' are in `peers.splitters`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.child import Clock, parameters, tell
from benchmarks.workload import CHUNK_TOKENS
from promptchain_dagster.refine.chunking import split_text
from promptchain_dagster.tokens import get_encoder

Split = Callable[[str], Sequence[str]]
_PARAGRAPH = re.compile(r".*?\n\n+|.+", re.DOTALL)


def paragraphs() -> Split:
    """The floor: tiktoken counts every paragraph, and nothing else is done."""
    encoding = get_encoder().encoding

    def split(text: str) -> Sequence[str]:
        found = _PARAGRAPH.findall(text)
        sum(len(encoding.encode_ordinary(paragraph)) for paragraph in found)
        return found

    return split


def ours() -> Split:
    """`split_text`; what a chunk spans, so that nothing is left out between them."""
    encoder = get_encoder()

    def split(text: str) -> Sequence[str]:
        return [text[one.start : one.end] for one in split_text(text, CHUNK_TOKENS, encoder)]

    return split


def greedy() -> Split:
    """Paragraphs packed until one more would be too much, as anybody would write it."""
    encoding = get_encoder().encoding

    def split(text: str) -> Sequence[str]:
        chunks: list[str] = []
        packed: list[str] = []
        tokens = 0
        for paragraph in _PARAGRAPH.findall(text):
            count = len(encoding.encode_ordinary(paragraph))
            if packed and tokens + count > CHUNK_TOKENS:
                chunks.append("".join(packed))
                packed, tokens = [], 0
            packed.append(paragraph)
            tokens += count
        return [*chunks, "".join(packed)]

    return split


def measure(split: Split, path: str, repetitions: int) -> dict[str, Any]:
    """Seconds of each repetition; whether the chunks join up to the text, and the longest one."""
    text = Path(path).read_text(encoding="utf-8")
    seconds: list[float] = []
    chunks: Sequence[str] = []
    for _ in range(repetitions):
        with Clock() as clock:
            chunks = split(text)
        seconds.append(clock.seconds)
    count = get_encoder().count
    longest = max((count(one.rstrip()) for one in chunks), default=0)
    return {
        "seconds": sorted(seconds)[len(seconds) // 2],
        "lossless": "".join(chunks) == text,
        "longest": longest,
        "chunks": len(chunks),
    }


SPLITS = {"paragraphs": paragraphs, "ours": ours, "greedy": greedy}

if __name__ == "__main__":
    given = parameters()
    tell(**measure(SPLITS[given["split"]](), given["path"], given["repetitions"]))
