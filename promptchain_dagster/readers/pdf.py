"""PDF: the text as it is drawn, put back into lines, paragraphs and one text over all pages."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from typing import Any

from promptchain_dagster.readers.base import Refused, in_blocks, needed, tidy
from promptchain_dagster.readers.pdf_pages import Line, paragraphs, without_running_heads

_PASSWORD = 4  # FPDF_ERR_PASSWORD
# What PDFium makes of a hyphen that ends a line, as a rule with the line end.
_BROKEN_WORD = re.compile(r"[\x02\ufffe]\n?(?=(\w?))")


def read_pdf(data: bytes) -> tuple[str, list[str]]:
    """The text of all pages, in the order in which it is drawn.

    No text is recognized in pictures; annotations and the contents of forms aren't read.
    """
    pdfium = needed("pypdfium2")
    try:
        document = pdfium.PdfDocument(data)
    except pdfium.PdfiumError as error:
        if error.err_code == _PASSWORD:
            raise Refused("is encrypted: it opens with a password only") from None
        raise Refused(f"is a damaged PDF: {error}") from None
    pages: list[list[Line]] = []
    damaged: list[int] = []
    for number in range(len(document)):
        try:
            pages.append(_lines(pdfium.raw, document[number]))
        except pdfium.PdfiumError:
            damaged.append(number + 1)
            pages.append([])
    return _text(pages), _warnings(pages, damaged)


def _text(pages: Sequence[list[Line]]) -> str:
    heads, rest = without_running_heads(pages)
    blocks = (tidy(_BROKEN_WORD.sub(_mended, block)) for block in paragraphs(rest))
    return in_blocks([*heads, *blocks])


def _mended(end: re.Match[str]) -> str:
    """A word that was broken at a line's end is one word; before a capital the hyphen stays."""
    return "" if end[1].islower() else "-"


def _warnings(pages: Sequence[list[Line]], damaged: list[int]) -> list[str]:
    warnings = [f"its page {number} is damaged and left out" for number in damaged]
    empty = sum(1 for page in pages if not page) - len(damaged)
    if empty:
        warnings.append(
            f"{empty} of its {len(pages)} pages hold no text; if they are scanned, "
            "recognize the text first (OCR)"
        )
    return warnings


def _lines(raw: Any, page: Any) -> list[Line]:
    """The page's lines as PDFium finds them, each with its place."""
    text = page.get_textpage()
    lines: list[Line] = []
    first = 0
    characters: list[str] = []
    for index in range(text.count_chars()):
        character = chr(raw.FPDFText_GetUnicode(text, index))
        if character in "\r\n":
            lines += _line(raw, text, first, characters)
            first, characters = index + 1, []
        else:
            characters.append(character)
    lines += _line(raw, text, first, characters)
    text.close()
    page.close()
    return lines


def _line(raw: Any, text: Any, first: int, characters: list[str]) -> list[Line]:
    """The line of these characters, the first of which has that index; none where it is blank."""
    whole = "".join(characters)
    said = whole.strip()
    if not said:
        return []
    first += whole.index(said)
    left, base = _origin(raw, text, first)
    _, end = _origin(raw, text, first + len(said) - 1)
    return [Line(said, left, base, raw.FPDFText_GetFontSize(text, first), end)]


def _origin(raw: Any, text: Any, index: int) -> tuple[float, float]:
    x, y = ctypes.c_double(), ctypes.c_double()
    raw.FPDFText_GetCharOrigin(text, index, x, y)
    return x.value, y.value
