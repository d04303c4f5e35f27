"""A bucket of documents: listed, read and scanned like a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.library.bucket import Bucket, documents_at
from promptchain_dagster.library.folder import Folder
from promptchain_dagster.library.registry import Registry
from promptchain_dagster.library.scan import ScanResult, scan
from promptchain_dagster.library.scanned import Known, Scanned
from promptchain_dagster.refine.documents import Document, document_key
from tests.support.many_objects import ManyObjects
from tests.support.memory_store import MemoryStore
from tests.support.s3 import PAGE, Objects


class Watched(Bucket):
    """A bucket that tells which documents were read."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.loaded: list[str] = []

    def load(self, path: str) -> Document:
        self.loaded.append(path)
        return super().load(path)


@pytest.fixture
def watched(objects: Objects) -> Watched:
    return Watched(objects.url("docs"))


def changes(result: ScanResult) -> dict[str, list[str]]:
    told = {
        "new": [one.path for one in result.new],
        "changed": [one.path for one in result.changed],
        "unreadable": [one.path for one in result.unreadable],
        "removed": list(result.removed),
    }
    return {name: found for name, found in told.items() if found}


def test_a_url_is_a_bucket_and_a_path_or_a_file_url_a_folder(tmp_path: Path) -> None:
    """Neither disk nor network is asked yet."""
    assert isinstance(documents_at("s3://bucket/docs/"), Bucket)
    assert documents_at("s3://bucket/docs/").root == "s3://bucket/docs"
    for text in (str(tmp_path), f"file://{tmp_path}"):
        found = documents_at(text)
        assert isinstance(found, Folder)
        assert found.root == str(tmp_path)


def test_a_document_is_the_one_that_a_file_would_be(objects: Objects, tmp_path: Path) -> None:
    """Text, key and warnings, whatever the bytes are."""
    samples = {
        "plain.txt": b"one two three",
        "marked.md": "\ufeffone two three".encode(),
        "wide.txt": "one two three".encode("utf-16"),
        "old/latin.txt": "caf\u00e9 \u201cau lait\u201d".encode("cp1252"),
        "ligature.txt": "e\ufb03cient pro\ufb01ling".encode(),
        "empty.txt": b"",
    }
    for path, data in samples.items():
        objects.put(f"docs/{path}", data)
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(data)
    bucket, folder = Bucket(objects.url("docs")), Folder(str(tmp_path))
    listed, on_disk = bucket.list().files, folder.list().files
    assert [(one.path, one.size) for one in listed] == [(one.path, one.size) for one in on_disk]
    for path in samples:
        found, expected = bucket.load(path), folder.load(path)
        assert (found.path, found.key, found.text) == (path, expected.key, expected.text)
        told = [one.replace(str(tmp_path), objects.url("docs")) for one in expected.warnings]
        assert list(found.warnings) == told


@pytest.mark.parametrize(
    ("path", "data", "reason"),
    [
        ("word.txt", b"PK\x03\x04" + bytes(99), "is not text but a zip archive"),
        ("nul.md", bytes(99), "is binary"),
        ("a.xyz", b"one two three", "files of kind '.xyz' are not supported"),
        ("gone.txt", None, "there is no such object"),
    ],
)
def test_what_is_no_text_is_refused_by_its_url(
    objects: Objects, path: str, data: bytes | None, reason: str
) -> None:
    """As a file is by its path."""
    if data is not None:
        objects.put(f"docs/{path}", data)
    with pytest.raises(InvalidInput, match=reason) as caught:
        Bucket(objects.url("docs")).load(path)
    assert repr(objects.url(f"docs/{path}")) in str(caught.value)


