"""The language that a text is written in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.util import find_spec
from typing import Any

from promptchain_dagster.chain.accept import Bar, Criterion
from promptchain_dagster.errors import ChainDefinitionError
from promptchain_dagster.words import count_words

FEWEST_WORDS = 8
"""Of fewer words no language can be told: they are in any."""


def in_language(code: str, *, bar: Bar = Bar.NORMAL, name: str = "in_language") -> Criterion:
    """Text in the language `code` (ISO 639-1, `en`): a text of fewer than 8 words is in any.

    The bar is how sure the finding must be for the text to be rejected: another language is more
    likely than 0.95 with a lenient bar, 0.8 with a normal one, 0.5 with a strict one. Needs the
    extra `language`.
    """
    if not re.fullmatch("[a-z]{2}", code):
        raise ChainDefinitionError(f"criterion {name!r}: {code!r} is no language, such as 'en'")
    if find_spec("py3langid") is None:
        raise ChainDefinitionError(
            f"criterion {name!r} needs py3langid: pip install 'promptchain-dagster[language]'"
        )

    def check(text: str, fields: Mapping[str, Any], sure: float) -> Iterable[str]:
        identifier = _identifier()
        if code not in identifier.labels:
            yield f"{code!r} is not among the languages that are known"
        elif count_words(text) >= FEWEST_WORDS:
            found, likely = identifier.classify(text)
            if found != code and likely > sure:
                yield f"the text is in {found!r} ({likely:.0%} sure), need {code!r}"

    return Criterion(name, check, {Bar.LENIENT: 0.95, Bar.NORMAL: 0.8, Bar.STRICT: 0.5}, bar)


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
