"""What must hold of a model's reply, whatever it says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, cast

from fuzz.inputs import refused, text_of, texts_of
from promptchain_dagster.chain.latex import swallowed_backslash
from promptchain_dagster.chain.replies import ParsedObject, clean_text, parse_object
from promptchain_dagster.models.base import CallError
from promptchain_dagster.models.redact import redact
from promptchain_dagster.models.wire import advice, completion_of, error_message, problem_in
from promptchain_dagster.refine.replies import MAX_REMARK_CHARACTERS, summary_in
from promptchain_dagster.thinking import trimmed, without_thinking

_LONG = 5_000
"""From so many characters on, only that a text is read at all: the oracles are not linear."""

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]")


def parsed_reply(data: bytes) -> None:
    """An accepted object stood in the reply, but for trailing commas, and its text is whole."""
    text = text_of(data)
    parsed = parse_object(text)
    if not isinstance(parsed, ParsedObject):
        assert parsed.messages and all(parsed.messages)
        json.dumps(parsed.messages)
        return
    for said in _strings(parsed.value):
        assert not _CONTROL.search(said), f"accepted with a control character: {said!r}"
    if len(text) < _LONG:
        wanted = _canonical(parsed.value)
        assert any(_canonical(one) == wanted for one in objects_in(text)), "no such object in it"


def objects_in(text: str, *, nested: bool = True) -> Iterator[dict[str, Any]]:
    """Every strict JSON object in `text` or in a JSON string of it, trailing commas dropped."""
    for at, character in enumerate(text):
        if character == "{":
            for candidate in (text[at:], _without_trailing_commas(text[at:])):
                value = _strictly_decoded(candidate)
                if isinstance(value, dict):
                    yield cast("dict[str, Any]", value)
        elif character == '"' and nested:
            value = _strictly_decoded(text[at:])
            if isinstance(value, str):
                yield from objects_in(value, nested=False)


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _strictly_decoded(text: str) -> object:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a key twice")
        return dict(pairs)

    def refused(constant: str) -> None:
        raise ValueError(constant)

    decoder = json.JSONDecoder(object_pairs_hook=once, parse_constant=refused)
    try:
        return decoder.raw_decode(text)[0]
    except (ValueError, RecursionError):
        return None


def _without_trailing_commas(text: str) -> str:
    """Character by character, so that it shares nothing with what is tested."""
    kept: list[str] = []
    in_string = escaped = False
    for at, character in enumerate(text):
        if in_string:
            in_string = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            in_string = True
        elif character == "," and text[at + 1 :].lstrip()[:1] in ("}", "]"):
            continue
        kept.append(character)
    return "".join(kept)


def _strings(value: object) -> Iterator[str]:
    pending: list[object] = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            members = cast("dict[str, object]", one)
            pending += [*members, *members.values()]
        elif isinstance(one, list):
            pending += cast("list[object]", one)


def cleaned_reply(data: bytes) -> None:
    """A text reply loses its ends, its thinking and its wrapping; what is left stood there."""
    text = text_of(data)
    for cleaned in (clean_text(text), without_thinking(text)):
        assert cleaned in text
        assert trimmed(cleaned) == cleaned


def swallowed_text(data: bytes) -> None:
    """Only control characters are swallowed backslashes, and what is told can be sent back."""
    text = text_of(data)
    fault = swallowed_backslash(text)
    assert fault is None or re.search("[\x00-\x1f]", text)
    assert fault or not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f]", text)


def summary_reply(data: bytes) -> None:
    """A summary is text that can be kept and stood in the reply; a long reply of one line is one,
    but for titles and announcements, which end in a colon."""
    reply, earlier = texts_of(data, 2)
    summary = summary_in(reply, earlier)
    readable = reply.replace("\0", "").encode(errors="replace").decode()
    if summary is None:
        lines = [line for line in readable.splitlines() if line.strip()]
        assert len(lines) != 1 or ":" in readable or len(readable.strip()) <= MAX_REMARK_CHARACTERS
        return
    assert summary and summary == summary.strip() and summary in readable
    summary.encode()


def answered_body(data: bytes) -> None:
    """Whatever an endpoint sends is a reply that can be kept, or a failed call."""
    body, words = texts_of(data, 2)
    try:
        completion_of(body, "gpt-4o-mini").text.encode()
    except CallError as error:
        refused(error, error.message[:20])
    try:
        error: object = json.loads(words)
    except (ValueError, RecursionError):
        error = words
    for status in (200, 400, 401, 429, 500):
        problem_in(status, error)
        advice(status, error, "model", "endpoint")
    error_message(error)


def redacted_words(data: bytes) -> None:
    """No six characters of a key in a row are shown."""
    key, words = texts_of(data, 2)
    key = "".join(character for character in key if "!" <= character <= "~")[:200]
    if len(key) < 20:
        return
    for text in (words, words + key, key + words, words.join(key[at : at + 9] for at in (0, 9))):
        shown = redact(text, key).replace("[redacted]", " ")
        shared = [key[at : at + 6] for at in range(len(key) - 5) if key[at : at + 6] in shown]
        assert not shared, f"{shared} of the key {key!r} in {shown!r}"
