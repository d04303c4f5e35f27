"""What ops and assets hand on, kept as files under the home.

An op's output is `runs/<run>/<step>/<output>.json`; an asset's lies where its metadata
`promptchain/stored_as` says, or at `assets/<key>.json`, a file for each partition.
"""

import json
from typing import Any

import dagster as dg
from pydantic_core import to_jsonable_python

from promptchain_dagster.errors import StoreError
from promptchain_dagster.pipelines import metadata as md
from promptchain_dagster.pipelines import stored
from promptchain_dagster.store import Store


class StoreIOManager(dg.IOManager):
    """Keeps each output as one JSON file in `store`; an asset's text as Markdown.

    A value comes back as JSON values, for whoever reads it to validate. A run that retries another
    one from its failure reads what that one stored. An input that spans partitions is a mapping of
    those that are stored by partition key, be they none, one or many (case f15).
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        if context.has_asset_key:
            self._keep_asset(context, obj)
            return
        value = to_jsonable_python(obj)
        data = json.dumps(value, ensure_ascii=False, allow_nan=False).encode(
            errors="backslashreplace"
        )
        self._store.write(key_of(context), data)

    def load_input(self, context: dg.InputContext) -> Any:
        upstream = context.upstream_output
        if upstream is None or upstream.has_asset_key:
            return self._load_asset(context)
        key = key_of(upstream)
        data = self._store.read(key)
        if data is None:
            raise StoreError(
                f"the output {upstream.name!r} of {upstream.step_key!r} is not at"
                f" {self._store.url_of(key)}; run the job again from its start"
            )
        return json.loads(data)

    def _keep_asset(self, context: dg.OutputContext, obj: Any) -> None:
        partitions = context.asset_partition_keys if context.has_asset_partitions else [None]
        # A run over several partitions gives a value for each.
        values = {partitions[0]: obj} if len(partitions) == 1 else dict(obj)
        place = _place(context, partitioned=context.has_asset_partitions)
        for partition in partitions:
            key = stored.file_of(place, partition)
            self._store.write(key, stored.to_bytes(key, values[partition]))

    def _load_asset(self, context: dg.InputContext) -> Any:
        place = _place(context, partitioned=context.has_asset_partitions)
        if not context.has_asset_partitions:
            return stored.read_value(self._store, stored.file_of(place, None))
        partitions = list(context.asset_partition_keys)
        if context.has_partition_key and partitions == [context.partition_key]:
            return stored.read_value(self._store, stored.file_of(place, partitions[0]))
        files = {partition: stored.file_of(place, partition) for partition in partitions}
        kept = {name: key for name, key in files.items() if self._store.read(key) is not None}
        if missing := sorted(files.keys() - kept.keys()):
            told = md.preview(", ".join(missing))
            context.log.warning(f"{len(missing)} partitions are not stored: {told}")
        return {name: stored.read_value(self._store, key) for name, key in kept.items()}


def key_of(context: dg.OutputContext) -> str:
    """The store's key of an op's output."""
    # A step of a mapping is called `step[key]`, and no name in Dagster holds a hyphen.
    step = context.step_key.replace("[", "--").replace("]", "")
    mapping = f"--{context.mapping_key}" if context.mapping_key else ""
    return f"runs/{context.run_id}/{step}/{context.name}{mapping}.json"


def _place(context: dg.InputContext | dg.OutputContext, *, partitioned: bool) -> str:
    output = context.upstream_output if isinstance(context, dg.InputContext) else context
    place = (output.definition_metadata or {}).get(md.STORED_AS) if output else None
    if place is None:
        return stored.default_place(context.asset_key.path, partitioned=partitioned)
    return str(place.value if isinstance(place, dg.MetadataValue) else place)


@dg.io_manager(required_resource_keys={"home"}, description="Outputs as files under the home.")
def store_io_manager(context: dg.InitResourceContext) -> StoreIOManager:
    """The `StoreIOManager` at the home of the run."""
    return StoreIOManager(context.resources.home.store())
