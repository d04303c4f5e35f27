"""JSON values as Markdown that people read: a list in a list, names in bold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

_INDENT = "  "


def as_markdown(value: Any) -> str:
    """`value` as nested lists; what holds nothing is told as such, and never left out."""
    return "\n".join(_lines(value))


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        for name, item in cast("Mapping[str, Any]", value).items():
            yield from _named(f"**{name}:**", item)
    elif isinstance(value, list) and value:
        for item in cast("list[Any]", value):
            yield from _item(item)
    else:
        yield f"- {_plain(value)}"


def _named(name: str, item: Any) -> Iterator[str]:
    if isinstance(item, (Mapping, list)) and item:
        yield f"- {name}"
        yield from (_INDENT + line for line in _lines(item))
    else:
        first, *more = _plain(item).splitlines() or [""]
        yield f"- {name} {first}".rstrip()
        yield from (f"{_INDENT}{line}".rstrip() for line in more)


def _item(item: Any) -> Iterator[str]:
    """One of a list: an object of short values is one line, any other keeps its lines together."""
    if isinstance(item, Mapping) and (line := _in_one_line(cast("Mapping[str, Any]", item))):
        yield f"- {line}"
        return
    lines = list(_lines(item)) if isinstance(item, (Mapping, list)) else _plain(item).splitlines()
    first, *more = lines or [""]
    nested = first.startswith("- ")
    yield f"- {first[2:]}" if nested else f"- {first}"
    yield from (f"{_INDENT}{line}".rstrip() for line in more)


def _in_one_line(item: Mapping[str, Any]) -> str | None:
    texts: list[str] = []
    for name, value in item.items():
        text = _plain(value)
        if (isinstance(value, (Mapping, list)) and value) or len(text.splitlines()) > 1:
            return None
        texts.append(f"**{name}:** {text}")
    return "; ".join(texts)


def _plain(value: Any) -> str:
    if value is None or value == "" or value == [] or value == {}:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
