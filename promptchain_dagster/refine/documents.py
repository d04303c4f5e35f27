"""A file to clean text, or to a clear refusal."""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from dataclasses import dataclass

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.files import open_regular
from promptchain_dagster.readers.apart import read_apart
from promptchain_dagster.readers.base import Refused
from promptchain_dagster.readers.captions import read_captions
from promptchain_dagster.readers.front_matter import split_front_matter
from promptchain_dagster.readers.kinds import KINDS, TEXTUAL
from promptchain_dagster.readers.plain import read_plain
from promptchain_dagster.refine.cleaning import clean_text
from promptchain_dagster.words import has_words

SUPPORTED = tuple(KINDS)
"""The endings of the names of files that can be read."""
LEAST_WORDS = 3
MAX_BYTES = 256 * 1024 * 1024
"""A larger file is refused: one document must not take the memory of all the others."""


@dataclass(frozen=True)
class Document:
    """A file's clean text; `key` names it wherever a path can't (see `document_key`).

    `front_matter` is the YAML at the head of a Markdown file, which is no part of the text (g6).
    """

    path: str
    key: str
    text: str
    warnings: tuple[str, ...]
    front_matter: str = ""

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
    """Read a file of a supported kind, by its name and its content (see `readers.kinds`).

    Text is UTF-8, or what its byte-order mark says, or else in the fallback. Other formats need
    the extra `files`, and are read in a process of their own.

    Where it lies `within` a folder, no link leads out of that, also none that is put there while
    it is read.

    The fallback gives a warning that names the file (g2); an explicit `encoding` is taken at its
    word. Raises InvalidInput, naming the path, for what can't be read or isn't text.
    """
    name = os.fspath(path)
    return document_of(
        _read(name, within), name, encoding=encoding, fallback_encoding=fallback_encoding
    )


def document_of(
    data: bytes, name: str, *, encoding: str | None = None, fallback_encoding: str = "cp1252"
) -> Document:
    """The document in a file's bytes, as `load_document` reads it; `name` is its path."""
    kind = KINDS.get(os.path.splitext(name)[1].lower(), "text")
    front_matter = ""
    try:
        text, warnings = _read_text(data, kind, encoding, fallback_encoding)
        text, losses = clean_text(text)
        if kind == "markdown":
            front_matter, text = split_front_matter(text)
    except Refused as refused:
        # Where the next try may succeed, the cause is an OSError.
        cause = OSError(str(refused)) if refused.may_pass else None
        raise InvalidInput(f"document {name!r} {refused}") from cause
    told = tuple(f"{name!r}: {warning}" for warning in (*warnings, *losses))
    return Document(name, document_key(name), text, told, front_matter)


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


def check_kind(name: str) -> None:
    """Refuse a file by its name's ending: `InvalidInput` says which are supported."""
    suffix = os.path.splitext(name)[1]
    if suffix.lower() not in SUPPORTED:
        raise InvalidInput(
            f"document {name!r}: files of kind {suffix or '(no extension)'!r} "
            f"are not supported, only {', '.join(SUPPORTED)}"
        )


def _read(name: str, within: str | None) -> bytes:
    try:
        if os.path.isdir(name):
            raise InvalidInput(
                f"document {name!r} is a folder, not a file ({', '.join(SUPPORTED)})"
            )
        check_kind(name)
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


def _read_text(
    data: bytes, kind: str, encoding: str | None, fallback: str
) -> tuple[str, list[str]]:
    if kind not in TEXTUAL:
        return read_apart(data, kind, encoding, fallback)
    text, warnings = read_plain(data, encoding, fallback)
    return (read_captions(text) if kind == "captions" else text), warnings
