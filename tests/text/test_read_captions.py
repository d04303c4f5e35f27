"""Subtitles, logs and front matter: text with a little syntax."""

from __future__ import annotations

from pathlib import Path

import pytest

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.refine.documents import Document, load_document

VTT = """WEBVTT - a talk
Kind: captions

STYLE
::cue { color: red }

NOTE nobody says this

1
00:00.000 --> 00:02.000 align:start
<v Ann>So we <i>lit</i> the lamp

00:02.000 --> 00:04.000
and waited &amp; waited.

00:00:10.000 --> 00:00:12.000
Then it was <00:00:11.000><c>day.</c>

intro
00:12.100 --> 00:13.000
<v.loud Bob>At last!
"""

ROLLING = """WEBVTT

00:00:00.000 --> 00:00:02.000
 \nso we lit

00:00:02.000 --> 00:00:02.010
so we lit
 \n
00:00:02.010 --> 00:00:04.000
so we lit
the lamp

00:00:04.000 --> 00:00:06.000
the lamp
at dusk
"""

SRT = """1
00:00:01,000 --> 00:00:02,000
{\\an8}No.

2
00:00:05,000 --> 00:00:06,000
No.
- Why not?
3
00:00:06,100 --> 00:00:07,000
<font color="red">Because.</font>

It is late.
"""


def load(folder: Path, text: str, name: str) -> Document:
    (folder / name).write_bytes(text.encode())
    return load_document(folder / name)


def test_captions_are_what_is_said(tmp_path: Path) -> None:
    """No header, no note, no style, no number, no time; a new paragraph after a pause, and with
    another speaker."""
    assert load(tmp_path, VTT, "a.vtt").text == (
        "Ann: So we lit the lamp\nand waited & waited.\n\nThen it was day.\n\nBob: At last!"
    )
    assert load(tmp_path, VTT.replace("\n", "\r\n"), "b.vtt").text == (
        load(tmp_path, VTT, "a.vtt").text
    )


def test_captions_that_roll_up_say_each_line_once(tmp_path: Path) -> None:
    """As generated ones do; what is said again after a pause is said again."""
    assert load(tmp_path, ROLLING, "a.vtt").text == "so we lit\nthe lamp\nat dusk"
    assert load(tmp_path, SRT, "a.srt").text == "No.\n\nNo.\n- Why not?\nBecause.\nIt is late."


def test_captions_without_a_time_are_refused(tmp_path: Path) -> None:
    """An empty file is no content."""
    with pytest.raises(InvalidInput, match=r"a\.srt' holds no caption with a time code"):
        load(tmp_path, "just some words", "a.srt")
    assert not load(tmp_path, "", "b.srt").has_content


def test_a_log_is_read_without_its_colours(tmp_path: Path) -> None:
    """What drives a terminal is no text."""
    log = "\x1b[1;31mERROR\x1b[0m disk\x1b]0;title\x07 full\nat [31m] it stopped\n"
    assert load(tmp_path, log, "a.log").text == "ERROR disk full\nat [31m] it stopped\n"


FRONT = "title: The sea\ntags: [a, b]\ndate: 2024-99-99\n"


@pytest.mark.parametrize("end", ["---", "...", "--- "])
def test_g6_front_matter_is_kept_apart(tmp_path: Path, end: str) -> None:
    """A YAML mapping after a first line of three dashes is no part of the text."""
    for text in (f"---\n{FRONT}{end}\n\n# The sea\n", f"---\r\n{FRONT}{end}\r\n# The sea\n"):
        document = load(tmp_path, text, "a.md")
        assert (document.text, document.front_matter) == ("# The sea\n", FRONT)


@pytest.mark.parametrize(
    "text",
    [
        "---\n\n**Subject: Hi**\n\nBody.\n\n---\nEnd",
        "---\nJust a line\n---\nEnd",
        "---\n- a\n- b\n---\nEnd",
        "---\n---\ntext: x\n---\nEnd",
        "---\na: [\n---\nEnd",
        "---\ntitle: never closed\n",
        "Text\n---\ntitle: x\n---\n",
        "---\n{}\n---\nEnd",
        "---\n" + "[" * 5000 + "\n---\nEnd",
        "---\na: !!python/object/apply:os.getcwd []\nb\n---\nEnd",
    ],
)
def test_g6_whatever_else_begins_with_a_rule_is_kept_whole(tmp_path: Path, text: str) -> None:
    """A leading rule is a rule."""
    document = load(tmp_path, text, "a.md")
    assert (document.text, document.front_matter) == (text, "")


def test_g6_front_matter_is_looked_for_in_markdown_alone(tmp_path: Path) -> None:
    """A text file has none."""
    text = f"---\n{FRONT}---\nEnd"
    assert load(tmp_path, text, "a.txt").text == text
