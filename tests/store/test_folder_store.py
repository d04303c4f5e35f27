"""The folder store against kills, full disks, links and people who tidy up."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from promptchain_dagster.errors import StoreError
from promptchain_dagster.store import open_store

WRITER = """
import sys
from promptchain_dagster.store import open_store
store = open_store(sys.argv[1])
contents = [b"a" * 200_000, b"b" * 70_000]
while True:
    for content in contents:
        store.write("deep/object", content)
        print("written", flush=True)
"""

# The limit on a file's size stands in for a full disk: a write is cut short, then refused.
FULL_DISK = """
import resource, sys
from promptchain_dagster.errors import StoreError
from promptchain_dagster.store import open_store
store = open_store(sys.argv[1])
store.write("a/object", b"old")
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try: store.write("a/object", b"new" * 1000)
except StoreError as error: print(error)
"""

READ_ONLY = """
import os, sys
from promptchain_dagster.errors import StoreError
from promptchain_dagster.store import open_store
home = sys.argv[1]
store = open_store(home)
store.write("a/object", b"old")
os.chmod(home + "/a", 0o555)
if os.geteuid() == 0: os.seteuid(65534)
for call in (lambda: store.write("a/object", b"new"), lambda: store.delete("a/object")):
    try: call()
    except StoreError as error: print(error)
assert store.read("a/object") == b"old"
"""


def _run(code: str, home: Path) -> str:
    command = [sys.executable, "-c", code, str(home)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_d12_a_killed_writer_leaves_one_whole_object_or_the_other(tmp_path: Path) -> None:
    """After each of many kills the object is whole, and the next writer just goes on."""
    store = open_store(str(tmp_path))
    for writes_before_kill in range(1, 13):
        command = [sys.executable, "-c", WRITER, str(tmp_path)]
        writer = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert writer.stdout is not None
        for _ in range(writes_before_kill):
            assert writer.stdout.readline()
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        assert store.read("deep/object") in (b"a" * 200_000, b"b" * 70_000)
        assert store.list("deep/") == ["deep/object"]


def test_what_a_killed_writer_left_is_neither_listed_nor_in_the_way(tmp_path: Path) -> None:
    """A half-written hidden file is ignored, and so is anything that no key can name."""
    store = open_store(str(tmp_path))
    store.write("a/object", b"whole")
    (tmp_path / "a" / ".123-0badf00d.tmp").write_bytes(b"ha")
    (tmp_path / "a" / ".git").mkdir()
    (tmp_path / "a" / ".git" / "config").touch()
    (tmp_path / "a" / "object~").touch()
    (tmp_path / "a" / "empty").mkdir()
    assert store.list("a/") == ["a/object"]


def test_a_full_disk_keeps_the_old_object_and_leaves_no_rest(tmp_path: Path) -> None:
    """A write cut short names the object and the reason, and cleans up after itself."""
    said = _run(FULL_DISK, tmp_path)
    assert f"{str(tmp_path / 'a' / 'object')!r} can't be written: File too large" in said
    assert (tmp_path / "a" / "object").read_bytes() == b"old"
    assert os.listdir(tmp_path / "a") == ["object"]


def test_a_folder_turned_read_only_is_a_store_error_and_can_still_be_read() -> None:
    """Neither a write nor a delete passes silently."""
    with tempfile.TemporaryDirectory() as parent:  # one that an unprivileged user can enter
        os.chmod(parent, 0o755)
        said = _run(READ_ONLY, Path(parent, "home")).splitlines()
        assert [line.split("can't be ")[1] for line in said] == [
            "written: Permission denied",
            "deleted: Permission denied",
        ]
        os.chmod(Path(parent, "home", "a"), 0o755)


@pytest.mark.parametrize("target", ["outside", "home/elsewhere"])
def test_no_link_inside_the_home_leads_a_write_or_a_read_away(tmp_path: Path, target: str) -> None:
    """Linked folders are refused by name and never listed."""
    home, outside = tmp_path / "home", tmp_path / target
    store = open_store(str(home))
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (home / "a").mkdir()
    (home / "link").symlink_to(outside)
    (home / "a" / "link").symlink_to(outside)
    for folder in ("link", "a/link", "link/deeper"):
        key = f"{folder}/secret"
        with pytest.raises(StoreError, match="can't be read: link is a link"):
            store.read(key)
        with pytest.raises(StoreError, match="can't be written: link is a link"):
            store.write(key, b"new")
        with pytest.raises(StoreError, match="can't be deleted: link is a link"):
            store.delete(key)
    assert store.list("a/") == []
    assert [path.name for path in outside.iterdir()] == ["secret"]


def test_a_linked_file_is_replaced_never_followed(tmp_path: Path) -> None:
    """A write puts a file in the link's place; what the link pointed at stays as it was."""
    store = open_store(str(tmp_path / "home"))
    (tmp_path / "outside").write_text("secret")
    store.write("a/other", b"")
    (tmp_path / "home" / "a" / "link").symlink_to(tmp_path / "outside")
    with pytest.raises(StoreError, match="can't be read"):
        store.read("a/link")
    assert store.list("a/") == ["a/other"]
    store.write("a/link", b"new")
    assert store.read("a/link") == b"new"
    store.delete("a/link")
    assert (tmp_path / "outside").read_text() == "secret"


def test_a_home_that_is_itself_a_link_works(tmp_path: Path) -> None:
    """Only links below the home are refused."""
    (tmp_path / "real").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "real")
    open_store(str(tmp_path / "home")).write("a/b", b"1")
    assert (tmp_path / "real" / "a" / "b").read_bytes() == b"1"


def test_folders_deleted_in_mid_run_are_made_again(tmp_path: Path) -> None:
    """Someone tidies up, even the whole home; the next write still lands."""
    store = open_store(str(tmp_path / "home"))
    for gone in ("home/a/b", "home/a", "home"):
        store.write("a/b/object", b"1")
        shutil.rmtree(tmp_path / gone)
        assert store.read("a/b/object") is None
        assert store.list("a/") == []
    store.write("a/b/object", b"2")
    assert store.read("a/b/object") == b"2"


def test_a_file_in_the_place_of_a_folder_is_a_store_error(tmp_path: Path) -> None:
    """An object can't also be a folder, and the error names the key."""
    store = open_store(str(tmp_path))
    store.write("a", b"1")
    store.write("b/c", b"1")
    with pytest.raises(StoreError, match=r"a/x' can't be written: Not a directory"):
        store.write("a/x", b"2")
    with pytest.raises(StoreError, match=r"b' can't be written: Is a directory"):
        store.write("b", b"2")
    assert os.listdir(tmp_path / "b") == ["c"]
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_a_pipe_in_the_place_of_an_object_does_not_hang_a_reader(tmp_path: Path) -> None:
    """Whatever someone put there, reading ends."""
    store = open_store(str(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    assert store.read("pipe") == b""
