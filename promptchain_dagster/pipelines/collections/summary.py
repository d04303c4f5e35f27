"""`collection_summary`: the summaries of all documents, folded into one."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import dagster as dg

from promptchain_dagster.errors import PromptChainError
from promptchain_dagster.library.recipe import digest_of
from promptchain_dagster.library.registry import Registry
from promptchain_dagster.library.state import State
from promptchain_dagster.models import ModelSettings
from promptchain_dagster.pipelines import metadata as md
from promptchain_dagster.pipelines.collections.config import LimitsConfig
from promptchain_dagster.pipelines.collections.document_run import DocumentRun
from promptchain_dagster.pipelines.collections.recipe import CODE_VERSION, summary_recipe
from promptchain_dagster.pipelines.paid_calls import paid_calls
from promptchain_dagster.pipelines.pool import POOL, runs_at_once
from promptchain_dagster.pipelines.resources import HomeResource, ModelResource
from promptchain_dagster.pipelines.results import keep_result
from promptchain_dagster.pipelines.run_async import run_async
from promptchain_dagster.refine.chunking import split_text
from promptchain_dagster.refine.fold import refine_document
from promptchain_dagster.refine.outcome import NoContent, Stopped, Summarized
from promptchain_dagster.refine.replay import settings_of
from promptchain_dagster.refine.result import document_result
from promptchain_dagster.refine.room import require_room
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.store import Store

NAME = "collection_summary"
DOCUMENT_TYPE = "collection of document summaries"


@dataclass(frozen=True)
class Collected:
    """The summaries of a collection as one text, in the order in which the documents were
    registered, so that it grows at its end; typed states as the Markdown of them. `missing` are
    paths of documents without a summary, `empty` of those without content."""

    text: str
    summaries: int
    missing: tuple[str, ...]
    empty: tuple[str, ...]


def collect(store: Store, state: State, keys: list[str]) -> Collected:
    """Read the summaries of the documents `keys`; those that are gone are left out (f15)."""
    registry = Registry(store)
    parts: list[str] = []
    missing: list[str] = []
    empty: list[str] = []
    for key in keys:
        entry = registry.find(key)
        if entry is not None and entry.absent:
            continue
        path = entry.path if entry else key
        data = store.read(f"summaries/{key}.md")
        if data is not None:
            parts.append(f"{path}\n\n{data.decode('utf-8', 'replace').strip()}")
        elif state.done_digest(key) is not None:
            empty.append(path)
        else:
            missing.append(path)
    return Collected("\n\n\n".join(parts), len(parts), tuple(missing), tuple(empty))


def collection_summary_asset(
    settings: RefineSettings, model: ModelSettings, *, summary: dg.AssetKey, **shared: Any
) -> dg.AssetsDefinition:
    """The asset over all partitions of `summary`; it has none itself."""
    settings = RefineSettings(DOCUMENT_TYPE, settings.chunk_tokens, settings.max_words)

    @dg.asset(
        name=NAME,
        deps=[summary],
        code_version=summary_recipe(settings, model)[:CODE_VERSION],
        pool=POOL,
        kinds={"llm", "markdown"},
        description="The summaries of all documents, folded into one; it says which are missing.",
        **shared,
    )
    def collection_summary(
        context: dg.AssetExecutionContext,
        config: LimitsConfig,
        model: ModelResource,
        home: HomeResource,
    ) -> Iterator[dg.MaterializeResult[Any]]:
        try:
            yield _materialize(context, config, model, home.store(), settings)
        except PromptChainError as error:
            raise dg.Failure(md.preview(str(error)), allow_retries=False) from None

    return cast("dg.AssetsDefinition", collection_summary)


def _materialize(
    context: dg.AssetExecutionContext,
    config: LimitsConfig,
    model: ModelResource,
    store: Store,
    settings: RefineSettings,
) -> dg.MaterializeResult[Any]:
    state = State.read(store)
    collected = collect(store, state, list(context.instance.get_dynamic_partitions("documents")))
    if collected.missing:
        context.log.warning(f"{len(collected.missing)} documents have no summary")
    run = DocumentRun(context.run, store)
    limits = config.limits(runs_at_once(context.instance))
    outcome = _fold(run, collected, config, limits, model, settings)
    result = document_result(outcome, path=NAME, document_key=None, run_id=run.run_id)
    told = {
        **run.metadata(outcome, result),
        md.DOCUMENTS: collected.summaries,
        f"{md.MISSING}_count": len(collected.missing),
        f"{md.NO_CONTENT}_count": len(collected.empty),
        md.RESULT: dg.MetadataValue.path(keep_result(context.instance, store, run.run_id, result)),
    }
    for name, paths in ((md.MISSING, collected.missing), (md.NO_CONTENT, collected.empty)):
        if paths:
            told[name] = md.lines(paths)
    if isinstance(outcome, Stopped):
        raise dg.Failure(md.preview(outcome.error), told, allow_retries=False)
    if isinstance(outcome, Summarized):
        told |= run.keep_summary(NAME, outcome).metadata
        content_hash = hashlib.sha256(collected.text.encode()).hexdigest()
        digest = digest_of(content_hash, summary_recipe(settings, model.settings()))
        state.mark_done(NAME, digest, run.run_id, checkpoints=outcome.checkpoints)
    else:
        run.keep_no_summary(NAME)
    return dg.MaterializeResult(metadata=told)


def _fold(
    run: DocumentRun,
    collected: Collected,
    config: LimitsConfig,
    limits: dict[str, Any],
    model: ModelResource,
    settings: RefineSettings,
) -> Summarized | Stopped | NoContent:
    if not collected.summaries:
        return NoContent()
    encoder, _ = model.encoder()
    chunks = split_text(collected.text, settings.chunk_tokens, encoder)

    async def work() -> Summarized | Stopped:
        async with paid_calls(
            model,
            run.store,
            run.run_id,
            most_in_flight=config.max_in_flight,
            **limits,
        ) as calls:
            chat = calls.model
            require_room(settings, chat.context_tokens, chat.max_output_tokens)
            used = settings_of(settings, chat, encoder)
            return await refine_document(
                chunks,
                settings,
                calls,
                run.checkpoints(fresh=config.fresh),
                record=lambda index: run.record(NAME, index, used),
            )

    return run_async(work)
