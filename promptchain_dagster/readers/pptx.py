"""PowerPoint files: slide by slide, the speaker's notes with each."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from promptchain_dagster.readers.archive import Archive
from promptchain_dagster.readers.base import in_blocks, table_row, tidy

_TITLES = ("title", "ctrTitle")
_FURNITURE = ("dt", "ftr", "sldNum", "hdr", "sldImg")


def read_pptx(data: bytes) -> tuple[str, list[str]]:
    """Titles as headings, then the texts and tables in the order in which they lie on a slide.

    Hidden slides are left out, and told of.
    """
    archive = Archive(data)
    main = next(
        (part for kind, part in archive.related("").values() if kind == "officeDocument"),
        "ppt/presentation.xml",
    )
    slides = archive.related(main)
    blocks: list[str] = []
    hidden: list[str] = []
    for number, entry in enumerate(archive.xml(main).iterfind(".//sldIdLst/sldId"), 1):
        _, part = slides.get(entry.get("r:id", ""), ("", ""))
        slide = archive.xml(part)
        if slide.get("show", "1") in ("0", "false"):
            hidden.append(str(number))
            continue
        blocks += _shapes(slide)
        blocks += _notes(archive, part)
    warnings = [f"hidden slides left out: {', '.join(hidden)}"] if hidden else []
    return in_blocks(blocks), warnings


def _notes(archive: Archive, part: str) -> Iterator[str]:
    for kind, notes in archive.related(part).values():
        if kind == "notesSlide":
            said = in_blocks(_shapes(archive.xml(notes)))
            if said:
                yield f"Notes: {said}"


def _shapes(parent: Element) -> Iterator[str]:
    for child in parent:
        if child.tag == "sp":
            role = child.find("nvSpPr/nvPr/ph")
            kind = "" if role is None else role.get("type", "")
            text = "\n".join(_paragraphs(child)) if kind not in _FURNITURE else ""
            if text and kind in _TITLES:
                text = f"## {' '.join(text.split())}"
            yield text
        elif child.tag == "tbl":
            rows = (table_row(_cells(row)) for row in child.iter("tr"))
            yield "\n".join(row for row in rows if row)
        elif child.tag != "Fallback":
            yield from _shapes(child)


def _cells(row: Element) -> Iterator[str]:
    return ("\n".join(_paragraphs(cell)) for cell in row.iterfind("tc"))


def _paragraphs(parent: Element) -> Iterator[str]:
    for paragraph in parent.iter("p"):
        text = "".join(
            "\n" if piece.tag == "br" else piece.text or ""
            for piece in paragraph.iter()
            if piece.tag in ("t", "br")
        )
        if tidied := tidy(text):
            yield tidied
