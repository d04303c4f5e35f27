"""A typed state as Markdown that people read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptchain_dagster.refine.readable import as_markdown

CASES: list[tuple[Any, str]] = [
    ({"name": "Ana"}, "- **name:** Ana"),
    ({"names": ["Ana", "Bo"]}, "- **names:**\n  - Ana\n  - Bo"),
    ({"open": [{"what": "chairs", "done": False}]},
     "- **open:**\n  - **what:** chairs; **done:** no"),
    ({"open": [], "due": None, "by": ""}, "- **open:** –\n- **due:** –\n- **by:** –"),
    ({"text": "one\ntwo"}, "- **text:** one\n  two"),
    ({"by": [{"who": "Ana", "what": ["a", "b"]}]},
     "- **by:**\n  - **who:** Ana\n    - **what:**\n      - a\n      - b"),
    ({}, "- –"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "markdown"), CASES)
def test_lists_in_lists_with_names_in_bold(value: Any, markdown: str) -> None:
    """What is empty is told as such."""
    assert as_markdown(value) == markdown


WORDS = st.from_regex(r"[a-z]{3,8}", fullmatch=True)
VALUES = st.recursive(
    WORDS | st.integers(0, 999) | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(WORDS, VALUES, max_size=4))
def test_no_text_is_left_out_and_each_is_told_once(value: dict[str, Any]) -> None:
    """Every name and every value, in order."""
    told = list(_texts(value))
    markdown, at = as_markdown(value), 0
    for text in told:
        at = markdown.index(text, at) + len(text)


def _texts(value: Any) -> Any:
    if isinstance(value, dict):
        for name, item in value.items():
            yield f"**{name}:**"
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, (str, int)) and not isinstance(value, bool):
        yield str(value)
