"""The process that parses one file: bytes on standard input, a JSON object on standard output."""

from __future__ import annotations

import json
import os
import resource
import sys
from contextlib import suppress

from promptchain_dagster.readers.base import Refused
from promptchain_dagster.readers.kinds import kind_inside

MOST_CHARACTERS = 128 * 1024 * 1024


def main(asked: str) -> None:
    """Read one file as `asked` (a JSON object; see `apart.read_apart`), and say what came of it."""
    request = json.loads(asked)
    answers = os.dup(1)
    os.dup2(2, 1)  # whatever a parser prints is no answer
    _limit(request["memory"], request["seconds"])
    sys.addaudithook(_alone)
    answer = json.dumps(_answer(request)).encode()
    with os.fdopen(answers, "wb") as out:
        out.write(answer)


def _limit(memory: int, seconds: int) -> None:
    limits = (
        (resource.RLIMIT_AS, memory, memory),
        (resource.RLIMIT_CPU, seconds, seconds + 1),  # by a signal of its own, then by force
        (resource.RLIMIT_FSIZE, 0, 0),
        (resource.RLIMIT_CORE, 0, 0),
    )
    for which, soft, hard in limits:
        with suppress(ValueError, OSError):  # macOS doesn't limit memory
            resource.setrlimit(which, (soft, hard))


def _alone(event: str, _: object) -> None:
    """No parser asks for the network; one that does is stopped."""
    if event.startswith("socket."):
        raise Refused("can't be read: its parser reaches for the network")


def _answer(request: dict[str, str | None]) -> dict[str, object]:
    try:
        text, warnings = read(
            sys.stdin.buffer.read(),
            request["kind"] or "",
            request["encoding"],
            request["fallback"] or "",
        )
        if len(text) > MOST_CHARACTERS:
            raise Refused(f"holds over {MOST_CHARACTERS:,} characters of text")
    except Refused as refused:
        return {"refused": str(refused), "may_pass": refused.may_pass}
    except RecursionError:
        return {"refused": "is nested too deeply", "may_pass": False}
    except MemoryError:
        return {"refused": "takes too much memory to read", "may_pass": False}
    except Exception as error:
        # A parser fails in as many ways as files are damaged: none ends more than this document.
        why = f"is damaged: {type(error).__name__}: {str(error)[:200]}"
        return {"refused": why, "may_pass": False}
    return {"text": text, "warnings": warnings}


def read(data: bytes, promised: str, encoding: str | None, fallback: str) -> tuple[str, list[str]]:
    """The text of a file of the kind that its name promises, or of that which it shows to be."""
    kind = kind_inside(data, promised)
    if kind == "pdf":
        from promptchain_dagster.readers.pdf import read_pdf

        return read_pdf(data)
    if kind == "docx":
        from promptchain_dagster.readers.docx import read_docx

        return read_docx(data)
    if kind == "pptx":
        from promptchain_dagster.readers.pptx import read_pptx

        return read_pptx(data)
    if kind == "epub":
        from promptchain_dagster.readers.epub import read_epub

        return read_epub(data, fallback)
    if kind == "eml":
        from promptchain_dagster.readers.eml import read_eml

        return read_eml(data, encoding, fallback)
    from promptchain_dagster.readers.html import read_html

    return read_html(data, encoding, fallback)
