"""A file to clean text, or to a clear refusal."""

from __future__ import annotations

import codecs
import hashlib
import os
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.files import open_regular
from promptchain_dagster.refine.cleaning import clean_text
from promptchain_dagster.words import has_words

SUPPORTED = (".txt", ".text", ".md", ".markdown")
LEAST_WORDS = 3
MAX_BYTES = 256 * 1024 * 1024
"""A larger file is refused: one document must not take the memory of all the others."""

_BOMS = (  # the longer first: UTF-32's begins with UTF-16's
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_BINARY = (
    (b"PK\x03\x04", "a zip archive, such as a Word file"),
    (b"PK\x05\x06", "a zip archive"),
    (b"%PDF-", "a PDF"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office file"),
    (b"{\\rtf", "an RTF file"),
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"GIF8", "an image"),
    (b"\x1f\x8b", "a gzip file"),
    (b"\x7fELF", "a program"),
)
_CONTROLS = bytes({*range(32), 127} - {*b"\t\n\v\f\r\x1b"})


@dataclass(frozen=True)
class Document:
    """A file's clean text; `key` names it wherever a path can't (see `document_key`)."""

    path: str
    key: str
    text: str
    warnings: tuple[str, ...]

    @property
    def has_content(self) -> bool:
        """Whether it has at least 3 words that hold a letter; if not, no call is made (c9)."""
        return has_words(self.text, LEAST_WORDS)


def load_document(
    path: str | os.PathLike[str],
    *,
    within: str | None = None,
    encoding: str | None = None,
    fallback_encoding: str = "cp1252",
) -> Document:
    """Read a .txt or .md file: UTF-8, or by its byte-order mark, or else in the fallback.

    Where it lies `within` a folder, no link leads out of that, also none that is put there while
    it is read.

    The fallback gives a warning that names the file (g2); an explicit `encoding` is taken at its
    word. Raises InvalidInput, naming the path, for what can't be read or isn't text.
    """
    name = os.fspath(path)
    text, warnings = _decode(_read(name, within), name, encoding, fallback_encoding)
    text, losses = clean_text(text)
    warnings += [f"{name!r}: {loss}" for loss in losses]
    return Document(name, document_key(name), text, tuple(warnings))


def document_key(path: str) -> str:
    """A readable slug of the file's name and a hash of the path: `report-q1-0123456789abcdef`.

    At most 57 characters, ASCII letters, digits, "_" and "-" only, and distinct for distinct
    paths (f3, f4): the hash is of the path as given, so give it in one form. With "-" turned into
    "_" it is a Dagster mapping key, still distinct, since the hash stays as it is.
    """
    stem = os.path.splitext(os.path.basename(path.rstrip("/")))[0]
    ascii_stem = unicodedata.normalize("NFKD", stem).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9_]+", "-", ascii_stem)[:40].strip("-") or "document"
    return f"{slug}-{hashlib.sha256(path.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def _read(name: str, within: str | None) -> bytes:
    supported = ", ".join(SUPPORTED)
    try:
        file = Path(name)
        if file.is_dir():
            raise InvalidInput(f"document {name!r} is a folder, not a file ({supported})")
        if file.suffix.lower() not in SUPPORTED:
            raise InvalidInput(
                f"document {name!r}: files of kind {file.suffix or '(no extension)'!r} "
                f"are not supported, only {supported}"
            )
        with open_regular(name, f"document {name!r}", within=within) as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise InvalidInput(f"document {name!r} has over {MAX_BYTES:,} bytes")
        return data
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidInput(f"document {name!r} can't be read: {reason}") from error


def _decode(data: bytes, name: str, encoding: str | None, fallback: str) -> tuple[str, list[str]]:
    for magic, kind in _BINARY:
        if data.startswith(magic):
            raise InvalidInput(f"document {name!r} is not text but {kind}, whatever its name says")
    if encoding is not None:
        return _decode_as(data, encoding, name), []
    for mark, marked in _BOMS:
        if data.startswith(mark):
            return _decode_marked(data, marked, name)
    try:
        # Extractors write lone surrogates as if they were characters (b9); cleaning mends them.
        text = data.decode("utf-8", "surrogatepass")
        _refuse_binary(data, name, 0.125)
        return text, []
    except UnicodeDecodeError:
        _refuse_binary(data, name, 0.01)
        text = _decode_as(data, fallback, name)
        return text, [f"{name!r} is not UTF-8: it was read as {fallback}"]


def _decode_as(data: bytes, encoding: str, name: str) -> str:
    try:
        return data.decode(encoding)
    except LookupError:
        raise InvalidInput(f"unknown encoding {encoding!r} for document {name!r}") from None
    except UnicodeError as error:
        raise InvalidInput(
            f"document {name!r} is not in the encoding {encoding!r} ({error}); give its encoding"
        ) from None


def _decode_marked(data: bytes, encoding: str, name: str) -> tuple[str, list[str]]:
    try:
        return data.decode(encoding, "surrogatepass"), []
    except UnicodeError:
        text = data.decode(encoding, "replace")
        return text, [f"{name!r} is damaged {encoding}: what could not be read is now U+FFFD"]


def _refuse_binary(data: bytes, name: str, most: float) -> None:
    """Text holds hardly a control character; UTF-16 without a mark is full of NULs (g3).

    In what isn't UTF-8 either, `most`, the part of them that passes, is smaller.
    """
    controls = len(data) - len(data.translate(None, _CONTROLS))
    if controls > most * len(data):
        raise InvalidInput(
            f"document {name!r} is binary, or UTF-16 without a byte-order mark: {controls} of its "
            f"{len(data)} bytes are control characters; save it as UTF-8, or give its encoding"
        )
