"""Word files, presentations and books."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.refine.documents import Document, load_document
from tests.support.made_files import (
    archive,
    docx,
    epub,
    paragraph,
    pptx,
    run,
    shape,
    slide_table,
)

HEADING = '<w:style w:styleId="Kop1"><w:name w:val="heading 1"/></w:style>'
BULLETS = (
    '<w:style w:styleId="Opsom"><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>'
)


def load(folder: Path, data: bytes, name: str) -> Document:
    (folder / name).write_bytes(data)
    return load_document(folder / name)


def words(folder: Path, body: str, **parts: str) -> Document:
    return load(folder, docx(body, **parts), "a.docx")


def test_g9_deleted_text_is_not_read_and_inserted_text_is(tmp_path: Path) -> None:
    """The document is read with all its changes accepted, and the reader is told."""
    body = paragraph(
        run("The price is ")
        + '<w:del w:id="1"><w:r><w:delText>900</w:delText></w:r></w:del>'
        + f'<w:ins w:id="2">{run("750")}</w:ins>'
        + run(" euros.")
        + f'<w:moveFrom w:id="3">{run(" It moved away.")}</w:moveFrom>'
    )
    document = words(tmp_path, body)
    assert document.text == "The price is 750 euros."
    (warning,) = document.warnings
    assert "a.docx" in warning and "1 deletions and 1 moves left out" in warning


def test_g9_a_deleted_paragraph_end_joins_and_a_deleted_row_goes(tmp_path: Path) -> None:
    """What a deletion takes besides letters is gone too."""
    gone = '<w:rPr><w:del w:id="1"/></w:rPr>'
    row = "<w:tr>{}<w:tc>{}</w:tc></w:tr>"
    body = (
        paragraph(run("One "), gone)
        + paragraph(run("sentence."))
        + "<w:tbl>"
        + row.format("", paragraph(run("kept")))
        + row.format('<w:trPr><w:del w:id="2"/></w:trPr>', paragraph(run("deleted")))
        + "</w:tbl>"
        + paragraph(run("The end"), gone)
    )
    assert words(tmp_path, body).text == "One sentence.\n\nkept\n\nThe end"


def test_g9_tables_text_boxes_footnotes_and_lists_are_read(tmp_path: Path) -> None:
    """Cells don't fuse; a text box is read once, though it is kept twice."""
    cell = "<w:tc>{}</w:tc>"
    table = "".join(
        "<w:tr>" + "".join(cell.format(paragraph(run(text))) for text in row) + "</w:tr>"
        for row in (("Name", "Age"), ("Ann", "34"))
    )
    box = f"<w:txbxContent>{paragraph(run('In the box.'))}</w:txbxContent>"
    body = (
        paragraph(run("The Sea"), '<w:pStyle w:val="Kop1"/>')
        + paragraph(run("It is wide") + '<w:r><w:footnoteReference w:id="2"/></w:r>' + run("."))
        + f"<w:tbl>{table}</w:tbl>"
        + paragraph(
            "<w:r><mc:AlternateContent><mc:Choice><w:drawing>"
            f"{box}</w:drawing></mc:Choice><mc:Fallback>{box}</mc:Fallback></mc:AlternateContent></w:r>"
        )
        + paragraph(run("first"), '<w:pStyle w:val="Opsom"/>')
        + paragraph(run("second"), '<w:numPr><w:ilvl w:val="1"/><w:numId w:val="3"/></w:numPr>')
        + paragraph(run("a") + "<w:r><w:tab/></w:r>" + run("b") + "<w:r><w:br/></w:r>" + run("c"))
    )
    notes = (
        f'<w:footnote w:type="separator" w:id="0">{paragraph(run("---"))}</w:footnote>'
        f'<w:footnote w:id="2">{paragraph(run("Very wide."))}</w:footnote>'
    )
    document = words(tmp_path, body, styles=HEADING + BULLETS, footnotes=notes)
    assert document.text == (
        "# The Sea\n\nIt is wide[^2].\n\nName | Age\nAnn | 34\n\nIn the box.\n\n"
        "- first\n  - second\n\na b\nc\n\n[^2]: Very wide."
    )
    assert document.warnings == ()


