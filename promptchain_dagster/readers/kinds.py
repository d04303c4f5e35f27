"""What kind of file it is: by its name's ending, and in the end by its first bytes."""

from __future__ import annotations

import io
import zipfile

from promptchain_dagster.readers.base import Refused

KINDS = {
    ".txt": "text",
    ".text": "text",
    ".md": "markdown",
    ".markdown": "markdown",
    ".log": "text",
    ".vtt": "captions",
    ".srt": "captions",
    ".pdf": "pdf",
    ".docx": "docx",
    ".pptx": "pptx",
    ".epub": "epub",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".eml": "eml",
}
"""A file name's ending, in small letters, to the kind of file that it promises."""

TEXTUAL = ("text", "markdown", "captions")
"""Read in this process, as text with hardly any syntax."""

NEEDS = {"pdf": "pypdfium2", "epub": "lxml", "html": "lxml"}
"""The module that a kind can't be read without; all are in the extra `files`."""

_PDF = b"%PDF-"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_BINARY = (
    (_ZIP[0], "a zip archive, such as a Word file"),
    (_ZIP[1], "a zip archive"),
    (_PDF, "a PDF"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office file, or one with a password"),
    (b"{\\rtf", "an RTF file"),
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"GIF8", "an image"),
    (b"\x1f\x8b", "a gzip file"),
    (b"\x7fELF", "a program"),
)
_LABELS = {
    "pdf": "a PDF",
    "docx": "a Word file (.docx)",
    "pptx": "a PowerPoint file (.pptx)",
    "epub": "an EPUB",
}
_INSIDE = (
    ("word/document.xml", "docx"),
    ("ppt/presentation.xml", "pptx"),
    ("META-INF/container.xml", "epub"),
)
_UNREAD_INSIDE = (
    ("xl/", "an Excel file"),
    ("content.xml", "an OpenDocument file"),
    ("word/", "a Word file without a document"),
)


def refuse_binary(data: bytes) -> None:
    """Refuse what its first bytes show to be no text."""
    for magic, label in _BINARY:
        if data.startswith(magic):
            raise Refused(f"is not text but {label}, whatever its name says")


def kind_inside(data: bytes, promised: str) -> str:
    """The kind of a file that is not textual: what it holds counts, where that can be seen."""
    if _PDF in data[:1024]:
        return "pdf"
    if data.startswith(_ZIP):
        return _kind_of_archive(data)
    for magic, label in _BINARY:
        if data.startswith(magic):
            raise Refused(f"is {label}, which is not supported")
    if promised in _LABELS:
        raise Refused(f"is not {_LABELS[promised]}, whatever its name says")
    return promised


def _kind_of_archive(data: bytes) -> str:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError) as error:
        raise Refused(f"is a damaged zip archive: {error}") from error
    for name, kind in _INSIDE:
        if name in names:
            return kind
    for start, label in _UNREAD_INSIDE:
        if any(name.startswith(start) for name in names):
            raise Refused(f"is {label}, which is not supported")
    raise Refused("is a zip archive, which is not supported")
