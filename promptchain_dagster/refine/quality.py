"""What is looked at in a summary once it is made. Nothing here is a gate: it is told, not barred.

Each is a `Criterion` over the summary and the fields that `Made` gives. They are cheap, and so
none of them reads for sense: one that is not met is a reason to look.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from promptchain_dagster.chain.accept import AcceptSpec, Bar, Criterion, Verdict
from promptchain_dagster.criteria.facts import UNKNOWN_SHARE, unknown_names
from promptchain_dagster.words import count_words, words_of

PHRASE = 5
"""Words in a row that make a phrase, for repetition."""

FEW_WORDS = 20
"""A summary, or a fall of its length, below this many words is too short to tell anything."""


@dataclass(frozen=True, kw_only=True)
class Made:
    """How a summary came about.

    `text` is the document's clean text; `folded` of its `chunks` are in the summary; `shrinkings`
    are chunks after which the summary had suddenly fewer words (`shrinks`), each as words before
    and after, by the chunk's index; `previous` counts the words of the summary that was stored
    before, None where there was none; `words` those of the summary as the cap counts them, None
    where they are simply its own.
    """

    text: str
    max_words: int
    chunks: int
    folded: int
    shrinkings: Mapping[int, tuple[int, int]]
    previous: int | None = None
    words: int | None = None

    def words_in(self, summary: str) -> int:
        """How long the summary is."""
        return count_words(summary) if self.words is None else self.words


def shrinks(before: int, after: int, *, compressed: bool) -> bool:
    """Whether a summary of `before` words that now has `after` lost more than half of them,
    though nobody asked it to be shorter."""
    return not compressed and before >= FEW_WORDS and after < before / 2


def judge_summary(summary: str, made: Made) -> Verdict:
    """Hold a finished summary to all that is looked at."""
    return SUMMARY_QUALITY.judge(summary, {"made": made})


def repetition(text: str) -> float:
    """The share of the phrases (5 words in a row) that occur before in the text, 0 to 1."""
    words = [word.casefold() for word in words_of(text)]
    phrases = [tuple(words[at : at + PHRASE]) for at in range(len(words) - PHRASE + 1)]
    return 1 - len(set(phrases)) / len(phrases) if phrases else 0.0


def _is_within_cap(summary: str, fields: Mapping[str, Any]) -> Iterable[str]:
    made: Made = fields["made"]
    if (words := made.words_in(summary)) > made.max_words:
        yield f"the summary has {words} words, the cap is {made.max_words}"


def _is_whole(summary: str, fields: Mapping[str, Any]) -> Iterable[str]:
    made: Made = fields["made"]
    if made.folded != made.chunks:
        yield f"{made.folded} of {made.chunks} chunks are in the summary"


def _keeps_its_length(summary: str, fields: Mapping[str, Any]) -> Iterable[str]:
    made: Made = fields["made"]
    for index, (before, after) in made.shrinkings.items():
        yield f"chunk {index}: the running summary fell from {before} to {after} words"
    before = min(made.previous or 0, made.max_words)
    after = made.words_in(summary)
    if shrinks(before, after, compressed=False):
        yield f"the summary has {after} words, the one before had {made.previous}"


def _does_not_repeat(summary: str, fields: Mapping[str, Any], most: float) -> Iterable[str]:
    share = repetition(summary)
    if share > most and count_words(summary) >= FEW_WORDS:
        yield f"{share:.0%} of its {PHRASE}-word phrases repeat earlier ones, at most {most:.0%}"


def _is_of_the_document(summary: str, fields: Mapping[str, Any], most: float) -> Iterable[str]:
    made: Made = fields["made"]
    return unknown_names(summary, made.text, most, "the document")


WITHIN_CAP = Criterion("within_cap", _is_within_cap)
EVERY_CHUNK_FOLDED = Criterion("every_chunk_folded", _is_whole)
NO_SUDDEN_SHRINKING = Criterion("no_sudden_shrinking", _keeps_its_length)
NO_HEAVY_REPETITION = Criterion(
    "no_heavy_repetition",
    _does_not_repeat,
    bars={Bar.LENIENT: 0.4, Bar.NORMAL: 0.2, Bar.STRICT: 0.05},
)
NAMES_AND_NUMBERS_KEPT = Criterion(
    "names_and_numbers_kept",
    _is_of_the_document,
    bars=UNKNOWN_SHARE,
)
SUMMARY_QUALITY = AcceptSpec(
    WITHIN_CAP,
    EVERY_CHUNK_FOLDED,
    NO_SUDDEN_SHRINKING,
    NO_HEAVY_REPETITION,
    NAMES_AND_NUMBERS_KEPT,
)
