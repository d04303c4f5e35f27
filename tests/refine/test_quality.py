"""What is looked at in a finished summary."""

from __future__ import annotations

from typing import Any

import pytest

from promptchain_dagster.criteria.facts import names_and_numbers, not_in
from promptchain_dagster.refine.quality import (
    Made,
    judge_summary,
    repetition,
    shrinks,
)

TEXT = (
    "On Monday the mayor, Ada Lovelace, said that the harbour of Ålesund took 4,200 boats in "
    "2019. In Zürich nobody had known. The café's owner paid $1.5 million."
)


def failed(summary: str, **changed: Any) -> dict[str, str]:
    """The checks that are not met, each with what it says."""
    given: dict[str, Any] = {
        "text": TEXT,
        "max_words": 50,
        "chunks": 2,
        "folded": 2,
        "shrinkings": {},
    }
    verdict = judge_summary(summary, Made(**{**given, **changed}))
    return {one.check: one.message for one in verdict.failed_checks}


def test_a_good_summary_meets_all() -> None:
    """What it says is in the document."""
    assert failed("The mayor Ada Lovelace said that Ålesund took 4,200 boats in 2019.") == {}


def test_a_summary_of_nothing_meets_all() -> None:
    """A document without content has one of no words and no chunks."""
    assert failed("", chunks=0, folded=0) == {}


def test_a_summary_over_the_cap_says_by_how_much() -> None:
    """Words as the cap counts them."""
    assert failed("one two three four", max_words=3) == {
        "within_cap": "the summary has 4 words, the cap is 3"
    }
    assert failed("第一文", max_words=3) == {}


def test_a_chunk_that_was_not_folded_is_told() -> None:
    """Whatever the summary says."""
    assert "1 of 2 chunks" in failed("The harbour.", folded=1)["every_chunk_folded"]


@pytest.mark.parametrize(
    ("before", "after", "compressed", "sudden"),
    [
        (100, 49, False, True),
        (100, 50, False, False),
        (100, 10, True, False),
        (10, 1, False, False),
        (0, 0, False, False),
    ],
)
def test_a_fall_below_half_is_sudden_unless_asked_for_or_tiny(
    before: int, after: int, compressed: bool, sudden: bool
) -> None:
    """Half is still fine."""
    assert shrinks(before, after, compressed=compressed) is sudden


def test_shrinking_is_told_by_chunk_and_against_the_summary_before() -> None:
    """A lower cap is no reason."""
    assert "chunk 3" in failed("A harbour.", shrinkings={3: (80, 2)})["no_sudden_shrinking"]
    assert "had 40" in failed("A harbour.", previous=40)["no_sudden_shrinking"]
    assert failed("A harbour.", previous=40, max_words=4) == {}


def test_heavy_repetition_is_told() -> None:
    """Of phrases, in any script; a short text may say a thing twice."""
    assert "no_heavy_repetition" in failed("the boats came in again and " * 9)
    assert "no_heavy_repetition" in failed("第一文です。" * 9)
    assert failed("the boats came in, the boats came in") == {}
    assert repetition("one two three") == 0
    assert repetition("a b c d e a b c d e") == pytest.approx(1 / 6)


@pytest.mark.parametrize(
    "summary",
    [
        "They met in Atlantis and in Paris.",
        "It was in 2020, not before.",
        "It took 4,201 boats.",
    ],
)
def test_a_name_or_number_that_no_document_has_is_told(summary: str) -> None:
    """And named."""
    assert "not in the document" in failed(summary)["names_and_numbers_kept"]


@pytest.mark.parametrize(
    "summary",
    [
        "It took 4200 boats, or 4.200 as others write.",
        "The owner paid 1.5 million.",
        "Nobody knew. Everybody was away. They said: Nothing.",
        "the MAYOR and ADA LOVELACE said so",
        "At Ada's, in Zürich, by ÅLESUND.",
        "第一文です。",
    ],
)
def test_case_separators_and_beginnings_of_sentences_are_no_news(summary: str) -> None:
    """What is the same in another dress counts as kept."""
    assert failed(summary) == {}


def test_names_are_capitalised_words_inside_sentences_and_numbers_are_whole() -> None:
    """Each once."""
    assert names_and_numbers("Then Ada met Ada-Lou on 3 May 1,200 times. So I said.") == [
        "3",
        "1,200",
        "Ada",
        "Ada-Lou",
        "May",
    ]
    assert not_in("ada sat there", ["Ada", "Lou"]) == ["Lou"]
