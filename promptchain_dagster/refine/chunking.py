"""Text to chunks within a token limit, in order, nothing lost.

A chunk is as long as the limit lets it be, cut back to the last paragraph end in it; where there
is none, to the last sentence end, or else line end, word end, character. What makes this about
as fast as counting the text once: `seams` says where counts add up, so that a chunk's count is a
sum over parts each counted once. A chunk with any other cut inside is counted again as a whole.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.refine.boundaries import (
    after_space,
    characters,
    last_break,
    last_word_boundary,
)
from promptchain_dagster.tokens import Encoder
from promptchain_dagster.tokens.seams import LONGEST, SEAM, cut_up

_PARAGRAPH_END = re.compile(r"\n(?:[^\S\n]*\n)+")
# After a paragraph's end: what a tokenizer may join to the line end before it.
_NO_SEAM = re.compile(r"/|\s*\r")
# Where a chunk may grow to, one word after the other.
_WORD_END = re.compile(rf"\S(?=\s)|{SEAM.pattern}")
_BLANK_LINES = re.compile(r"\s*\n")


@dataclass(frozen=True, slots=True)
class Chunk:
    """One part of a text; `index` counts from 1 to `total`.

    `start` and `end` are character positions; the spans of a text's chunks join up to the text.
    `text` is the span without the blank lines around it, and `tokens` the tokens of that.
    """

    index: int
    total: int
    text: str
    start: int
    end: int
    tokens: int


def split_text(text: str, max_tokens: int, encoder: Encoder) -> list[Chunk]:
    """Split `text` into chunks of at most `max_tokens` tokens each.

    Text without anything but white space gives no chunk. Stable: what is appended after the last
    word changes no chunk but the last. Raises InvalidInput for a limit under 1, and for one so
    small that a single character of the text takes more.
    """
    if max_tokens < 1:
        raise InvalidInput(f"chunk tokens: {max_tokens}, must be at least 1")
    stop = len(text.rstrip())
    parts = _Parts(text, stop, encoder)
    found: list[tuple[int, int, int]] = []
    begin = _first_line(text, 0, stop)
    while begin < stop:
        found.append(_next_chunk(parts, begin, max_tokens))
        begin = _first_line(text, after_space(text, found[-1][1]), stop)
    spans = [0, *(after_space(text, end) for _, end, _ in found[:-1]), len(text)]
    return [
        Chunk(i + 1, len(found), text[begin:end], spans[i], spans[i + 1], tokens)
        for i, (begin, end, tokens) in enumerate(found)
    ]


def _first_line(text: str, start: int, stop: int) -> int:
    blank = _BLANK_LINES.match(text, start, stop)
    return blank.end() if blank else start


def _next_chunk(parts: _Parts, begin: int, max_tokens: int) -> tuple[int, int, int]:
    """The chunk that begins at `begin` or, without its indentation, after it: its text's begin
    and end, and its tokens."""
    budget = max_tokens
    while True:
        draft = _Draft(parts, begin, budget)
        end = draft.end()
        if end is None:  # not even the first word fits beside its indentation
            begin = after_space(parts.text, begin)
            continue
        tokens = draft.tokens(end)
        if tokens <= max_tokens:
            return begin, end, tokens
        if end == begin + 1:
            raise InvalidInput(
                f"chunk tokens: {max_tokens} is too few, the character "
                f"{parts.text[begin:end]!a} takes {tokens}"
            )
        # Parts that meet at no seam can take more tokens together than apart: aim lower.
        budget -= tokens - max_tokens


class _Parts:
    """A text in parts of at most about 1,000 characters, none across a paragraph's end.

    Each is counted at most once. `seams[i]`: counts add up at `ends[i]`.
    """

    def __init__(self, text: str, stop: int, encoder: Encoder) -> None:
        self.text = text
        self.count = encoder.count
        self.ends: list[int] = []
        self.seams: list[bool] = []
        self.paragraph_ends: list[bool] = []
        self._tokens: dict[int, int] = {}
        start = 0
        for end in (*(m.end() for m in _PARAGRAPH_END.finditer(text, 0, stop)), stop):
            if end - start > LONGEST:
                for place, seam in cut_up(text, start, end):
                    self._add(place, seam and encoder.additive, False)
            self._add(end, encoder.additive and _NO_SEAM.match(text, end) is None, True)
            start = end

    def _add(self, end: int, seam: bool, paragraph_end: bool) -> None:
        self.ends.append(end)
        self.seams.append(seam)
        self.paragraph_ends.append(paragraph_end)

    def start(self, at: int) -> int:
        return self.ends[at - 1] if at else 0

    def tokens(self, at: int) -> int:
        tokens = self._tokens.get(at)
        if tokens is None:
            tokens = self._tokens[at] = self.count(self.text[self.start(at) : self.ends[at]])
        return tokens


class _Draft:
    """One chunk in the making, from `begin` on, its parts' tokens adding up to the budget."""

    def __init__(self, parts: _Parts, begin: int, budget: int) -> None:
        self.parts = parts
        self.begin = begin
        self.budget = budget
        self.first = bisect_right(parts.ends, begin)
        self.sums = [0]  # the chunk's tokens before its first part, before its second, ...
        for at in range(self.first, len(parts.ends)):
            total = self.sums[-1] + self._part_tokens(at)
            self.last = at
            if total > budget:
                break
            self.sums.append(total)

    def end(self) -> int | None:
        """Where the chunk's text ends; None if it needs to begin after its indentation."""
        end = self._paragraph_end()
        if end is not None:
            return end
        fits = self._fitting_end()
        end = last_break(self.parts.text, self.begin, fits)
        if end is not None:
            return end
        if self.parts.text[self.begin].isspace():
            return None
        return self._end_in_word(fits)

    def tokens(self, end: int) -> int:
        """The tokens of the text from `begin` to `end`, exactly."""
        last = bisect_left(self.parts.ends, end)
        if all(self.parts.seams[self.first : last]):
            return self.sums[last - self.first] + self._tokens_of_part(last, end)
        return self._count(self.begin, end)

    def _tokens_of_part(self, at: int, end: int) -> int:
        """The tokens of part `at` up to `end`."""
        start, stop = self._start(at), self.parts.ends[at]
        seam = self.parts.text.rfind(" ", start, end)
        if start < seam and stop < end + 8 and not self.parts.text[seam - 1].isspace():
            # The whole was counted: only the last word is, with what follows and without.
            return self._part_tokens(at) - self._count(seam, stop) + self._count(seam, end)
        return self._count(start, end)

    def _paragraph_end(self) -> int | None:
        for at in range(self.last, self.first - 1, -1):
            if self.parts.paragraph_ends[at]:
                start = self._start(at)
                end = start + len(self.parts.text[start : self.parts.ends[at]].rstrip())
                if start < end and self.tokens(end) <= self.budget:
                    return end
        return None

    def _fitting_end(self) -> int:
        """About how far the chunk may reach, found in the first part that is too much."""
        start, stop = self._start(self.last), self.parts.ends[self.last]
        room = self.budget - self.sums[self.last - self.first]
        stop = start + len(self.parts.text[start:stop].rstrip())
        words = [match.end() for match in _WORD_END.finditer(self.parts.text, start, stop)]
        places = [start, *words, stop]
        fitting = bisect_right(places, room, 1, key=lambda end: self._count(start, end))
        word = range(places[fitting - 1], places[min(fitting, len(places) - 1)] + 1)
        return word[bisect_right(word, room, 1, key=lambda end: self._count(start, end)) - 1]

    def _end_in_word(self, fits: int) -> int:
        text, begin = self.parts.text, self.begin
        places = characters(text, begin, fits)
        if places:
            return last_word_boundary(text, begin, places)
        whole = characters(text, begin, begin + 32)
        if whole and self._count(begin, whole[0]) <= self.budget:
            return whole[0]
        # One character takes more than the limit: it is divided into its code points.
        return max(fits, begin + 1)

    def _start(self, at: int) -> int:
        return self.begin if at == self.first else self.parts.start(at)

    def _part_tokens(self, at: int) -> int:
        if at == self.first and self.begin != self.parts.start(at):
            return self._count(self.begin, self.parts.ends[at])
        return self.parts.tokens(at)

    def _count(self, start: int, end: int) -> int:
        return self.parts.count(self.parts.text[start:end])
