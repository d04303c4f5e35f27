"""Whatever lies in a file, reading it ends, within bounds, with a document or a clear refusal."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.readers import child
from promptchain_dagster.readers.apart import read_apart
from promptchain_dagster.readers.archive import Archive
from promptchain_dagster.readers.base import Refused
from promptchain_dagster.readers.kinds import KINDS
from promptchain_dagster.refine.cleaning import clean_text
from promptchain_dagster.refine.documents import SUPPORTED, document_of, load_document
from tests.support.made_files import SENTENCE, WHOLE, docx, paragraph, run


def bomb(size: int) -> bytes:
    """A Word file that is small, and `size` bytes of white space more when unpacked."""
    held = io.BytesIO(WHOLE[".docx"])
    with zipfile.ZipFile(held) as made:
        parts = {name: made.read(name) for name in made.namelist()}
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in parts.items():
            with made.open(name, "w") as part:
                part.write(content)
                for _ in range(size >> 20 if name == "word/document.xml" else 0):
                    part.write(b" " * (1 << 20))
    return held.getvalue()


def read_here(data: bytes, name: str) -> str | None:
    """What `document_of` reads, but in this process; None where it is refused. Raises nothing
    that the child would have to catch as damage."""
    kind = KINDS[name]
    try:
        if kind in ("text", "markdown", "captions"):
            return document_of(data, f"a{name}").text
        text, _ = child.read(data, kind, None, "cp1252")
    except (Refused, InvalidInput):
        return None
    return text


def test_every_kind_of_file_is_read(tmp_path: Path) -> None:
    """By the endings that are supported, and twice alike."""
    assert set(WHOLE) == set(SUPPORTED)
    for ending, data in WHOLE.items():
        path = tmp_path / f"a{ending}"
        path.write_bytes(data)
        document = load_document(path)
        assert SENTENCE in document.text
        assert document.has_content and document.warnings == ()
        assert document == load_document(path)
        assert clean_text(document.text)[0] == document.text


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(data=st.binary(max_size=400), name=st.sampled_from(SUPPORTED), start=st.booleans())
def test_any_bytes_are_a_document_or_a_refusal(data: bytes, name: str, start: bool) -> None:
    """Under any supported name, also behind the beginning of a real file."""
    read_here(WHOLE[name][:60] + data if start else data, name)


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    name=st.sampled_from(SUPPORTED),
    place=st.floats(0, 1),
    data=st.binary(max_size=12),
    gone=st.integers(0, 60),
)
def test_a_real_file_that_is_damaged_is_a_document_or_a_refusal(
    name: str, place: float, data: bytes, gone: int
) -> None:
    """Bytes put in, taken out or changed, anywhere."""
    whole = WHOLE[name]
    at = int(place * len(whole))
    read_here(whole[:at] + data + whole[at + gone :], name)


@pytest.mark.parametrize("name", SUPPORTED)
def test_a_cut_file_is_an_error_of_its_own_at_most(tmp_path: Path, name: str) -> None:
    """What is left of it is read, or refused by name."""
    path = tmp_path / f"cut{name}"
    path.write_bytes(WHOLE[name][: len(WHOLE[name]) * 2 // 3])
    with suppress(InvalidInput):
        assert load_document(path).path == str(path)


@pytest.mark.parametrize("name", [".docx", ".pptx", ".epub", ".pdf", ".eml"])
def test_noise_is_refused_by_name(tmp_path: Path, name: str) -> None:
    """A name alone makes no document."""
    path = tmp_path / f"noise{name}"
    path.write_bytes(bytes(range(256)) * 20)
    with pytest.raises(InvalidInput, match=f"noise{name}"):
        load_document(path)


def test_a_zip_bomb_is_refused_before_it_is_unpacked() -> None:
    """By what comes out, whatever the archive says of itself."""
    data = bomb(16 << 20)
    assert len(data) < 1 << 16
    with pytest.raises(Refused, match="unpacks to over 8,388,608 bytes"):
        Archive(data, most=8 << 20).xml("word/document.xml")
    assert SENTENCE in document_of(data, "fine.docx").text


@pytest.mark.parametrize("kind", ["internal", "external"])
def test_entities_are_refused(kind: str) -> None:
    """They grow without bound, or lead to other files."""
    lines = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    declared = '<!ENTITY e0 "ha">' + lines
    if kind == "external":
        declared = '<!ENTITY e11 SYSTEM "/etc/passwd">'
    body = docx(paragraph(run("&e11;")))
    held = io.BytesIO(body)
    with zipfile.ZipFile(held) as made:
        parts = {name: made.read(name) for name in made.namelist()}
    parts["word/document.xml"] = f"<!DOCTYPE x [{declared}]>".encode() + parts["word/document.xml"]
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as made:
        for name, content in parts.items():
            made.writestr(name, content)
    with pytest.raises(InvalidInput, match=r"a\.docx' declares entities"):
        document_of(held.getvalue(), "a.docx")


def test_depth_is_bounded() -> None:
    """Tables in tables, parts in parts, groups in groups."""
    deep = "<w:tbl><w:tr><w:tc>" * 20_000 + "</w:tc></w:tr></w:tbl>" * 20_000
    with pytest.raises(InvalidInput, match=r"a\.docx' is nested too deeply"):
        document_of(docx(deep), "a.docx")
    mail = b"Subject: x\n" + b"Content-Type: message/rfc822\n\n" * 20_000
    with pytest.raises(InvalidInput, match=r"a\.eml' is nested too deeply"):
        document_of(mail, "a.eml")


def test_a_file_that_takes_too_much_memory_or_time_is_refused() -> None:
    """The process that reads it ends, and no other."""
    book = docx(paragraph(run(SENTENCE)) * 400_000)
    with pytest.raises(Refused, match=r"too much memory|parser ended with exit status"):
        read_apart(book, "docx", None, "cp1252", memory=90 << 20)
    with pytest.raises(Refused, match="takes over 1 seconds to read"):
        read_apart(book, "docx", None, "cp1252", seconds=1)


def test_the_child_knows_no_secret_and_loads_only_what_it_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its environment is bare, and the core of this package isn't loaded for a file."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789")
    code = (
        "import os, sys; from promptchain_dagster.readers import apart, child;"
        "apart._START = apart._START.replace('main(sys.argv[2])', '''"
        'import json, os; print(json.dumps({"text": " ".join([*os.environ, *sys.modules]),'
        " \"warnings\": []}))''');"
        "print(apart.read_apart(b'', 'html', None, 'cp1252')[0])"
    )
    said = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert "promptchain_dagster.readers.child" in said
    assert "OPENAI" not in said
    assert not {"pydantic", "promptchain_dagster.refine", "lxml"} & set(said.split())


def test_a_format_whose_reader_is_not_installed_says_what_to_install(tmp_path: Path) -> None:
    """The next try may succeed, so it is no mark on the document; others are read as ever."""
    names = {name: tmp_path / f"a{name}" for name in (".pdf", ".html", ".docx", ".eml")}
    for name, path in names.items():
        path.write_bytes(WHOLE[name])
    code = """
import sys
from importlib.machinery import PathFinder
class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name in ("lxml", "pypdfium2") else super().find_spec(name, path, target)
sys.meta_path[sys.meta_path.index(PathFinder)] = Without
from promptchain_dagster import InvalidInput, load_document
for path in sys.argv[1:]:
    try:
        print(load_document(path).text.count("lamp"))
    except InvalidInput as refusal:
        print(refusal, type(refusal.__cause__).__name__)
"""
    command = [sys.executable, "-c", code, *map(str, names.values())]
    said = subprocess.check_output(command, text=True).splitlines()
    extra = "pip install 'promptchain-dagster[files]' OSError"
    assert said[0].endswith(f"a.pdf' can't be read without pypdfium2: {extra}")
    assert said[1].endswith(f"a.html' can't be read without lxml: {extra}")
    assert said[2:] == ["1", "2"]
