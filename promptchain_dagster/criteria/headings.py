"""Headings, in Markdown and out of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from promptchain_dagster.chain.accept import Bar, Criterion

_HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+(.*\S)", re.MULTILINE)
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?^ {0,3}\1[`~]*[ \t]*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of Markdown; `is_bare` where no text stands before the next one of its level."""

    level: int
    text: str
    is_bare: bool


def markdown_headings(text: str) -> list[Heading]:
    """The headings of `text`, in order; what looks like one within a fence is none."""
    text = _FENCE.sub(lambda fence: " " * len(fence[0]), text)
    found = list(_HEADING.finditer(text))
    headings: list[Heading] = []
    for place, match in enumerate(found):
        level = len(match[1])
        after = next((one.start() for one in found[place + 1 :] if len(one[1]) <= level), len(text))
        headings.append(Heading(level, match[2], not text[match.end() : after].strip()))
    return headings


def headings_of(value: Any) -> list[str]:
    """The headings of Markdown, or the texts of a list."""
    if isinstance(value, str):
        return [one.text for one in markdown_headings(value)]
    return [str(one) for one in value]


def headings_match(
    field: str,
    of: Callable[[Any], Sequence[str]] = headings_of,
    *,
    bar: Bar = Bar.NORMAL,
    name: str = "headings_match",
) -> Criterion:
    """Text with the headings of the step's field `field`, which `of` takes from its value.

    With a lenient bar each is in the text, whatever the order; with a normal one in the same order;
    with a strict one in the same order, as Markdown headings, and there is no other. Numbers before
    a heading, marks around it and upper case make no difference.
    """

    def check(text: str, fields: Mapping[str, Any], strictness: int) -> Iterable[str]:
        wanted = {_key(heading): heading for heading in of(fields[field])}
        headings = {_key(one.text): one.text for one in markdown_headings(text)}
        lines = list(headings) if strictness == 2 else [_key(line) for line in text.splitlines()]
        place = 0
        for key, heading in wanted.items():
            if key not in lines:
                yield f"the {field}'s heading {heading!r} is missing"
            elif key in lines[place:]:
                place = lines.index(key, place) + 1
            elif strictness:
                yield f"the {field}'s heading {heading!r} is out of order"
        if strictness == 2:
            for key in headings.keys() - wanted.keys():
                yield f"the heading {headings[key]!r} is new"

    return Criterion(name, check, {Bar.LENIENT: 0, Bar.NORMAL: 1, Bar.STRICT: 2}, bar)


def _key(line: str) -> str:
    # "## 2. Why Tests?" and "**Why tests**" are the same heading.
    return re.sub(r"^[\W\d_]+|\W+$", "", line).casefold()
