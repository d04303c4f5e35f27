"""The documents that the paths on the command line stand for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace

from promptchain_dagster.cli.bad_input import BadInput
from promptchain_dagster.errors import InvalidInput


@dataclass(frozen=True)
class Source:
    """A document on the command line, as its path was given."""

    path: str
    named: bool
    """Given by name, so that it must be readable; one inside a folder fails alone."""


def find_sources(paths: tuple[str, ...]) -> list[Source]:
    """The files named, and those of a supported kind in the folders named, each once, in order.

    One that is named, and lies in a folder that is named too, counts as named.

    Raises `BadInput`, a line for each path that can't be used.
    """
    problems: list[str] = []
    found: dict[str, Source] = {}
    for path in paths:
        try:
            for source in _sources(path):
                place = os.path.realpath(source.path)
                first = found.get(place, source)
                found[place] = replace(first, named=first.named or source.named)
        except InvalidInput as error:
            problems.append(str(error))
    if problems:
        raise BadInput("\n".join(problems))
    return list(found.values())


def _sources(path: str) -> Iterator[Source]:
    from promptchain_dagster.refine.documents import SUPPORTED, load_document

    if not path:
        raise InvalidInput("PATH is empty, must be a document or a folder of them")
    if not os.path.isdir(path):
        load_document(path)  # raises for what can't be read
        yield Source(path, named=True)
        return
    if not os.access(path, os.R_OK | os.X_OK):
        raise InvalidInput(f"folder {path!r} can't be read")
    inside = sorted(_supported(path))
    if not inside:
        kinds = ", ".join(SUPPORTED)
        raise InvalidInput(f"folder {path!r} holds no document; supported kinds: {kinds}")
    yield from (Source(file, named=False) for file in inside)


def _supported(folder: str) -> Iterator[str]:
    """Files of a supported kind at any depth.

    Left out are hidden ones, linked folders, and links that lead out of the folder: whoever fills
    it has not thereby a say in which of this machine's files a model sees.
    """
    from promptchain_dagster.refine.documents import SUPPORTED

    inside = os.path.join(os.path.realpath(folder), "")
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            path = os.path.join(place, name)
            if name.startswith(".") or os.path.splitext(name)[1].lower() not in SUPPORTED:
                continue
            if not os.path.islink(path) or os.path.realpath(path).startswith(inside):
                yield path
