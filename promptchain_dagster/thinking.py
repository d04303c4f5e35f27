"""What stands around a reply's text and is none of it: white space, think blocks, one fence."""

from __future__ import annotations

import re

# JSON knows four kinds of white space; what else models put around a reply means nothing (a24).
EDGES = (
    " \t\n\r\v\f\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000"
    "\u200b\u200e\u200f\u2060\ufeff\xad" + "".join(map(chr, range(0x2000, 0x200B)))
)
_NAMES = r"(?:think|thinking|thought|reasoning|analysis|seed:think)"
OPENS = rf"(?:<{_NAMES}\s*>|\[think\]|◁think▷)"
"""How a think block opens; to be matched without regard to case, as `CLOSES` and `FENCE`."""
CLOSES = rf"(?:</{_NAMES}\s*>|\[/think\]|◁/think▷)"
# No more of its own mark follows a fence: else a long line of them is tried at every length.
FENCE = r"[ \t]*(?P<fence>`{3,}|~{3,}(?!~))(?P<info>[^\n`{\[]*)"

OPENING = re.compile(OPENS, re.IGNORECASE)
CLOSING = re.compile(CLOSES, re.IGNORECASE)
ENDS_CLOSED = re.compile(rf"{CLOSES}\Z", re.IGNORECASE)
_LINE_ENDS = re.compile(r"[ \t\r]*(?:\n|\Z)")
_TEXT_FOLLOWS = re.compile(f"[{EDGES}]*[^{EDGES}]")
_OPENS_HERE = re.compile(f"[{EDGES}]*{OPENS}", re.IGNORECASE)
_FENCE = re.compile(FENCE)
FENCE_LINE = re.compile(f"^{FENCE}$", re.MULTILINE)
_PROSE = ("md", "markdown", "text", "txt", "plaintext")


def trimmed(text: str) -> str:
    """`text` without white space and invisible characters at its ends."""
    return text.strip(EDGES)


def without_thinking(text: str) -> str:
    """`text`, trimmed, after the think blocks it begins with (a5).

    Nothing is left if the last of them is not closed: the reply was cut before its text began.
    """
    position = 0
    while opens := _OPENS_HERE.match(text, position):
        closes = CLOSING.search(text, opens.end())
        if closes is None:
            return ""
        position = closes.end()
    return trimmed(text[position or _end_of_unopened(text) :])


def ends_thinking(text: str, closes: re.Match[str]) -> bool:
    """Whether a closing tag that nothing opened is used, not spoken of (a5).

    Some servers swallow the opening tag. The one that closes ends its line, and text follows, or
    it is alone on that line.
    """
    if not _LINE_ENDS.match(text, closes.end()):
        return False
    line = text[text.rfind("\n", 0, closes.start()) + 1 : closes.start()]
    return not trimmed(line) or _TEXT_FOLLOWS.match(text, closes.end()) is not None


def _end_of_unopened(text: str) -> int:
    """Where the thinking ends whose opening tag is missing; 0 where there is none."""
    closes = next((one for one in CLOSING.finditer(text) if ends_thinking(text, one)), None)
    if closes is None or OPENING.search(text, 0, closes.start()):
        return 0
    in_fence = len(FENCE_LINE.findall(text, 0, closes.start())) % 2
    return 0 if in_fence else closes.end()


def unfenced(text: str) -> str:
    """`text`, trimmed, without a fence around the whole of it.

    A fence closes on its own mark, at least as long. Between the first line and the last, fences
    must open and close in turn; where they could as well be neighbours of the first, only a fence
    for prose is taken for a wrapping.
    """
    text = trimmed(text)
    first, *middle = text.split("\n")
    opens = _FENCE.fullmatch(first)
    closes = _FENCE.fullmatch(middle.pop()) if middle else None
    if not opens or not closes:
        return text
    mark, info = opens["fence"], trimmed(opens["info"]).lower()
    fences = [fence for fence in map(_FENCE.fullmatch, middle) if fence]
    has_info = [bool(trimmed(f["info"])) for f in fences if f["fence"].startswith(mark)]
    inside = False
    for one in has_info:
        inside = one or not inside  # one with an info never closes
    may_be_neighbours = has_info and not has_info[0] and info.split(" ")[0] not in _PROSE
    last_closes = closes["fence"].startswith(mark) and not trimmed(closes["info"])
    if inside or may_be_neighbours or not last_closes:
        return text
    return trimmed("\n".join(middle))
