"""The parts of a zip archive, as many bytes as there may be and no more; and the XML in them."""

from __future__ import annotations

import io
import posixpath
import zipfile
import zlib
from urllib.parse import unquote
from xml.etree.ElementTree import Element, ParseError, TreeBuilder
from xml.parsers import expat

from promptchain_dagster.readers.base import Refused

MOST_UNPACKED = 256 * 1024 * 1024
"""Bytes that all parts read may have together, whatever the archive says of them."""


class Archive:
    """A zip archive in memory; only the parts that are asked for are unpacked."""

    def __init__(self, data: bytes, most: int = MOST_UNPACKED) -> None:
        self._zip = zipfile.ZipFile(io.BytesIO(data))
        self._names = frozenset(self._zip.namelist())
        self._most = self._left = most

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def read(self, name: str) -> bytes:
        """One part. Refuses what is missing, damaged, encrypted or too large."""
        try:
            with self._zip.open(name) as part:
                data = part.read(self._left + 1)
        except KeyError:
            raise Refused(f"is damaged: it has no part {name!r}") from None
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError) as error:
            raise Refused(f"is damaged at its part {name!r}: {error}") from None
        except RuntimeError:
            raise Refused(f"is encrypted: its part {name!r} can't be read") from None
        self._left -= len(data)
        if self._left < 0:
            raise Refused(f"unpacks to over {self._most:,} bytes")
        return data

    def xml(self, name: str) -> Element:
        """The root element of a part in XML."""
        return parse_xml(self.read(name), name)

    def related(self, name: str) -> dict[str, tuple[str, str]]:
        """A part's relationships: the id to the last word of its type and the part it leads to.

        Those that lead out of the archive are left out.
        """
        folder, base = posixpath.split(name)
        place = posixpath.join(folder, "_rels", f"{base}.rels")
        if place not in self:
            return {}
        found: dict[str, tuple[str, str]] = {}
        for one in self.xml(place).iter():
            target = one.get("Target")
            if target is None or one.get("TargetMode") == "External":
                continue
            kind = one.get("Type", "").rpartition("/")[2]
            found[one.get("Id", "")] = (kind, resolve(folder, target))
        return found


def resolve(folder: str, target: str) -> str:
    """The part that a link in `folder` leads to, as the archive names it."""
    path = unquote(target.partition("#")[0])
    whole = path if path.startswith("/") else posixpath.join(folder, path)
    return posixpath.normpath(whole).lstrip("/")


def parse_xml(data: bytes, name: str) -> Element:
    """The root element, its names without namespaces, but `r:` before those of relationships.

    A document type is passed over, but one that declares entities is refused: these grow without
    bound, or lead to other files. Nothing is ever fetched.
    """
    builder = TreeBuilder()
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True

    def start(tag: str, attributes: dict[str, str]) -> None:
        held = {_attribute(key): value for key, value in attributes.items()}
        builder.start(local(tag), held)

    def entity(*_: object) -> None:
        raise Refused(f"declares entities in its part {name!r}, which is not supported")

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda tag: builder.end(local(tag))
    parser.CharacterDataHandler = builder.data
    parser.EntityDeclHandler = entity
    try:
        parser.Parse(data, True)
        return builder.close()
    except (expat.ExpatError, ParseError, AssertionError, ValueError, LookupError) as error:
        raise Refused(f"is damaged: its part {name!r} is no XML ({error})") from None


def _attribute(name: str) -> str:
    space, _, last = name.rpartition("}")
    return f"r:{last}" if space.endswith("/relationships") else last


def local(name: str) -> str:
    """A name without its namespace."""
    return name.rpartition("}")[2]
