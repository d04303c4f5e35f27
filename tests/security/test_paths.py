"""Names and places that would lead a read out of its folder, hang it, or fill the memory."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptchain_dagster.chain.trace import folder_of
from promptchain_dagster.cli.bad_input import BadInput
from promptchain_dagster.cli.options import MAX_TEXT_BYTES, text_or_file
from promptchain_dagster.cli.paths import find_sources
from promptchain_dagster.cli.runs import result_key
from promptchain_dagster.cli.trace import find_run
from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.library.folder import Folder
from promptchain_dagster.library.registry import Registry
from promptchain_dagster.pipelines.brief_files import BriefFolder
from promptchain_dagster.refine.documents import MAX_BYTES, document_key, load_document
from promptchain_dagster.store import open_store

SECRET = "the secret words outside"


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "good.txt").write_text("three good words")
    (tmp_path / "outside.txt").write_text(SECRET)
    (tmp_path / "docs-outside.txt").write_text(SECRET)
    return folder


@pytest.mark.parametrize(
    "path",
    [
        "../outside.txt",
        "../docs-outside.txt",
        "a/../../outside.txt",
        "/etc/hostname",
        "//etc/hostname",
        "link.txt",
        "folder/outside.txt",
        ".",
        "",
        "nul\0.txt",
        "x" * 5000,
    ],
)
def test_no_name_leads_out_of_the_documents_folder(docs: Path, path: str) -> None:
    """Whatever the registry, a request or a partition may hold."""
    (docs / "link.txt").symlink_to("../outside.txt")
    (docs / "folder").symlink_to("..")
    with pytest.raises(InvalidInput):
        Folder(str(docs)).load(path)


@given(
    st.text(max_size=30) | st.lists(st.sampled_from(["..", ".", "", "a", "/", "\\"])).map("/".join)
)
def test_no_key_or_run_id_names_an_object_outside_of_the_home(name: str) -> None:
    """What a run id or a document's key becomes is a name inside the home, or is refused."""
    store = open_store("/nonexistent/home", read_only=True)
    for key in (result_key(name), f"{folder_of(name)}x.json", f"documents/{name}.json"):
        try:
            url = store.url_of(key)
        except InvalidInput:
            continue
        assert os.path.normpath(url) == url
        assert url.startswith("/nonexistent/home/")
    assert Path(store.url_of(f"documents/{document_key(name)}.json")).parent.name == "documents"


@pytest.mark.parametrize("given_id", ["..", "../..", "/", "/etc/passwd", "", "\0", "*", "a/b", "."])
def test_a_run_id_that_is_none_is_refused(tmp_path: Path, given_id: str) -> None:
    """Only the beginning of a kept run's id is one."""
    store = open_store(str(tmp_path))
    store.write("results/0f3a.json", b"{}")
    with pytest.raises(BadInput):
        find_run(store, given_id)


def test_a_registered_document_cannot_be_made_to_lead_out(docs: Path, tmp_path: Path) -> None:
    """An entry that was tampered with stands for no document, or for one inside."""
    store = open_store(str(tmp_path / "home"))
    path = "../outside.txt"
    key = document_key(path)
    held = {"key": key, "path": path, "root": str(docs), "content_hash": None, "size": 0}
    held["registered_at"] = "2026-01-01T00:00:00+00:00"
    store.write(f"documents/{key}.json", json.dumps(held).encode())
    with pytest.raises(InvalidInput, match="leads out"):
        Registry(store, str(docs)).source(key).load()


# What an attacker does at the moment a file is opened, when all checks of its name are done.
_at_open: list[Callable[[str], None]] = []


def _audit(event: str, args: tuple[object, ...]) -> None:
    if event == "open" and _at_open and isinstance(args[0], str):
        hook = _at_open.pop()
        hook(args[0])


sys.addaudithook(_audit)


@pytest.fixture
def at_open() -> Iterator[list[Callable[[str], None]]]:
    yield _at_open
    _at_open.clear()


