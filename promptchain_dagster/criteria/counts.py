"""How much there is of something."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from promptchain_dagster.chain.accept import Bar, Criterion
from promptchain_dagster.criteria.headings import markdown_headings
from promptchain_dagster.errors import ChainDefinitionError
from promptchain_dagster.words import count_words

Limit = int | str | None
"""A number, the name of the step's field that holds it, or none."""


def word_count(
    least: Limit = None,
    most: Limit = None,
    *,
    bar: Bar = Bar.NORMAL,
    name: str = "word_count",
) -> Criterion:
    """Text of `least` to `most` words (Unicode word boundaries).

    A lenient bar gives a quarter more room on both sides, a normal one a tenth, a strict one none.
    """
    _require_limits(name, least, most)

    def check(text: str, fields: Mapping[str, Any], room: float) -> Iterable[str]:
        low, high, words = _value(least, fields), _value(most, fields), count_words(text)
        outside = (low is not None and words < low - room * low) or (
            high is not None and words > high + room * high
        )
        if outside:
            yield f"{words} words, need {_range(low, high)}"

    return Criterion(name, check, {Bar.LENIENT: 0.25, Bar.NORMAL: 0.1, Bar.STRICT: 0.0}, bar)


def sections(
    least: Limit = None,
    most: Limit = None,
    *,
    level: int = 2,
    bar: Bar = Bar.NORMAL,
    name: str = "sections",
) -> Criterion:
    """Markdown with `least` to `most` headings of `level` (`##` is 2).

    A lenient bar lets one be missing or too many, a normal one does not, and a strict one wants
    text below each heading too.
    """
    _require_limits(name, least, most)

    def check(text: str, fields: Mapping[str, Any], limit: tuple[int, bool]) -> Iterable[str]:
        room, needs_text = limit
        found = [one for one in markdown_headings(text) if one.level == level]
        low, high, count = _value(least, fields), _value(most, fields), len(found)
        if (low is not None and count < low - room) or (high is not None and count > high + room):
            yield f"{count} section{'' if count == 1 else 's'}, need {_range(low, high)}"
        if needs_text:
            yield from (f"nothing stands under {one.text!r}" for one in found if one.is_bare)

    bars = {Bar.LENIENT: (1, False), Bar.NORMAL: (0, False), Bar.STRICT: (0, True)}
    return Criterion(name, check, bars, bar)


def _require_limits(name: str, least: Limit, most: Limit) -> None:
    if least is None and most is None:
        raise ChainDefinitionError(f"criterion {name!r} has neither a least nor a most")
    if isinstance(least, int) and isinstance(most, int) and least > most:
        raise ChainDefinitionError(f"criterion {name!r}: least is {least}, over most, {most}")


def _value(limit: Limit, fields: Mapping[str, Any]) -> int | None:
    return int(fields[limit]) if isinstance(limit, str) else limit


def _range(low: int | None, high: int | None) -> str:
    if low is None:
        return f"at most {high}"
    return f"at least {low}" if high is None else f"{low} to {high}"
