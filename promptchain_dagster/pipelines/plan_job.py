"""The job `plan`: what summaries would take, without calling a model."""

import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import dagster as dg
from pydantic import Field

from promptchain_dagster.errors import PromptChainError
from promptchain_dagster.library.bucket import documents_at
from promptchain_dagster.library.collection_plan import CollectionPlan, numbers_of, plan_collection
from promptchain_dagster.library.folder import Folder
from promptchain_dagster.library.recipe import digest_of
from promptchain_dagster.library.state import Done, SetAside, State
from promptchain_dagster.pipelines import metadata as md
from promptchain_dagster.pipelines.collections.config import MAX_IN_FLIGHT
from promptchain_dagster.pipelines.collections.recipe import summary_recipe
from promptchain_dagster.pipelines.collections.watch import documents_folder
from promptchain_dagster.pipelines.executor import in_process_by_default
from promptchain_dagster.pipelines.resources import HomeResource, ModelResource
from promptchain_dagster.pipelines.run_async import run_async
from promptchain_dagster.refine.checkpoints import Checkpoints
from promptchain_dagster.refine.definition import Refine
from promptchain_dagster.refine.documents import document_key, load_document
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.refine.source import Source
from promptchain_dagster.refine.steps import summary_refine
from promptchain_dagster.threads import in_thread


class PlanConfig(dg.Config):
    """Which documents are planned, and how they would be summarized."""

    paths: list[str] = Field(
        default_factory=list,
        description="Documents, or folders of them; by default all in PROMPTCHAIN_DOCUMENTS, but"
        " for those that a night skips: done, or set aside.",
    )
    document_type: str = Field(default="document", description="What a prompt calls it, one line.")
    chunk_tokens: int = Field(default=2000, description="The most tokens of a chunk.")
    max_words: int = Field(default=500, description="The length cap of a summary, in words.")
    refine: str | None = Field(
        default=None, description="The import path of a Refine of one's own, as minutes.refine."
    )
    seconds_per_call: float | None = Field(
        default=None, gt=0, description="How long a call takes; without it, no time is told."
    )
    max_in_flight: int = Field(
        default=MAX_IN_FLIGHT, ge=1, description="Model calls at once, as far as the model serves."
    )


@dg.op
def plan_documents(
    context: dg.OpExecutionContext, config: PlanConfig, model: ModelResource, home: HomeResource
) -> Iterator[dg.Output[Any]]:
    """The calls, tokens, cost and time of what is left to do."""
    try:
        refine = Refine.named(config.refine) if config.refine else summary_refine()
        settings = RefineSettings(
            config.document_type, config.chunk_tokens, config.max_words, refine
        )
        sources = _given(config.paths) if config.paths else _inside(documents_folder())
        skip = None if config.paths else _Skip(home, summary_recipe(settings, model.settings()))
        planned, numbers = _plan(config, settings, sources, skip, model, home)
    except PromptChainError as error:
        raise dg.Failure(md.preview(str(error)), allow_retries=False) from None
    for one in planned.documents:
        if one.error is not None:
            context.log.warning(md.preview(one.error))
    told = {f"promptchain/{name}": value for name, value in numbers.items() if value is not None}
    documents = [
        {"key": one.key, "status": one.status, **numbers_of(one.plan), "error": one.error}
        for one in planned.documents
    ]
    yield dg.Output(
        {**numbers, "documents": documents}, metadata={md.DOCUMENTS: len(documents), **told}
    )


@dg.job(executor_def=in_process_by_default)
def plan() -> None:
    """Say what summarizing documents would take; no model is called."""
    plan_documents()


class _Skip:
    """What a nightly run leaves out, by the marks in the home."""

    def __init__(self, home: HomeResource, recipe: str) -> None:
        self._state, self._recipe = State.read(home.store()), recipe

    def __call__(self, key: str, content_hash: str) -> str | None:
        status = self._state.status(key, digest_of(content_hash, self._recipe))
        if isinstance(status, Done):
            return "done"
        return "set_aside" if isinstance(status, SetAside) else None


def _plan(
    config: PlanConfig,
    settings: RefineSettings,
    sources: Sequence[Source],
    skip: _Skip | None,
    model: ModelResource,
    home: HomeResource,
) -> tuple[CollectionPlan, dict[str, Any]]:
    encoder, _ = model.encoder()
    checkpoints = Checkpoints(home.store())

    async def work() -> tuple[CollectionPlan, dict[str, Any]]:
        async with model.connect() as chat:
            named = {"why_left_out": skip} if skip else {}
            planned = await in_thread(
                plan_collection, sources, settings, chat, checkpoints, encoder, **named
            )
            at_once = min(config.max_in_flight, chat.max_in_flight or config.max_in_flight)
            return planned, planned.numbers(config.seconds_per_call, at_once)

    return run_async(work)


def _given(paths: Sequence[str]) -> list[Source]:
    """The documents named, and those in the folders named, each once."""
    found: dict[str, Source] = {}
    for path in paths:
        full = os.path.abspath(path)
        if os.path.isdir(full):
            folder = Folder(full)
            inside = [os.path.join(full, file.path) for file in folder.list().files]
            load = partial(load_document, within=full)
        else:
            inside, load = [full], load_document
        for file in inside:
            found.setdefault(file, Source(document_key(file), partial(load, file)))
    return list(found.values())


def _inside(root: str) -> list[Source]:
    documents = documents_at(root)
    return [
        Source(document_key(file.path), partial(documents.load, file.path))
        for file in documents.list().files
    ]
