"""What holds for the chunks of any text."""

from __future__ import annotations

import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from promptchain_dagster.refine.boundaries import after_space
from promptchain_dagster.refine.chunking import split_text
from promptchain_dagster.tokens import Encoder, get_encoder
from promptchain_dagster.tokens.seams import SEAM, pieces

ENCODERS = [get_encoder("o200k_base"), get_encoder("cl100k_base")]

WORDS = st.sampled_from(
    [
        *("the", "river", "Incredible", "don't", "3.14", "1,000", "end.", "What?!", '"No."', "'S"),
        *(
            "(see",
            "x)",
            "/usr/bin",
            "/",
            "...",
            "中文",
            "第一文です。",
            "👨‍👩‍👧",
            "e\u0301",
            "\u0301",
        ),
        *("<|endoftext|>", "a" * 70),
    ]
)
GAPS = st.sampled_from(
    ["", " ", " ", " ", "  ", "\n", "\n    ", "\n\n", "\n\n", "\n \n\t", "\t", "\u00a0", "\r\n\r\n"]
)
PROSE = st.lists(st.tuples(WORDS, GAPS), max_size=60).map(
    lambda pairs: "".join(word + gap for word, gap in pairs)
)
ODD = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=80)
TEXTS = PROSE | ODD | st.text(alphabet="ab .,/'\n\r\t-1", max_size=200)
ENCODER = st.sampled_from(ENCODERS)


@settings(max_examples=400, deadline=None)
@given(TEXTS, st.integers(12, 80), ENCODER)
def test_chunks_rebuild_the_text_and_keep_the_limit(
    text: str, limit: int, encoder: Encoder
) -> None:
    """Spans join up, counts are exact, no text is empty, no cut is inside a character."""
    chunks = split_text(text, limit, encoder)
    assert "".join(text[chunk.start : chunk.end] for chunk in chunks) == (text if chunks else "")
    assert bool(chunks) == bool(text.strip())
    assert [(chunk.index, chunk.total) for chunk in chunks] == [
        (at, len(chunks)) for at in range(1, len(chunks) + 1)
    ]
    whole = {match.end() for match in regex.finditer(r"\X", text)}
    for chunk in chunks:
        assert chunk.tokens == len(encoder.encoding.encode_ordinary(chunk.text)) <= limit
        assert chunk.text.strip() == text[chunk.start : chunk.end].strip() != ""
        assert chunk.end in whole


@settings(max_examples=400, deadline=None)
@given(TEXTS, st.sampled_from([" ", "\n", "\n\n", "\n    "]), TEXTS, st.integers(12, 80), ENCODER)
def test_appended_text_changes_no_chunk_but_the_last(
    text: str, gap: str, more: str, limit: int, encoder: Encoder
) -> None:
    """All the chunks before the last one are the same, text and span."""
    before = split_text(text, limit, encoder)[:-1]
    after = split_text(text + gap + more, limit, encoder)
    for old, new in zip(before, after, strict=False):
        assert (old.text, old.start, old.end) == (new.text, new.start, new.end)
    assert len(after) >= len(before)


@settings(max_examples=400, deadline=None)
@given(TEXTS, ENCODER)
def test_counts_add_up_at_every_seam(text: str, encoder: Encoder) -> None:
    """This is what the speed rests on."""
    count = encoder.count
    for seam in SEAM.finditer(text):
        assert count(text[: seam.end()]) + count(text[seam.end() :]) == count(text)


@given(st.text(alphabet="ab \n,", max_size=50), st.integers(1, 200))
def test_pieces_join_up(text: str, times: int) -> None:
    """However long the text."""
    assert "".join(pieces(text * times)) == text * times


@given(st.text(alphabet="a \n\t"), st.integers(0, 10))
def test_the_next_chunk_begins_after_white_space_but_before_indentation(
    text: str, end: int
) -> None:
    """What is skipped is white space, and ends with the last line end in it, if any."""
    end = min(end, len(text))
    skipped = text[end : after_space(text, end)]
    rest = text[end + len(skipped) :]
    indentation = rest[: len(rest) - len(rest.lstrip())]
    assert not skipped.strip()
    assert not indentation or ("\n" in skipped and "\n" not in indentation)
