"""What cleaning changes, and what it leaves alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptchain_dagster.refine.cleaning import clean_text

AWKWARD = "ab .1\n\r\f\v\0\x1c\x85\u2028\u00ad\u200b\u200d\ufeff\ufb00\ufb01\ufb03\ud83d\ude00-"


def cleaned(text: str) -> str:
    return clean_text(text)[0]


@given(st.text() | st.text(alphabet=AWKWARD))
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    """Clean text stays as it is, without a warning, and can be sent and written."""
    once = cleaned(text)
    assert clean_text(once) == (once, ())
    once.encode("utf-8")
    assert not set(once) & set("\r\f\v\0\x85\u2028\u2029\ufeff\u200b\u00ad")


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "tab\tand  spaces \n\n\n  indented",
        "² ½ Ａ １ ﷺ",
        "👨‍👩‍👧 نمی‌خواهم क्‍ष",
        "---\ntitle: x\n---\nBody",
        "---\n\n**Subject: Hi**\n\nBody.\n\n---\nEnd",
        "<|endoftext|> {{x}} <b>&amp;</b>",
        "e\u0301",
    ],
)
def test_g1_g6_c15_what_is_text_stays_verbatim(text: str) -> None:
    """No NFKC, no stripping, joiners kept, front matter and rules kept."""
    assert clean_text(text) == (text, ())


@pytest.mark.parametrize("line_end", ["\r\n", "\r", "\u2028", "\u2029", "\x85"])
def test_c5_every_line_end_becomes_lf(line_end: str) -> None:
    """The same text with other line ends is the same text."""
    text = "One.\n\nTwo.\nStill two.\n\n\nThree.\n"
    assert cleaned(text.replace("\n", line_end)) == text


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("assisted by the\fexternal auditors.", "assisted by the external auditors."),
        ("grew to\f$4.2 million", "grew to $4.2 million"),
        ("1\n\f\n2\n\f\n", "1\n\n2\n\n"),
        ("one.\n\n\fTwo", "one.\n\nTwo"),
        ("one\f\nTwo", "one\nTwo"),
        ("\fOne\f", "One"),
        ("a\f\fb", "a b"),
        ("a\x0bb", "a\nb"),
        ("a\x1cb\x1fc", "a b c"),
    ],
)
def test_c13_a_form_feed_never_fuses_words_nor_makes_a_paragraph(text: str, clean: str) -> None:
    """Inside a line it is a space, at a line's edge nothing."""
    assert cleaned(text) == clean


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("e\ufb03cient", "efficient"),
        ("\ufb00 \ufb05 \ufb06 \ufb04", "ff st st ffl"),
        ("the \ufb01 eld", "the field"),
        ("(\ufb02 ow)", "(flow)"),
        ("pro\ufb01ling", "profiling"),
        ("8 \ufb02 oz", "8 fl oz"),
        ("a sci-\ufb01 book", "a sci-fi book"),
        ("o\ufb00 the sti\ufb00 cli\ufb00 edge", "off the stiff cliff edge"),
        ("\ufb01 Eld", "fi Eld"),
    ],
)
def test_g1_ligatures_are_spelled_out(text: str, clean: str) -> None:
    """A ligature that stands alone before a small letter is joined to its word."""
    assert cleaned(text) == clean


def test_g1_a_nul_is_removed_with_a_warning() -> None:
    """A letter may be missing where it stood, so it is said where."""
    text, (warning,) = clean_text("under the in\x00uence of")
    assert text == "under the inuence of"
    assert "1 NUL" in warning and "in\\x00uence" in warning


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("caf\ud83d bar", "caf\ufffd bar"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ud83d\ude00", "\U0001f600"),
        ("\ud83d\x00\ude00", "\ufffd\ufffd"),
    ],
)
def test_b9_lone_surrogates_are_replaced_once(text: str, clean: str) -> None:
    """Two halves of a character are joined; a half becomes U+FFFD."""
    assert cleaned(text) == clean


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("\u200b\ufeff\u2060", ""),
        ("pre\u00adrequisite", "prerequisite"),
        ("a\u200bb", "ab"),
        ("x\ufdd0\uffff\U0001fffe\x07\x9b", "x"),
    ],
)
def test_c15_what_stands_for_nothing_is_removed(text: str, clean: str) -> None:
    """Zero-width characters, soft hyphens, controls and noncharacters go."""
    assert cleaned(text) == clean


@pytest.mark.parametrize("blank", [" ", "\t", "\u00a0", " \t\u00a0"])
def test_b7_a_pathological_run_of_white_space_shrinks(blank: str) -> None:
    """A million spaces become one; a long gap between paragraphs stays a gap."""
    assert cleaned("a" + blank * 1_010_000 + "x") == "a x"
    assert cleaned("a" + blank * 999 + "\n" + blank * 999 + "x") == "a\nx"
    assert cleaned("a" + ("\n" + blank) * 1000 + "x") == "a\n\nx"
    assert cleaned("a" + blank[0] * 999 + "x") == "a" + blank[0] * 999 + "x"
