"""A look at where the documents lie, and what Dagster is told of it: partitions, data versions."""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.library.bucket import documents_at
from promptchain_dagster.library.folder import Documents, Listing
from promptchain_dagster.library.scan import ScanResult, scan
from promptchain_dagster.library.scanned import Known, Scanned
from promptchain_dagster.pipelines import metadata as md
from promptchain_dagster.pipelines.collections.batches import DOCUMENT_SUMMARY
from promptchain_dagster.store import Store

VARIABLE = "PROMPTCHAIN_DOCUMENTS"
JOB = "summarize_documents"
PARTITIONS = "documents"
DOCUMENT = "document"

_DATA_VERSION = "dagster/data_version"
_PARTITION = "dagster/partition"
_FROM, _TO = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"
_UNFINISHED = (
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
)


@dataclass(frozen=True)
class Look:
    """What one look came to.

    `documents` are those that are known and were listed now, by path: what the listing does not
    show at the moment is neither asked for nor forgotten. `sizes` are in bytes, by path;
    `partitions` are all there are, in Dagster's order, these documents' among them.
    """

    documents: tuple[Known, ...]
    sizes: Mapping[str, int]
    partitions: Sequence[str]
    scan: ScanResult


class _ListedOnce:
    """Documents that are listed once, however many ask."""

    def __init__(self, documents: Documents) -> None:
        self.root, self.readers = documents.root, documents.readers
        self.load = documents.load
        self._documents = documents
        self._listing: Listing | None = None

    def list(self) -> Listing:
        self._listing = self._listing or self._documents.list()
        return self._listing


def documents_folder() -> str:
    """The folder, or the URL, that the environment names; raises `InvalidInput` where none."""
    root = os.environ.get(VARIABLE, "").strip()
    if not root:
        raise InvalidInput(
            f"{VARIABLE} is not set; it names the folder or the URL with the documents"
        )
    return root


def look(
    instance: dg.DagsterInstance, store: Store, root: str, cursor: str = "", *, limit: int
) -> Look:
    """Scan `root`, reading at most `limit` files, and register what has no partition yet.

    Every document that was ever read is looked at, not only what this scan tells of, so what an
    earlier look left undone is made up for. Raises `InvalidInput` where it can't be listed.
    """
    folder = _ListedOnce(documents_at(root))
    result = scan(folder, store, cursor, limit=limit)
    sizes = {file.path: file.size for file in folder.list().files}
    known = Scanned.read(store).documents.values()
    documents = sorted((one for one in known if one.path in sizes), key=lambda one: one.path)
    partitions = instance.get_dynamic_partitions(PARTITIONS)
    registered = set(partitions)
    readable = [one.key for one in documents if one.content_hash is not None]
    if missing := [key for key in readable if key not in registered]:
        instance.add_dynamic_partitions(PARTITIONS, missing)
        partitions = instance.get_dynamic_partitions(PARTITIONS)
    return Look(tuple(documents), sizes, partitions, result)


def record_versions(instance: dg.DagsterInstance, documents: Iterable[Known]) -> int:
    """Record `document` for each whose clean text is another than the last recorded; how many.

    The data version is the text's hash (SHA-256, hex). There are two events, of about 10 ms each:
    for an external asset, Dagster tells by materializations that a partition is there and is news
    to a declarative condition, and by observations that what was made of it is out of date.
    """
    readable = {one.key: one for one in documents if one.content_hash is not None}
    if not readable:
        return 0
    recorded = instance.event_log_storage.get_latest_tags_by_partition(
        dg.AssetKey(DOCUMENT),
        dg.DagsterEventType.ASSET_OBSERVATION,
        [_DATA_VERSION],
        asset_partitions=list(readable),
    )
    changed = [
        one
        for key, one in readable.items()
        if recorded.get(key, {}).get(_DATA_VERSION) != one.content_hash
    ]
    for one in changed:
        event = _event(one)
        # The observation, by which it is known to be recorded, comes last.
        instance.report_runless_asset_event(dg.AssetMaterialization(**event))
        instance.report_runless_asset_event(dg.AssetObservation(**event))
    return len(changed)


def in_work(instance: dg.DagsterInstance, partitions: Sequence[str]) -> set[str]:
    """The documents that unfinished runs are to summarize, whoever launched these."""
    found: set[str] = set()
    places = {key: place for place, key in enumerate(partitions)}
    for run in instance.get_runs(dg.RunsFilter(statuses=list(_UNFINISHED))):
        if _summarizes(run):
            found.update(_documents_of(run, partitions, places))
    return found


def _summarizes(run: dg.DagsterRun) -> bool:
    selected: Collection[dg.AssetKey] = run.asset_selection or ()
    return run.job_name == JOB or dg.AssetKey(DOCUMENT_SUMMARY) in selected


def _documents_of(
    run: dg.DagsterRun, partitions: Sequence[str], places: Mapping[str, int]
) -> Sequence[str]:
    """The documents that its config names (`batches`), or the run's own partitions."""
    ops: Any = run.run_config.get("ops") or {}
    if only := ops.get(DOCUMENT_SUMMARY, {}).get("config", {}).get("only"):
        return only
    first, last = run.tags.get(_FROM, ""), run.tags.get(_TO, "")
    if first in places and last in places:
        return partitions[places[first] : places[last] + 1]
    key = run.tags.get(_PARTITION)
    return [key] if key else []


def _event(one: Known) -> dict[str, Any]:
    return {
        "asset_key": DOCUMENT,
        "description": md.preview(one.path),
        "metadata": {
            md.DOCUMENT: md.preview(one.path),
            md.DOCUMENT_KEY: one.key,
            md.CONTENT_HASH: one.content_hash,
        },
        "partition": one.key,
        "tags": {_DATA_VERSION: str(one.content_hash)},
    }
