"""Files to documents, or to refusals."""

from __future__ import annotations

import codecs
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.refine.documents import Document, document_key, load_document

TEXT = "“Curly” quotes, naïve café – 第一文です．\n\nA second paragraph.\n"
LATIN = "“Curly” quotes, naïve café – it’s fine.\n"


def load(folder: Path, data: bytes, name: str = "doc.txt", **options: str) -> Document:
    (folder / name).write_bytes(data)
    return load_document(folder / name, **options)


@pytest.mark.parametrize(
    "data",
    [
        TEXT.encode(),
        codecs.BOM_UTF8 + TEXT.encode(),
        codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"),
        codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"),
        codecs.BOM_UTF32_LE + TEXT.encode("utf-32-le"),
        codecs.BOM_UTF32_BE + TEXT.encode("utf-32-be"),
        TEXT.replace("\n", "\r\n").encode(),
    ],
)
def test_g2_g3_utf8_and_marked_encodings_give_the_same_text(tmp_path: Path, data: bytes) -> None:
    """A byte-order mark is believed, and is not part of the text."""
    document = load(tmp_path, data)
    assert (document.text, document.warnings) == (TEXT, ())
    assert document.key == document_key(str(tmp_path / "doc.txt"))


def test_g2_other_bytes_are_read_in_the_fallback_with_a_warning(tmp_path: Path) -> None:
    """Curly quotes stay intact, and the warning names the file and the encoding."""
    document = load(tmp_path, LATIN.encode("cp1252"))
    assert document.text == LATIN
    (warning,) = document.warnings
    assert "doc.txt" in warning and "cp1252" in warning


def test_g2_the_encoding_and_the_fallback_can_be_set(tmp_path: Path) -> None:
    """An explicit encoding is taken without a warning, another fallback with one."""
    data = "Привет, мир и все остальные".encode("koi8-r")
    assert load(tmp_path, data, encoding="koi8-r").text.startswith("Привет")
    assert load(tmp_path, data, encoding="koi8-r").warnings == ()
    assert load(tmp_path, data, fallback_encoding="koi8-r").text.startswith("Привет")


def test_g2_bytes_that_are_in_no_known_encoding_are_refused(tmp_path: Path) -> None:
    """Text of another encoding is not turned into nonsense where that can be seen."""
    with pytest.raises(InvalidInput, match=r"doc\.txt.*cp1252"):
        load(tmp_path, b"abc \x81\x8d def")
    with pytest.raises(InvalidInput, match=r"doc\.txt.*ascii"):
        load(tmp_path, "é".encode(), encoding="ascii")
    with pytest.raises(InvalidInput, match="unknown encoding 'nonsense'"):
        load(tmp_path, b"abc", encoding="nonsense")


@pytest.mark.parametrize("text", ["Plain words in a file.", "Привет, мир", "第一文です 第二 x" * 9])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le"])
def test_g3_unmarked_utf16_is_refused(tmp_path: Path, text: str, encoding: str) -> None:
    """Text laced with NULs is never summarized."""
    with pytest.raises(InvalidInput, match=r"doc\.txt.*(byte-order mark|cp1252)"):
        load(tmp_path, text.encode(encoding))
    assert load(tmp_path, text.encode(encoding), encoding=encoding).text == text


def test_g3_a_damaged_marked_file_is_read_with_a_warning(tmp_path: Path) -> None:
    """An odd last byte costs a character, not the document."""
    document = load(tmp_path, codecs.BOM_UTF16_LE + "abc".encode("utf-16-le") + b"x")
    assert document.text == "abc\ufffd"
    assert "damaged" in document.warnings[0]


def test_b9_surrogates_written_as_bytes_are_replaced(tmp_path: Path) -> None:
    """What an extractor wrote carelessly is still UTF-8 otherwise."""
    document = load(tmp_path, "café \ud83d bar".encode("utf-8", "surrogatepass"))
    assert (document.text, document.warnings) == ("café \ufffd bar", ())


def test_g1_a_loss_names_the_file(tmp_path: Path) -> None:
    """A removed NUL is a warning of this document."""
    (warning,) = load(tmp_path, b"under the in\x00uence of the moon").warnings
    assert "doc.txt" in warning and "NUL" in warning


