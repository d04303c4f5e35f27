"""HTML and XHTML to the text that a browser shows, in blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.entities import html5
from typing import Any

from promptchain_dagster.readers.base import Refused, in_blocks, needed
from promptchain_dagster.readers.html_blocks import Blocks
from promptchain_dagster.readers.plain import encoding_named, read_plain

_UNSEEN = frozenset(
    {"audio", "canvas", "datalist", "del", "dialog", "embed", "head", "iframe", "map", "noscript"}
    | {"object", "rp", "script", "style", "svg", "template", "video"}
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS = frozenset(
    {"address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details"}
    | {"div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup"}
    | {"hr", "legend", "main", "menu", "nav", "ol", "option", "p", "search", "section", "select"}
    | {"summary", "table", "tbody", "tfoot", "thead", "ul"}
)
_SIDE_BY_SIDE = ("a", "button", "label")
_HIDDEN_STYLE = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.I)
_CHARSET = re.compile(rb"<meta[^<>]{0,500}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{1,40})", re.I)
_XML_ENCODING = re.compile(rb"\s*<\?xml[^<>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9_.:-]{1,40})")
_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_TOO_DEEP = "ERR_RESOURCE_LIMIT"
_NAMED = re.compile(r"&([A-Za-z][A-Za-z0-9]{1,31});")
_IS_XHTML = re.compile(r"\A\s*<\?xml|http://www\.w3\.org/1999/xhtml")
_XML_NAMED = ("amp", "lt", "gt", "quot", "apos")
_DECLARED = re.compile(r"\A\s*<\?xml[^<>]{0,500}\?>")


def read_html(data: bytes, encoding: str | None, fallback: str) -> tuple[str, list[str]]:
    """A page's title and text. Nothing that it refers to is fetched, no script is run.

    Left out is what no reader sees: scripts, styles, what is hidden by attribute or inline style,
    deleted text (g7, g9). All else is kept, navigation too, in blocks of its own.
    """
    text, warnings = read_plain(data, encoding or _declared(data), fallback)
    return html_text(text), warnings


def html_text(text: str) -> str:
    """The text of a page, its title first where no heading says the same."""
    root = _page(text) if _IS_XHTML.search(text[:2000]) else _parsed(text, xml=False)
    if root is None:
        return ""
    title = next((" ".join((one.text or "").split()) for one in _inside(root, "title")), "")
    blocks = html_blocks(root)
    if title and all(block.lstrip("# ") != title for block in blocks):
        blocks.insert(0, f"# {title}")
    return in_blocks(blocks)


def xhtml_blocks(text: str) -> list[str]:
    """The blocks of a page in XHTML, as in an EPUB; read as HTML where it isn't well-formed."""
    root = _page(text)
    return [] if root is None else html_blocks(root)


def _page(text: str) -> Any:
    root = None
    if "<!ENTITY" not in text:
        root = _parsed(_NAMED.sub(_character, _DECLARED.sub("", text)), xml=True)
    return _parsed(text, xml=False) if root is None else root


def _declared(data: bytes) -> str | None:
    """The encoding that the page itself names."""
    if data.startswith(_MARKS):
        return None
    found = _XML_ENCODING.match(data[:1024]) or _CHARSET.search(data[:4096])
    return encoding_named(found[1].decode("ascii"), data) if found else None


def _character(entity: re.Match[str]) -> str:
    if entity[1] in _XML_NAMED:
        return entity[0]
    return html5.get(f"{entity[1]};", entity[0])


def _parsed(text: str, *, xml: bool) -> Any:
    """The root element; None where there is none."""
    etree = needed("lxml.etree")
    shared = {"no_network": True, "remove_comments": True, "remove_pis": True}
    if xml:
        parser = etree.XMLParser(resolve_entities=False, load_dtd=False, **shared)
    else:
        parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, **shared)
    mended = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # b9
    try:
        root = etree.fromstring(mended.encode(), parser)
    except (etree.LxmlError, ValueError):
        return None
    if any(error.type_name == _TOO_DEEP for error in parser.error_log):
        raise Refused("is nested too deeply")  # what lies deeper would be missing
    return root


