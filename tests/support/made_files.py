"""Small real files of the formats that are read, put together by hand."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence

Drawn = tuple[float, float, float, str]
"""Where a line of a PDF's page begins, its size, and what it says."""

_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_A = "http://schemas.openxmlformats.org/drawingml/2006/main"
_P = "http://schemas.openxmlformats.org/presentationml/2006/main"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"


def archive(parts: dict[str, str | bytes]) -> bytes:
    """A zip archive of these parts."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in parts.items():
            made.writestr(name, content)
    return held.getvalue()


def relations(*links: tuple[str, str, str]) -> str:
    """Relationships of a part: id, last word of the type, target."""
    inner = "".join(
        f'<Relationship Id="{key}" Type="{_R}/{kind}" Target="{target}"/>'
        for key, kind, target in links
    )
    return f'<Relationships xmlns="{_PACKAGE}">{inner}</Relationships>'


def docx(body: str, *, styles: str = "", footnotes: str = "", comments: bool = False) -> bytes:
    """A Word file; `body`, `styles` and `footnotes` are the inside of their parts."""
    parts: dict[str, str | bytes] = {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": relations(("rId1", "officeDocument", "word/document.xml")),
        "word/document.xml": _word("document", f"<w:body>{body}</w:body>"),
        "word/_rels/document.xml.rels": relations(
            ("rId1", "styles", "styles.xml"),
            ("rId2", "footnotes", "footnotes.xml"),
            *([("rId3", "comments", "comments.xml")] if comments else []),
        ),
        "word/styles.xml": _word("styles", styles),
        "word/footnotes.xml": _word("footnotes", footnotes),
    }
    return archive(parts)


def _word(root: str, inner: str) -> str:
    mc = "http://schemas.openxmlformats.org/markup-compatibility/2006"
    return f'<w:{root} xmlns:w="{_W}" xmlns:mc="{mc}" xmlns:m="m">{inner}</w:{root}>'


def run(text: str, properties: str = "") -> str:
    """A run of a Word file."""
    held = f"<w:rPr>{properties}</w:rPr>" if properties else ""
    return f'<w:r>{held}<w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(inner: str, properties: str = "") -> str:
    """A paragraph of a Word file, of runs."""
    held = f"<w:pPr>{properties}</w:pPr>" if properties else ""
    return f"<w:p>{held}{inner}</w:p>"


def pptx(slides: Sequence[str], notes: dict[int, str] | None = None) -> bytes:
    """A presentation; each slide is the inside of its shape tree, in reverse on the disk, so that
    only the presentation's own list tells their order. A slide that begins with "HIDDEN" is."""
    count = len(slides)
    listed = "".join(f'<p:sldId id="{256 + n}" r:id="rId{n}"/>' for n in range(count))
    parts: dict[str, str | bytes] = {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": relations(("rId1", "officeDocument", "ppt/presentation.xml")),
        "ppt/presentation.xml": (
            f'<p:presentation xmlns:p="{_P}" xmlns:r="{_R}"><p:sldIdLst>{listed}</p:sldIdLst>'
            "</p:presentation>"
        ),
        "ppt/_rels/presentation.xml.rels": relations(
            *((f"rId{n}", "slide", f"slides/slide{count - n}.xml") for n in range(count))
        ),
    }
    for n, shapes in enumerate(slides):
        show = ' show="0"' if shapes.startswith("HIDDEN") else ""
        name = f"slide{count - n}.xml"
        parts[f"ppt/slides/{name}"] = _slide("sld", shapes.removeprefix("HIDDEN"), show)
        if notes and n in notes:
            parts[f"ppt/slides/_rels/{name}.rels"] = relations(
                ("rId1", "notesSlide", f"../notesSlides/{name}")
            )
            parts[f"ppt/notesSlides/{name}"] = _slide("notes", shape(notes[n], "body"), "")
    return archive(parts)


def _slide(root: str, shapes: str, show: str) -> str:
    return (
        f'<p:{root} xmlns:p="{_P}" xmlns:a="{_A}"{show}><p:cSld><p:spTree>{shapes}</p:spTree>'
        f"</p:cSld></p:{root}>"
    )


def shape(text: str, role: str = "") -> str:
    """A text box of a slide, a paragraph a line; `role` is its placeholder's type."""
    held = f'<p:nvSpPr><p:nvPr><p:ph type="{role}"/></p:nvPr></p:nvSpPr>' if role else ""
    lines = "".join(f"<a:p><a:r><a:t>{line}</a:t></a:r></a:p>" for line in text.split("\n"))
    return f"<p:sp>{held}<p:txBody>{lines}</p:txBody></p:sp>"


