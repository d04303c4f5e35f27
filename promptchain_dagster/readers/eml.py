"""E-mail: who wrote what when, and the text; attachments are named, not read."""

from __future__ import annotations

import email
import email.header
import email.message
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import cast

from promptchain_dagster.readers.base import Refused, in_blocks
from promptchain_dagster.readers.html import html_text
from promptchain_dagster.readers.plain import encoding_named, read_plain

_SHOWN = ("Subject", "From", "To", "Date")
_SPACES = re.compile(r"\s+")
Message = email.message.Message


def read_eml(data: bytes, encoding: str | None, fallback: str) -> tuple[str, list[str]]:
    """The headers that matter, then the text, what it quotes included.

    Of a message in two forms the plain one is read, or the HTML where that is empty. Refuses what
    has none of these headers.
    """
    message = email.message_from_bytes(data)
    shown = [(name, _header(message.get(name))) for name in _SHOWN]
    head = "\n".join(f"{name}: {value}" for name, value in shown if value)
    if not head:
        raise Refused("is no e-mail: it has neither subject nor sender, recipient or date")
    reader = _Reader(encoding, fallback)
    texts = list(reader.texts(message))
    if reader.attached:
        texts.append("\n".join(f"Attachment: {name}" for name in reader.attached))
    return in_blocks([head, *texts]), reader.warnings


class _Reader:
    def __init__(self, encoding: str | None, fallback: str) -> None:
        self._encoding, self._fallback = encoding, fallback
        self.attached: list[str] = []
        self.warnings: list[str] = []

    def texts(self, part: Message) -> Iterator[str]:
        """What the part and those in it say, in order."""
        kind = part.get_content_type()
        if kind == "multipart/alternative":
            yield self._best(_parts(part))
        elif kind != "message/rfc822" and part.is_multipart():
            for inner in _parts(part):
                yield from self.texts(inner)
        elif kind in ("text/plain", "text/html") and not _is_attached(part):
            yield self._said(part, kind)
        elif not kind.startswith("multipart/"):
            self.attached.append(_name(part, kind))

    def _best(self, forms: list[Message]) -> str:
        """The plain form, or the next that says something; all the others say the same."""
        plain = [form for form in forms if form.get_content_type() == "text/plain"]
        for form in [*plain, *(form for form in reversed(forms) if form not in plain)]:
            said = in_blocks(self.texts(form))
            if said.strip():
                return said
        return ""

    def _said(self, part: Message, kind: str) -> str:
        data = part.get_payload(decode=True)
        if not isinstance(data, bytes):
            return ""
        encoding = self._encoding or encoding_named(part.get_content_charset(), data)
        try:
            text, losses = read_plain(data, encoding, self._fallback)
        except Refused:  # it only says that it is text
            self.attached.append(_name(part, kind))
            return ""
        self.warnings += losses
        if kind == "text/html":
            return html_text(text)
        return text.replace("\r\n", "\n").strip("\n")


def _parts(part: Message) -> list[Message]:
    payload = part.get_payload()
    if not isinstance(payload, list):
        return []
    return [one for one in cast("list[object]", payload) if isinstance(one, Message)]


def _is_attached(part: Message) -> bool:
    return part.get_content_disposition() == "attachment" or bool(part.get_filename())


def _name(part: Message, kind: str) -> str:
    if kind == "message/rfc822":
        inner = next(iter(_parts(part)), None)
        subject = _header(inner.get("Subject")) if inner is not None else ""
        return f"the message {subject!r}" if subject else "a message"
    name = part.get_filename()
    return f"{_header(name)} ({kind})" if name else kind


def _header(value: object) -> str:
    """A header's value in one line, its encoded words decoded."""
    if value is None:
        return ""
    text = str(value)
    with suppress(ValueError, LookupError):
        text = str(email.header.make_header(email.header.decode_header(text)))
    return _SPACES.sub(" ", text).strip()
