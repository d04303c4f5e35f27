"""EPUB: the chapters in reading order."""

from __future__ import annotations

import posixpath
from xml.etree.ElementTree import Element

from promptchain_dagster.readers.archive import Archive, resolve
from promptchain_dagster.readers.base import Refused, in_blocks
from promptchain_dagster.readers.html import xhtml_blocks
from promptchain_dagster.readers.plain import read_plain

_PAGES = ("application/xhtml+xml", "text/html")
# Fonts may be scrambled in a book that anyone can read.
_OF_FONTS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
_ENCRYPTION = "META-INF/encryption.xml"


def read_epub(data: bytes, fallback: str) -> tuple[str, list[str]]:
    """Title and authors, then each chapter's text; the table of contents is left out."""
    archive = Archive(data)
    _refuse_encrypted(archive)
    roots = archive.xml("META-INF/container.xml").iter("rootfile")
    package = next((root.get("full-path", "") for root in roots), "")
    book = archive.xml(package)
    blocks = [_head(book)]
    warnings: list[str] = []
    for part in _spine(book, posixpath.dirname(package)):
        if part not in archive:
            warnings.append(f"the chapter {part!r} is missing")
            continue
        text, losses = read_plain(archive.read(part), None, fallback)
        warnings += [f"{part!r}: {loss}" for loss in losses]
        blocks += xhtml_blocks(text)
    return in_blocks(blocks), warnings


def _refuse_encrypted(archive: Archive) -> None:
    if _ENCRYPTION not in archive:
        return
    for method in archive.xml(_ENCRYPTION).iter("EncryptionMethod"):
        if method.get("Algorithm") not in _OF_FONTS:
            raise Refused("is encrypted")


def _head(book: Element) -> str:
    titles, authors = _said(book, "title"), _said(book, "creator")
    return "\n".join([*(f"# {title}" for title in titles[:1]), *authors])


def _said(book: Element, tag: str) -> list[str]:
    texts = (" ".join("".join(one.itertext()).split()) for one in book.iter(tag))
    return [text for text in texts if text]


def _spine(book: Element, folder: str) -> list[str]:
    items = {item.get("id", ""): item for item in book.iterfind(".//manifest/item")}
    parts: list[str] = []
    for entry in book.iterfind(".//spine/itemref"):
        item = items.get(entry.get("idref", ""))
        if item is None or item.get("media-type") not in _PAGES:
            continue
        if "nav" not in (item.get("properties") or "").split():
            parts.append(resolve(folder, item.get("href", "")))
    return parts