@pytest.mark.parametrize("name", ["a.xlsx", "a.doc", "a.rtf", "README", ".txt", "a.txt.gz"])
def test_g7_g9_other_kinds_of_files_are_refused_by_name(tmp_path: Path, name: str) -> None:
    """The refusal names the file and what is supported."""
    with pytest.raises(InvalidInput, match=rf"{re.escape(name)}.*\.txt.*\.md"):
        load(tmp_path, b"<nav>Home</nav>", name)


@pytest.mark.parametrize("name", ["a.TXT", "a.md", "a.Markdown", "a.text"])
def test_text_and_markdown_files_are_read(tmp_path: Path, name: str) -> None:
    """The ending counts, whatever its case."""
    assert load(tmp_path, b"words", name).text == "words"


@pytest.mark.parametrize(
    "data",
    [
        b"PK\x03\x04rest",
        b"%PDF-1.7\n...",
        b"\x89PNG\r\n\x1a\n",
        b"\x1f\x8b\x08\x00",
        bytes(range(256)) * 4,
        b"{\\rtf1 text}",
    ],
)
def test_g9_binary_files_are_refused_whatever_their_name(tmp_path: Path, data: bytes) -> None:
    """The first bytes, or many control characters, give it away."""
    with pytest.raises(InvalidInput, match=r"doc\.txt"):
        load(tmp_path, data)


def test_a_path_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """A missing file, a folder, a path that is none: each is named."""
    (tmp_path / "folder.txt").mkdir()
    with pytest.raises(InvalidInput, match=r"folder\.txt.*is a folder"):
        load_document(tmp_path / "folder.txt")
    with pytest.raises(InvalidInput, match=r"missing\.txt.*No such file"):
        load_document(tmp_path / "missing.txt")
    for path in ("nul\0byte.txt", "x" * 5000 + ".txt"):
        with pytest.raises(InvalidInput, match="can't be read"):
            load_document(path)


@pytest.mark.parametrize(
    "data", [b"", b" \n\n ", b"1\n\f\n2\n\f\n", b"# Example Page", "\u200b\ufeff\u2060".encode()]
)
def test_c9_c15_d14_a_document_without_words_has_no_content(tmp_path: Path, data: bytes) -> None:
    """Fewer than three words is no content, and no error."""
    assert not load(tmp_path, data).has_content
    assert load(tmp_path, b"Just three words").has_content


PATHS = [
    *("/data/a.txt", "../x", "Report, Q1.pdf", "a...b", ".", "..", "/", "", "x" * 300),
    *("a/b.txt", "a_b.txt", "a/x.txt", "b/x.txt", "A.txt", "a.txt", "报告.txt", "報告.txt"),
    *("my-report v2.txt", "my_report_v2.txt", "\udcff.txt", "a\nb", "a|b", "résumé.md", "x/", "x"),
]


def test_f3_f4_keys_are_bounded_and_distinct_even_as_mapping_keys() -> None:
    """No two paths share a key, nor do they once Dagster's own alphabet is kept to."""
    keys = [document_key(path) for path in PATHS]
    assert all(re.fullmatch(r"[a-z0-9_-]{1,64}", key) for key in keys)
    assert len({key.replace("-", "_") for key in keys}) == len(PATHS)


def test_f4_a_key_is_readable() -> None:
    """The file's name is in it, without what a key can't hold."""
    assert document_key("in/Report, Q1.pdf").startswith("report-q1-")
    assert document_key("in/Résumé.md").startswith("resume-")
    assert document_key("报告.txt").startswith("document-")


@given(st.text(alphabet=st.characters()))
def test_f3_f4_any_path_has_a_key_that_depends_on_it_alone(path: str) -> None:
    """Surrogates, controls and other scripts included."""
    key = document_key(path)
    assert re.fullmatch(r"[a-z0-9_]([a-z0-9_-]{0,62}[a-z0-9])", key)
    assert key == document_key(path) != document_key(path + "x")


def test_a_path_of_undecodable_bytes_is_read(tmp_path: Path) -> None:
    """A file's name need not be UTF-8."""
    path = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.txt")
    Path(path).write_bytes(b"three good words")
    assert load_document(path).has_content
