"""A Chain as Dagster assets: its outputs are assets in a line, its gates are their checks."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import dagster as dg
from pydantic import BaseModel, ValidationError
from pydantic_core import to_jsonable_python

from promptchain_dagster.chain import trace
from promptchain_dagster.chain.chain import Chain
from promptchain_dagster.chain.outcome import Accepted, Halted, Reason
from promptchain_dagster.chain.result import halted_by
from promptchain_dagster.chain.step import PromptStep, Step
from promptchain_dagster.errors import ChainDefinitionError, InvalidInput, PromptChainError
from promptchain_dagster.models import ModelSettings
from promptchain_dagster.pipelines import metadata as md
from promptchain_dagster.pipelines import stored
from promptchain_dagster.pipelines.chains import reports
from promptchain_dagster.pipelines.chains.code_versions import code_versions
from promptchain_dagster.pipelines.chains.descriptions import describe
from promptchain_dagster.pipelines.chains.ops import has_door
from promptchain_dagster.pipelines.chains.shelf import Shelf, place_of
from promptchain_dagster.pipelines.chains.step_run import admit, execute, refused, retries_config
from promptchain_dagster.pipelines.pool import POOL
from promptchain_dagster.pipelines.resources import HomeResource, ModelResource
from promptchain_dagster.store import Store

InputsOf = Callable[[str | None], "BaseModel | Mapping[str, Any]"]
"""The chain's inputs for a partition key (None where there are no partitions), at run time.

Raises `InvalidInput` where there are none."""


def chain_assets(
    chain: Chain,
    *,
    inputs_of: InputsOf,
    partitions_def: dg.PartitionsDefinition[str] | None = None,
    keys: Mapping[str, dg.AssetKey] | None = None,
    key_prefix: str | Sequence[str] | None = None,
    group_name: str | None = None,
    owners: Sequence[str] | None = None,
    tags: Mapping[str, str] | None = None,
    folder: str | None = None,
    settings: ModelSettings | None = None,
) -> list[dg.AssetsDefinition]:
    """An asset for each step of `chain`, called as its output, each made from those it reads.

    A step that can reject has the check `<output>_gate`. A rejected output fails the check, which
    tells of every attempt, and the run; nothing is stored or materialized, and what was stored
    before stays. A step that reads earlier outputs judges them once more, as they are stored, and
    refuses what was made from other inputs than those that stand now (`shelf.Shelf`).

    `keys` gives an output another key than its name after `key_prefix`. Values are files under
    `folder` in the home, by default one named as the chain: `<folder>/<partition>/<output>.md`, or
    `.json` for what is no text. `settings`, by default those of the environment, shape the code
    version, together with prompts and gates up to the step. A run makes one partition.

    The assets need the resources `model`, `home` and `io_manager` (`resources.chain_resources`).
    """
    keys = dict(keys or {})
    if unknown := keys.keys() - {step.output for step in chain.steps}:
        raise ChainDefinitionError(
            f"chain {chain.name!r}: keys names {', '.join(map(repr, sorted(unknown)))}, which no"
            f" step gives"
        )
    prefix = [key_prefix] if isinstance(key_prefix, str) else list(key_prefix or ())
    maker = _Maker(
        chain=chain,
        inputs_of=inputs_of,
        partitions_def=partitions_def,
        keys={
            step.output: keys.get(step.output) or dg.AssetKey([*prefix, step.output])
            for step in chain.steps
        },
        folder=folder or stored.segment_of(chain.name),
        versions=code_versions(chain, settings or _settings()),
    )
    with warnings.catch_warnings():
        # Backfill policies and partitions of checks are no news to whoever loads the assets.
        warnings.simplefilter("ignore", dg.BetaWarning)
        warnings.simplefilter("ignore", dg.PreviewWarning)
        return [
            maker.asset(step, group_name=group_name, owners=owners, tags=tags)
            for step in chain.steps
        ]


def has_gate(step: Step) -> bool:
    """Whether the step's output can be rejected: it is parsed, or held to criteria."""
    return has_door(step) or (isinstance(step, PromptStep) and step.is_gate)


def _settings() -> ModelSettings:
    try:
        return ModelSettings.from_environment()
    except InvalidInput:  # told by the run that would use it; definitions load all the same
        return ModelSettings()


