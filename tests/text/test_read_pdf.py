"""PDF: lines drawn on pages to one text."""

from __future__ import annotations

from pathlib import Path

import pytest

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.refine.documents import Document, load_document
from tests.support.made_files import Drawn, pdf, pdf_page

PROTECTED = Path(__file__).parent / "data" / "password.pdf"


def load(folder: Path, data: bytes) -> Document:
    (folder / "a.pdf").write_bytes(data)
    return load_document(folder / "a.pdf")


def test_paragraphs_stay_paragraphs_and_headings_stand_alone(tmp_path: Path) -> None:
    """By the gap, by the size of the letters, by the first line's indent."""
    page: list[Drawn] = [
        (72, 750, 18, "The lighthouse"),
        *pdf_page(
            ["The keeper lit the lamp", "at dusk every day.", "", "Then he slept", "until dawn."]
        ),
        (92, 630, 11, "In the morning he"),
        (72, 616, 11, "rowed ashore."),
    ]
    assert load(tmp_path, pdf([page])).text == (
        "The lighthouse\n\nThe keeper lit the lamp\nat dusk every day.\n\n"
        "Then he slept\nuntil dawn.\n\nIn the morning he\nrowed ashore."
    )


def test_c13_a_sentence_that_goes_on_overleaf_is_not_cut(tmp_path: Path) -> None:
    """Between its two halves lie a foot, a page number and the next page's head."""
    texts = (
        ["The report was written", "over a year, with care,", "and it was sent to the"],
        ["board, which read it.", "", "They liked it, or said", "that they did, and asked"],
        ["for another one.", "", "A last remark, and then", "the report ends."],
    )
    pages = [
        [
            (72, 760, 9, "ACME Annual Report 2024"),
            *pdf_page(lines),
            (72, 40, 9, f"Confidential, page {number}"),
            (300, 25, 9, f"{number} / 3"),
        ]
        for number, lines in enumerate(texts, 1)
    ]
    assert load(tmp_path, pdf(pages)).text == (
        "ACME Annual Report 2024\n\nConfidential, page 1\n\n"
        "The report was written\nover a year, with care,\nand it was sent to the\n"
        "board, which read it.\n\nThey liked it, or said\nthat they did, and asked\n"
        "for another one.\n\nA last remark, and then\nthe report ends."
    )


def test_lines_that_only_begin_alike_are_no_running_heads(tmp_path: Path) -> None:
    """Titles are larger than the text, and numbers that don't count the pages are facts."""
    pages = [
        [
            (72, 750, 20, f"Step {n}"),
            (72, 720, 11, f"Invoice {1000 + n}"),
            *pdf_page([f"Do thing {n}.", "Then wait a bit.", "", f"Total: {n * n} euros."]),
        ]
        for n in range(1, 5)
    ]
    text = load(tmp_path, pdf(pages)).text
    for n in range(1, 5):
        assert {f"Step {n}", f"Invoice {1000 + n}", f"Total: {n * n} euros."} <= set(
            text.split("\n\n")
        )


def test_tables_are_readable_lines(tmp_path: Path) -> None:
    """A row is a line, and its cells don't fuse."""
    rows = [("Name", "Age"), ("Ann", "34"), ("Bob", "5")]
    page = [
        (x, 700 - 14 * n, 11, cell)
        for n, row in enumerate(rows)
        for x, cell in zip((72, 200), row, strict=True)
    ]
    assert load(tmp_path, pdf([page])).text == "Name Age\nAnn 34\nBob 5"


def test_words_broken_at_a_line_end_are_mended(tmp_path: Path) -> None:
    """A hyphen before a capital stays."""
    page = pdf_page(["This is an exam-", "ple by the Anglo-", "Saxons."])
    assert load(tmp_path, pdf([page])).text == "This is an example by the Anglo-Saxons."


def test_c9_pages_without_text_are_told_of(tmp_path: Path) -> None:
    """What may be a scan is no content and no error."""
    document = load(tmp_path, pdf([[], []]))
    assert not document.has_content
    assert "2 of its 2 pages hold no text" in document.warnings[0]
    mixed = load(tmp_path, pdf([pdf_page(["Some words to read."]), []]))
    assert (mixed.text, len(mixed.warnings)) == ("Some words to read.", 1)


def test_a_pdf_with_a_password_is_refused() -> None:
    """Encrypted is not damaged."""
    with pytest.raises(
        InvalidInput, match=r"password\.pdf' is encrypted: it opens with a password"
    ):
        load_document(PROTECTED)


def test_a_pdf_that_begins_late_is_read_and_a_cut_one_refused(tmp_path: Path) -> None:
    """As viewers do: the mark may come within the first kilobyte."""
    data = pdf([pdf_page(["Some words to read."])])
    assert load(tmp_path, b"\n\n" + data).text == "Some words to read."
    with pytest.raises(InvalidInput, match=r"a\.pdf' is a damaged PDF"):
        load(tmp_path, b"%PDF-1.7\nnothing that follows")
