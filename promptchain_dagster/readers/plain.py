"""Bytes to text: UTF-8, or by the byte-order mark, or else in the fallback encoding."""

from __future__ import annotations

import codecs
import re

from promptchain_dagster.readers.base import Refused
from promptchain_dagster.readers.kinds import refuse_binary

_BOMS = (  # the longer first: UTF-32's begins with UTF-16's
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROLS = bytes({*range(32), 127} - {*b"\t\n\v\f\r\x1b"})
# Those with a byte-order mark of their own, and Python's that are no encodings of text.
_NOT_BELIEVED = ("utf", "idna", "punycode", "unicode", "raw_unicode", "undefined", "mbcs", "oem")
# What colours a log on a terminal, or sets its window's title.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,500}(?:\x07|\x1b\\))")


def read_plain(data: bytes, encoding: str | None, fallback: str) -> tuple[str, list[str]]:
    """The text, without a terminal's escape sequences, and what was lost on the way to it.

    Refuses what is no text. An explicit `encoding` is taken at its word; the fallback gives a
    warning (g2).
    """
    text, warnings = _decode(data, encoding, fallback)
    return (_ESCAPES.sub("", text) if "\x1b" in text else text), warnings


def encoding_named(name: str | None, data: bytes) -> str | None:
    """The encoding that a file gives as its own, as far as it is one that text comes in and the
    bytes are in it; None for UTF-8, which is tried first anyway."""
    try:
        found = codecs.lookup(name or "utf-8").name
        # As browsers do: what calls itself Latin-1 or ASCII is Windows-1252.
        found = "cp1252" if found in ("iso8859-1", "ascii") else found
        if found.startswith(_NOT_BELIEVED):
            return None
        data.decode(found)
    except (LookupError, ValueError):
        return None
    return found


def _decode(data: bytes, encoding: str | None, fallback: str) -> tuple[str, list[str]]:
    refuse_binary(data)
    if encoding is not None:
        return _decode_as(data, encoding), []
    for mark, marked in _BOMS:
        if data.startswith(mark):
            return _decode_marked(data, marked)
    try:
        # Extractors write lone surrogates as if they were characters (b9); cleaning mends them.
        text = data.decode("utf-8", "surrogatepass")
        _refuse_controls(data, 0.125)
        return text, []
    except UnicodeDecodeError:
        _refuse_controls(data, 0.01)
        return _decode_as(data, fallback), [f"not UTF-8: it was read as {fallback}"]


def _decode_as(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except LookupError:
        raise Refused(f"can't be read in the unknown encoding {encoding!r}") from None
    except UnicodeError as error:
        raise Refused(f"is not in the encoding {encoding!r} ({error}); give its encoding") from None


def _decode_marked(data: bytes, encoding: str) -> tuple[str, list[str]]:
    try:
        return data.decode(encoding, "surrogatepass"), []
    except UnicodeError:
        text = data.decode(encoding, "replace")
        return text, [f"damaged {encoding}: what could not be read is now U+FFFD"]


def _refuse_controls(data: bytes, most: float) -> None:
    """Text holds hardly a control character; UTF-16 without a mark is full of NULs (g3).

    In what isn't UTF-8 either, `most`, the part of them that passes, is smaller.
    """
    controls = len(data) - len(data.translate(None, _CONTROLS))
    if controls > most * len(data):
        raise Refused(
            f"is binary, or UTF-16 without a byte-order mark: {controls} of its "
            f"{len(data)} bytes are control characters; save it as UTF-8, or give its encoding"
        )
