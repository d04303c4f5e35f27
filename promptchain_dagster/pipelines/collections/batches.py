"""How to ask for runs of `summarize_documents` over given documents: many to a run.

A run is over a stretch of the partitions, in the order in which they were registered. Documents
that lie apart get a run over the first of them, and its config names them all. Were it over the
stretch from the first to the last, Dagster would plan for those between, at 10 ms each, and show
them as failed whenever it fails; and over no partitions at all, a step whose upstream assets have
partitions does not start.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg

from promptchain_dagster.errors import InvalidInput

MAX_PARTITIONS_PER_RUN = 50
"""A start takes about 3 s, and a run's documents are recorded in one process."""

DOCUMENT_SUMMARY = "document_summary"

_PARTITION = "dagster/partition"
_FROM, _TO = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"


@dataclass(frozen=True, slots=True)
class Batch:
    """The documents of one run: they are its partitions, by its `tags`, or named in its config."""

    keys: tuple[str, ...]
    tags: Mapping[str, str]

    def run_config(
        self, config: Mapping[str, Any] | None = None, *, asset: str = DOCUMENT_SUMMARY
    ) -> dict[str, Any]:
        """`config` (fields of `SummarizeConfig`) as the run config that goes with the tags."""
        apart = _PARTITION in self.tags and len(self.keys) > 1
        only = {"only": list(self.keys)} if apart else {}
        return {"ops": {asset: {"config": {**(config or {}), **only}}}}


def batches(
    keys: Sequence[str],
    partitions: Sequence[str],
    *,
    max_partitions_per_run: int = MAX_PARTITIONS_PER_RUN,
) -> list[Batch]:
    """`keys` in runs of so many, in the order given.

    `partitions` are all of the partitions in their own order, as
    `instance.get_dynamic_partitions("documents")` gives them. Raises `InvalidInput` for a key that
    is not among them, or is given twice.
    """
    if max_partitions_per_run < 1:
        raise InvalidInput(f"max_partitions_per_run is {max_partitions_per_run}, must be 1 or more")
    if len(set(keys)) < len(keys):
        raise InvalidInput("keys holds a document twice")
    places = {key: place for place, key in enumerate(partitions)}
    if unknown := [key for key in keys if key not in places]:
        raise InvalidInput(f"{unknown[0]!r} is no partition of documents; register it first")
    size = max_partitions_per_run
    return [_batch(keys[start : start + size], places) for start in range(0, len(keys), size)]


def run_requests(
    documents: Mapping[str, str],
    partitions: Sequence[str],
    *,
    config: Mapping[str, Any] | None = None,
    tags: Mapping[str, str] | None = None,
    max_partitions_per_run: int = MAX_PARTITIONS_PER_RUN,
    job_name: str | None = None,
    asset: str = DOCUMENT_SUMMARY,
    run_key_prefix: str = "",
) -> list[dg.RunRequest]:
    """A request for each batch of `documents`: their keys, each with what is to be summarized.

    That is the digest of text and recipe (`Work.digest`); it is part of the run key, so that an
    edited document runs again (f20). `run_key_prefix` tells requests apart that are meant anew,
    such as those of another night. `config` are fields of `SummarizeConfig`.
    """
    asked = batches(list(documents), partitions, max_partitions_per_run=max_partitions_per_run)
    return [
        dg.RunRequest(
            run_key=run_key_prefix + _run_key({key: documents[key] for key in batch.keys}),
            run_config=batch.run_config(config, asset=asset),
            tags={**(tags or {}), **batch.tags},
            job_name=job_name,
        )
        for batch in asked
    ]


def _batch(keys: Sequence[str], places: Mapping[str, int]) -> Batch:
    ordered = tuple(sorted(keys, key=places.__getitem__))
    first, last = ordered[0], ordered[-1]
    side_by_side = places[last] - places[first] == len(ordered) - 1
    if side_by_side and len(ordered) > 1:
        return Batch(ordered, {_FROM: first, _TO: last})
    return Batch(ordered, {_PARTITION: first})


def _run_key(documents: Mapping[str, str]) -> str:
    text = json.dumps(documents, sort_keys=True)
    return f"summaries-{hashlib.sha256(text.encode()).hexdigest()[:32]}"
