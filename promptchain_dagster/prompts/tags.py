"""Finding whatever a model could take for one of a prompt's own tags (cases d7, d8).

A look-alike is a less-than sign, slashes or not, and the tag's name as a whole word. Letters may be
of any case or style (full-width, mathematical, accented, Cyrillic twins), and spaces, line breaks
and invisible characters may stand anywhere between. Attributes and a closing `>` do not matter.
A match never reaches past the next less-than sign, so the search takes linear time.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

import regex

LESS_THAN = "<＜﹤‹〈⟨〈˂ᐸ≺⋖❬❮❰⧼⦑⟪≪"
_QUOTE = "«"
"""Resembles a less-than sign only where a slash follows it: else it opens a quotation."""
_ANY_LESS_THAN = re.compile(f"[{LESS_THAN}{_QUOTE}]")
_SLASHES = "/／⁄∕⧸╱⟋\\\\＼﹨∖⧵"
_INVISIBLE = r"\p{M}\p{Cf}\p{Cc}\p{Default_Ignorable_Code_Point}\u2800"
_BETWEEN = rf"[\s{_INVISIBLE}]*+"
_NOT_A_LONGER_NAME = rf"(?![{_INVISIBLE}--\s]*+(?:-[{_INVISIBLE}--\s]*+)*+\w)"

# Blocks that hold compatibility or accented forms of Latin letters, digits and `_`, `-`.
_STYLED = (
    (0x00AA, 0x0250),
    (0x02B0, 0x02E5),
    (0x1D00, 0x1DC0),
    (0x1E00, 0x1F00),
    (0x2010, 0x2150),
    (0x2460, 0x2500),
    (0x2C60, 0x2C80),
    (0xA720, 0xA800),
    (0xFE30, 0xFE70),
    (0xFF00, 0xFF60),
    (0x1D400, 0x1D800),
    (0x1F110, 0x1F190),
    (0x1FBF0, 0x1FBFA),
)
# Each word is a letter and those of other scripts that look like it.
_TWINS = (
    "aаӓɑαᴀ bвЬβʙ cсϲᴄ dԁᴅ eеёҽᴇ fꜰ gɡɢ hһнℎʜ iіїιıɩɪ jјᴊ kкκᴋ lӏǀʟ mмᴍ nոпηɴ oоοօᴏ pрρᴘ"
    " qԛꞯ rгʀ sѕꜱ tтτᴛ uսυᴜ vνѵᴠ wԝωᴡ xхχ yуүγʏ zᴢζ"
)


def lookalikes(names: Iterable[str]) -> regex.Pattern[str]:
    """A pattern for every look-alike of the tags `names`; a match starts at its less-than sign."""
    anyone = "|".join(
        _BETWEEN.join(_variants_class(letter) for letter in name.lower()) for name in sorted(names)
    )
    slash = rf"[{_SLASHES}]{_BETWEEN}"
    opening = rf"(?:[{LESS_THAN}]{_BETWEEN}|{_QUOTE}{_BETWEEN}{slash})(?:{slash})*+"
    return regex.compile(rf"{opening}(?:{anyone or '(?!)'}){_NOT_A_LONGER_NAME}", regex.V1)


def _variants_class(letter: str) -> str:
    variants = {letter, letter.upper(), *_variants().get(letter, ())}
    return f"[{''.join(sorted(map(regex.escape, variants)))}]"


@lru_cache(maxsize=1)
def _variants() -> dict[str, set[str]]:
    """For every letter the characters that look like it."""
    variants: dict[str, set[str]] = {}
    for first, end in _STYLED:
        for character in map(chr, range(first, end)):
            variants.setdefault(_plain(character), set()).add(character)
    for letter, *twins in _TWINS.split():
        for twin in twins:
            variants.setdefault(letter, set()).update((twin.lower(), twin.upper()))
    return variants


def _plain(character: str) -> str:
    """The character in lower case without style or accents."""
    decomposed = unicodedata.normalize("NFKD", character).lower()
    return "".join(part for part in decomposed if not unicodedata.combining(part))


def has_less_than(text: str) -> bool:
    """Whether any look-alike could begin in `text`."""
    return "<" in text if text.isascii() else _ANY_LESS_THAN.search(text) is not None


def opens_into(text: str, mark: str, names: Iterable[str]) -> bool:
    """Whether `text` has a less-than sign and a beginning of one of `names`, then `mark`."""
    for match in regex.finditer(rf"[{LESS_THAN}]([{_SLASHES}\w\-\s{_INVISIBLE}]*+){mark}", text):
        beginning = regex.sub(r"[^\w-]", "", match[1]).lower()
        if any(name.lower().startswith(beginning) for name in names):
            return True
    return False
