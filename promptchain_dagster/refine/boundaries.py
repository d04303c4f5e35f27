"""The best place to end a chunk inside a paragraph that does not fit."""

from __future__ import annotations

import re

import regex

# A stop, the quotes and brackets that close after it, and what shows that a sentence ended there:
# white space and no small letter, or a full-width stop, which needs no space (c10).
_SENTENCE_END = re.compile(
    r"[.!?…]+[\"'”’»)\]]*(?=\s+[^\sa-z])"
    r"|(?:[。！？｡]|．(?!\d))+[\"'”’」』】》）)\]]*"
)
_WORD_END = regex.compile(r"(?r)\s+")
_WORD_BOUNDARY = regex.compile(r"(?wV1)\b")
_CHARACTER = regex.compile(r"\X")
# Two neighbours that are never parts of one character, the last such pair.
_BETWEEN_CHARACTERS = regex.compile(r"(?r)[!-~\u4e00-\u9fff]{2}")
_SPACE = re.compile(r"\s*")


def after_space(text: str, end: int) -> int:
    """Where the next chunk begins when one ends at `end`: past the white space, but before the
    indentation of a new line (c7)."""
    found = _SPACE.match(text, end)
    after = found.end() if found else end
    line_end = text.rfind("\n", end, after)
    return after if line_end < 0 else line_end + 1


def last_break(text: str, start: int, fits: int) -> int | None:
    """The last sentence end in (`start`, `fits`], or else line end, or else word end.

    `text[start:fits]` fits, and the text goes on after it; white space after the break may lie
    beyond `fits`. Reads no further than the first visible character from `fits` on, so that text
    appended later changes no break.
    """
    # The pattern looks ahead, over white space, to one visible character.
    beyond = _SPACE.match(text, fits)
    stop = (beyond.end() if beyond else fits) + 1
    found = None
    for match in _SENTENCE_END.finditer(text, start, stop):
        if match.end() > fits:
            break
        if not _inside_character(text, after_space(text, match.end())):
            found = match.end()
    if found is not None:
        return found
    line_end = text.rfind("\n", start, stop - 1)
    if line_end >= 0 and text[start:line_end].strip():
        return start + len(text[start:line_end].rstrip())
    return _last_word_end(text, start, stop - 1)


def _last_word_end(text: str, start: int, stop: int) -> int | None:
    while (space := _WORD_END.search(text, start, stop)) is not None:
        if space.start() == start:
            return None
        if not _inside_character(text, after_space(text, space.start())):
            return space.start()
        stop = space.start()
    return None


def characters(text: str, start: int, end: int) -> list[int]:
    """The ends of the characters (grapheme clusters) that begin at `start` and end by `end`.

    Of a long run only the last ones are found.
    """
    known = _BETWEEN_CHARACTERS.search(text, start, max(start, end - 64))
    first = known.start() + 1 if known else start
    # A little more than asked for is read, so that a character across `end` is seen whole.
    found = [match.end() for match in _CHARACTER.finditer(text, first, end + 32)]
    return [
        place
        for place in (first, *found)
        if start < place <= end and not _inside_character(text, after_space(text, place))
    ]


def last_word_boundary(text: str, start: int, places: list[int]) -> int:
    """The last of `places` at which Unicode ends a word, or else the last of them.

    For a long run without a space: a name in Chinese text stays whole where it can.
    """
    near = max(start, places[-1] - 64)
    ends = {match.start() for match in _WORD_BOUNDARY.finditer(text, near, places[-1])}
    return next((place for place in reversed(places[:-1]) if place in ends), places[-1])


def _inside_character(text: str, place: int) -> bool:
    found = _CHARACTER.match(text, place - 1, place + 1)
    return found is not None and found.end() > place
