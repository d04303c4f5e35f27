"""Where assets keep their values, and how other assets read them."""

import json
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from promptchain_dagster.errors import StoreError
from promptchain_dagster.pipelines.io import store_io_manager
from promptchain_dagster.pipelines.resources import HomeResource
from promptchain_dagster.pipelines.stored import (
    default_place,
    file_of,
    read_value,
    segment_of,
    to_bytes,
)
from promptchain_dagster.store import open_store

NOTES = dg.DynamicPartitionsDefinition(name="notes")

NAMES = [
    "a",
    "a/b",
    "a_b",
    "a-b",
    "A",
    "x",
    "x/",
    "/x",
    "../x",
    ".",
    "..",
    "...",
    "a...b",
    "Report, Q1.pdf",
    "report-q1",
    "报告.txt",
    "报告2.txt",
    "n" * 300,
    "n" * 301,
    "\ud83d",
    "a|b",
    "a\nb",
    "note.json",
    segment_of("a/b"),
    "",
]


def test_f4_f5_every_name_has_a_file_of_its_own_that_a_store_can_take(tmp_path: Path) -> None:
    """No key of one lies inside another's, whatever the order in which they are written."""
    for order in (NAMES, NAMES[::-1]):
        store = open_store(str(tmp_path / str(len(list(tmp_path.iterdir())))))
        for name in order:
            key = file_of("notes/{partition}/note.json", name)
            store.write(key, to_bytes(key, NAMES.index(name)))
        for number, name in enumerate(NAMES):
            assert read_value(store, file_of("notes/{partition}/note.json", name)) == number
    assert len({segment_of(name).lower() for name in NAMES}) == len(NAMES)


def test_f5_no_asset_lies_where_a_partition_of_another_does() -> None:
    """`a` with the partition `b`, and the asset `a/b`, are two."""
    keys = [["a"], ["a", "b"], ["a.partitions", "b"], ["a", "b.json"]]
    places = [default_place(key, partitioned=False) for key in keys]
    places += [file_of(default_place(key, partitioned=True), "b") for key in keys]
    assert len(set(places)) == len(places)


@pytest.mark.parametrize("data", [b"{", b"\xff", b"[" * 100_000, b""])
def test_a_damaged_file_is_told_with_its_place(tmp_path: Path, data: bytes) -> None:
    """Not with a traceback of the parser's."""
    store = open_store(str(tmp_path))
    store.write("a.json", data)
    with pytest.raises(StoreError, match=r"a\.json can't be read"):
        read_value(store, "a.json")


@dg.asset(partitions_def=NOTES)
def note(context: dg.AssetExecutionContext) -> Any:
    keys = context.partition_keys
    return {key: f"note {key}" for key in keys} if len(keys) > 1 else f"note {keys[0]}"


@dg.asset(partitions_def=NOTES)
def shouted(context: dg.AssetExecutionContext, note: Any) -> Any:
    if isinstance(note, dict):
        return {key: text.upper() for key, text in note.items()}
    return note.upper()


@dg.asset
def digest(note: Any) -> Any:
    return {"type": type(note).__name__, "notes": note}


@dg.asset
def cover(digest: Any) -> Any:
    return f"cover of {len(digest['notes'])}"


@pytest.fixture
def notes(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("notes")
    with dg.DagsterInstance.local_temp(str(folder)) as instance:

        def make(only: str, partition: str | None = None, **tags: str) -> Any:
            if partition is not None:
                instance.add_dynamic_partitions("notes", [partition])
            return dg.materialize(
                [note, shouted, digest, cover],
                selection=[only],
                partition_key=partition,
                instance=instance,
                resources={"home": HomeResource(home=str(home)), "io_manager": store_io_manager},
                tags={f"dagster/asset_partition_range_{name}": key for name, key in tags.items()},
                raise_on_error=False,
            )

        yield make


@pytest.mark.parametrize("keys", [["a", "a/b", "x", "x/"], ["x/", "x", "a/b", "a"]])
def test_f5_partitions_whose_keys_look_like_paths_do_not_overwrite_each_other(
    notes: Any, keys: list[str]
) -> None:
    """Each is read again by the asset that is made from it."""
    for key in keys:
        assert notes("note", key).success
    for key in keys:
        done = notes("shouted", key)
        assert done.output_for_node("shouted") == f"NOTE {key.upper()}"


def test_f15_none_one_or_many_partitions_are_read_alike(notes: Any) -> None:
    """A mapping by partition of those that are stored."""
    seen = []
    for key in (None, "a", "b"):
        if key:
            assert notes("note", key).success
        seen.append(notes("digest").output_for_node("digest"))
    assert seen == [
        {"type": "dict", "notes": {}},
        {"type": "dict", "notes": {"a": "note a"}},
        {"type": "dict", "notes": {"a": "note a", "b": "note b"}},
    ]


def test_f15_a_partition_that_is_missing_is_named_and_the_others_are_read(notes: Any) -> None:
    """It is registered, and was never made."""
    assert not notes("shouted", "missing").success
    notes("note", "made")

    done = notes("digest")

    assert done.output_for_node("digest")["notes"] == {"made": "note made"}


def test_several_partitions_of_one_run_are_a_file_each(notes: Any, home: Path) -> None:
    """A range in one run writes and reads them as a mapping."""
    for key in ("p1", "p2", "p3"):
        notes("shouted", key)  # registers it
    assert notes("note", start="p1", end="p3").success
    assert notes("shouted", start="p1", end="p3").success
    folder = home / "assets" / "shouted.partitions"
    assert {path.stem: json.loads(path.read_text()) for path in folder.iterdir()} == {
        "p1": "NOTE P1",
        "p2": "NOTE P2",
        "p3": "NOTE P3",
    }


def test_an_asset_without_partitions_is_read_by_a_later_run(notes: Any) -> None:
    """Its file does not lie under a run."""
    assert not notes("cover").success
    notes("digest")
    assert notes("cover").output_for_node("cover") == "cover of 0"
