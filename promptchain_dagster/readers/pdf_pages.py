"""Lines on pages to paragraphs, without what each page repeats at its top and its foot."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median_low
from typing import NamedTuple


class Line(NamedTuple):
    """A line of text: where it begins, from the page's lower left corner up, how large its letters
    are, and on which height it ends, as a word that is broken may lead it on to the next line; all
    in points."""

    text: str
    left: float
    base: float
    size: float
    end: float


_AT_THE_EDGE = 2
"""So many lines at the top of a page, and at its foot, may be its running head."""
_FRONT = 50
"""A page's number is not further than this from its place among the pages."""
_DIGITS = re.compile(r"\d{1,6}")
_PAGE_NUMBER = re.compile(r"\W*(?:(?:page|p\.|seite)\s*)?#\W*(?:(?:of|von|de)?\s*#\W*)?", re.I)
_SENTENCE_ENDS = re.compile(r"[.!?…:;。！？][\"'”’»)\]」』）]*$")
_LIST_ITEM = re.compile(r"(?:[•◦▪‣●○■–—*-]|\(?\w{1,3}[.)])\s")


def without_running_heads(pages: Sequence[list[Line]]) -> tuple[list[str], list[list[Line]]]:
    """The heads and feet that pages repeat, once each, page numbers apart; and the pages' lines
    without them.

    One has its place and its words on at least half of the pages, and on three, and no number in
    it but the page's changes; a page number alone is on two. It is never larger than the text.
    """
    places: dict[tuple[str, int], list[tuple[int, Line]]] = {}
    for number, page in enumerate(pages):
        for line in _edges(page):
            places.setdefault(_place(line), []).append((number, line))
    sizes = [line.size for page in pages for line in page]
    largest = 1.05 * median_low(sizes) if sizes else 0
    filled = sum(1 for page in pages if page)
    heads: list[str] = []
    gone: set[tuple[int, Line]] = set()
    for (words, _), found in places.items():
        alone = _is_number(words)
        often = len(found) >= (2 if alone else 3) and 2 * len(found) >= filled
        if often and found[0][1].size <= largest and _counts_pages(found):
            gone.update(found)
            heads += [] if alone else [found[0][1].text]
    rest = [[line for line in page if (n, line) not in gone] for n, page in enumerate(pages)]
    return heads, rest


def _edges(page: list[Line]) -> list[Line]:
    """The first and the last lines of the page, from the top."""
    count = min(_AT_THE_EDGE, len(page) // 3)
    by_height = sorted(page, key=lambda line: -line.base)
    return by_height[:count] + by_height[len(page) - count :]


def _place(line: Line) -> tuple[str, int]:
    return _DIGITS.sub("#", " ".join(line.text.split())), round(line.base)


def _counts_pages(found: list[tuple[int, Line]]) -> bool:
    """Whether each number in these lines is the same in all, or counts the pages."""
    numbers = [[int(one) for one in _DIGITS.findall(line.text)] for _, line in found]
    for column in zip(*numbers, strict=True):
        ahead = {number - page for number, (page, _) in zip(column, found, strict=True)}
        if len(set(column)) > 1 and not (len(ahead) == 1 and abs(ahead.pop()) <= _FRONT):
            return False
    return True


def _is_number(words: str) -> bool:
    return len(words) < 40 and _PAGE_NUMBER.fullmatch(words) is not None


def paragraphs(pages: Sequence[list[Line]]) -> Iterator[str]:
    """The lines of all pages in paragraphs; one that goes on overleaf is one."""
    leading = _leading(pages)
    text = ""
    before: Line | None = None
    for page in pages:
        for number, line in enumerate(page):
            if before is None:
                text = line.text
            elif _begins(before, line, leading if number else None):
                yield text
                text = line.text
            else:
                beside = number and abs(before.end - line.base) < 0.2 * line.size
                text += f" {line.text}" if beside else f"\n{line.text}"
            before = line
    yield text


def _leading(pages: Sequence[list[Line]]) -> float:
    """How far apart lines are as a rule, in sizes of their letters."""
    steps = [
        (above.end - below.base) / below.size
        for page in pages
        for above, below in pairwise(page)
        if above.size == below.size > 0
    ]
    counts = Counter(round(step, 1) for step in steps if 0.5 < step < 4)
    return min(counts, key=lambda step: (-counts[step], step), default=1.2)


def _begins(before: Line, line: Line, leading: float | None) -> bool:
    """Whether `line` begins a paragraph; `leading` is None on another page."""
    if abs(line.size - before.size) > 0.12 * max(line.size, before.size):
        return True
    ended = _SENTENCE_ENDS.search(before.text) is not None
    step = before.end - line.base
    if leading is None or step < -0.5 * line.size:  # another page, or another column
        return ended or _LIST_ITEM.match(line.text) is not None
    if step > 1.35 * leading * line.size:
        return True
    indented = 0.8 * line.size < line.left - before.left < 5 * line.size
    return ended and indented and step > 0.5 * line.size
