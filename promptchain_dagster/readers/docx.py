"""Word files: what the document says with all its tracked changes accepted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from promptchain_dagster.readers.archive import Archive
from promptchain_dagster.readers.base import in_blocks, table_row, tidy

# Deleted text, text that moved away, instructions of fields, what repeats a drawing for old
# readers, and properties, where changes of format are kept.
_PASSED_OVER = frozenset(
    {"del", "moveFrom", "delText", "instrText", "delInstrText", "Fallback", "rt"}
    | {"pPr", "rPr", "sectPr", "tblPr", "trPr", "tcPr"}
)
_CHANGES = {"del": "deletions", "moveFrom": "moves"}
_SIGNS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "ptab": "\t"}
_NOTES = (("footnote", "footnotes"), ("endnote", "endnotes"))
_ORDINARY_NOTES = (None, "normal")


def read_docx(data: bytes) -> tuple[str, list[str]]:
    """Headings, paragraphs, lists, tables and text boxes in order, the notes at the end.

    Deleted and hidden text is left out (g9), and so are comments, headers and footers.
    """
    archive = Archive(data)
    main = next(
        (part for kind, part in archive.related("").values() if kind == "officeDocument"),
        "word/document.xml",
    )
    reader = _Reader(archive, main)
    blocks = list(reader.blocks(archive.xml(main)))
    blocks += reader.notes()
    return in_blocks(blocks), reader.warnings()


class _Reader:
    def __init__(self, archive: Archive, main: str) -> None:
        self._archive = archive
        self._parts = dict(archive.related(main).values())
        self._levels: dict[str, int] = {}  # of headings, from 0 on, by style
        self._list_styles: set[str] = set()
        self._read_styles()
        self._cited: list[tuple[str, str]] = []
        self._left_out: dict[str, int] = {}
        self._joined = ""  # paragraphs whose ends were deleted, waiting for the next

    def blocks(self, parent: Element) -> Iterator[str]:
        """What the children of `parent` say; a list's items are one block."""
        items: list[str] = []
        for is_item, block in self._pieces(parent):
            if is_item:
                items.append(block)
            elif block:
                if items:
                    yield "\n".join(items)
                    items = []
                yield block
        if items:
            yield "\n".join(items)
        if last := tidy(self._joined):
            yield last
        self._joined = ""

    def notes(self) -> Iterator[str]:
        """The footnotes and endnotes that the text cites, in its order."""
        found: dict[tuple[str, str], Element] = {}
        for tag, kind in _NOTES:
            if (part := self._parts.get(kind)) in (None, "") or part not in self._archive:
                continue
            for note in self._archive.xml(part).iter(tag):
                if note.get("type") in _ORDINARY_NOTES:
                    found[tag, note.get("id", "")] = note
        for place in self._cited:  # grows where a note cites another
            if place in found:
                text = " ".join(block.replace("\n", " ") for block in self.blocks(found[place]))
                yield f"[^{_label(*place)}]: {text}"

    def warnings(self) -> list[str]:
        """What is in the file and not in the text."""
        told: list[str] = []
        if self._left_out:
            counts = " and ".join(f"{count} {what}" for what, count in self._left_out.items())
            told.append(f"tracked changes: read as if accepted, {counts} left out")
        if "comments" in self._parts:
            told.append("its comments are left out")
        if "aFChunk" in self._parts:
            told.append("another document embedded in it is left out")
        return told

    def _pieces(self, parent: Element) -> Iterator[tuple[bool, str]]:
        """Each block, and whether it is an item of a list."""
        for child in parent:
            tag = child.tag
            if tag == "p":
                yield from self._paragraph(child)
            elif tag == "tbl":
                yield False, "\n".join(self._rows(child))
            elif self._passes_over(child):
                continue
            else:  # content controls, insertions, custom markup
                yield from self._pieces(child)

    def _paragraph(self, paragraph: Element) -> Iterator[tuple[bool, str]]:
        boxes: list[Element] = []
        text = self._joined + "".join(self._text(paragraph, boxes))
        properties = paragraph.find("pPr")
        if properties is not None and properties.find("rPr/del") is not None:
            self._joined = text
        else:
            self._joined = ""
            yield self._shaped(tidy(text), properties)
        for box in boxes:
            yield from self._pieces(box)

    def _shaped(self, text: str, properties: Element | None) -> tuple[bool, str]:
        if not text or properties is None:
            return False, text
        style = _value(properties.find("pStyle"))
        level = _number(_value(properties.find("outlineLvl")))
        level = self._levels.get(style) if level is None or level > 8 else level
        if level is not None:
            heading = text.replace("\n", " ")
            return False, f"{'#' * min(level + 1, 6)} {heading}"
        numbered = properties.find("numPr")
        in_list = style in self._list_styles
        if numbered is not None:
            in_list = _value(numbered.find("numId")) != "0"
        if not in_list:
            return False, text
        depth = 0 if numbered is None else min(_number(_value(numbered.find("ilvl"))) or 0, 8)
        return True, f"{'  ' * depth}- {text}"

    def _text(self, parent: Element, boxes: list[Element]) -> Iterator[str]:
        for child in parent:
            tag = child.tag
            if tag == "t":
                yield child.text or ""
            elif tag in _SIGNS:
                yield _SIGNS[tag]
            elif tag == "txbxContent":
                boxes.append(child)
            elif tag in ("footnoteReference", "endnoteReference"):
                place = (tag.removesuffix("Reference"), child.get("id", ""))
                self._cited.append(place)
                yield f"[^{_label(*place)}]"
            elif tag == "r" and _is_on(child.find("rPr/vanish")):
                self._count("hidden passages")
            elif tag == "r" and _is_struck(child):
                struck = "".join(self._text(child, boxes))
                yield f"~~{struck}~~" if struck.strip() else struck
            elif not self._passes_over(child):
                yield from self._text(child, boxes)

    def _rows(self, table: Element) -> Iterator[str]:
        for row in _found(table, "tr"):
            if row.find("trPr/del") is not None:
                self._count("deletions")
                continue
            cells = ["\n".join(self.blocks(cell)) for cell in _found(row, "tc")]
            if line := table_row(cells):
                yield line

    def _passes_over(self, element: Element) -> bool:
        if element.tag not in _PASSED_OVER:
            return False
        if element.tag in _CHANGES and next(element.iter("r"), None) is not None:
            self._count(_CHANGES[element.tag])
        return True

    def _count(self, what: str) -> None:
        self._left_out[what] = self._left_out.get(what, 0) + 1

    def _read_styles(self) -> None:
        part = self._parts.get("styles", "")
        if part not in self._archive:
            return
        for style in self._archive.xml(part).iter("style"):
            name, key = _value(style.find("name")).lower(), style.get("styleId", "")
            heading = re.fullmatch(r"heading ([1-9])", name)
            outline = _number(_value(style.find("pPr/outlineLvl")))
            if heading:
                self._levels[key] = int(heading[1]) - 1
            elif name == "title":
                self._levels[key] = 0
            elif outline is not None and outline < 9:
                self._levels[key] = outline
            elif style.find("pPr/numPr") is not None:
                self._list_styles.add(key)


def _found(parent: Element, tag: str) -> Iterator[Element]:
    """The rows of a table or the cells of a row, also those in content controls."""
    for child in parent:
        if child.tag == tag:
            yield child
        elif child.tag in ("sdt", "sdtContent", "customXml", "ins"):
            yield from _found(child, tag)


def _label(tag: str, number: str) -> str:
    return number if tag == "footnote" else f"{tag}-{number}"


def _value(element: Element | None) -> str:
    return "" if element is None else element.get("val", "")


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"\d{1,4}", text) else None


def _is_on(switch: Element | None) -> bool:
    return switch is not None and switch.get("val", "1") not in ("0", "false", "off")


def _is_struck(run: Element) -> bool:
    return _is_on(run.find("rPr/strike")) or _is_on(run.find("rPr/dstrike"))
