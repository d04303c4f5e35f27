"""Scanning a documents folder: bounded, and nothing lost."""

from __future__ import annotations

import json
import os
import shutil
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.library.folder import Folder, Listed, Listing
from promptchain_dagster.library.registry import Entry, Registry
from promptchain_dagster.library.scan import ScanResult, scan
from promptchain_dagster.library.scanned import SCAN, Scanned
from promptchain_dagster.refine.documents import Document, document_key
from tests.library.conftest import Write
from tests.support.memory_store import Killed, MemoryStore

LATER = datetime.now(timezone.utc) + timedelta(hours=1)


class Watched(Folder):
    """A folder that tells which documents were read."""

    def __init__(self, root: Path) -> None:
        super().__init__(str(root))
        self.loaded: list[str] = []

    def load(self, path: str) -> Document:
        self.loaded.append(path)
        return super().load(path)


class Many(Folder):
    """A listing of very many documents that are nowhere."""

    def __init__(self, count: int) -> None:
        super().__init__("/nowhere")
        self.lists = 0
        self._files = tuple(Listed(f"{n // 500:03}/{n:06}.txt", n, n, n) for n in range(count))

    def list(self) -> Listing:
        self.lists += 1
        return Listing(self._files)

    def load(self, path: str) -> Document:
        return Document(path, document_key(path), f"the text of {path}", ())


def look(folder: Folder, store: MemoryStore, cursor: str = "", **options: Any) -> ScanResult:
    return scan(folder, store, cursor, now=LATER, **options)


def changes(result: ScanResult) -> dict[str, list[str]]:
    told = {
        "new": [one.path for one in result.new],
        "changed": [one.path for one in result.changed],
        "unreadable": [one.path for one in result.unreadable],
        "removed": list(result.removed),
    }
    return {name: found for name, found in told.items() if found}


def entry(store: MemoryStore, path: str) -> Entry:
    found = Registry(store).find(document_key(path))
    assert found is not None
    return found


def rewrite(file: Path, text: str) -> None:
    """New text, size and mtime as before."""
    before = file.stat()
    file.write_text(text)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_new_document_is_registered_and_found_again(
    folder: Folder, store: MemoryStore, write: Write
) -> None:
    """The key leads to the path, and from there to the text."""
    write("Report, Q1.txt", "ﬁve words that are clean")
    result = look(folder, store)
    assert changes(result) == {"new": ["Report, Q1.txt"]}
    known = entry(store, "Report, Q1.txt")
    assert (known.path, known.root, known.absent) == ("Report, Q1.txt", folder.root, False)
    assert known.content_hash == result.new[0].content_hash
    source = Registry(store, folder.root).source(result.new[0].key)
    assert source.load().text == "five words that are clean"
    assert source.load().key == source.key == result.new[0].key


def test_what_has_not_changed_is_not_read(root: Path, store: MemoryStore, write: Write) -> None:
    """The second scan costs one listing and one object."""
    for number in range(20):
        write(f"{number}.txt", f"document number {number}")
    folder = Watched(root)
    look(folder, store)
    folder.loaded.clear()
    store.reads = store.writes = 0
    assert look(folder, store) == ScanResult(cursor="")
    assert folder.loaded == []
    assert (store.reads, store.writes) == (1, 0)


def test_twenty_thousand_documents_cost_an_unchanged_tick_one_listing_and_one_read() -> None:
    """However many there are, a tick reads at most its limit, and rests when all is known."""
    folder, store = Many(20_000), MemoryStore()
    result = look(folder, store, limit=19_000)
    assert (len(result.new), result.remaining) == (19_000, 1_000)
    result = look(folder, store, result.cursor, limit=19_000)
    assert (len(result.new), result.remaining) == (1_000, 0)
    folder.lists = store.reads = store.writes = store.lists = 0
    assert changes(look(folder, store, result.cursor)) == {}
    assert (folder.lists, store.reads, store.writes, store.lists) == (1, 1, 0, 0)
    assert len(store.objects[SCAN]) < 150 * 20_000


