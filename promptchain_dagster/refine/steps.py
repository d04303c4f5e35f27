"""The built-in refine: two prompt steps, each a `PromptStep` like any other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from promptchain_dagster.chain.accept import NOT_EMPTY, AcceptSpec, Criterion
from promptchain_dagster.chain.guard import OneLine
from promptchain_dagster.chain.step import PromptStep
from promptchain_dagster.prompts import PromptTemplate
from promptchain_dagster.refine.definition import Refine
from promptchain_dagster.refine.replies import summary_in


@cache
def refine_step() -> PromptStep:
    """One chunk and the summary so far, folded into the next summary.

    It has no re-attempts: an unusable reply is a call that errored, which `Calls` makes once more.
    """
    return PromptStep(
        name="refine",
        output="summary",
        prompt=PromptTemplate.load("refine"),
        reads={
            "document_type": OneLine,
            "summary": str,
            "index": int,
            "total": int,
            "chunk": str,
            "max_words": int,
        },
        accept=AcceptSpec(NOT_EMPTY, Criterion("is_a_summary", _ends_with_a_summary)),
    )


@cache
def compress_step() -> PromptStep:
    """A summary over the cap, made shorter."""
    return PromptStep(
        name="compress",
        output="summary",
        prompt=PromptTemplate.load("compress"),
        reads={"summary": str, "max_words": int},
    )


@cache
def summary_refine() -> Refine:
    """The refine of the requirement: a running summary, compressed where it is over the cap."""
    return Refine(refine_step(), compress=compress_step())


def shapes_of(refine: Refine) -> list[str]:
    """What of `refine` goes into the key of whatever is made with it; no two have the same."""
    if refine is summary_refine():
        # As it was before there were others, so that what was kept is found.
        return [refine_step().prompt.fingerprint, compress_step().prompt.fingerprint]
    return [refine.fingerprint]


def _ends_with_a_summary(output: str, fields: Mapping[str, Any]) -> Iterable[str]:
    # Before the last chunk, nothing may yet be worth telling: a cover, a table of contents (d1).
    last = fields["index"] == fields["total"]
    if last and not fields["summary"] and summary_in(output) is None:
        yield f"no summary came of the whole document; the last reply says only: {output[:200]!r}"
