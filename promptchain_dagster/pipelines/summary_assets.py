"""Documents as Dagster assets: `document`, `running_summary`, `document_summary`, and the
`collection_summary` over them; and the job `summarize_documents`."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import dagster as dg

from promptchain_dagster.errors import PromptChainError
from promptchain_dagster.library.registry import Registry
from promptchain_dagster.library.state import State
from promptchain_dagster.models import ModelSettings
from promptchain_dagster.pipelines import metadata as md
from promptchain_dagster.pipelines.collections.batches import (
    DOCUMENT_SUMMARY,
    MAX_PARTITIONS_PER_RUN,
)
from promptchain_dagster.pipelines.collections.checks import summary_checks
from promptchain_dagster.pipelines.collections.config import SummarizeConfig
from promptchain_dagster.pipelines.collections.document_run import RUNNING_SUMMARY, DocumentRun
from promptchain_dagster.pipelines.collections.events import SummaryEvents
from promptchain_dagster.pipelines.collections.recipe import (
    CODE_VERSION,
    environment_settings,
    summary_recipe,
)
from promptchain_dagster.pipelines.collections.run import CollectionRun
from promptchain_dagster.pipelines.collections.summary import collection_summary_asset
from promptchain_dagster.pipelines.executor import in_process_by_default
from promptchain_dagster.pipelines.pool import POOL, runs_at_once
from promptchain_dagster.pipelines.resources import HomeResource, ModelResource
from promptchain_dagster.pipelines.results import keep_result
from promptchain_dagster.refine.settings import RefineSettings

documents = dg.DynamicPartitionsDefinition(name="documents")

DOCUMENT = dg.AssetKey("document")
SUMMARY = dg.AssetKey(DOCUMENT_SUMMARY)


@dataclass(frozen=True)
class SummaryAssets:
    """The assets, and the job that materializes `document_summary` with its checks."""

    assets: Sequence[dg.AssetSpec | dg.AssetsDefinition]
    job: Any


def summary_assets(
    *,
    settings: RefineSettings | None = None,
    model: ModelSettings | None = None,
    max_partitions_per_run: int = MAX_PARTITIONS_PER_RUN,
    group_name: str = "summaries",
    owners: Sequence[str] | None = None,
) -> SummaryAssets:
    """The assets over the partitions `documents`; one set of them in a deployment.

    `settings` shape the summaries unless a run says otherwise; with `model`, by default that of
    the environment, they are the code version. A backfill makes runs of `max_partitions_per_run`
    documents.

    The assets need the resources `model` and `home` (`resources.chain_resources`).
    """
    settings = settings or RefineSettings()
    model = model or environment_settings()
    shared: dict[str, Any] = {"group_name": group_name, "owners": owners}
    with warnings.catch_warnings():
        # Backfill policies and partitions of checks are no news to whoever loads the assets.
        warnings.simplefilter("ignore", dg.BetaWarning)
        warnings.simplefilter("ignore", dg.PreviewWarning)
        summary = _document_summary(
            settings,
            code_version=summary_recipe(settings, model)[:CODE_VERSION],
            max_partitions_per_run=max_partitions_per_run,
            shared=shared,
        )
        collection = collection_summary_asset(settings, model, summary=SUMMARY, **shared)
        job = dg.define_asset_job(
            "summarize_documents",
            selection=dg.AssetSelection.assets(summary),
            description="Summarize many documents in one run; a backfill makes runs of"
            f" {max_partitions_per_run}.",
            executor_def=in_process_by_default,
        )
    specs = [
        dg.AssetSpec(
            DOCUMENT,
            description="A document as clean text; its data version is the hash of that.",
            partitions_def=documents,
            kinds={"text"},
            **shared,
        ),
        dg.AssetSpec(
            RUNNING_SUMMARY,
            deps=[DOCUMENT],
            description="The summary so far, materialized after every chunk.",
            partitions_def=documents,
            kinds={"llm", "json"},
            **shared,
        ),
    ]
    return SummaryAssets([*specs, summary, collection], job)


def _document_summary(
    settings: RefineSettings,
    *,
    code_version: str,
    max_partitions_per_run: int,
    shared: dict[str, Any],
) -> dg.AssetsDefinition:
    @dg.asset(
        key=SUMMARY,
        deps=[DOCUMENT, RUNNING_SUMMARY],
        partitions_def=documents,
        # No output is yielded: each document is recorded by an event of its own, once.
        output_required=False,
        backfill_policy=dg.BackfillPolicy.multi_run(max_partitions_per_run),
        check_specs=summary_checks(SUMMARY, documents),
        code_version=code_version,
        pool=POOL,
        kinds={"llm", "markdown"} if settings.refine.gives_text else {"llm", "markdown", "json"},
        description="One document of any length, folded chunk by chunk into a summary. A run takes"
        " many documents, and records each the moment it is done.",
        **shared,
    )
    def document_summary(
        context: dg.AssetExecutionContext,
        config: SummarizeConfig,
        model: ModelResource,
        home: HomeResource,
    ) -> Iterator[dg.Output[None]]:
        try:
            _summarize(context, config, model, home, settings)
        except PromptChainError as error:
            raise dg.Failure(md.preview(str(error)), allow_retries=False) from None
        for check in context.selected_asset_check_keys:
            name = context.assets_def.get_output_name_for_asset_check_key(check)
            yield dg.Output(None, output_name=name)

    return cast("dg.AssetsDefinition", document_summary)


def _summarize(
    context: dg.AssetExecutionContext,
    config: SummarizeConfig,
    model: ModelResource,
    home: HomeResource,
    defaults: RefineSettings,
) -> None:
    store, settings = home.store(), config.settings(defaults)
    # Each once, however often it is named.
    keys = list(dict.fromkeys(config.only or context.partition_keys))
    recipe = summary_recipe(settings, model.settings())
    run, state = DocumentRun(context.run, store), State.read(store)
    events = SummaryEvents(
        context,
        run,
        state,
        asset=SUMMARY,
        document=DOCUMENT,
        checks=config.checks,
        code_version=recipe[:CODE_VERSION],
    )
    work = CollectionRun(
        run,
        Registry(store),
        state,
        events,
        config=config,
        settings=settings,
        recipe=recipe,
    )
    tally = work.tally
    try:
        work.summarize(keys, model, config.limits(runs_at_once(context.instance)))
    except PromptChainError as error:
        tally.ended_by = str(error)
        raise
    finally:
        tally.count_not_started(len(keys))
        path = keep_result(context.instance, store, run.run_id, tally.result(run.run_id))
    if tally.counts["set_aside"]:
        context.log.warning(f"set aside, not tried again: {tally.names('set_aside')}")
    if tally.failed:
        told = {**tally.metadata(), md.RESULT: dg.MetadataValue.path(path)}
        raise dg.Failure(tally.message(), told, allow_retries=False)
