"""Text as extractors and editors leave it, to text that a model can read.

Only what is no text at all is changed; full-width forms, superscripts and fractions stay (no
NFKC, g1), and so does Markdown with its front matter.
"""

from __future__ import annotations

import re

_SURROGATE = re.compile(r"[\ud800-\udfff]")
_LINE_END = re.compile(r"\r\n|[\r\v\x85\u2028\u2029]")
# Characters that stand for nothing: zero-width space, word joiner, byte-order mark, soft hyphen,
# controls, noncharacters. Joiners (U+200C, U+200D) and direction marks carry meaning and stay.
_NOTHING = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u200b\u2060\ufeff\ufff9-\ufffb\ufdd0-\ufdef"
    + "".join(chr(plane + last) for plane in range(0, 0x110000, 0x10000) for last in (65534, 65535))
    + "]"
)
_SEPARATOR = re.compile("[\x1c-\x1f]")
_PAGE_END_AT_LINE = re.compile(r"(?<![^\n])\f+|\f+(?![^\n])")
_PAGE_END = re.compile(r"\f+")
# A ligature that extraction set apart from its own word ("ﬁ eld"): only one that stands alone
# before a small letter, and is no word by itself; "8 ﬂ oz" and the end of "sci-ﬁ" stay apart.
_LONE_LIGATURE = re.compile(r"(?<![\w-])(?<!\d )([\ufb01-\ufb04]) (?=[a-z])")
_LIGATURE = re.compile("[\ufb00-\ufb06]")
_LIGATURES = {
    0xFB00: "ff",
    0xFB01: "fi",
    0xFB02: "fl",
    0xFB03: "ffi",
    0xFB04: "ffl",
    0xFB05: "st",
    0xFB06: "st",
}
_LONG_BLANK = re.compile(r"\s{1000,}")


def clean_text(text: str) -> tuple[str, tuple[str, ...]]:
    """`text` with LF line ends and without unusable characters, and warnings about what was lost.

    Lone surrogates become U+FFFD (b9); a form feed becomes a space, or nothing at a line's edge
    (c13); ligatures are spelled out (g1); zero-width and control characters go (c15); white space
    of 1,000 characters or more shrinks to a blank line or a space (b7). Everything else is kept
    as it is. Cleaning twice changes nothing more.
    """
    warnings: list[str] = []
    # Each character once. What matches nothing in there matches nothing in the text, which holds
    # none of it as a rule, and is then read once and not ten times.
    characters = "".join(set(text))
    if _SURROGATE.search(characters):
        # Pairs are one character in two halves; what has no other half can't be encoded.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        characters = "".join(set(text))
    if _LINE_END.search(characters):
        text = _LINE_END.sub("\n", text)
    if nuls := text.count("\0"):
        place = text.index("\0")
        around = text[max(0, place - 20) : place + 20]
        warnings.append(f"{nuls} NUL characters removed, letters may be missing: {around!a}")
    if _NOTHING.search(characters):
        text = _NOTHING.sub("", text)
    if _SEPARATOR.search(characters):
        text = _SEPARATOR.sub(" ", text)
    if "\f" in characters:
        text = _PAGE_END.sub(" ", _PAGE_END_AT_LINE.sub("", text))
    if _LIGATURE.search(characters):
        text = _LONE_LIGATURE.sub(r"\1", text).translate(_LIGATURES)
    return _LONG_BLANK.sub(_shorter, text), tuple(warnings)


def _shorter(blank: re.Match[str]) -> str:
    return "\n\n" if blank[0].count("\n") > 1 else "\n" if "\n" in blank[0] else " "