def test_f20_a_scan_sees_what_is_new_changed_renamed_and_removed(
    objects: Objects, watched: Watched
) -> None:
    """And reads nothing else, also of what was written a moment ago."""
    store = MemoryStore()
    for name in ("a.txt", "b.txt", "sub/c.txt", "d.txt"):
        objects.put(f"docs/{name}", f"the text of {name}")
    objects.put("docs/zip.txt", b"PK\x03\x04")
    first = scan(watched, store)
    assert changes(first) == {
        "new": ["a.txt", "b.txt", "d.txt", "sub/c.txt"],
        "unreadable": ["zip.txt"],
    }
    watched.loaded.clear()
    assert changes(scan(watched, store, first.cursor)) == {}
    assert watched.loaded == []

    objects.put("docs/a.txt", "the text of A.txt")  # of the same size, in the same second
    objects.put("docs/new name.txt", "the text of b.txt")
    objects.delete("docs/b.txt")
    objects.delete("docs/d.txt")
    objects.put("docs/sub/c.txt", "the text of sub/c.txt")  # written once more, the same
    second = scan(watched, store, first.cursor)
    assert changes(second) == {
        "new": ["new name.txt"],
        "changed": ["a.txt"],
        "removed": ["b.txt", "d.txt"],
    }
    assert (
        {"a.txt", "new name.txt"} <= set(watched.loaded) <= {"a.txt", "new name.txt", "sub/c.txt"}
    )
    registry = Registry(store)
    gone = registry.find(document_key("b.txt"))
    assert gone is not None and gone.absent
    assert registry.source(document_key("new name.txt")).load().text == "the text of b.txt"


def test_a_listing_that_is_empty_or_fails_changes_nothing(
    objects: Objects, watched: Watched
) -> None:
    """Not even when everything was there before."""
    store = MemoryStore()
    objects.put("docs/a.txt")
    scan(watched, store)
    before = dict(store.objects)
    objects.delete("docs/a.txt")
    assert changes(scan(watched, store)) == {}
    objects.put("docs//b.txt")
    with pytest.raises(InvalidInput, match="can't be listed"):
        scan(watched, store)
    assert store.objects == before


def test_what_lies_in_a_folder_that_cannot_be_listed_stays_as_it_is(
    objects: Objects, watched: Watched
) -> None:
    """One odd key has no document marked absent."""
    store = MemoryStore()
    for name in ("a.txt", "sub/b.txt", "other/c.txt"):
        objects.put(f"docs/{name}")
    scan(watched, store)
    objects.put("docs/sub//odd.txt")
    objects.delete("docs/other/c.txt")
    result = scan(watched, store)
    assert result.unlisted == ("sub/",)
    assert changes(result) == {"removed": ["other/c.txt"]}


def test_documents_that_move_from_a_folder_to_a_bucket_stay_known(
    objects: Objects, tmp_path: Path
) -> None:
    """The same path and text: nothing is new, and the bucket is read from then on."""
    store = MemoryStore()
    (tmp_path / "a.txt").write_text("one two three")
    scan(Folder(str(tmp_path)), store)
    objects.put("docs/a.txt", "one two three")
    assert changes(scan(Bucket(objects.url("docs")), store)) == {}
    entry = Registry(store).find(document_key("a.txt"))
    assert entry is not None and entry.root == objects.url("docs")


def test_a_listing_of_many_pages_is_read_so_many_documents_at_a_time(
    objects: Objects, watched: Watched
) -> None:
    """Each once, in the order of their paths."""
    store = MemoryStore()
    names = [f"{n % 7}/{n:05}.txt" for n in range(3 * PAGE + 50)]
    for name in names:
        objects.put(f"docs/{name}", f"the text of {name}")
    listing = watched.list()
    assert [file.path for file in listing.files] == sorted(names)
    cursor, seen = "", list[str]()
    for limit in (40, 60):
        result = scan(watched, store, cursor, limit=limit)
        cursor = result.cursor
        seen += [one.path for one in result.new]
    assert result.remaining == len(names) - 100
    assert seen == sorted(names)[:100]
    assert sorted(watched.loaded) == seen


def test_twenty_thousand_objects_cost_a_tick_twenty_requests_and_one_for_each_it_reads(
    s3_environment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many are unread, and none but the listing's once all are known."""
    store = MemoryStore()
    with ManyObjects(20_000) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        bucket = Bucket("s3://bucket/docs")
        first = scan(bucket, store, limit=30)
        assert len(first.new) == 30
        assert first.remaining == 20_000 - 30
        assert (server.listings, server.reads) == (20, 30)

        scanned = Scanned.read(store)
        for file in bucket.list().files:
            known = Known(file.path, file.stamp, "0" * 64)
            scanned.documents.setdefault(file.path, known)
        scanned.write(store)
        server.listings = server.reads = 0
        second = scan(bucket, store, first.cursor, limit=30)
        assert (second.remaining, changes(second)) == (0, {})
        assert (server.listings, server.reads) == (20, 0)
