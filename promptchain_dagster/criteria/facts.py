"""Names and numbers: what a text must not make up."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from promptchain_dagster.chain.accept import Bar, Criterion

_NUMBER = re.compile(r"\d+(?:[.,'\u2019\u00a0\u202f]\d+)*")
_SEPARATORS = re.compile(r"[.,'\u2019\u00a0\u202f]")
_SENTENCE = re.compile(r"[.!?:;\n\"“”«»(*•#-]\s*$")
_WORD = re.compile(r"[^\W\d_](?:[\w-]*\w)?")
_SHOWN = 8

UNKNOWN_SHARE = {Bar.LENIENT: 0.25, Bar.NORMAL: 0.1, Bar.STRICT: 0.0}
"""How many of a text's names and numbers may be unknown to what it was made from."""


def keeps_names_and_numbers(
    field: str, *, bar: Bar = Bar.NORMAL, name: str = "keeps_names_and_numbers"
) -> Criterion:
    """Text whose names and numbers are in the step's field `field` too, word for word.

    A lenient bar lets a quarter of them be new, a normal one a tenth, a strict one none.
    """

    def check(text: str, fields: Mapping[str, Any], most: float) -> Iterable[str]:
        return unknown_names(text, str(fields[field]), most, f"the {field}")

    return Criterion(name, check, UNKNOWN_SHARE, bar)


def unknown_names(text: str, source: str, most: float, called: str) -> Iterable[str]:
    """Says which names and numbers of `text` are not in `source`, where they are over `most`."""
    names = names_and_numbers(text)
    missing = not_in(source, names)
    if len(missing) > most * len(names):
        shown = ", ".join(missing[:_SHOWN]) + (", …" if len(missing) > _SHOWN else "")
        yield f"{len(missing)} of {len(names)} names and numbers are not in {called}: {shown}"


def names_and_numbers(text: str) -> list[str]:
    """The numbers in `text`, and its capitalised words that do not begin a sentence, each once.

    In scripts without capitals there are no names to find, and in German most of what is found are
    nouns.
    """
    found = dict.fromkeys(match[0] for match in _NUMBER.finditer(text))
    for match in _WORD.finditer(text):
        before = text[max(0, match.start() - 4) : match.start()]
        begins = not before.strip() or _SENTENCE.search(before)
        if match[0][0].isupper() and len(match[0]) > 1 and not begins:
            found[match[0]] = None
    return list(found)


def not_in(text: str, names: Iterable[str]) -> list[str]:
    """Those of `names` that do not occur in `text`, whatever the case and the marks in numbers."""
    folded = text.casefold()
    missing = [name for name in names if name.casefold() not in folded]
    if not any(name[0].isdigit() for name in missing):
        return missing
    plain = _NUMBER.sub(lambda match: _SEPARATORS.sub("", match[0]), folded)
    return [name for name in missing if _plain(name) not in plain]


def _plain(name: str) -> str:
    return _SEPARATORS.sub("", name) if name[0].isdigit() else name.casefold()
