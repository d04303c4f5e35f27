"""`promptchain replay`: a recorded run once more, without a model; the same, or the difference."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from promptchain_dagster.cli.options import Common, common_options
from promptchain_dagster.cli.summarize import refine_option

if TYPE_CHECKING:
    from promptchain_dagster.chain.replay import Different
    from promptchain_dagster.library.replay import Chains, Part, Replay
    from promptchain_dagster.refine.definition import Refine

STATUS = {"same": 0, "different": 1, "not_replayable": 2}


@click.command()
@click.argument("run_id")
@refine_option
@common_options
def replay(common: Common, run_id: str, refine: Refine | None) -> None:
    """Run a recorded run again from its trace, with the code and the prompts of now.

    No model is called and nothing is written. The status is 0 where all prompts, outputs, gates
    and results are the same, byte for byte; 1 where one is not, and the first difference is shown;
    2 where the trace does not hold the whole run. The beginning of a run's id is enough. What a
    refine of one's own has made needs --refine.
    """
    from promptchain_dagster.cli.streams import only_results_on_stdout, print_json, say
    from promptchain_dagster.cli.trace import find_run
    from promptchain_dagster.library.replay import replay_run
    from promptchain_dagster.store import open_store

    store = open_store(common.home, read_only=True)
    run_id = find_run(store, run_id)
    with only_results_on_stdout():
        done = asyncio.run(replay_run(store, run_id, _chains(), refine))
    if common.as_json:
        print_json(_result(done))
    else:
        say("\n".join(_told(done)))
    click.get_current_context().exit(STATUS[done.status])


def _chains() -> Chains:
    from promptchain_dagster.blog_post import Variant, blog_post_chain

    return {
        "gated_exit": lambda: blog_post_chain(Variant.GATED_EXIT),
        "gate_with_retry": lambda: blog_post_chain(Variant.GATE_WITH_RETRY),
    }


def _result(done: Replay) -> dict[str, Any]:
    return {
        "run_id": done.run_id,
        "status": done.status,
        "attempts": done.calls,
        "reason": done.reason,
        "difference": _difference(*done.difference) if done.difference else None,
        "documents": [
            {
                "path": part.path,
                "document_key": part.key,
                "status": _status(part),
                "attempts": part.outcome.calls,
            }
            for part in done.parts
            if part.key is not None
        ],
    }


def _difference(part: Part, found: Different) -> dict[str, Any]:
    return {
        "document_key": part.key,
        "chunk": _chunk(found),
        "step": found.step,
        "attempt": found.attempt,
        "what": found.what,
        "recorded": found.recorded,
        "now": found.now,
        "diff": found.diff,
    }


def _chunk(found: Different) -> int | None:
    number = found.label.rpartition("/")[2]
    return int(number) if "/" in found.label else None


def _status(part: Part) -> str:
    from promptchain_dagster.chain.replay import Different, Same

    if isinstance(part.outcome, Same):
        return "same"
    return "different" if isinstance(part.outcome, Different) else "not_replayable"


def _told(done: Replay) -> list[str]:
    documents = [part for part in done.parts if part.key is not None]
    of = f" of {len(documents)} document{'s' * (len(documents) != 1)}" if documents else ""
    told = [f"run {done.run_id}: {done.status.replace('_', ' ')}"]
    told.append(f"{done.calls} recorded attempts{of} came out as they did then")
    if done.difference is not None:
        part, found = done.difference
        told += ["", _where(part, found), *(f"  {line}" for line in found.diff)]
        others = sum(_status(one) == "different" for one in done.parts) - 1
        if others:
            told += ["", f"{others} more of its documents are different"]
    if done.reason is not None:
        told.append(f"not replayable: {done.reason}")
    return told


def _where(part: Part, found: Different) -> str:
    chunk = _chunk(found)
    places = [
        f"document {part.path or part.key}" if part.key else "",
        f"chunk {chunk}" if chunk is not None else "",
        f"step {found.step}" if found.step else "",
        f"attempt {found.attempt}" if found.attempt else "",
    ]
    return f"first difference: {', '.join([*filter(None, places), found.what])}"