def html_blocks(root: Any) -> list[str]:
    """The blocks of a parsed page. Walks without recursion: a page may nest as deep as it likes."""
    blocks = Blocks()
    tables: list[bool] = []
    walk = needed("lxml.etree").iterwalk(root, events=("start", "end"))
    unseen: Any = None
    last: Any = None
    for event, element in walk:
        name = _name(element)
        if event == "start":
            if _is_unseen(element, name):
                unseen = element
                walk.skip_subtree()
                continue
            if name == "table":
                tables.append(_is_data(element))
            _open(blocks, name, element, last, in_data=bool(tables and tables[-1]))
            blocks.text(element.text or "")
            continue
        if element is unseen:
            unseen = None
        else:
            _close(blocks, name, in_data=bool(tables and tables[-1]))
            if name == "table":
                tables.pop()
        blocks.text(element.tail or "")
        last = element if not element.tail else None
    return blocks.finished()


def _open(blocks: Blocks, name: str, element: Any, last: Any, *, in_data: bool) -> None:
    if name == "br":
        blocks.line_end()
    elif name == "pre":
        blocks.begin(pre=True)
    elif name in _HEADINGS:
        blocks.begin("#" * _HEADINGS[name] + " ")
    elif name == "li":
        blocks.begin_item()
    elif name in ("caption", "tr") and in_data:
        blocks.end_row()
    elif name in ("td", "th", "tr") or name in _BLOCKS:
        if not (in_data and name in ("td", "th")):
            blocks.begin()
        if name in ("ol", "ul", "menu"):
            blocks.begin_list(_first_number(element) if name == "ol" else None)
        if name == "table" and in_data:
            blocks.begin_table()
    elif name == "img" and (alt := " ".join((element.get("alt") or "").split())):
        blocks.text(f"[image: {alt}]")
    elif name in _SIDE_BY_SIDE and last is not None and _name(last) == name:
        blocks.text(" ")  # links of a menu, with nothing but a style sheet between them


def _close(blocks: Blocks, name: str, *, in_data: bool) -> None:
    if name in ("td", "th") and in_data:
        blocks.end_cell()
    elif name in ("caption", "tr") and in_data:
        blocks.end_row()
    elif name == "table" and in_data:
        blocks.end_table()
    elif name in ("ol", "ul", "menu"):
        blocks.end_list()
    elif name == "li" or name in _HEADINGS:
        blocks.end()
    elif name in _BLOCKS or name in ("pre", "td", "th", "tr"):
        blocks.begin()


def _name(element: Any) -> str:
    tag: Any = element.tag
    return tag.rpartition("}")[2].lower() if isinstance(tag, str) else ""


def _is_unseen(element: Any, name: str) -> bool:
    if name in _UNSEEN or not name:
        return True
    if element.get("hidden") is not None:
        return True
    return bool(_HIDDEN_STYLE.search(element.get("style") or ""))


def _is_data(table: Any) -> bool:
    """Whether its rows are best read as lines: no cell holds more than one block, and some row
    has two. Others only lay out a page."""
    widest = 0
    for row in _inside(table, "tr"):
        cells = [cell for cell in row if _name(cell) in ("td", "th")]
        widest = max(widest, len(cells))
        for cell in cells:
            inner = [_name(one) for one in cell.iterdescendants()]
            if "table" in inner or sum(name in _BLOCKS or name == "li" for name in inner) > 1:
                return False
    return widest > 1


def _inside(table: Any, name: str) -> Iterator[Any]:
    return (one for one in table.iterdescendants() if _name(one) == name)


def _first_number(element: Any) -> int:
    start = element.get("start") or "1"
    return int(start) if re.fullmatch(r"-?\d{1,6}", start) else 1
