from __future__ import annotations

from typing import Any

import pytest

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.refine.room import PROMPT_TOKENS, require_room
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.refine.steps import refine_step
from promptchain_dagster.tokens import get_encoder


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("chunk_tokens", 0, "1 to 1,000,000"),
        ("chunk_tokens", -5, "1 to 1,000,000"),
        ("chunk_tokens", True, "1 to 1,000,000"),
        ("chunk_tokens", 2000.0, "1 to 1,000,000"),
        ("max_words", 0, "1 to 50,000"),
        ("max_words", 50_001, "1 to 50,000"),
        ("max_words", "500", "1 to 50,000"),
    ],
)
def test_a_number_out_of_range_is_refused_with_its_name_value_and_range(
    field: str, value: Any, allowed: str
) -> None:
    """The message holds all that is needed to mend it."""
    with pytest.raises(InvalidInput) as raised:
        RefineSettings(**{field: value})
    assert field in str(raised.value)
    assert repr(value) in str(raised.value)
    assert allowed in str(raised.value)


@pytest.mark.parametrize("document_type", ["", "  ", "two\nlines", "x" * 201])
def test_a_document_type_is_one_bounded_line(document_type: str) -> None:
    """It stands outside the tags of its prompt."""
    with pytest.raises(InvalidInput, match="document_type"):
        RefineSettings(document_type=document_type)


def test_d3_a_chunk_size_without_room_in_the_context_is_refused_with_the_numbers() -> None:
    """Prompt, summary, chunk and reply must fit together."""
    with pytest.raises(InvalidInput) as raised:
        require_room(RefineSettings(chunk_tokens=3000), context_tokens=4096)
    for number in ("3000", "4096", "500", str(4096 - PROMPT_TOKENS - 750 - 750)):
        assert number in str(raised.value)


@pytest.mark.parametrize("context_tokens", [None, 8192, 2000 + PROMPT_TOKENS + 750 + 750])
def test_d3_a_chunk_size_that_fits_or_an_unknown_context_is_fine(
    context_tokens: int | None,
) -> None:
    """Nothing is refused that could work."""
    require_room(RefineSettings(), context_tokens)


def test_d3_the_allowance_for_the_prompt_covers_the_prompt() -> None:
    """The refine prompt without summary and chunk takes no more tokens than are set aside."""
    fields = {"document_type": "collection of letters", "summary": "", "chunk": ""}
    prompt = refine_step().prompt.render({**fields, "index": 999, "total": 1000, "max_words": 500})
    assert get_encoder("o200k_base").count(prompt) <= PROMPT_TOKENS
