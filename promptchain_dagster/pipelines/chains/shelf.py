"""What a chain's assets have stored for one partition, and the door through which a step reads it.

Beside each output lies a record of what it was made from. A step reads an earlier output only if
that still holds: it validates, meets its AcceptSpec, and was made from what stands now.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import to_jsonable_python

from promptchain_dagster.chain.chain import Chain
from promptchain_dagster.chain.run import schema_messages
from promptchain_dagster.chain.step import Step
from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.pipelines import stored
from promptchain_dagster.store import Store


@dataclass(frozen=True, slots=True)
class Kept:
    """An output that was stored: the key of its file, and the SHA-256 (hex) of what it holds."""

    key: str
    digest: str


class Shelf:
    """The outputs of `chain` for `partition` (None where there are none), under `folder`.

    Methods block, and raise `StoreError` when the home fails.
    """

    def __init__(self, store: Store, chain: Chain, folder: str, partition: str | None) -> None:
        self._store, self._chain, self._folder = store, chain, folder
        self._partition = partition
        self.warnings: list[str] = []
        """What is worth knowing of what was read."""

    def put(self, step: Step, value: Any, fields: Mapping[str, Any], run_id: str) -> Kept:
        """Keep the step's accepted output, and that it was made from `fields` in that run."""
        key = self._key(step)
        data = stored.to_bytes(key, value)
        self._store.write(key, data)
        # Second, so that what a kill leaves between the two is an output that seems too old.
        record = {"run": run_id, "made_from": _digests(step, fields)}
        self._store.write(_record_of(key), json.dumps(record, indent=2).encode())
        return Kept(key, hashlib.sha256(data).hexdigest())

    def fields(self, step: Step, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """What the step reads: of the chain's `inputs`, and of what earlier steps stored.

        Everything that it comes from is looked at, back to the first step. Raises `InvalidInput`
        where something is missing, damaged, no longer accepted, or made from something else; the
        message says what to make again. An output without a record (put there by hand) is let in
        with a warning, and so is one that was edited after it was made: people may.
        """
        known = dict(inputs)
        for earlier in self._ancestors(step):
            known[earlier.output] = self._take(earlier, known)
        return {name: known[name] for name in step.reads}

    def _ancestors(self, step: Step) -> list[Step]:
        wanted, found = set(step.reads), list[Step]()
        before = self._chain.steps[: self._chain.steps.index(step)]
        for earlier in reversed(before):
            if earlier.output in wanted:
                found.insert(0, earlier)
                wanted |= set(earlier.reads)
        return found

    def _take(self, step: Step, known: Mapping[str, Any]) -> Any:
        key = self._key(step)
        if self._store.read(key) is None:
            raise InvalidInput(
                f"there is no {self._name(step)}: nothing is stored at {self._store.url_of(key)};"
                f" materialize {step.output!r} first"
            )
        value = stored.read_value(self._store, key)
        self._prove_fresh(step, known)
        try:
            output = step.adapter.validate_json(json.dumps(value), strict=True)
        except ValidationError as error:
            raise self._unfit(step, "; ".join(schema_messages(error))) from None
        fields = {name: known[name] for name in step.reads}
        verdict = step.accept.judge(output, fields)
        if not verdict.accepted:
            raise self._unfit(step, "; ".join(verdict.messages))
        return output

    def _prove_fresh(self, step: Step, known: Mapping[str, Any]) -> None:
        data = self._store.read(_record_of(self._key(step)))
        record = _read_record(data)
        if record is None:
            self.warnings.append(f"{self._name(step)} has no record of what it was made from")
            return
        now = _digests(step, known)
        others = [name for name in now if record.get(name) != now[name]]
        if others:
            raise InvalidInput(
                f"{self._name(step)} was made from another {', another '.join(others)};"
                f" materialize {step.output!r} again, or nothing may be made from it"
            )

    def _unfit(self, step: Step, reasons: str) -> InvalidInput:
        return InvalidInput(
            f"{self._name(step)}, as stored at {self._store.url_of(self._key(step))}, is not"
            f" accepted: {reasons}"
        )

    def _key(self, step: Step) -> str:
        partitioned = self._partition is not None
        return stored.file_of(
            place_of(self._folder, step, partitioned=partitioned), self._partition
        )

    def _name(self, step: Step) -> str:
        of = "" if self._partition is None else f" of {self._partition!r}"
        return f"{step.output}{of}"


def place_of(folder: str, step: Step, *, partitioned: bool) -> str:
    """Where the step's output lies: text as Markdown, objects as JSON."""
    suffix = "md" if step.output_type is str else "json"
    return "/".join(
        [folder, *([stored.PARTITION] if partitioned else []), f"{step.output}.{suffix}"]
    )


def _record_of(key: str) -> str:
    return f"{key.rpartition('.')[0]}.made_from.json"


def _read_record(data: bytes | None) -> Mapping[str, str] | None:
    """Which value of each field an output was made from; None where that is not to be known."""
    try:
        return dict(json.loads(data or b"")["made_from"])
    except (ValueError, TypeError, KeyError):
        return None


def _digests(step: Step, fields: Mapping[str, Any]) -> dict[str, str]:
    """A hash (SHA-256, 32 hex) of the value of each field that the step reads."""
    return {name: _digest(fields[name]) for name in sorted(step.reads)}


def _digest(value: Any) -> str:
    text = json.dumps(to_jsonable_python(value), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
