"""Splitting one file in several ways: how fast, what each loses, and what it makes too long.

The peers' ways are in `peers.splitters`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
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


def measure(splits: Sequence[str], path: str, repetitions: int) -> dict[str, Any]:
    """Each in turns, so many times: the median of its seconds; whether its chunks join up to the
    text, and the tokens of the longest one."""
    text = Path(path).read_text(encoding="utf-8")
    made = {name: SPLITS[name]() for name in splits}
    seconds: dict[str, list[float]] = {name: [] for name in splits}
    chunks: dict[str, Sequence[str]] = {}
    for _ in range(repetitions):
        for name, split in made.items():
            with Clock() as clock:
                chunks[name] = split(text)
            seconds[name].append(clock.seconds)
    return {name: {"seconds": median(seconds[name]), **_judge(chunks[name], text)} for name in made}


def _judge(chunks: Sequence[str], text: str) -> dict[str, Any]:
    count = get_encoder().count
    longest = max((count(one.rstrip()) for one in chunks), default=0)
    return {"lossless": "".join(chunks) == text, "longest": longest}


SPLITS = {"paragraphs": paragraphs, "ours": ours, "greedy": greedy}

if __name__ == "__main__":
    given = parameters()
    tell(splits=measure(given["splits"], given["path"], given["repetitions"]))
