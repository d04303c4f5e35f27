"""Where chunks begin and end."""

from __future__ import annotations

import random
import re
from itertools import pairwise

import pytest
import regex

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.refine.chunking import Chunk, split_text
from promptchain_dagster.tokens import get_encoder

ENCODER = get_encoder()


def split(text: str, max_tokens: int) -> list[Chunk]:
    """The chunks of `text`, once what holds for any text has been checked."""
    chunks = split_text(text, max_tokens, ENCODER)
    assert "".join(text[chunk.start : chunk.end] for chunk in chunks) == (text if chunks else "")
    assert [chunk.index for chunk in chunks] == list(range(1, len(chunks) + 1))
    for chunk in chunks:
        assert chunk.total == len(chunks)
        assert chunk.tokens == len(ENCODER.encoding.encode_ordinary(chunk.text)) <= max_tokens
        assert chunk.text.strip()
        assert chunk.text.strip() == text[chunk.start : chunk.end].strip()
        assert chunk.text == chunk.text.rstrip()
    return chunks


def texts(text: str, max_tokens: int) -> list[str]:
    return [chunk.text for chunk in split(text, max_tokens)]


def paragraph(words: int, seed: int = 0) -> str:
    """One paragraph of sentences, `words` words long."""
    chance = random.Random(seed)
    chosen = [chance.choice(["lamp", "river", "seventeen", "of", "won't"]) for _ in range(words)]
    return ". ".join(" ".join(chosen[at : at + 8]).capitalize() for at in range(0, words, 8)) + "."


def test_paragraphs_are_packed_and_never_divided_when_they_fit() -> None:
    """Each chunk holds as many whole paragraphs as the limit lets it."""
    paragraphs = [paragraph(40, seed) for seed in range(60)]
    chunks = split("\n\n".join(paragraphs), 200)
    assert [each for chunk in chunks for each in chunk.text.split("\n\n")] == paragraphs
    for chunk, following in pairwise(chunks):
        one_more = chunk.text + "\n\n" + following.text.split("\n\n")[0]
        assert ENCODER.count(one_more) > 200


def test_a_text_of_exactly_the_limit_is_one_chunk() -> None:
    """The limit itself is allowed, for a text as for a paragraph."""
    for seed in range(20):
        text = "\n\n".join(paragraph(30, seed + at) for at in range(5))
        assert len(split(text, ENCODER.count(text))) == 1
        assert len(split(text, ENCODER.count(text) - 1)) == 2
        assert len(split(text + "\n\n" + text, ENCODER.count(text))) == 2


@pytest.mark.parametrize("text", ["", " ", "\n\n\n", "\t \n \u00a0", " " * 2_000_000])
def test_white_space_alone_gives_no_chunk(text: str) -> None:
    """There is nothing to summarize."""
    assert split(text, 10) == []


def test_blank_lines_belong_to_spans_but_not_to_texts() -> None:
    """Those before the first chunk, between chunks and after the last are all covered."""
    one, two = paragraph(20, 1), paragraph(20, 2)
    text = f"\n \n{one}\n\n \t\n\n{two}\n\n\n"
    chunks = split(text, max(ENCODER.count(one), ENCODER.count(two)))
    assert [chunk.text for chunk in chunks] == [one, two]
    assert text[chunks[1].start :].startswith(two)


@pytest.mark.parametrize("limit", [0, -1, -2000])
def test_a_limit_under_one_token_is_refused(limit: int) -> None:
    """The value and the least allowed are named."""
    with pytest.raises(InvalidInput, match=rf"{limit}, must be at least 1"):
        split_text("words", limit, ENCODER)


def test_a_character_that_takes_more_than_the_limit_is_refused() -> None:
    """Nothing shorter could be sent, so the limit is said to be too small."""
    rare = "\U00013000"
    assert texts(rare, ENCODER.count(rare)) == [rare]
    with pytest.raises(InvalidInput, match=r"chunk tokens: 1 .*\\U00013000"):
        split_text(rare, 1, ENCODER)


@pytest.mark.parametrize("limit", [1, 2, 7, 200])
def test_c1_a_paragraph_over_the_limit_is_divided_at_words(limit: int) -> None:
    """Without a sentence end, words stay whole."""
    text = "word " * 5000
    assert " ".join(texts(text, limit)).split() == text.split()


def test_c1_sentences_stay_whole_where_they_can() -> None:
    """A paragraph over the limit breaks at sentence ends only, each sentence being short."""
    for chunk in split(paragraph(4000), 100):
        assert re.fullmatch(r"[A-Z].*\.", chunk.text)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ('He said "stop." Then he left the room at once', 'He said "stop."'),
        ("It grew by 3.5 percent! Nobody had expected it", "It grew by 3.5 percent!"),
        ("A dog, e.g. a poodle, barks. That is all there is", "A dog, e.g. a poodle, barks."),
        ("Wait… What was that over there in the dark", "Wait…"),
        ("One line\ntwo lines and then some more words here", "One line"),
    ],
)
def test_a_sentence_end_goes_before_a_line_end_or_a_word(text: str, first: str) -> None:
    """Closing quotes stay with their sentence; decimals and abbreviations end none."""
    assert texts(text, ENCODER.count(text) - 2)[0] == first