def test_a_tick_reads_at_most_its_limit_and_goes_on_from_its_cursor(
    root: Path, store: MemoryStore, write: Write
) -> None:
    """Round robin: files that change all the time keep none from its turn."""
    for name in "abcdefg":
        write(f"{name}.txt", f"the text of {name}")
    folder = Watched(root)
    first = look(folder, store, limit=3)
    assert (folder.loaded, first.remaining) == (["a.txt", "b.txt", "c.txt"], 4)
    for name in "abc":
        write(f"{name}.txt", f"another text of {name}")
    second = look(folder, store, first.cursor, limit=3)
    assert folder.loaded[3:] == ["d.txt", "e.txt", "f.txt"]
    third = look(folder, store, second.cursor, limit=3)
    assert folder.loaded[6:] == ["g.txt", "a.txt", "b.txt"]
    assert changes(third) == {"new": ["g.txt"], "changed": ["a.txt", "b.txt"]}
    assert changes(look(folder, store, third.cursor, limit=3)) == {"changed": ["c.txt"]}


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_that_reads_nothing_is_refused(
    folder: Folder, store: MemoryStore, limit: int
) -> None:
    """A scan that never gets on is a mistake."""
    with pytest.raises(InvalidInput, match=f"limit is {limit}, must be 1 or more"):
        look(folder, store, limit=limit)


def test_f20_equal_mtimes_lose_nothing(folder: Folder, store: MemoryStore, write: Write) -> None:
    """Many files of one time are all found, as are those that come later with that time."""
    for name in "abc":
        os.utime(write(f"{name}.txt", "one two three"), ns=(10**18, 10**18))
    first = look(folder, store, limit=2)
    os.utime(write("aa.txt", "one two three"), ns=(10**18, 10**18))
    os.utime(write("z.txt", "one two three"), ns=(1, 1))
    second = look(folder, store, first.cursor)
    found = {one.path for one in (*first.new, *second.new)}
    assert found == {"a.txt", "aa.txt", "b.txt", "c.txt", "z.txt"}


def test_f20_a_new_text_of_the_same_size_and_mtime_is_seen(
    folder: Folder, store: MemoryStore, write: Write
) -> None:
    """A copy that keeps the time, as a sync makes it, is no hiding place."""
    file = write("a.txt", "one two three")
    look(folder, store)
    rewrite(file, "one two THREE")
    assert changes(look(folder, store)) == {"changed": ["a.txt"]}


def test_f20_a_file_that_was_just_written_is_read_once_more(
    root: Path, store: MemoryStore, write: Write
) -> None:
    """Its time may not tell what was written right after it was read."""
    file = write("a.txt", "one two three")
    folder = Watched(root)
    just_now = datetime.fromtimestamp(file.stat().st_mtime + 1, timezone.utc)
    assert changes(scan(folder, store, now=just_now)) == {"new": ["a.txt"]}
    assert changes(look(folder, store)) == {}
    assert changes(look(folder, store)) == {}
    assert folder.loaded == ["a.txt", "a.txt"]


def test_a_touched_but_equal_file_is_no_change(
    folder: Folder, store: MemoryStore, write: Write
) -> None:
    """Nor is one whose clean text is the same."""
    file = write("a.txt", "one two\nthree")
    look(folder, store)
    os.utime(file, ns=(1, 1))
    assert changes(look(folder, store)) == {}
    write("a.txt", "one two\r\nthree")
    assert changes(look(folder, store)) == {}
    write("a.txt", "one two\nthree four")
    assert changes(look(folder, store)) == {"changed": ["a.txt"]}


def test_a_removed_document_is_marked_absent_and_present_again_when_it_returns(
    folder: Folder, store: MemoryStore, write: Write
) -> None:
    """Nothing is deleted, and the time it was first seen stays."""
    write("keep.txt", "one two three")
    file = write("a.txt", "one two three")
    look(folder, store)
    first = entry(store, "a.txt")
    file.unlink()
    assert changes(look(folder, store)) == {"removed": ["a.txt"]}
    assert entry(store, "a.txt").absent
    assert "a.txt" not in Scanned.read(store).documents
    assert changes(look(folder, store)) == {}
    write("a.txt", "one two three")
    assert changes(look(folder, store)) == {"new": ["a.txt"]}
    assert entry(store, "a.txt") == first


def test_a_renamed_document_is_one_removed_and_one_new_of_the_same_hash(
    folder: Folder, store: MemoryStore, write: Write
) -> None:
    """The same text: its checkpoints are found, so no call is made."""
    file = write("old.txt", "one two three")
    before = look(folder, store).new[0]
    file.rename(file.with_name("new.txt"))
    result = look(folder, store)
    assert changes(result) == {"new": ["new.txt"], "removed": ["old.txt"]}
    assert result.new[0].content_hash == before.content_hash