def slide_table(rows: Sequence[Sequence[str]]) -> str:
    """A table of a slide."""
    made = "".join(
        "<a:tr>"
        + "".join(f"<a:tc><a:p><a:r><a:t>{cell}</a:t></a:r></a:p></a:tc>" for cell in row)
        + "</a:tr>"
        for row in rows
    )
    return f"<p:graphicFrame><a:tbl>{made}</a:tbl></p:graphicFrame>"


def epub(chapters: Sequence[str], *, encryption: str | None = None) -> bytes:
    """A book; each chapter is the inside of its body. The table of contents comes first."""
    numbers = range(len(chapters))
    items = "".join(
        f'<item id="c{n}" href="text/a%20{n}.xhtml" media-type="application/xhtml+xml"/>'
        for n in numbers
    )
    spine = "".join(f'<itemref idref="c{n}"/>' for n in numbers)
    parts: dict[str, str | bytes] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": (
            '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
        ),
        "OEBPS/book.opf": (
            '<package xmlns="http://www.idpf.org/2007/opf"'
            ' xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>The Sea</dc:title>'
            "<dc:creator>Ann Lee</dc:creator></metadata><manifest>"
            '<item id="toc" href="toc.xhtml" properties="nav"'
            f' media-type="application/xhtml+xml"/>{items}</manifest>'
            f'<spine><itemref idref="toc"/>{spine}</spine></package>'
        ),
        "OEBPS/toc.xhtml": "<html><body>Contents</body></html>",
    }
    for n in numbers:
        parts[f"OEBPS/text/a {n}.xhtml"] = (
            '<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1'
            '//EN" "http://www.w3.org/TR/xhtml11/DTD/xhtml11.dtd">'
            '<html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head>'
            f"<body>{chapters[n]}</body></html>"
        )
    if encryption:
        parts["META-INF/encryption.xml"] = (
            '<encryption xmlns:e="http://www.w3.org/2001/04/xmlenc#"><e:EncryptedData>'
            f'<e:EncryptionMethod Algorithm="{encryption}"/></e:EncryptedData></encryption>'
        )
    return archive(parts)


def pdf(pages: Sequence[Sequence[Drawn]]) -> bytes:
    """A PDF of these lines, in Helvetica, page by page."""
    objects = ["", "", "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    kids: list[str] = []
    for page in pages:
        drawn = "".join(
            f"BT /F1 {size} Tf 1 0 0 1 {x} {y} Tm ({_escaped(text)}) Tj ET\n"
            for x, y, size, text in page
        )
        objects.append(f"<</Length {len(drawn)}>>stream\n{drawn}\nendstream")
        objects.append(
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents {len(objects)} 0 R"
            "/Resources<</Font<</F1 3 0 R>>>>>>"
        )
        kids.append(f"{len(objects)} 0 R")
    objects[0] = "<</Type/Catalog/Pages 2 0 R>>"
    objects[1] = f"<</Type/Pages/Kids[{' '.join(kids)}]/Count {len(kids)}>>"
    out = bytearray(b"%PDF-1.4\n")
    offsets: list[int] = []
    for number, held in enumerate(objects, 1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{held}\nendobj\n".encode("latin-1")
    table = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    out += "".join(f"{offset:010} 00000 n \n" for offset in offsets).encode()
    out += f"trailer<</Size {len(objects) + 1}/Root 1 0 R>>\nstartxref\n{table}\n%%EOF\n".encode()
    return bytes(out)


def pdf_page(lines: Sequence[str], *, top: float = 700, size: float = 11) -> list[Drawn]:
    """Lines one under the other; an empty one leaves a gap."""
    return [(72, top - 14 * n, size, line) for n, line in enumerate(lines) if line]


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")


SENTENCE = "The keeper lit the lamp at dusk."
_MAIL = f"Subject: The lamp\nFrom: ann@example.org\n\n{SENTENCE}\n".encode()
WHOLE: dict[str, bytes] = {
    ".docx": docx(paragraph(run(SENTENCE))),
    ".pptx": pptx([shape(SENTENCE)]),
    ".epub": epub([f"<p>{SENTENCE}</p>"]),
    ".pdf": pdf([pdf_page([SENTENCE])]),
    ".html": f"<p>{SENTENCE}</p>".encode(),
    ".htm": f"<p>{SENTENCE}</p>".encode(),
    ".xhtml": f"<p>{SENTENCE}</p>".encode(),
    ".eml": _MAIL,
    ".vtt": f"WEBVTT\n\n00:01.000 --> 00:02.000\n{SENTENCE}\n".encode(),
    ".srt": f"1\n00:00:01,000 --> 00:00:02,000\n{SENTENCE}\n".encode(),
    ".md": f"---\ntitle: x\n---\n{SENTENCE}".encode(),
} | dict.fromkeys((".txt", ".text", ".markdown", ".log"), SENTENCE.encode())
"""A real file of each kind that is supported, by its ending; all say the sentence."""