def test_c3_a_run_without_spaces_ends_and_loses_nothing() -> None:
    """Every chunk gets on by at least one character."""
    text = "x" * 10 + " " + "a" * 5000
    assert "".join(texts(text, 100)).replace(" ", "") == text.replace(" ", "")


def test_c5_line_ends_of_any_kind_part_paragraphs() -> None:
    """Blank lines may hold white space."""
    for text in (
        "One.\n\nTwo.\n\nThree.",
        "One.\n \t\nTwo.\n\n\n\nThree.",
        "One.\n\nTwo.\n\nThree.\n",
    ):
        assert texts(text, 2) == ["One.", "Two.", "Three."]


def test_c7_code_keeps_its_indentation() -> None:
    """A chunk that begins in a new line begins with its indentation."""
    text = "def f():\n    x = 1\n    return x"
    assert texts(text, 5) == ["def f():", "    x = 1", "    return x"]
    assert "".join(texts(text, 1)).replace(" ", "") == "deff():\nx=1\nreturnx".replace("\n", "")


@pytest.mark.parametrize("stop", ["．", "。", "！", "？"])
def test_c10_chinese_is_cut_at_full_width_stops(stop: str) -> None:
    """No space is needed after them, and none is added."""
    text = f"第一文です{stop}第二文です{stop}" * 200
    chunks = split(text, 50)
    assert all(chunk.text.endswith(stop) for chunk in chunks)
    assert "".join(chunk.text for chunk in chunks) == text
    sentence = f"第一文です{stop}"
    assert texts(sentence * 3, ENCODER.count(sentence)) == [sentence] * 3


def test_c10_a_name_in_chinese_text_stays_whole() -> None:
    """Where there is no stop, a word's boundary is taken."""
    for chunk in split("使用Dagster運行工作流程並且監控" * 300, 40):
        assert not re.match(r"[a-z]", chunk.text)
        assert re.sub(r"Dagster", "", chunk.text).isascii() is False
        assert not re.search(r"[A-Za-z]", chunk.text.replace("Dagster", ""))


@pytest.mark.parametrize(
    "character", ["👨‍👩‍👧‍👦", "🇩🇪", "e\u0301\u0323", "क्षि", "👍🏽", "각", "\u0e01\u0e33"]
)
@pytest.mark.parametrize("limit", [12, 13, 50])
def test_no_cut_is_inside_a_character(character: str, limit: int) -> None:
    """Joined emoji, flags and combining marks stay whole, with or without words around them."""
    for text in (character * 500, f"ab{character}cd " * 100, f"{character} " * 300):
        whole = {0, *(match.end() for match in regex.finditer(r"\X", text))}
        assert all(chunk.end in whole for chunk in split(text, limit))


def test_a_character_over_the_limit_is_divided_into_code_points() -> None:
    """A thousand accents on one letter are cut, since nothing else is left."""
    assert len(split("e" + "\u0301" * 1000, 50)) > 10


def test_b1_special_tokens_are_text() -> None:
    """A document about language models is split like any other."""
    assert len(split("The <|endoftext|> marker. <|fim_prefix|> too. " * 50, 60)) > 5


def test_b11_counts_are_of_the_joined_text() -> None:
    """What takes more tokens together than apart never passes the limit."""
    for seed in range(40):
        chance = random.Random(seed)
        words = ["two spaces", "34", "/usr", ")/", "...", "\n\n", "\n", "  ", "'S", "'s", "é", "。"]
        text = "".join(chance.choice(words) for _ in range(300))
        for limit in (3, 10, 60):
            split(text, limit)


@pytest.mark.parametrize("encoding", ["cl100k_base", "o200k_harmony"])
def test_other_encodings_keep_the_limit_too(encoding: str) -> None:
    """The count is of the encoding that was asked for."""
    encoder = get_encoder(encoding)
    text = "\n\n".join(paragraph(50, seed) + "\n/x\n\n/y" for seed in range(30))
    for chunk in split_text(text, 120, encoder):
        assert chunk.tokens == len(encoder.encoding.encode_ordinary(chunk.text)) <= 120


HOSTILE = {
    "one letter": "a" * 2_000_000,
    "spaces": "x" + " " * 2_000_000 + "y",
    "tabs and no-break spaces": "x" + "\t\u00a0" * 1_000_000 + "y",
    "chinese": "中国人民的文字" * 95_000,
    "no space": "".join(random.Random(1).choices("abcXYZ0123+/=", k=500_000)),
    "line ends": "x" + "\n" * 1_000_000 + "y",
    "punctuation": "-" * 1_000_000,
    "emoji": "👨‍👩‍👧" * 100_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_b7_hostile_texts_are_split_without_loss(name: str) -> None:
    """Two million characters without a place to cut are no trouble."""
    chunks = split(HOSTILE[name], 2000)
    full = [chunk for chunk in chunks[:-1] if chunk.tokens > 1800]
    assert len(full) == len(chunks) - 1 or len(chunks) == 2