def test_g9_hidden_text_goes_struck_text_is_marked_and_comments_are_told_of(tmp_path: Path) -> None:
    """Nothing that the page doesn't state is read as stated."""
    body = paragraph(
        run("Seen. ") + run("Hidden.", "<w:vanish/>") + run("Struck.", '<w:strike w:val="true"/>')
    )
    document = load(tmp_path, docx(body, comments=True), "a.docx")
    assert document.text == "Seen. ~~Struck.~~"
    assert "1 hidden passages" in document.warnings[0]
    assert "comments are left out" in document.warnings[1]


def test_a_presentation_is_read_in_the_order_of_its_list(tmp_path: Path) -> None:
    """Titles, texts, tables and notes; hidden slides and page furniture are left out."""
    slides = [
        shape("Welcome", "ctrTitle") + shape("Point one\nPoint two") + shape("7", "sldNum"),
        "HIDDEN" + shape("Draft only"),
        shape("Numbers", "title") + slide_table([["Name", "Age"], ["Ann", "34"]]),
    ]
    document = load(tmp_path, pptx(slides, {0: "Say it slowly."}), "a.pptx")
    assert document.text == (
        "## Welcome\n\nPoint one\nPoint two\n\nNotes: Say it slowly.\n\n"
        "## Numbers\n\nName | Age\nAnn | 34"
    )
    assert document.warnings == (f"{str(tmp_path / 'a.pptx')!r}: hidden slides left out: 2",)


def test_a_book_is_read_chapter_by_chapter(tmp_path: Path) -> None:
    """XHTML as it is written: elements that close themselves, entities, the contents left out."""
    chapters = [
        '<h1>One</h1><a id="x"/><script src="a.js"/><p>It was&nbsp;night &mdash; late.</p>',
        "<h1>Two</h1><p>Not <b>well</p> formed &amp; all.",
    ]
    document = load(tmp_path, epub(chapters), "a.epub")
    assert document.text == (
        "# The Sea\nAnn Lee\n\n# One\n\nIt was\xa0night — late.\n\n"
        "# Two\n\nNot well\n\nformed & all."
    )


def test_an_encrypted_book_is_refused_but_scrambled_fonts_are_no_matter(tmp_path: Path) -> None:
    """DRM is told from what an EPUB does to its fonts."""
    chapter = ["<p>Words to read.</p>"]
    fonts = epub(chapter, encryption="http://www.idpf.org/2008/embedding")
    assert "Words to read." in load(tmp_path, fonts, "a.epub").text
    locked = epub(chapter, encryption="http://www.w3.org/2001/04/xmlenc#aes128-cbc")
    with pytest.raises(InvalidInput, match=r"b\.epub' is encrypted"):
        load(tmp_path, locked, "b.epub")


@pytest.mark.parametrize("name", ["a.docx", "a.pdf", "a.html", "a.pptx"])
def test_what_a_file_holds_decides_between_formats(tmp_path: Path, name: str) -> None:
    """A Word file under another name is read as what it is."""
    assert load(tmp_path, docx(paragraph(run("Three plain words"))), name).text == (
        "Three plain words"
    )


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (archive({"xl/workbook.xml": "<a/>"}), "an Excel file, which is not supported"),
        (archive({"content.xml": "<a/>"}), "an OpenDocument file, which is not supported"),
        (archive({"a.exe": "x"}), "a zip archive, which is not supported"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500), "an old Office file, or one with a"),
        (b"just some text", r"is not a Word file \(.docx\), whatever its name says"),
        (b"", r"is not a Word file \(.docx\), whatever its name says"),
        (docx("")[:400], "a damaged zip archive"),
        (archive({"word/document.xml": "<w:document"}), "its part 'word/document.xml' is no XML"),
    ],
)
def test_g9_what_can_not_be_read_is_refused_by_name_and_reason(
    tmp_path: Path, data: bytes, why: str
) -> None:
    """Another format, a damaged file, an empty one."""
    with pytest.raises(InvalidInput, match=rf"{re.escape('a.docx')}.*{why}"):
        load(tmp_path, data, "a.docx")
