"""Documents whose summaries name every chunk that was folded in, in order."""

from __future__ import annotations

import re

from promptchain_dagster.refine.settings import RefineSettings
from tests.support.folding import PART, TO_COMPRESS, summary_sent

SETTINGS = RefineSettings(chunk_tokens=30, max_words=9)
FILLER = " and on and on and on and on"
_NAME = re.compile(r"Part \d+ of (\w+) says")


def text_of(name: str, chunks: int) -> str:
    """A document of so many chunks with `SETTINGS`."""
    return "\n\n".join(
        f"Part {n} of {name} says that in the harbour the boats were out, and that nobody knew why."
        for n in range(1, chunks + 1)
    )


def summary_of(name: str, chunks: int) -> str:
    """What the document's summary is, each chunk being folded in once, in order."""
    return " ".join(f"{name}p{n}" for n in range(1, chunks + 1))


def answer(prompt: str) -> str:
    """The summary so far and the chunk's mark; every third is over the cap, until compressed."""
    part = PART.search(prompt)
    if part is None:
        return TO_COMPRESS.findall(prompt)[0].replace(FILLER, "")
    name = _NAME.search(part[3])
    assert name, prompt
    folded = f"{summary_sent(prompt)} {name[1]}p{part[1]}".strip()
    return folded + FILLER if int(part[1]) % 3 == 0 else folded
