"""HTML and e-mail."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.refine.documents import Document, load_document
from tests.support.made_files import docx, paragraph, run


def load(folder: Path, data: bytes | str, name: str = "a.html", **options: str) -> Document:
    (folder / name).write_bytes(data.encode() if isinstance(data, str) else data)
    return load_document(folder / name, **options)


def test_g7_neighbouring_blocks_are_apart_and_no_script_is_read(tmp_path: Path) -> None:
    """Navigation is text, in a block of its own."""
    page = "<nav>Home</nav><main><p>Text</p></main><script>var a=1</script><style>b{}</style>"
    assert load(tmp_path, page).text == "Home\n\nText"


def test_g7_the_page_is_read_as_it_is_shown(tmp_path: Path) -> None:
    """Headings, lists, tables, line breaks, preformatted text; not what is hidden or deleted."""
    page = """<!doctype html><html><head><title>My  page</title></head><body>
    <nav><a href="/">Home</a><a href="/x">About</a></nav>
    <h2>Head<br>line</h2><p>Some <b>bo</b>ld
      text<br>and more<p>Next<ul><li>a<li>b<ol start=3><li>n<li>m</ol></ul><ul><li></ul>
    <table><caption>Ages</caption><tr><th>Name<th>Age<tr><td><p>Ann</p><td>34</table>
    <table><tr><td><p>Left</p><p>Right</p></td><td>Aside</td></tr></table>
    <pre>
  if x:
      y</pre><p hidden>secret<p style="color:red; display : none">secret</p><del>gone</del>kept
    <img src="http://192.0.2.1/a.png" alt="A boat"><noscript>Turn it on</noscript><!-- no -->
    <template>later</template></body></html>"""
    assert load(tmp_path, page).text == (
        "# My page\n\nHome About\n\n## Head line\n\nSome bold text\nand more\n\nNext\n\n"
        "- a\n- b\n  3. n\n  4. m\n\nAges\nName | Age\nAnn | 34\n\nLeft\n\nRight\n\nAside\n\n"
        "  if x:\n      y\n\nkept [image: A boat]"
    )


@pytest.mark.parametrize(
    "data",
    [
        '<meta charset="iso-8859-1"><p>café “x”</p>'.encode("cp1252"),
        '<meta http-equiv="Content-Type" content="text/html; charset=koi8-r"><p>мир</p>'.encode(
            "koi8-r"
        ),
        "<meta charset=utf-16><p>café</p>".encode(),
        "\ufeff<p>café</p>".encode("utf-16-le"),
        '<?xml version="1.0" encoding="windows-1251"?><p>мир</p>'.encode("cp1251"),
        "<meta charset=punycode><p>café</p>".encode(),
    ],
)
def test_g2_a_page_is_read_in_its_own_encoding(tmp_path: Path, data: bytes) -> None:
    """By its mark, or by what it says where its bytes are in that."""
    document = load(tmp_path, data)
    assert document.text in ("café “x”", "café", "мир")
    assert document.warnings == ()


def test_xhtml_is_read_as_xhtml(tmp_path: Path) -> None:
    """An element that closes itself takes nothing in; a page that declares entities is read as
    HTML, which knows none of them."""
    page = '<html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head><body>{}</body></html>'
    assert load(tmp_path, page.format("<p>Some text.</p>"), "a.xhtml").text == "Some text."
    entity = '<!DOCTYPE html [<!ENTITY e SYSTEM "/etc/passwd">]>' + page.format("<p>A &e; b</p>")
    assert "root:" not in load(tmp_path, entity, "b.xhtml").text


def test_a_page_nested_without_end_is_refused(tmp_path: Path) -> None:
    """What lies too deep for the parser is not lost without a word."""
    assert load(tmp_path, "<div>" * 1000 + "deep words here").text == "deep words here"
    with pytest.raises(InvalidInput, match=r"a\.html' is nested too deeply"):
        load(tmp_path, "<div>" * 100_000 + "deep words here")


def test_nothing_that_a_file_refers_to_is_fetched(tmp_path: Path) -> None:
    """Images, styles, scripts, document types, relationships: no one comes asking."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        place = f"http://127.0.0.1:{listener.getsockname()[1]}/x"
        page = (
            f'<!DOCTYPE html SYSTEM "{place}"><html xmlns="http://www.w3.org/1999/xhtml"><head>'
            f'<link rel="stylesheet" href="{place}"/><script src="{place}"></script></head>'
            f'<body><img src="{place}"/><iframe src="{place}"></iframe><p>Some text.</p></body>'
            "</html>"
        )
        assert load(tmp_path, page).text == "Some text."
        word = docx(paragraph(run("Some text.")), styles=f'<w:style xmlns:x="{place}"/>')
        assert load(tmp_path, word, "a.docx").text == "Some text."
        with pytest.raises(BlockingIOError):
            listener.accept()


