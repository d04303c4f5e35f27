"""How runs over given documents are asked for."""

import dagster as dg
import pytest

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.pipelines.collections.batches import batches, run_requests

PARTITIONS = [f"d{n}" for n in range(10)]
FIRST, LAST = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"


def only_of(request: dg.RunRequest) -> list[str]:
    return request.run_config["ops"]["document_summary"]["config"].get("only", [])


def test_documents_side_by_side_are_the_partitions_of_the_run() -> None:
    """In whatever order they are asked for."""
    (batch,) = batches(["d3", "d1", "d2"], PARTITIONS)
    assert batch.tags == {FIRST: "d1", LAST: "d3"}
    assert batch.run_config() == {"ops": {"document_summary": {"config": {}}}}


def test_one_document_is_the_one_partition_of_its_run() -> None:
    """So that the UI shows it."""
    (batch,) = batches(["d3"], PARTITIONS)
    assert batch.tags == {"dagster/partition": "d3"}
    assert "only" not in batch.run_config()["ops"]["document_summary"]["config"]


def test_documents_that_lie_apart_are_named_in_the_config() -> None:
    """Dagster plans for the first alone, and marks none in between as failed."""
    (batch,) = batches(["d9", "d0", "d4"], PARTITIONS)
    assert batch.tags == {"dagster/partition": "d0"}
    config = batch.run_config({"max_in_flight": 3})["ops"]["document_summary"]["config"]
    assert config == {"max_in_flight": 3, "only": ["d0", "d4", "d9"]}


def test_many_documents_are_several_runs_in_the_order_given() -> None:
    """What is first in the list is in the first run."""
    keys = [*reversed(PARTITIONS)]
    got = batches(keys, PARTITIONS, max_partitions_per_run=4)
    assert [batch.keys for batch in got] == [
        ("d6", "d7", "d8", "d9"),
        ("d2", "d3", "d4", "d5"),
        ("d0", "d1"),
    ]
    assert batches([], PARTITIONS) == []


def test_f20_the_run_key_follows_what_is_to_be_summarized() -> None:
    """The same is asked for once; an edited document, and another night, anew."""
    asked = {"d1": "aa", "d2": "bb"}
    (one,), (same,) = run_requests(asked, PARTITIONS), run_requests(asked, PARTITIONS)
    (edited,) = run_requests({**asked, "d2": "cc"}, PARTITIONS)
    (night,) = run_requests(asked, PARTITIONS, run_key_prefix="2026-11-30-")
    assert one.run_key == same.run_key
    assert len({one.run_key, edited.run_key, night.run_key}) == 3


def test_tags_and_config_go_with_each_request() -> None:
    """Beside those that name the documents."""
    requests = run_requests(
        dict.fromkeys(PARTITIONS[::2], "aa"),
        PARTITIONS,
        config={"max_words": 9},
        tags={"team": "x"},
        max_partitions_per_run=3,
    )
    assert [only_of(request) for request in requests] == [["d0", "d2", "d4"], ["d6", "d8"]]
    assert all(request.tags["team"] == "x" for request in requests)


@pytest.mark.parametrize("keys", [["d1", "other"], ["d1", "d1"]])
def test_a_key_that_is_no_partition_or_is_given_twice_is_refused(keys: list[str]) -> None:
    """Before any run is asked for."""
    with pytest.raises(InvalidInput):
        batches(keys, PARTITIONS)
    with pytest.raises(InvalidInput, match="max_partitions_per_run is 0"):
        batches(["d1"], PARTITIONS, max_partitions_per_run=0)
