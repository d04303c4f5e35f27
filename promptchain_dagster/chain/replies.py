"""A reply's text -> the one JSON object in it, or clean text. Nothing is guessed or completed."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, cast

from promptchain_dagster.chain.decode import (
    Decoded,
    Malformed,
    decode,
    extent,
    without_trailing_commas,
)
from promptchain_dagster.thinking import (
    CLOSES,
    CLOSING,
    ENDS_CLOSED,
    FENCE,
    FENCE_LINE,
    OPENS,
    ends_thinking,
    trimmed,
    unfenced,
    without_thinking,
)


@dataclass(frozen=True)
class ParsedObject:
    """The object that a reply holds."""

    value: dict[str, Any]


@dataclass(frozen=True)
class Unparsed:
    """Why a reply holds no usable object, as messages that can be sent back to the model."""

    messages: tuple[str, ...]


def parse_object(text: str) -> ParsedObject | Unparsed:
    """The one JSON object of a reply.

    The whole reply is tried first, so that text in strings is never taken for fences or thinking
    (case a1); then, outside think blocks (a5), the fences that hold JSON (a3); then objects in the
    open. Different objects (a25), repeated keys (a10), cut objects (a14) and text that lost its
    backslashes (a8) are refused. Trailing commas are dropped (a11); nothing else is repaired.
    """
    text = trimmed(text)
    after_thinking = without_thinking(text)
    if not unfenced(after_thinking):
        cut = text and not after_thinking and not ENDS_CLOSED.search(text)
        return Unparsed(("empty reply: it ends inside its think block" if cut else "empty reply",))
    for whole in (text, after_thinking):
        result = _whole(whole)
        if result is not None:
            return result
    search = _Search(text)
    search.region(0, len(text), _IN_THE_OPEN)
    return search.result()


def clean_text(text: str) -> str:
    """A text reply without its think block, outer white space, and a fence around the whole of it.

    A think block that is never closed leaves nothing: the reply was cut before its text began.
    """
    return unfenced(without_thinking(text))


# A brace that begins an object, well formed or not, rather than one of prose or LaTeX; or a list of
# objects, lest its only member be taken for the reply.
_VALUE = r"\{\s*(?:[\"'“‘}]|[\w$-]+\s*:|//|/\*)|\[\s*\{"
_TOKEN = re.compile(
    rf"(?P<value>{_VALUE})|(?P<opens>{OPENS})|(?P<closes>{CLOSES})|^{FENCE}$",
    re.IGNORECASE | re.MULTILINE,
)
_MAX_VALUES = 100
_KINDS = {"list": "list", "str": "string", "bool": "boolean", "int": "number", "float": "number"}
_JSON_FENCE, _IN_THE_OPEN, _OTHER_FENCE = range(3)


def _whole(text: str) -> ParsedObject | Unparsed | None:
    """What `text` is if it is one JSON value, encoded once or twice (a20); None if it is not."""
    decoded = decode(text)
    if isinstance(decoded, Malformed) or decoded.end < len(text):
        return None
    if isinstance(decoded.value, str):
        inner = decode(trimmed(decoded.value))
        if isinstance(inner, Decoded) and isinstance(inner.value, dict):
            if inner.end < len(trimmed(decoded.value)):
                return Unparsed(("reply is a JSON string with more in it than one object",))
            decoded = inner
    return _judged(decoded)


def _judged(decoded: Decoded) -> ParsedObject | Unparsed:
    value: object = decoded.value
    if decoded.faults and isinstance(value, (dict, list)):
        return Unparsed(decoded.faults)
    if isinstance(value, dict):
        return ParsedObject(cast("dict[str, Any]", value))
    return Unparsed(
        (f"reply is a JSON {_KINDS.get(type(value).__name__, 'null')}, need an object",)
    )


@dataclass
class _Search:
    """Goes once through a reply that is not JSON as a whole, and keeps the objects it meets.

    Objects that fill a fence go before those in the open, those before any in other fences.
    """

    text: str
    found: list[tuple[int, Decoded]] = field(default_factory=list["tuple[int, Decoded]"])
    fault: str | None = None
    cut: bool = False
    opened: bool = False
    thinking: bool = False
    values: int = 0

    def region(self, start: int, end: int, place: int) -> None:
        """Look for objects from `start` to `end`."""
        while token := _TOKEN.search(self.text, start, end):
            if token["value"]:
                start = self._value(token.start(), end, place)
            elif token["opens"]:
                closes = CLOSING.search(self.text, token.end(), end)
                self.opened, self.thinking = True, closes is None
                start = closes.end() if closes else end
            elif token["closes"]:
                unopened = place == _IN_THE_OPEN and ends_thinking(self.text, token)
                if self.opened or unopened:
                    # All that came before was thinking.
                    self.found.clear()
                    self.fault, self.cut = None, False
                start = token.end()
            else:
                start = self._fence(token, end) if place == _IN_THE_OPEN else token.end()

    def _fence(self, opens: re.Match[str], end: int) -> int:
        mark = opens["fence"]
        closing = rf"^[ \t]*{mark[0]}{{{len(mark)},}}[ \t\r]*$"
        closes = re.compile(closing, re.MULTILINE).search(self.text, opens.end(), end)
        content_end = closes.start() if closes else end
        content = trimmed(self.text[opens.end() : content_end])
        twice_encoded = _whole(content) if content.startswith('"') else None
        if isinstance(twice_encoded, ParsedObject):
            self.found.append((_JSON_FENCE, Decoded(twice_encoded.value, content_end)))
        else:
            is_json = content.startswith(("{", "["))
            self.region(opens.end(), content_end, _JSON_FENCE if is_json else _OTHER_FENCE)
        return closes.end() if closes else end

    def _value(self, start: int, end: int, place: int) -> int:
        self.values += 1
        if self.values > _MAX_VALUES:
            self.fault = f"reply holds more than {_MAX_VALUES} objects, need exactly one"
            self.found.clear()
            return len(self.text)
        decoded = decode(self.text, start)
        if isinstance(decoded, Decoded):
            self.found.append((place, decoded))
            return decoded.end
        if place == _IN_THE_OPEN:
            fence = FENCE_LINE.search(self.text, start, end)
            end = fence.start() if fence else end
        closed = extent(self.text, start, end)
        if closed is not None:
            repaired = decode(without_trailing_commas(self.text[start:closed]))
            if isinstance(repaired, Decoded):
                self.found.append((place, repaired))
                return closed
        if place != _OTHER_FENCE:
            self.fault = self.fault or decoded.message
            self.cut = self.cut or (closed is None and place == _IN_THE_OPEN)
        return closed or end

    def result(self) -> ParsedObject | Unparsed:
        """What the reply comes to."""
        objects = [(place, one) for place, one in self.found if isinstance(one.value, dict)]
        if not objects or (self.cut and all(place != _JSON_FENCE for place, _ in objects)):
            return self._nothing()
        first_place = min(place for place, _ in objects)
        best = [one for place, one in objects if place == first_place]
        faults = [fault for one in best for fault in one.faults]
        if not faults and len({json.dumps(one.value, sort_keys=True) for one in best}) > 1:
            return Unparsed(("reply holds more than one object, need exactly one",))
        return Unparsed(tuple(faults)) if faults else _judged(best[0])

    def _nothing(self) -> Unparsed:
        if self.fault is not None:
            return Unparsed((self.fault,))
        if self.found:
            return Unparsed(("reply is a JSON list, need an object",))
        if self.thinking:
            return Unparsed(("reply ends inside its think block, need an object after it",))
        decoded = decode(without_thinking(self.text))
        no_object = "reply holds no JSON object"
        return Unparsed((decoded.message if isinstance(decoded, Malformed) else no_object,))
