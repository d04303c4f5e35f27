"""What is summarized: generated files, the same ones for the same number of documents."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.workload import paragraphs_of

CHUNK_TOKENS = 200
MAX_WORDS = 120
"""Of a summary: under it a reply is unless the text is told at length."""

REFUSED, AT_LENGTH = "Refuse to read this.", "Tell this at length."
"""What makes the model refuse a text, or give a summary that is over the cap."""

_ODD: dict[int, bytes] = {
    7: b"1\n\f\n2\n\f\n",
    17: b"%PDF-1.7 and no text, whatever the name says",
    37: b"",
}
"""Of every fifty documents, those without content and those that are no text."""


def write_documents(folder: Path, count: int) -> None:
    """So many files, one paragraph to a chunk, mostly 1 to 4, of a hundred one of 12."""
    folder.mkdir(parents=True)
    for number in range(count):
        (folder / f"{number:06}.txt").write_bytes(_content(number))


def number_of(text: str) -> str | None:
    """Which document a text is about; equal documents are one."""
    found = re.search(r"Document (\d{6}),", text)
    return found[1] if found else None


def original(number: int) -> int:
    """The document whose text it has: of ten one is like the one before it."""
    return number - 1 if number % 10 == 4 else number


def _content(number: int) -> bytes:
    if number % 50 in _ODD:
        return _ODD[number % 50]
    number = original(number)
    chunks = 12 if number % 100 == 1 else 1 + number * 7 % 4
    paragraphs = paragraphs_of(number, chunks)
    if number % 50 == 27:
        paragraphs[-1] += f" {REFUSED}"
    if number % 10 == 5:
        paragraphs[number % chunks] += f" {AT_LENGTH}"
    text = (f"Document {number:06}, {index}. {one}" for index, one in enumerate(paragraphs, 1))
    return "\n\n".join(text).encode()