@pytest.mark.parametrize("swapped", ["good.txt", "inner"])
def test_a_link_put_in_the_place_of_a_file_or_folder_while_it_is_opened_is_not_followed(
    docs: Path, tmp_path: Path, at_open: list[Callable[[str], None]], swapped: str
) -> None:
    """The race between a check of a name and its use."""
    outside = tmp_path / "outside"
    for folder in (docs / "inner", outside):
        folder.mkdir()
        (folder / "good.txt").write_text("three good words")
    (outside / "good.txt").write_text(SECRET)
    target = outside if swapped == "inner" else outside / "good.txt"

    def swap(opened: str) -> None:
        (docs / swapped).rename(tmp_path / "aside")
        (docs / swapped).symlink_to(target)

    name = "inner/good.txt" if swapped == "inner" else "good.txt"
    at_open.append(swap)
    with pytest.raises(InvalidInput, match="can't be read"):
        Folder(str(docs)).load(name)
    assert (docs / swapped).is_symlink()


def test_a_brief_that_becomes_a_link_while_it_is_opened_is_not_followed(
    docs: Path, tmp_path: Path, at_open: list[Callable[[str], None]]
) -> None:
    """As for a document."""
    (docs / "a.yaml").write_text("brief: b\naudience: a\n")
    (tmp_path / "outside.yaml").write_text(f"brief: {SECRET}\naudience: a\n")

    def swap(opened: str) -> None:
        (docs / "a.yaml").unlink()
        (docs / "a.yaml").symlink_to(tmp_path / "outside.yaml")

    briefs = BriefFolder(str(docs))
    at_open.append(swap)
    with pytest.raises(InvalidInput, match=r"brief 'a\.yaml' can't be read"):
        briefs.read("a.yaml")


@pytest.mark.parametrize("path", ["../outside.yaml", "/etc/hostname", "pipe.yaml", "."])
def test_no_brief_is_read_outside_of_its_folder_or_from_a_pipe(
    docs: Path, tmp_path: Path, path: str
) -> None:
    """Whatever name it is asked for by."""
    (tmp_path / "outside.yaml").write_text("brief: b\naudience: a\n")
    os.mkfifo(docs / "pipe.yaml")
    with pytest.raises(InvalidInput):
        BriefFolder(str(docs)).read(path)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("target", ["/dev/zero", "/dev/null", "/dev/tty", "pipe"])
def test_a_device_or_a_pipe_named_like_a_document_is_refused_at_once(
    docs: Path, target: str
) -> None:
    """By hand too: neither ends."""
    named = docs / "device.txt"
    if target == "pipe":
        os.mkfifo(named)
    else:
        named.symlink_to(target)
    with pytest.raises(InvalidInput, match=r"no regular file|can't be read"):
        load_document(named)
    with pytest.raises(BadInput, match=r"no regular file|can't be read"):
        find_sources((str(named),))


def test_a_document_that_would_fill_the_memory_is_refused(docs: Path) -> None:
    """A file of holes takes no room on the disk, and all of it in memory."""
    with (docs / "huge.txt").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(InvalidInput, match="over 268,435,456 bytes"):
        load_document(docs / "huge.txt")


def test_a_brief_file_without_end_is_refused(tmp_path: Path) -> None:
    """Given by hand, it may be a pipe, as a shell makes them, but not any length."""
    with pytest.raises(BadInput, match=f"over {MAX_TEXT_BYTES:,} bytes"):
        text_or_file("--brief", "@/dev/zero")


def test_the_command_line_reads_no_file_that_a_folder_only_links_to(
    docs: Path, tmp_path: Path
) -> None:
    """Such as the environment of its own process, with the key in it."""
    (docs / "environment.txt").symlink_to("/proc/self/environ")
    (docs / "link.txt").symlink_to(tmp_path / "outside.txt")
    (docs / "inside.txt").symlink_to("good.txt")
    (docs / "folder").symlink_to(tmp_path)
    assert [Path(source.path).name for source in find_sources((str(docs),))] == ["good.txt"]


def test_what_a_file_in_proc_says_is_no_document_of_a_folder(docs: Path) -> None:
    """Neither listed nor read."""
    (docs / "environment.txt").symlink_to("/proc/self/environ")
    folder = Folder(str(docs))
    assert [file.path for file in folder.list().files] == ["good.txt"]
    with pytest.raises(InvalidInput, match="leads out"):
        folder.load("environment.txt")
