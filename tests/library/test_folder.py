"""What a documents folder's listing holds, and what it keeps out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.library.folder import Folder
from tests.library.conftest import Write

ODD_NAMES = [
    *("my-report v2.txt", "报告.txt", "a/x.txt", "b/x.txt", "a_x.txt", "Report, Q1.pdf.md"),
    *("a...b.txt", "новости/выпуск.md", "x|y;z.txt", "new\nline.txt", "x" * 250 + ".txt"),
    *("C:\\x.txt", "%2e%2e.txt", "'quoted' \"name\".md", "UPPER.TXT", "e\u0301.txt", "\u00e9.txt"),
    *("\U0001f600.txt", "bytes\udcff\udcfe.txt", " .txt", "~.txt", "a/b/c/d/e.markdown"),
]


def paths(folder: Folder) -> list[str]:
    return [file.path for file in folder.list().files]


def test_f3_f4_odd_names_are_listed_sorted_and_read_by_their_relative_path(
    folder: Folder, write: Write
) -> None:
    """Whatever a file is called, its path leads back to it, and no two share a key."""
    for number, name in enumerate(ODD_NAMES):
        write(name, f"this is document number {number}")
    assert paths(folder) == sorted(ODD_NAMES)
    loaded = {name: folder.load(name) for name in ODD_NAMES}
    for number, name in enumerate(ODD_NAMES):
        assert loaded[name].text == f"this is document number {number}"
        assert loaded[name].path == name
    assert len({document.key for document in loaded.values()}) == len(ODD_NAMES)


def test_size_and_times_are_the_files_own(folder: Folder, write: Write) -> None:
    """The listing tells what the file system does."""
    file = write("a/b.txt", "12345")
    os.utime(file, ns=(5, 7))
    (listed,) = folder.list().files
    assert (listed.size, listed.mtime_ns) == (5, 7)
    assert listed.ctime_ns == file.stat().st_ctime_ns


@pytest.mark.parametrize(
    "name",
    [*(".hidden.txt", ".git/a.txt", "a/.cache/b.md", "a.rtf", "a.txt~", "txt", "a.txt.bak")],
)
def test_hidden_and_unsupported_files_are_left_out(folder: Folder, write: Write, name: str) -> None:
    """Neither is an error: a folder holds other things too."""
    write(name, "one two three")
    assert paths(folder) == []


def test_a_link_that_leads_out_is_neither_listed_nor_read(
    folder: Folder, root: Path, tmp_path: Path, write: Write
) -> None:
    """No name in the folder shows what lies outside it, not by a sibling's name either."""
    sibling = tmp_path / "documents-secret"
    sibling.mkdir()
    (sibling / "secret.txt").write_text("the secret words")
    (root / "file.txt").symlink_to(sibling / "secret.txt")
    (root / "up.txt").symlink_to("../documents-secret/secret.txt")
    (root / "inside").symlink_to(sibling)
    (root / "loop").symlink_to(root)
    (root / "broken.txt").symlink_to("nowhere.txt")
    (root / "itself.txt").symlink_to("itself.txt")
    write("good.txt", "one two three")
    assert paths(folder) == ["good.txt"]
    for path in ("file.txt", "up.txt", "inside/secret.txt", "../documents-secret/secret.txt"):
        with pytest.raises(InvalidInput, match="leads out of the folder"):
            folder.load(path)
    with pytest.raises(InvalidInput, match="leads out of the folder"):
        folder.load(str(sibling / "secret.txt"))


def test_a_link_to_a_file_inside_is_a_document(folder: Folder, root: Path, write: Write) -> None:
    """Mounted configuration is made of such links, to files in a hidden folder."""
    write("..data/real.txt", "one two three")
    (root / "shown.txt").symlink_to("..data/real.txt")
    assert paths(folder) == ["shown.txt"]
    assert folder.load("shown.txt").text == "one two three"


def test_a_root_that_is_a_link_is_followed(root: Path, tmp_path: Path, write: Write) -> None:
    """Where the folder lies is the user's to say."""
    write("a.txt", "one two three")
    (tmp_path / "link").symlink_to(root)
    linked = Folder(str(tmp_path / "link"))
    assert paths(linked) == ["a.txt"]
    assert linked.load("a.txt").text == "one two three"


def test_a_pipe_is_no_document(folder: Folder, root: Path) -> None:
    """Reading one would wait for ever."""
    os.mkfifo(root / "pipe.txt")
    assert paths(folder) == []
    with pytest.raises(InvalidInput, match="no regular file"):
        folder.load("pipe.txt")


@pytest.mark.parametrize("path", ["missing.txt", "a\0b.txt", "", "a.txt/b.txt", "x" * 300 + ".txt"])
def test_a_path_that_cannot_be_read_is_refused(folder: Folder, write: Write, path: str) -> None:
    """The caller sees `InvalidInput`, whatever is wrong with it."""
    write("a.txt", "one two three")
    with pytest.raises(InvalidInput):
        folder.load(path)


def test_a_missing_folder_is_an_error_that_names_it(tmp_path: Path) -> None:
    """A folder that isn't there is not an empty one."""
    with pytest.raises(InvalidInput, match=r"'.*nowhere' can't be listed"):
        Folder(str(tmp_path / "nowhere")).list()
    (tmp_path / "file").write_text("x")
    with pytest.raises(InvalidInput, match="can't be listed"):
        Folder(str(tmp_path / "file")).list()
