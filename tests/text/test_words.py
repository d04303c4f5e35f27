"""Words by Unicode's boundaries."""

from __future__ import annotations

import pytest

from promptchain_dagster.words import count_words, has_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 0),
        (" \n\t", 0),
        ("... --- !!!", 0),
        ("Hello, it's a 3.14 test-case", 6),
        ("can’t 1,000", 2),
        ("第一文です", 5),
        ("可读性", 3),
        ("👨‍👩‍👧 🎉", 0),
        ("naïve café", 2),
        ("word " * 1000, 1000),
    ],
)
def test_words_are_counted_by_unicode_boundaries(text: str, words: int) -> None:
    """A segment with a letter or a digit is a word, in scripts without spaces too."""
    assert count_words(text) == words


@pytest.mark.parametrize(
    "text", ["", "1\n\f\n2\n\f\n", "# Example Page", "12 34 56 78", "a b 3", "\u200b\ufeff\u2060"]
)
def test_c9_page_numbers_and_a_bare_title_are_no_three_words(text: str) -> None:
    """Only words that hold a letter make content."""
    assert not has_words(text, 3)


@pytest.mark.parametrize("text", ["one two three", "第一文", "a1 b2 c3", "Ünï cödé wörds"])
def test_c9_three_words_with_letters_are_content(text: str) -> None:
    """Three words are enough, whatever the script."""
    assert has_words(text, 3)