MAIL = (
    "From: =?utf-8?q?Ann_=C3=89?= <ann@example.org>\r\n"
    "To: bob@example.org\r\nX-Spam: no\r\n"
    "Subject: =?utf-8?b?SGVsbG8=?=\r\n world\r\n"
    "Date: Mon, 1 Jan 2024 10:00:00 +0000\r\nMIME-Version: 1.0\r\n"
)
HEAD = (
    "Subject: Hello world\nFrom: Ann É <ann@example.org>\nTo: bob@example.org\n"
    "Date: Mon, 1 Jan 2024 10:00:00 +0000"
)


def test_a_mail_says_who_wrote_what_and_names_what_is_attached(tmp_path: Path) -> None:
    """One of two forms of the text, what it quotes included; attachments aren't read."""
    mail = MAIL + (
        "Content-Type: multipart/mixed; boundary=B\r\n\r\n--B\r\n"
        "Content-Type: multipart/alternative; boundary=C\r\n\r\n--C\r\n"
        "Content-Type: text/plain; charset=iso-8859-1\r\n"
        "Content-Transfer-Encoding: quoted-printable\r\n\r\nCaf=E9 is good.\r\n\r\n> Is it?\r\n"
        "--C\r\nContent-Type: text/html\r\n\r\n<p>Coffee</p>\r\n--C--\r\n"
        "--B\r\nContent-Type: text/plain\r\nContent-Disposition: attachment; filename=notes.txt"
        "\r\n\r\nsecret notes\r\n"
        "--B\r\nContent-Type: message/rfc822\r\n\r\nSubject: Earlier\r\n\r\nold words\r\n--B--\r\n"
    )
    assert load(tmp_path, mail, "a.eml").text == (
        f"{HEAD}\n\nCafé is good.\n\n> Is it?\n\n"
        "Attachment: notes.txt (text/plain)\nAttachment: the message 'Earlier'"
    )


def test_a_mail_in_html_alone_is_read_like_a_page(tmp_path: Path) -> None:
    """Also where its plain form is empty."""
    html = MAIL + "Content-Type: text/html; charset=utf-8\r\n\r\n<p>Hi</p><script>x</script><p>Bye"
    assert load(tmp_path, html, "a.eml").text == f"{HEAD}\n\nHi\n\nBye"
    both = MAIL + (
        "Content-Type: multipart/alternative; boundary=C\r\n\r\n--C\r\nContent-Type: text/plain"
        "\r\n\r\n \r\n--C\r\nContent-Type: text/html\r\n\r\n<p>Coffee</p>\r\n--C--\r\n"
    )
    assert load(tmp_path, both, "b.eml").text == f"{HEAD}\n\nCoffee"


def test_what_is_no_mail_is_refused(tmp_path: Path) -> None:
    """A name is not enough."""
    with pytest.raises(InvalidInput, match=r"a\.eml' is no e-mail"):
        load(tmp_path, "Just a text, with nothing above it.\n", "a.eml")