def test_many_removed_are_marked_by_and_by(
    folder: Folder, store: MemoryStore, root: Path, write: Write
) -> None:
    """Marking is bounded too."""
    write("keep.txt", "one two three")
    for number in range(5):
        write(f"gone/{number}.txt", "one two three")
    look(folder, store)
    shutil.rmtree(root / "gone")
    removed: list[str] = []
    for left in (3, 1, 0):
        result = look(folder, store, limit=2)
        removed += result.removed
        assert result.remaining == left
    assert removed == [f"gone/{number}.txt" for number in range(5)]
    assert all(entry(store, path).absent for path in removed)


@pytest.mark.parametrize("gone", ["emptied", "missing", "a file"])
def test_an_empty_or_failing_listing_changes_nothing(
    folder: Folder, store: MemoryStore, root: Path, write: Write, gone: str
) -> None:
    """An unmounted folder is not a collection that was deleted."""
    write("a.txt", "one two three")
    look(folder, store)
    before = dict(store.objects)
    shutil.rmtree(root)
    if gone == "emptied":
        root.mkdir()
        assert look(folder, store, "cursor") == ScanResult(cursor="cursor")
    else:
        if gone == "a file":
            root.write_text("")
        with pytest.raises(InvalidInput, match="can't be listed"):
            look(folder, store)
    assert store.objects == before


class PartlyListed(Folder):
    def list(self) -> Listing:
        files = tuple(file for file in super().list().files if not file.path.startswith("b/"))
        return Listing(files, ("b/",))


def test_what_lies_in_a_folder_that_cannot_be_listed_stays_as_it_is(
    folder: Folder, store: MemoryStore, write: Write
) -> None:
    """One bad folder neither stops the scan nor loses its documents."""
    write("a.txt", "one two three")
    write("b/b.txt", "one two three")
    look(folder, store)
    write("c.txt", "one two three")
    result = look(PartlyListed(folder.root), store)
    assert changes(result) == {"new": ["c.txt"]}
    assert result.unlisted == ("b/",)
    assert changes(look(folder, store)) == {}


def test_an_unreadable_document_is_told_once_and_not_read_again(
    root: Path, store: MemoryStore, write: Write
) -> None:
    """It has no hash, but a reason; a readable text brings it back."""
    write("bad.txt", "%PDF-1.7 and so on")
    write("good.txt", "one two three")
    folder = Watched(root)
    assert changes(look(folder, store)) == {"unreadable": ["bad.txt"], "new": ["good.txt"]}
    known = entry(store, "bad.txt")
    assert known.content_hash is None
    assert known.unreadable is not None and "a PDF" in known.unreadable
    folder.loaded.clear()
    assert changes(look(folder, store)) == {}
    assert folder.loaded == []
    write("bad.txt", "plain text after all")
    assert changes(look(folder, store)) == {"new": ["bad.txt"]}
    assert entry(store, "bad.txt").unreadable is None


class Failing(Folder):
    """Reading fails as a network disk does."""

    def load(self, path: str) -> Document:
        raise InvalidInput(f"{path} can't be read") from OSError(5, "Input/output error")


def test_a_document_whose_reading_failed_is_read_again(
    folder: Folder, store: MemoryStore, write: Write
) -> None:
    """The disk's trouble may pass without a change of the file; it is told once."""
    write("a.txt", "one two three")
    failing = Failing(folder.root)
    assert changes(look(failing, store)) == {"unreadable": ["a.txt"]}
    store.writes = 0
    assert changes(look(failing, store)) == {}
    assert store.writes == 0
    assert changes(look(folder, store)) == {"new": ["a.txt"]}


class Vanishing(Folder):
    def load(self, path: str) -> Document:
        os.unlink(os.path.join(self.root, path))
        return super().load(path)


def test_a_file_that_vanishes_before_it_is_read_is_nothing(
    folder: Folder, store: MemoryStore, write: Write
) -> None:
    """It was never a document."""
    write("a.txt", "one two three")
    assert changes(look(Vanishing(folder.root), store)) == {}
    assert store.objects == {}


