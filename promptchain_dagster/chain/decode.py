"""One JSON value out of a text, with what is wrong in it although it parses.

Python's parser takes the last of repeated keys (case a10), NaN, and text whose backslashes JSON
swallowed (a8): here each is a fault that names its place.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from promptchain_dagster.chain.latex import swallowed_backslash

MAX_DEPTH = 100
"""Levels of nesting; no artifact of a step has more, and deeper ones exhaust the stack later."""

_MAX_FAULTS = 10
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]+|\\.)*"?|[{}\[\]]', re.DOTALL)
_STRING_OR_TRAILING_COMMA = re.compile(
    r'("(?:[^"\\]+|\\.)*"?)|(?<=[\]}"\w])\s*,(?=\s*[}\]])', re.DOTALL
)


@dataclass(frozen=True)
class Decoded:
    """A value, the offset where its text ends, and its faults: a faulty value is not to be used."""

    value: Any
    end: int
    faults: tuple[str, ...] = ()


@dataclass(frozen=True)
class Malformed:
    """Text that is no JSON, with the parser's message and place."""

    message: str


def decode(text: str, start: int = 0) -> Decoded | Malformed:
    """The JSON value that begins at `start`; what follows it is not looked at."""
    repeated: list[str] = []

    def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            keys = [key for key, _ in pairs]
            repeated.extend(key for key in result if keys.count(key) > 1)
        return result

    try:
        value, end = json.JSONDecoder(object_pairs_hook=without_repeats).raw_decode(text, start)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        message = error.msg.removesuffix(" at")  # Some of the parser's messages end in it.
        return Malformed(f"reply is not valid JSON: {message} at {place}")
    except RecursionError:
        return Malformed("reply is nested too deeply to be read")
    except ValueError:  # Python's limit on the digits of an integer.
        return Malformed("reply is not valid JSON: a number in it has thousands of digits")
    faults = [f"key {key!r} is repeated, need each key once" for key in repeated]
    for fault in _faults(value):
        faults.append(fault)
        if len(faults) >= _MAX_FAULTS:
            break
    return Decoded(value, end, tuple(faults))


def extent(text: str, start: int, limit: int) -> int | None:
    """The offset after the bracket that closes the one at `start`; None when it is cut."""
    depth = 0
    for token in _STRING_OR_BRACKET.finditer(text, start, limit):
        depth += (token.group() in "{[") - (token.group() in "}]")
        if depth == 0:
            return token.end()
    return None


def without_trailing_commas(text: str) -> str:
    """`text`, which begins outside a string, without commas before a closing bracket (case a11)."""
    return _STRING_OR_TRAILING_COMMA.sub(lambda match: match[1] or "", text)


def _faults(value: Any) -> Iterator[str]:
    """What makes a parsed value unusable, each with the path to it."""
    pending: list[tuple[str, Any, int]] = [("", value, 1)]
    while pending:
        path, item, depth = pending.pop()
        if depth > MAX_DEPTH:
            yield f"reply is nested more than {MAX_DEPTH} levels deep"
            return
        if isinstance(item, dict):
            members = cast("dict[str, Any]", item)
            for key in members:
                yield from _text_faults(f"a key of {path or 'the object'}", key)
            inner = [(f"{path}.{key}" if path else key, v, depth + 1) for key, v in members.items()]
            pending += reversed(inner)
        elif isinstance(item, list):
            items = cast("list[Any]", item)
            pending += reversed([(f"{path}[{at}]", v, depth + 1) for at, v in enumerate(items)])
        elif isinstance(item, str):
            yield from _text_faults(path or "reply", item)
        elif isinstance(item, float) and not math.isfinite(item):
            yield f"{path or 'reply'}: {item} is not a JSON number"


def _text_faults(path: str, text: str) -> Iterator[str]:
    fault = swallowed_backslash(text)
    if fault is not None:
        yield f"{path}: {fault}"
    if any("\ud800" <= character <= "\udfff" for character in text):
        yield f"{path}: half of a surrogate pair, not a character"
