"""Subtitles (WebVTT, SubRip) to what is said: no time codes, no line twice."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from promptchain_dagster.readers.base import Refused, in_blocks, tidy

PAUSE = 3.0
"""Seconds of silence that begin a new paragraph."""
_ROLLS_ON = 0.2
"""A caption that follows the one before it sooner than this may show its last lines again."""

_TIME = r"(?:(\d+):)?([0-5]?\d):([0-5]?\d)(?:[.,](\d{1,3}))?"
_TIMING = re.compile(rf"[ \t]*{_TIME}[ \t]*-->[ \t]*{_TIME}(?:[ \t].*)?$")
_VOICE = re.compile(r"<v(?:\.[^ \t<>]*)?[ \t]+([^<>]*)>")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>|<[\d:.]+>|\{\\[^{}]*\}")
_NO_CUE = ("WEBVTT", "NOTE", "STYLE", "REGION")


def read_captions(text: str) -> str:
    """The captions' text, in paragraphs: a new one after a pause, and with another speaker.

    Refuses a file without a time code.
    """
    blocks = [block.split("\n") for block in re.split(r"\n(?:[ \t]*\n)+", _lines(text))]
    cues: list[_Cue] = []
    for block in blocks:
        found = list(_cues(block))
        if not found and cues and not block[0].startswith(_NO_CUE):
            cues[-1][2].extend(_said_in(block))  # a caption with an empty line in it
        cues.extend(found)
    if not cues and text.strip():
        raise Refused("holds no caption with a time code, so it is no WebVTT or SubRip file")
    return in_blocks("\n".join(lines) for lines in _paragraphs(cues))


_Cue = tuple[float, float, list[str]]


def _lines(text: str) -> str:
    return re.sub(r"\r\n?", "\n", text.lstrip("\ufeff"))


def _cues(block: list[str]) -> Iterator[_Cue]:
    """The captions in a block of lines: one as a rule, several where a blank line was forgotten."""
    timings = [number for number, line in enumerate(block) if _TIMING.match(line)]
    if not timings:
        return
    for place, number in enumerate(timings):
        end = timings[place + 1] if place + 1 < len(timings) else len(block)
        lines = block[number + 1 : end]
        if end < len(block) and lines and lines[-1].strip().isdigit():
            lines = lines[:-1]  # the next one's number
        start, stop = _times(block[number])
        yield start, stop, _said_in(lines)


def _times(line: str) -> tuple[float, float]:
    found = _TIMING.match(line)
    assert found is not None
    parts = [int(part or 0) for part in found.groups()]
    thousandths = [(group or "").ljust(3, "0") for group in (found[4], found[8])]
    start = parts[0] * 3600 + parts[1] * 60 + parts[2] + int(thousandths[0]) / 1000
    stop = parts[4] * 3600 + parts[5] * 60 + parts[6] + int(thousandths[1]) / 1000
    return start, stop


def _said_in(lines: list[str]) -> list[str]:
    return [said for line in lines if (said := _said(line))]


def _said(line: str) -> str:
    line = _VOICE.sub(lambda voice: f"{voice[1].strip()}: ", line)
    return tidy(html.unescape(_TAG.sub("", line)))


def _paragraphs(cues: list[_Cue]) -> Iterator[list[str]]:
    paragraph: list[str] = []
    shown: list[str] = []
    until = 0.0
    for start, stop, lines in cues:
        fresh = lines[_again(shown, lines) :] if start - until < _ROLLS_ON else lines
        speaks = bool(fresh) and re.match(r"[^:.!?]{1,60}: ", fresh[0]) is not None
        if paragraph and fresh and (start - until >= PAUSE or speaks):
            yield paragraph
            paragraph = []
        paragraph.extend(fresh)
        shown, until = lines or shown, max(stop, until)
    yield paragraph


def _again(shown: list[str], lines: list[str]) -> int:
    """How many of the first `lines` are the last ones of those `shown` before."""
    for count in range(min(len(shown), len(lines)), 0, -1):
        if shown[-count:] == lines[:count]:
            return count
    return 0