@pytest.mark.parametrize("after_write", [False, True])
def test_a_kill_at_any_write_loses_nothing(
    root: Path, folder: Folder, write: Write, after_write: bool
) -> None:
    """Whatever a killed scan had written, the next ones end where an unbroken one does."""

    def prepared() -> MemoryStore:
        shutil.rmtree(root)
        for name in "abcd":
            write(f"{name}.txt", f"the text of {name}")
        store = MemoryStore()
        look(folder, store)
        (root / "a.txt").unlink()
        (root / "b.txt").unlink()
        write("c.txt", "another text of c")
        write("e.txt", "the text of e")
        return store

    writes = 0
    while True:
        writes += 1
        store = prepared()
        store.writes, store.dies_at, store.after_write = 0, writes, after_write
        try:
            look(folder, store)
        except Killed:
            pass
        else:
            break
        write("b.txt", "the text of b")  # returns, as it was, after the kill
        look(folder, store)
        present = {path: one.content_hash for path, one in Scanned.read(store).documents.items()}
        assert sorted(present) == ["b.txt", "c.txt", "d.txt", "e.txt"]
        for path, content_hash in present.items():
            known = entry(store, path)
            assert (known.absent, known.content_hash) == (False, content_hash)
        assert entry(store, "a.txt").absent
        assert folder.load("c.txt").text == "another text of c"
    assert writes > 5


def test_a_kill_before_a_file_turns_back_leaves_no_wrong_hash(
    folder: Folder, store: MemoryStore, write: Write
) -> None:
    """The document's own object follows, also when the scan's sees no change."""
    write("a.txt", "the first text")
    first = look(folder, store).new[0]
    write("a.txt", "the second text")
    store.writes, store.dies_at, store.after_write = 0, 1, True
    with pytest.raises(Killed):
        look(folder, store)
    assert entry(store, "a.txt").content_hash != first.content_hash
    write("a.txt", "the first text")
    assert changes(look(folder, store)) == {}
    assert entry(store, "a.txt").content_hash == first.content_hash


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"null", b"[]", b'{"format":1}', b'{"format":0}', b'{"format":1,"documents":[]}'],
)
def test_a_damaged_scan_object_means_that_all_is_read_again(
    folder: Folder, store: MemoryStore, write: Write, damage: bytes
) -> None:
    """What is known of the documents stays."""
    write("a.txt", "one two three")
    look(folder, store)
    before = entry(store, "a.txt")
    store.objects[SCAN] = damage
    assert changes(look(folder, store)) == {"new": ["a.txt"]}
    assert entry(store, "a.txt") == before


def test_f4_odd_paths_survive_being_kept(folder: Folder, store: MemoryStore, write: Write) -> None:
    """Names that are no Unicode, or look like other paths, are the same after a round trip."""
    names = ["bytes\udcff.txt", "new\nline.txt", "a...b.txt", "x" * 250 + ".txt", "报告/总.md"]
    for name in names:
        write(name, f"the text of {len(name)}")
    look(folder, store)
    assert changes(look(folder, store)) == {}
    registry = Registry(store)
    for name in names:
        source = registry.source(document_key(name))
        assert source.load().text == f"the text of {len(name)}"


def test_a_document_given_by_hand_has_an_absolute_path_unless_it_is_in_the_folder(
    folder: Folder, store: MemoryStore, write: Write, tmp_path: Path
) -> None:
    """The same file has one key, however it was found."""
    outside = tmp_path / "Outside.md"
    outside.write_text("one two three")
    inside = write("sub/in.txt", "four five six")
    registry = Registry(store, folder.root)
    by_hand = registry.register(str(outside))
    assert (by_hand.path, by_hand.root, by_hand.size) == (str(outside), None, 13)
    assert Registry(store).source(by_hand.key).load().text == "one two three"
    assert registry.register(str(inside)).key == document_key("sub/in.txt")
    look(folder, store)
    assert sorted(json.loads(store.objects[SCAN])["documents"]) == ["sub/in.txt"]
    assert registry.register(str(tmp_path / "missing.txt")).unreadable


def test_a_folder_that_moved_is_read_where_it_is_now(
    folder: Folder, store: MemoryStore, root: Path, write: Write
) -> None:
    """Another machine may have it elsewhere."""
    write("a.txt", "one two three")
    key = look(folder, store).new[0].key
    moved = root.rename(root.with_name("moved"))
    assert Registry(store, str(moved)).source(key).load().text == "one two three"


def test_an_unknown_key_or_a_damaged_entry_is_no_document(store: MemoryStore) -> None:
    """An object that stands for another path is not believed."""
    registry = Registry(store)
    key = document_key("a.txt")
    assert registry.find(key) is None
    for damage in (b"", b"[]", b"{}", json.dumps({"key": key, "path": "/etc/passwd"}).encode()):
        store.objects[f"documents/{key}.json"] = damage
        assert registry.find(key) is None
    with pytest.raises(InvalidInput, match="no document is registered"):
        registry.source(key).load()
