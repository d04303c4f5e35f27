"""What every store promises, tried on each kind."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import pytest

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.store import Store

GOOD_KEYS = ["a", "a-b_c.json", "traces/run/1.json", "x..y/z.", "-/_", "A" * 200, "a/" * 300 + "z"]
BAD_KEYS = [
    *("", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", "a/..", ".hidden"),
    *("a/.hidden", "a\\b", "a b", "a\n", "a\x00b", "a:b", "a%2Fb", "~", "ä", "a\u200b", "\ud800"),
    *("C:\\x", "s3://b/k", "a?b", "a#b", "A" * 201, "a/" * 400 + "z"),
]


@pytest.mark.parametrize("data", [b"", b"\x00\xff\r\n", b"x" * 3_000_000], ids=len)
def test_what_was_written_is_read_back_unchanged(store: Store, data: bytes) -> None:
    """Bytes of any kind and size come back as they went in."""
    store.write("folder/object", data)
    assert store.read("folder/object") == data


@pytest.mark.parametrize("key", GOOD_KEYS, ids=lambda key: key[:20])
def test_a_good_key_can_be_written_listed_and_deleted(store: Store, key: str) -> None:
    """Every key that is allowed works for every method."""
    store.write(f"top/{key}", b"1")
    assert store.list("top/") == [f"top/{key}"]
    assert store.url_of(f"top/{key}").endswith(f"/top/{key}")
    store.delete(f"top/{key}")
    assert store.read(f"top/{key}") is None
    assert store.list("top/") == []


@pytest.mark.parametrize("key", BAD_KEYS, ids=lambda key: ascii(key)[:20])
def test_a_bad_key_is_refused_by_every_method(store: Store, key: str) -> None:
    """No method lets a key pass that leads elsewhere or spells differently elsewhere."""
    calls: list[Callable[[], object]] = [
        lambda: store.read(key),
        lambda: store.write(key, b""),
        lambda: store.delete(key),
        lambda: store.list(key + "/"),
        lambda: store.list_aged(key + "/"),
        lambda: store.url_of(key),
    ]
    for call in calls:
        with pytest.raises(InvalidInput, match="is refused"):
            call()


@pytest.mark.parametrize("prefix", ["", "a", "/", "../", "a//", "./"])
def test_a_prefix_is_a_folder_and_ends_in_a_slash(store: Store, prefix: str) -> None:
    """Half a name is no prefix, and the whole home can't be listed."""
    with pytest.raises(InvalidInput, match="is refused"):
        store.list(prefix)


def test_what_is_not_there_is_none_and_can_be_deleted(store: Store) -> None:
    """Missing objects and folders are no errors."""
    assert store.read("no/such/object") is None
    assert store.list("no/such/") == []
    store.delete("no/such/object")
    store.write("a/b", b"1")
    assert store.read("a") is None
    assert store.read("a/b/c") is None
    assert store.list("a/b/") == []
    store.delete("a/b/c")
    store.delete("a")
    assert store.read("a/b") == b"1"


def test_the_last_write_replaces_the_whole_object(store: Store) -> None:
    """A shorter object leaves nothing of a longer one behind."""
    store.write("a/b", b"long" * 1000)
    store.write("a/b", b"short")
    assert store.read("a/b") == b"short"


def test_a_listing_is_sorted_deep_and_of_that_folder_alone(store: Store) -> None:
    """A name that only starts like the folder isn't in it."""
    keys = ["a/b/c/d", "a/b.x", "a/B", "a/10", "a/9"]
    for key in [*keys, "ab/c", "a.b", "b/a/c"]:
        store.write(key, b"")
    assert store.list("a/") == sorted(keys)
    assert store.list("a/b/") == ["a/b/c/d"]


def test_many_threads_write_at_once_and_nothing_is_lost(store: Store) -> None:
    """New folders made at the same moment, and one object that all write, do no harm."""

    def work(number: int) -> None:
        store.write(f"deep/{number % 3}/{number}", str(number).encode())
        store.write("deep/shared", b"%04d" % number * 1000)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(48)))
    assert len(store.list("deep/")) == 49
    assert all(store.read(f"deep/{n % 3}/{n}") == str(n).encode() for n in range(48))
    shared = store.read("deep/shared")
    assert shared is not None and shared == shared[:4] * 1000


def test_a_listing_with_ages_tells_when_each_object_was_last_written(store: Store) -> None:
    """The same keys in the same order, each with a time in UTC."""
    before = datetime.now(timezone.utc) - timedelta(seconds=2)
    keys = ["a/b/c", "a/d", "a/e"]
    for key in [*keys, "ab/c"]:
        store.write(key, b"")
    aged = store.list_aged("a/")
    assert [key for key, _ in aged] == store.list("a/") == keys
    after = datetime.now(timezone.utc) + timedelta(seconds=2)
    assert all(before <= written <= after for _, written in aged)
    assert store.list_aged("no/such/") == []


def test_a_folder_goes_with_its_last_object_and_comes_back_with_the_next(store: Store) -> None:
    """Deleting the last object leaves nothing in the way of writing another."""
    for _ in range(3):
        store.write("a/b/c/d", b"1")
        store.write("a/e", b"1")
        store.delete("a/b/c/d")
        assert store.list("a/") == ["a/e"]


def test_a_sweep_removes_old_probes_at_the_top_alone(store: Store) -> None:
    """What open_store left when it was killed; nothing that anyone else wrote."""
    probe = "probe-0123456789abcdef"
    kept = ["probe-mine", f"a/{probe}", "a/b"]
    for key in [probe, *kept]:
        store.write(key, b"1")
    now = datetime.now(timezone.utc)
    assert store.sweep(now - timedelta(hours=1)) == 0
    assert store.sweep(now + timedelta(hours=1)) == 1
    assert store.read(probe) is None
    assert all(store.read(key) == b"1" for key in kept)


def test_objects_deleted_and_written_in_one_folder_at_once_are_never_lost(store: Store) -> None:
    """A folder that is removed for being empty is made again by whoever writes into it."""

    def work(number: int) -> None:
        for _ in range(10):
            store.write(f"top/inner/{number}", b"1")
            assert store.read(f"top/inner/{number}") == b"1"
            store.delete(f"top/inner/{number}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert store.list("top/") == []
