"""Standard output carries the result and nothing else; standard error carries the rest."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any

import click


@contextmanager
def only_results_on_stdout() -> Iterator[None]:
    """Send to standard error what anything prints meanwhile, native libraries included."""
    log = logging.getLogger("promptchain_dagster")
    handler = _StderrHandler()
    log.addHandler(handler)
    sys.stdout.flush()
    saved = None
    with suppress(OSError):  # closed streams have nothing to be kept apart
        saved = os.dup(1)
        os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        log.removeHandler(handler)
        if saved is not None:
            os.dup2(saved, 1)
            os.close(saved)


class _StderrHandler(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        note(record.getMessage())


def note(text: str = "") -> None:
    """Lines for the person, on standard error."""
    click.echo(printable(text), err=True)


def say(text: str) -> None:
    """The command's result for a person, on standard output."""
    click.echo(printable(text))


def print_json(value: Any) -> None:
    """The command's one JSON object, on standard output."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    click.echo(_UNPRINTABLE_IN_JSON.sub(lambda one: f"\\u{ord(one[0]):04x}", text))


# What JSON leaves as it is: a terminal takes some of it for commands, and none can write the rest.
_UNPRINTABLE_IN_JSON = re.compile(r"[\x7f-\x9f\ud800-\udfff]")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def printable(text: str) -> str:
    """`text` without what a terminal would take for a command: documents and models write it."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)
