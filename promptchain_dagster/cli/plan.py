"""`promptchain plan`: what summaries would take, without calling a model."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from promptchain_dagster.cli.options import Common, common_options
from promptchain_dagster.cli.show_post import dollars
from promptchain_dagster.cli.summarize import refine_options, refine_settings

if TYPE_CHECKING:
    from promptchain_dagster.cli.paths import Source
    from promptchain_dagster.models.base import ChatModel
    from promptchain_dagster.refine.plan import Plan
    from promptchain_dagster.refine.settings import RefineSettings
    from promptchain_dagster.store import Store
    from promptchain_dagster.tokens import Encoder


@click.command()
@refine_options
@common_options
def plan(common: Common, paths: tuple[str, ...], **shape: Any) -> None:
    """Say how many calls, tokens and dollars `summarize` would take; no model is called.

    What earlier runs have kept is left out.
    """
    from promptchain_dagster.cli.paths import find_sources
    from promptchain_dagster.cli.streams import only_results_on_stdout, print_json, say
    from promptchain_dagster.models import connect, is_embedded
    from promptchain_dagster.store import open_store
    from promptchain_dagster.tokens import encoding_for

    settings = refine_settings(**shape)
    model_settings = common.model_settings()
    sources = find_sources(paths)

    async def work() -> dict[str, Any]:
        async with connect(model_settings) as model:
            encoder, _ = encoding_for(None if is_embedded(model_settings) else model_settings.model)
            return await asyncio.to_thread(_plan, sources, settings, model, encoder, store)

    with only_results_on_stdout():
        store = open_store(common.home)
        planned = asyncio.run(work())
    if common.as_json:
        print_json(planned)
    else:
        say("\n".join(_told(planned)))


def _plan(
    sources: Sequence[Source],
    settings: RefineSettings,
    model: ChatModel,
    encoder: Encoder,
    store: Store,
) -> dict[str, Any]:
    """The plan of all documents together, and of each."""
    from promptchain_dagster.refine import plan as planning
    from promptchain_dagster.refine import source as reading
    from promptchain_dagster.refine.checkpoints import Checkpoints
    from promptchain_dagster.refine.documents import document_key, load_document
    from promptchain_dagster.refine.outcome import NoContent
    from promptchain_dagster.refine.room import require_room

    require_room(settings, model.context_tokens, model.max_output_tokens)
    total, documents = planning.Plan(), []
    for source in sources:
        read = reading.Source(document_key(source.path), partial(load_document, source.path))
        planned = planning.plan_source(read, settings, model, Checkpoints(store), encoder)
        if isinstance(planned, planning.Plan):
            total += planned
            told = {"status": "planned", **_numbers(planned), "error": None}
        elif isinstance(planned, NoContent):
            told = {"status": "no_content", **_numbers(planning.Plan()), "error": None}
        else:
            told = {"status": "failed", **_numbers(planning.Plan()), "error": planned.error}
        documents.append({"path": source.path, **told})
    return {"model": model.name, **_numbers(total), "documents": documents}


def _numbers(plan: Plan) -> dict[str, Any]:
    numbers = dataclasses.asdict(plan)
    return {name: numbers[name] for name in NUMBERS}


NUMBERS = (
    "chunks",
    "chunks_left",
    "least_calls",
    "most_calls",
    "input_tokens",
    "output_tokens",
    "cost_usd",
)


def _told(planned: Mapping[str, Any]) -> Iterator[str]:
    for document in planned["documents"]:
        yield f"{document['path']}: " + (
            _effort(document) if document["status"] == "planned" else _why_none(document)
        )
    count = len(planned["documents"])
    yield f"{count} document{'' if count == 1 else 's'} with {planned['model']}: {_effort(planned)}"


def _effort(plan: Mapping[str, Any]) -> str:
    if not plan["least_calls"]:
        return "nothing left to do, no call"
    return (
        f"{plan['chunks_left']} of {plan['chunks']} chunks to do,"
        f" {plan['least_calls']:,} to {plan['most_calls']:,} calls,"
        f" about {plan['input_tokens']:,} tokens in and {plan['output_tokens']:,} out,"
        f" cost {dollars(plan['cost_usd'])}"
    )


def _why_none(document: Mapping[str, Any]) -> str:
    return document["error"] or "no content, no call"
