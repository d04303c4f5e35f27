"""What a value looks like in a prompt, and the rule for text outside a prompt's tags."""

from __future__ import annotations

import re

from pydantic_core import PydanticSerializationError, to_json

MAX_LINE_CHARACTERS = 200

_BREAK = re.compile("[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f]")


def to_text(value: object) -> str:
    """A value as it goes into a prompt: text verbatim, numbers as Python writes them, else JSON.

    Raises ValueError for what JSON can't hold.
    """
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    try:
        return to_json(value, indent=2).decode()
    except PydanticSerializationError as error:
        kind = type(value).__name__
        raise ValueError(f"a {kind} cannot be written into a prompt: {error}") from error


def one_line_problem(text: str) -> str | None:
    """Why `text` is not one bounded line (non-empty, at most 200 characters), or None if it is."""
    if len(text) > MAX_LINE_CHARACTERS:
        return f"{len(text)} characters, need at most {MAX_LINE_CHARACTERS}"
    if _BREAK.search(text):
        return f"has a line break, need one line: {text!r}"
    if _CONTROL.search(text):
        return f"has a control character: {text!r}"
    if not any(character.isprintable() and not character.isspace() for character in text):
        return f"is empty: {text!r}"
    return None
