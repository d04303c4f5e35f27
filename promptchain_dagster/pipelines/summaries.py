"""The job `incremental_refine`: document, its chunks, and one op that folds them in order."""

import dataclasses
import hashlib
from collections.abc import Iterator
from typing import Any

import dagster as dg
from pydantic import Field

from promptchain_dagster.errors import PromptChainError
from promptchain_dagster.pipelines import metadata as md
from promptchain_dagster.pipelines.collections.refine_run import RefineRun
from promptchain_dagster.pipelines.executor import in_process_by_default
from promptchain_dagster.pipelines.resources import HomeResource, ModelResource
from promptchain_dagster.refine.chunking import Chunk, split_text
from promptchain_dagster.refine.documents import LEAST_WORDS, load_document
from promptchain_dagster.refine.outcome import NoContent, Unreadable
from promptchain_dagster.refine.settings import RefineSettings


class DocumentConfig(dg.Config):
    """Which document, and how it is summarized."""

    path: str = Field(description="The document: a text, or a file that docs/files.md names.")
    document_type: str = Field(default="document", description="What a prompt calls it, one line.")
    chunk_tokens: int = Field(default=2000, description="The most tokens a chunk may have.")
    max_words: int = Field(default=500, description="The length cap of the summary, in words.")
    fresh: bool = Field(default=False, description="Pay again although checkpoints stand.")
    encoding: str | None = Field(default=None, description="The file's; by default found out.")
    token_encoding: str | None = Field(
        default=None, description="The tiktoken encoding; by default the model's."
    )


@dg.op
def document(
    context: dg.OpExecutionContext, config: DocumentConfig, home: HomeResource
) -> Iterator[dg.Output[Any]]:
    """The document as clean text, with how it is to be summarized."""
    run = RefineRun(context, home.store(), config.path)
    try:
        settings = RefineSettings(config.document_type, config.chunk_tokens, config.max_words)
        loaded = load_document(config.path, encoding=config.encoding)
    except PromptChainError as error:
        raise run.failure(Unreadable(error=str(error))) from None
    for warning in loaded.warnings:
        context.log.warning(md.preview(warning))
    value = {
        "path": loaded.path,
        "key": loaded.key,
        "text": loaded.text,
        "warnings": list(loaded.warnings),
        "has_content": loaded.has_content,
        "settings": settings.numbers,
        "fresh": config.fresh,
        "token_encoding": config.token_encoding,
    }
    told = {
        md.DOCUMENT: md.preview(loaded.path),
        md.DOCUMENT_KEY: loaded.key,
        md.CHARACTERS: len(loaded.text),
        md.CONTENT_HASH: hashlib.sha256(loaded.text.encode()).hexdigest(),
        md.PREVIEW_KEY: md.preview(loaded.text),
    }
    yield dg.Output(value, metadata=told)


@dg.op(out={"chunks": dg.DynamicOut()})
def split(
    context: dg.OpExecutionContext, document: Any, model: ModelResource, home: HomeResource
) -> Iterator[dg.DynamicOutput[Any]]:
    """The document's chunks, one dynamic output each; none where it has no content."""
    if not document["has_content"]:
        return
    run = RefineRun(context, home.store(), document["path"], document["key"])
    try:
        encoder, _ = model.encoder(document["token_encoding"])
        chunks = split_text(document["text"], document["settings"]["chunk_tokens"], encoder)
    except PromptChainError as error:
        raise run.failure(Unreadable(error=str(error))) from None
    context.log.info(f"{len(chunks)} chunks, counted with {encoder.name}")
    for chunk in chunks:
        yield dg.DynamicOutput(
            dataclasses.asdict(chunk),
            # A number is injective and always a valid name (case f3).
            mapping_key=f"chunk_{chunk.index:06}",
            output_name="chunks",
            metadata={
                md.INDEX: chunk.index,
                md.TOTAL: chunk.total,
                md.TOKENS: chunk.tokens,
                md.SPAN: f"{chunk.start} to {chunk.end}",
            },
        )


@dg.op
def refine(
    context: dg.OpExecutionContext,
    document: Any,
    chunks: list[Any],
    model: ModelResource,
    home: HomeResource,
) -> Iterator[dg.Output[Any]]:
    """Every chunk, in order, folded into the running summary, which is materialized each time.

    Fails where a chunk is missing, whatever became of the steps before (case f1).
    """
    encoder, warning = model.encoder(document["token_encoding"])
    warnings = [*document["warnings"], *([warning] if warning else [])]
    run = RefineRun(context, home.store(), document["path"], document["key"], warnings)
    if not document["has_content"]:
        context.log.info(f"fewer than {LEAST_WORDS} words: no content, no call")
        outcome = NoContent()
    else:
        settings = RefineSettings(**document["settings"])
        parts = sorted((Chunk(**chunk) for chunk in chunks), key=lambda chunk: chunk.index)
        outcome = run.fold(parts, settings, model, encoder, fresh=document["fresh"])
    result, told = run.finish(outcome)
    yield dg.Output(result, metadata=told)


@dg.job(executor_def=in_process_by_default)
def incremental_refine() -> None:
    """Summarize one document too long for one call, chunk by chunk."""
    loaded = document()
    refine(loaded, split(loaded).collect())
