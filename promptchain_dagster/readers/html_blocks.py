"""Blocks of text, put together from a page's pieces in the order they come."""

from __future__ import annotations

import re

from promptchain_dagster.readers.base import table_row

_SPACES = re.compile(r"[ \t\n\r\f]+")
_AROUND_LINE_END = re.compile(r" *\n *")
_EMPTY_LINES = re.compile(r"\n{2,}")


class Blocks:
    """What is being read: whole blocks, and the one at hand, in pieces."""

    def __init__(self) -> None:
        self._blocks: list[tuple[str, bool]] = []  # the text, and whether it is a list's item
        self._pieces: list[str] = []
        self._prefix = ""
        self._item = False
        self._pre = False
        self._lists: list[int | None] = []
        self._rows: list[str] | None = None
        self._cells: list[str] = []

    def text(self, text: str) -> None:
        """A piece; its line ends are spaces, unless it is preformatted."""
        if text:
            self._pieces.append(text if self._pre else _SPACES.sub(" ", text))

    def line_end(self) -> None:
        self._pieces.append("\n")

    def begin(self, prefix: str = "", *, pre: bool = False) -> None:
        """End the block at hand and begin another; within a table, a cell is one block."""
        if self._rows is not None:
            self._pieces.append(" ")
            return
        self._flush()
        self._pre = pre
        if prefix:
            self._prefix, self._item = prefix, False

    def end(self) -> None:
        """End the block at hand, and its prefix with it, where it was empty."""
        self.begin()
        self._prefix = ""

    def begin_list(self, first: int | None) -> None:
        """Bullets, or numbers from `first` on."""
        self._lists.append(first)

    def end_list(self) -> None:
        self.begin()
        if self._lists:
            self._lists.pop()

    def begin_item(self) -> None:
        self.begin()
        if self._rows is not None:
            return
        number = self._lists[-1] if self._lists else None
        if number is not None:
            self._lists[-1] = number + 1
        indent = "  " * (len(self._lists[:9]) - 1)
        self._prefix = f"{indent}{'-' if number is None else f'{number}.'} "
        self._item = True

    def begin_table(self) -> None:
        self._rows = []

    def end_cell(self) -> None:
        self._cells.append("".join(self._pieces))
        self._pieces = []

    def end_row(self) -> None:
        """Also of what lies between rows, such as a caption."""
        if "".join(self._pieces).strip():
            self.end_cell()
        if self._rows is not None and (row := table_row(self._cells)):
            self._rows.append(row)
        self._cells, self._pieces = [], []

    def end_table(self) -> None:
        self.end_row()
        rows, self._rows = self._rows, None
        if rows:
            self._blocks.append(("\n".join(rows), False))

    def finished(self) -> list[str]:
        """All blocks; a list is one."""
        self._flush()
        joined: list[list[str]] = []
        before = False
        for text, item in self._blocks:
            if item and before:
                joined[-1].append(text)
            else:
                joined.append([text])
            before = item
        return ["\n".join(lines) for lines in joined]

    def _flush(self) -> None:
        whole = "".join(self._pieces)
        self._pieces = []
        if self._pre:
            self._pre = False
            lines = whole.replace("\r\n", "\n").strip("\n")
            self._keep(lines if lines.strip() else "")
            return
        whole = _AROUND_LINE_END.sub("\n", re.sub(" {2,}", " ", whole)).strip(" \n")
        for part in _EMPTY_LINES.split(whole):
            self._keep(part)

    def _keep(self, text: str) -> None:
        if not text:
            return
        prefix, self._prefix = self._prefix, ""
        if prefix.startswith("#"):
            text = text.replace("\n", " ")
        self._blocks.append((prefix + text, self._item and bool(prefix)))
