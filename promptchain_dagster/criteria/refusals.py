"""A text that is none: nothing said, or only why it isn't."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from promptchain_dagster.chain.accept import Bar, Criterion
from promptchain_dagster.words import count_words

_REFUSES = re.compile(
    r"(?:(?:i['’]?m|i am) (?:very |so |truly )?(?:sorry|afraid)\b"
    r"|my apologies\b|apologies[,.!]|i apologi[sz]e\b|sorry,? (?:but )?(?=i\b|as\b|that\b)"
    r"|unfortunately,? i\b|as an? (?:ai|artificial|language|large language)\b"
    r"|i(?:['’]m| am) (?:not able|unable|not allowed|not permitted)\b"
    r"|i (?:can(?:not|['’]?t| not)|won['’]?t|will not|must decline|have to decline|decline)\b"
    r"(?! help (?:but|feeling|wondering|noticing)| wait| stress| emphasi[sz]e| overstate))",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")
_SHORT = 60


def not_empty(*, bar: Bar = Bar.NORMAL, name: str = "not_empty") -> Criterion:
    """Text that says something: at least 1 word with a lenient bar, 3 with a normal one, 20 with a
    strict one."""

    def check(text: str, fields: Mapping[str, Any], least: int) -> Iterable[str]:
        if not text.strip():
            yield "the text is empty"
        elif (words := count_words(text)) < least:
            yield f"{words} words, need at least {least}"

    return Criterion(name, check, {Bar.LENIENT: 1, Bar.NORMAL: 3, Bar.STRICT: 20}, bar)


def no_refusal(*, bar: Bar = Bar.NORMAL, name: str = "no_refusal") -> Criterion:
    """Text that does not decline to do what was asked. Knows English only.

    With a lenient bar it is one that begins by declining and has fewer than 60 words; with a normal
    one, that begins so; with a strict one, any sentence that does.
    """

    def check(text: str, fields: Mapping[str, Any], bar: Bar) -> Iterable[str]:
        if bar is Bar.LENIENT and count_words(text) >= _SHORT:
            return
        found = [sentence.strip(" \t\"'“”‘’*_>") for sentence in _SENTENCE.findall(text)]
        for sentence in found if bar is Bar.STRICT else found[:1]:
            if _REFUSES.match(sentence):
                yield f"the text declines: {sentence[:80]!r}"
                return

    return Criterion(name, check, {bar: bar for bar in Bar}, bar)
