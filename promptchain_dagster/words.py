"""Words as Unicode counts them, so that Chinese has words too.

A word is a segment between two word boundaries of UAX 29 that holds a letter or a digit; in
scripts written without spaces each ideograph is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

import regex

_BOUNDARY = regex.compile(r"(?wV1)\b")
_WORD = regex.compile(r"[\p{L}\p{N}]")
_LETTER = regex.compile(r"\p{L}")

# The same rules on ASCII, several times as fast: letters, digits and "_" join, and so do letters
# over . ' : and digits over . , ' ;
_ASCII_WORD = re.compile(
    r"[A-Za-z0-9]\w*(?:(?:(?<=[A-Za-z])[.':](?=[A-Za-z])|(?<=[0-9])[.,;'](?=[0-9]))\w+)*", re.ASCII
)


def _segments(text: str) -> Iterator[str]:
    start = 0
    for boundary in _BOUNDARY.finditer(text):
        yield text[start : boundary.start()]
        start = boundary.start()
    yield text[start:]


def count_words(text: str) -> int:
    """The number of words in `text`; a word holds a letter or a digit."""
    if text.isascii():
        return len(_ASCII_WORD.findall(text))
    parts = re.split(r"[ \n]+", text)  # no word reaches over a space
    plain = " ".join(part for part in parts if part.isascii())
    other = " ".join(part for part in parts if not part.isascii())
    count = sum(1 for segment in _segments(other) if _WORD.search(segment))
    return len(_ASCII_WORD.findall(plain)) + count


def words_of(text: str) -> list[str]:
    """The words of `text`, those that `count_words` counts."""
    if text.isascii():
        return _ASCII_WORD.findall(text)
    return [segment for segment in _segments(text) if _WORD.search(segment)]


def has_words(text: str, least: int) -> bool:
    """Whether `text` has at least `least` words that hold a letter (c9: page numbers don't count).

    Reads no further than it must.
    """
    lettered = (segment for segment in _segments(text) if _LETTER.search(segment))
    return sum(1 for _ in islice(lettered, least)) >= least
