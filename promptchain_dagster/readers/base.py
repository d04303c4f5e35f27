"""What all readers share: how one refuses, and how its blocks become a text."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable
from typing import Any

EXTRA = "pip install 'promptchain-dagster[files]'"

# Not the no-break space, nor those of other widths: they are part of the text.
_BLANKS = re.compile(r"[ \t]+")


class Refused(Exception):
    """Why a file can't be read, as a sentence whose subject is the file.

    `may_pass`: not by what is in the file, so that the next try may succeed.
    """

    def __init__(self, why: str, *, may_pass: bool = False) -> None:
        self.may_pass = may_pass
        super().__init__(why)


def needed(module: str) -> Any:
    """A module of the extra `files`; refuses the file where it isn't installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise Refused(
            f"can't be read without {module.split('.')[0]}: {EXTRA}", may_pass=True
        ) from error


def in_blocks(blocks: Iterable[str]) -> str:
    """A text of paragraphs, headings and tables, a blank line between; empty ones left out."""
    return "\n\n".join(block for block in blocks if block.strip())


def tidy(text: str) -> str:
    """Its lines, without the empty ones, and without blanks at their ends or two in a row."""
    lines = (_BLANKS.sub(" ", line).strip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


def table_row(cells: Iterable[str]) -> str:
    """A row of a table on one line: `Ann | 34`; empty where all cells are."""
    texts = [tidy(cell).replace("\n", " ") for cell in cells]
    return " | ".join(texts).strip() if any(texts) else ""
