"""`promptchain plan`: what summaries would take, without calling a model."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import click

from promptchain_dagster.cli.bad_input import BadInput
from promptchain_dagster.cli.options import Common, common_options
from promptchain_dagster.cli.progress import duration
from promptchain_dagster.cli.show_post import dollars
from promptchain_dagster.cli.summarize import in_flight_option, refine_options, refine_settings

MAX_IN_FLIGHT = 32
"""What `summarize` has in flight at most, unless told."""


@click.command()
@refine_options
@in_flight_option
@click.option("--seconds-per-call", type=float, help="How long a call takes, to tell the time.")
@common_options
def plan(
    common: Common,
    paths: tuple[str, ...],
    max_in_flight: int | None,
    seconds_per_call: float | None,
    **shape: Any,
) -> None:
    """Say how many calls, tokens and dollars `summarize` would take; no model is called.

    What earlier runs have kept is left out.
    """
    from promptchain_dagster.cli.paths import find_sources
    from promptchain_dagster.cli.streams import only_results_on_stdout, print_json, say
    from promptchain_dagster.library.collection_plan import numbers_of, plan_collection
    from promptchain_dagster.models import connect, is_embedded
    from promptchain_dagster.refine.checkpoints import Checkpoints
    from promptchain_dagster.refine.documents import document_key, load_document
    from promptchain_dagster.refine.source import Source
    from promptchain_dagster.store import open_store
    from promptchain_dagster.tokens import encoding_for

    settings = refine_settings(**shape)
    if seconds_per_call is not None and not 0 < seconds_per_call < float("inf"):
        raise BadInput(f"--seconds-per-call is {seconds_per_call}, must be more than 0")
    model_settings = common.model_settings()
    found = find_sources(paths)
    sources = [Source(document_key(one.path), partial(load_document, one.path)) for one in found]

    async def work() -> dict[str, Any]:
        async with connect(model_settings) as model:
            encoder, _ = encoding_for(None if is_embedded(model_settings) else model_settings.model)
            planned = await asyncio.to_thread(
                plan_collection, sources, settings, model, Checkpoints(store), encoder
            )
            asked = max_in_flight or MAX_IN_FLIGHT
            at_once = min(asked, model.max_in_flight or asked)
            documents = [
                {
                    "path": source.path,
                    "status": one.status,
                    **numbers_of(one.plan),
                    "error": one.error,
                }
                for source, one in zip(found, planned.documents, strict=True)
            ]
            numbers = planned.numbers(seconds_per_call, at_once)
            return {"model": model.name, **numbers, "documents": documents}

    with only_results_on_stdout():
        store = open_store(common.home, read_only=True)
        planned = asyncio.run(work())
    if common.as_json:
        print_json(planned)
    else:
        say("\n".join(_told(planned)))


def _told(planned: Mapping[str, Any]) -> Iterator[str]:
    for document in planned["documents"]:
        yield f"{document['path']}: " + (
            _effort(document) if document["status"] == "planned" else _why_none(document)
        )
    count = len(planned["documents"])
    yield f"{count} document{'' if count == 1 else 's'} with {planned['model']}: {_effort(planned)}"
    if planned["seconds"] is not None:
        yield f"time, without compressions and retries: {duration(planned['seconds'])}"


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
