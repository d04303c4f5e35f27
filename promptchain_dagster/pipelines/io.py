"""What ops hand on, kept as JSON under the home: `runs/<run>/<step>/<output>.json`."""

import json
from typing import Any

import dagster as dg
from pydantic_core import to_jsonable_python

from promptchain_dagster.errors import StoreError
from promptchain_dagster.store import Store


class StoreIOManager(dg.IOManager):
    """Keeps each output of a run as one JSON file in `store`.

    A value comes back as JSON values, for whoever reads it to validate. A run that retries another
    one from its failure reads what that one stored.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        value = to_jsonable_python(obj)
        data = json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
        self._store.write(key_of(context), data)

    def load_input(self, context: dg.InputContext) -> Any:
        upstream = context.upstream_output
        assert upstream is not None
        key = key_of(upstream)
        data = self._store.read(key)
        if data is None:
            raise StoreError(
                f"the output {upstream.name!r} of {upstream.step_key!r} is not at"
                f" {self._store.url_of(key)}; run the job again from its start"
            )
        return json.loads(data)


def key_of(context: dg.OutputContext) -> str:
    """The store's key of an output."""
    # A step of a mapping is called `step[key]`, and no name in Dagster holds a hyphen.
    step = context.step_key.replace("[", "--").replace("]", "")
    mapping = f"--{context.mapping_key}" if context.mapping_key else ""
    return f"runs/{context.run_id}/{step}/{context.name}{mapping}.json"


@dg.io_manager(required_resource_keys={"home"}, description="Outputs as JSON under the home.")
def store_io_manager(context: dg.InitResourceContext) -> StoreIOManager:
    """The `StoreIOManager` at the home of the run."""
    return StoreIOManager(context.resources.home.store())
