"""Keeps the key out of everything that is shown: servers echo it in their errors, whole or cut."""

from __future__ import annotations

import re

LONGEST = 300
"""Characters of a server's own words that are kept."""

_MASK = "[redacted]"
_A_SECRET = 16
_PART = 6
"""So many characters of the key in a row give it away."""

# A key by its look, and one that the server has masked itself ("sk-ab***yz").
_LOOKS_LIKE_KEY = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai)[-_][\w*.…\-]{4,}|[\w\-]*\*{3,}[\w\-*]*|(?i:bearer\s+)\S+"
)


def without_key(answer: str, key: str | None) -> str:
    """A server's good answer, all of which may be kept, without the key that some echo.

    A key of under 16 characters is a placeholder for servers that need none, and may be a word.
    """
    return answer.replace(key, _MASK) if key and len(key) >= _A_SECRET else answer


def redact(text: str, key: str | None) -> str:
    """`text` without the key, a part of it, or anything that looks like one; one line, bounded."""
    text = " ".join(text[: 20 * LONGEST].split())
    text = _LOOKS_LIKE_KEY.sub(_MASK, _without_parts(text, key) if key else text)
    text = re.sub(r"(\[redacted\])+", _MASK, text)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _without_parts(text: str, key: str) -> str:
    least = min(_PART, len(key))
    kept: list[str] = []
    at = 0
    while at < len(text):
        length = least
        while length <= len(text) - at and text[at : at + length] in key:
            length += 1
        if length == least:
            kept.append(text[at])
            at += 1
        else:
            kept.append(_MASK)
            at += length - 1
    return "".join(kept)