@dataclass(frozen=True, kw_only=True)
class _Maker:
    chain: Chain
    inputs_of: InputsOf
    partitions_def: dg.PartitionsDefinition[str] | None
    keys: Mapping[str, dg.AssetKey]
    folder: str
    versions: Mapping[str, str]

    def asset(self, step: Step, **given: Any) -> dg.AssetsDefinition:
        key, check = self.keys[step.output], self._check(step)
        calls_model = isinstance(step, PromptStep)
        place = place_of(self.folder, step, partitioned=self.partitions_def is not None)
        writes = "markdown" if place.endswith(".md") else "json"

        @dg.asset(
            key=key,
            deps=[self.keys[name] for name in step.reads if name in self.keys],
            partitions_def=self.partitions_def,
            # A whole run, and its failure, belong to one partition.
            backfill_policy=dg.BackfillPolicy.multi_run(1) if self.partitions_def else None,
            check_specs=[check] if check else None,
            code_version=self.versions[step.output],
            config_schema=retries_config(step),
            required_resource_keys={"home", "model"},
            pool=POOL if calls_model else None,
            kinds={"llm" if calls_model else "python", writes},
            description=describe(self.chain, step),
            metadata={md.CHAIN: self.chain.name, md.STEP: step.name, md.STORED_AS: place},
            **given,
        )
        def compute(context: dg.AssetExecutionContext) -> Iterator[Any]:
            yield from _StepRun(self, step, context).events(key, check)

        return cast("dg.AssetsDefinition", compute)

    def _check(self, step: Step) -> dg.AssetCheckSpec | None:
        if not has_gate(step):
            return None
        names = ", ".join(criterion.name for criterion in step.accept.criteria)
        return dg.AssetCheckSpec(
            f"{step.output}_gate",
            asset=self.keys[step.output],
            description=f"Judged before anything is stored: {names or 'it parses'}.",
            partitions_def=self.partitions_def,
        )


class _StepRun:
    """One execution of one asset's step."""

    def __init__(self, maker: _Maker, step: Step, context: dg.AssetExecutionContext) -> None:
        self._maker, self._step, self._context = maker, step, context
        home: HomeResource = context.resources.home
        self._store: Store = home.store()
        folder = trace.folder_of(context.run.run_id).rstrip("/")
        self._trace = self._store.url_of(folder)

    def events(self, key: dg.AssetKey, check: dg.AssetCheckSpec | None) -> Iterator[Any]:
        """The check's result and the materialization; a failure, and no output, on a rejection."""
        try:
            partition = self._partition()
            shelf = Shelf(self._store, self._maker.chain, self._maker.folder, partition)
            fields = shelf.fields(self._step, self._inputs(partition))
        except ValidationError as error:
            raise self._failure(refused(self._step.name, error)) from None
        except PromptChainError as error:
            halted = halted_by(error, self._step.name, Reason.REJECTED)
            raise self._failure(halted) from None
        for warning in shelf.warnings:
            self._context.log.warning(warning)
        outcome = self._execute(fields)
        judged = isinstance(outcome, Accepted) or outcome.reason is Reason.REJECTED
        if check and judged and outcome.attempts:
            yield dg.AssetCheckResult(
                check_name=check.name,
                passed=isinstance(outcome, Accepted),
                metadata=reports.of_gate(outcome, self._trace),
            )
        if isinstance(outcome, Halted):
            raise self._failure(outcome)
        yield self._keep(shelf, outcome, fields, key)

    def _partition(self) -> str | None:
        if self._maker.partitions_def is None:
            return None
        partitions = list(self._context.partition_keys)
        if len(partitions) != 1:
            raise InvalidInput(
                f"the run is for {len(partitions)} partitions, must be for 1;"
                " a backfill makes a run for each"
            )
        return partitions[0]

    def _inputs(self, partition: str | None) -> dict[str, Any]:
        given = self._maker.inputs_of(partition)
        return admit(self._maker.chain, to_jsonable_python(given))

    def _execute(self, fields: Mapping[str, Any]) -> Accepted | Halted:
        model: ModelResource = self._context.resources.model
        config: Mapping[str, Any] = self._context.op_execution_context.op_config or {}
        run_id = self._context.run.run_id
        chain = self._maker.chain
        outcome = execute(chain, self._step, fields, model, self._store, run_id, config)
        for attempt in outcome.attempts:
            say = self._context.log.info if attempt.accepted else self._context.log.warning
            say(reports.log_line(attempt))
        return outcome

    def _keep(
        self, shelf: Shelf, outcome: Accepted, fields: Mapping[str, Any], key: dg.AssetKey
    ) -> dg.MaterializeResult[Any]:
        value = self._step.adapter.dump_python(outcome.output, mode="json")
        try:
            kept = shelf.put(self._step, value, fields, self._context.run.run_id)
        except PromptChainError as error:
            raise self._failure(halted_by(error, self._step.name)) from None
        told = reports.of_asset(outcome, value, self._trace, shelf.warnings)
        told[md.PATH] = dg.MetadataValue.path(self._store.url_of(kept.key))
        version = dg.DataVersion(kept.digest)
        return dg.MaterializeResult(asset_key=key, metadata=told, data_version=version)

    def _failure(self, halted: Halted) -> dg.Failure:
        return reports.failure(halted, self._trace, None)
