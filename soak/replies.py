"""What the model says: a function of the prompt alone, so that any two runs can be compared."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from soak.documents import AT_LENGTH, REFUSED, number_of

_REFINE = re.compile(
    r"<summary_so_far>(.*?)</summary_so_far>\n"
    r'<part number="(\d+)" of="\d+">(.*?)</part>',
    re.DOTALL,
)
_COMPRESS = re.compile(r"<summary>(.*?)</summary>", re.DOTALL)
_PADDING = "\n" + " ".join(["and so on and on, as it went,"] * 20)


@dataclass(frozen=True)
class Told:
    """What a prompt is about, and the reply to it: None where the model refuses."""

    document: str
    step: str
    part: int
    reply: str | None


def told(prompt: str) -> Told:
    """Raises `ValueError` for a prompt that is none of ours, whole."""
    document = number_of(prompt)
    if document and (found := _REFINE.search(prompt)):
        earlier, part, text = found[1], int(found[2]), found[3]
        return Told(document, "refine", part, _refined(document, earlier, part, text))
    if document and (found := _COMPRESS.search(prompt)):
        part = found[1].count("part ")
        return Told(document, "compress", part, concise(found[1]))
    raise ValueError(f"no prompt of ours: {prompt[:300]!r}")


def concise(summary: str) -> str:
    """The summary without what its compression takes out."""
    return summary.replace(_PADDING, "")


def _refined(document: str, earlier: str, part: int, text: str) -> str | None:
    if REFUSED in text:
        return None
    kept = concise(earlier)
    # A part that was lost, folded twice or out of turn changes every line after it.
    mark = hashlib.sha256(f"{kept}\n{text}".encode()).hexdigest()[:16]
    line = f"Document {document}, part {part}: {mark}."
    return "\n".join(filter(None, (kept, line))) + (_PADDING if AT_LENGTH in text else "")
