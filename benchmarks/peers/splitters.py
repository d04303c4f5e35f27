"""The splitters of others, set up so that they lose as little as they can."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tiktoken

from benchmarks.child import Clock, parameters, tell
from benchmarks.workload import CHUNK_TOKENS

ENCODING = "o200k_base"
Split = Callable[[str], Sequence[str]]


def langchain() -> Split:
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    splitter = RecursiveCharacterTextSplitter.from_tiktoken_encoder(
        ENCODING,
        chunk_size=CHUNK_TOKENS,
        chunk_overlap=0,
        keep_separator="end",
        strip_whitespace=False,
        disallowed_special=(),
    )
    return splitter.split_text


def llamaindex() -> Split:
    from llama_index.core.node_parser import SentenceSplitter

    encoding = tiktoken.get_encoding(ENCODING)
    splitter = SentenceSplitter(
        chunk_size=CHUNK_TOKENS, chunk_overlap=0, tokenizer=encoding.encode_ordinary
    )
    # Its own time limit for a regular expression is over on a text much longer than that.
    return lambda text: [
        chunk for piece in _pieces(text, 1_000_000) for chunk in splitter.split_text(piece)
    ]


def _pieces(text: str, characters: int) -> Iterator[str]:
    """`text` in pieces of about so many characters, cut at paragraph ends where there are any."""
    start = 0
    while start < len(text):
        end = text.find("\n\n", start + characters)
        stop = end + 2 if end >= 0 else len(text)
        yield text[start:stop]
        start = stop


def semantic() -> Split:
    from semantic_text_splitter import TextSplitter

    splitter = TextSplitter.from_tiktoken_model("gpt-4o", CHUNK_TOKENS, trim=False)
    return splitter.chunks


def chonkie() -> Split:
    from chonkie import RecursiveChunker

    chunker = RecursiveChunker(tiktoken.get_encoding(ENCODING), chunk_size=CHUNK_TOKENS)
    return lambda text: [chunk.text for chunk in chunker(text)]


SPLITS: dict[str, Callable[[], Split]] = {
    "langchain": langchain,
    "llamaindex": llamaindex,
    "semantic": semantic,
    "chonkie": chonkie,
}


def measure(split: Split, path: str) -> dict[str, Any]:
    """As `cases.splitting` does, once."""
    with open(path, encoding="utf-8", newline="") as file:
        text = file.read()
    with Clock() as clock:
        chunks = split(text)
    encoding = tiktoken.get_encoding(ENCODING)
    longest = max((len(encoding.encode_ordinary(one.rstrip())) for one in chunks), default=0)
    return {"seconds": clock.seconds, "lossless": "".join(chunks) == text, "longest": longest}


if __name__ == "__main__":
    given = parameters()
    (name,) = given["splits"]
    tell(splits={name: measure(SPLITS[name](), given["path"])})
