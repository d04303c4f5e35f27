"""What is summarized: generated documents, the same for everybody. Standard library only."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

MODEL = "gpt-4o-mini"
CHUNK_TOKENS = 2000
MAX_WORDS = 500

PARAGRAPHS_PER_CHUNK = 17
"""Of about 109 tokens each: nearly as many as 2,000 tokens hold."""

REFINE_PROMPT = """You are summarizing a long {document_type} one part at a time.

<summary_so_far>{summary}</summary_so_far>
<part number="{index}" of="{total}">{chunk}</part>

Update the summary so it also covers this part. Keep earlier
points unless this part contradicts them, keep events in order,
and stay under {max_words} words. Return only the summary."""
"""For those that have no prompt of their own for this; {} as `str.format` takes them."""


def refine_prompt(summary: str, chunk: str, index: int, total: int) -> str:
    """The prompt for chunk `index` of `total`."""
    return REFINE_PROMPT.format(
        document_type="document",
        summary=summary,
        index=index,
        total=total,
        chunk=chunk,
        max_words=MAX_WORDS,
    )


@dataclass(frozen=True)
class Workload:
    """`documents` of `chunks` each; `in_flight` calls at once, each answered in `delay` seconds."""

    documents: int = 64
    chunks: int = 10
    in_flight: int = 32
    delay: float = 0.2

    @property
    def calls(self) -> int:
        """One for each chunk."""
        return self.documents * self.chunks

    @property
    def ideal(self) -> float:
        """Seconds that it takes where nothing but the model takes any."""
        rounds = max(self.chunks, self.calls / min(self.in_flight, self.documents))
        return rounds * self.delay

    def texts(self) -> Iterator[list[str]]:
        """The chunks of each document."""
        for number in range(self.documents):
            paragraphs = paragraphs_of(number, self.chunks * PARAGRAPHS_PER_CHUNK)
            yield [
                "\n\n".join(paragraphs[start : start + PARAGRAPHS_PER_CHUNK])
                for start in range(0, len(paragraphs), PARAGRAPHS_PER_CHUNK)
            ]


_STEM_WORDS = """
water report harbour engine valley market winter council teacher letter bridge garden season
number question morning island machine village account history journey company weather shoulder
window station problem signal measure pattern country product service method driver farmer
building paper river forest summer colour record picture minute member support reason result
evening ground quarter office system animal member subject matter person future notice ticket
"""
_STEMS = _STEM_WORDS.split()
_ENDINGS = ("", "", "", "s", "s", "'s", "like", "less", "wise", "ship")
_SMALL_WORDS = """
the of and to a in that it was for on with as at by from this had not but were which they have
would there been one all when who will more no out so up into than them can only other about
could time two may then first any some over such new after must most also made before where much
"""
_SMALL = _SMALL_WORDS.split()
_NAMES = ["Corran", "Adeline Marsh", "Okonkwo", "Lake Veren", "Dr. Hsu", "Port Ellis", "Ruiz"]


def paragraphs_of(seed: int, count: int) -> list[str]:
    """`count` paragraphs of 5 sentences, about 109 tokens each; the same ones for one seed."""
    rng = random.Random(seed)
    return [" ".join(_sentence(rng) for _ in range(5)) for _ in range(count)]


def prose(characters: int) -> Iterator[str]:
    """Pieces of a text of about so many characters, paragraph by paragraph."""
    seed = written = 0
    while written < characters:
        piece = "\n\n".join(paragraphs_of(seed, 200)) + "\n\n"
        piece = piece[: characters - written]
        seed, written = seed + 1, written + len(piece)
        yield piece


def _sentence(rng: random.Random) -> str:
    words = [_word(rng) for _ in range(rng.randint(13, 17))]
    words[len(words) // 2] += ","
    text = " ".join(words)
    return f"{text[0].upper()}{text[1:]}."


def _word(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.5:
        return rng.choice(_SMALL)
    if kind < 0.95:
        return rng.choice(_STEMS) + rng.choice(_ENDINGS)
    return rng.choice(_NAMES) if kind < 0.98 else str(rng.randint(2, 2030))


REPLY = " ".join(_sentence(random.Random(seed)) for seed in range(10))
"""The summary that the server always gives: about 150 words."""
