"""`promptchain post`: a brief becomes a post, or an outline is rejected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from promptchain_dagster.cli.bad_input import validated
from promptchain_dagster.cli.options import Common, common_options, text_or_file

if TYPE_CHECKING:
    from promptchain_dagster.blog_post import Brief
    from promptchain_dagster.cli.runs import Ended, OnEvent, Runner
    from promptchain_dagster.store import Store

GATE_WITH_RETRY, GATED_EXIT = "gate-with-retry", "gated-exit"


@click.command()
@click.option("--brief", required=True, metavar="TEXT|@FILE", help="What the post is about.")
@click.option("--audience", required=True, metavar="TEXT", help="For whom, in one line.")
@click.option(
    "--variant",
    type=click.Choice([GATE_WITH_RETRY, GATED_EXIT]),
    default=GATE_WITH_RETRY,
    show_default=True,
    help="Whether a rejected outline is asked for again.",
)
@click.option("--max-attempts", type=int, help="Outlines at most, 1 to 4.  [default: 3]")
@click.option("--min-sections", type=int, help="[default: 4]")
@click.option("--max-sections", type=int, help="[default: 6]")
@click.option("--word-count", type=int, help="About how many words.  [default: 800]")
@common_options
def post(
    common: Common, brief: str, audience: str, variant: str, max_attempts: int | None, **sizes: Any
) -> None:
    """Write a blog post from a brief: outline, gate, draft, polish."""
    from promptchain_dagster.blog_post import Brief, Variant, blog_post_chain
    from promptchain_dagster.cli.preflight import known_model
    from promptchain_dagster.cli.progress import StepProgress
    from promptchain_dagster.cli.runs import runner
    from promptchain_dagster.cli.show_post import show_ending
    from promptchain_dagster.cli.streams import only_results_on_stdout, print_json, say
    from promptchain_dagster.store import open_store

    text = text_or_file("--brief", brief)
    what: Brief = validated(Brief, {"brief": text, "audience": audience, **sizes})
    blog_post_chain(Variant(variant), max_attempts)  # raises for attempts that can't be
    with only_results_on_stdout():
        store = open_store(common.home)
        known_model(common.model_settings())
        with runner(store, common) as runs, StepProgress() as progress:
            ended = run_post(runs, variant, what, max_attempts, progress.on_event)
        result = result_of(ended, store)
        show_ending(result, ended, store)
    if common.as_json:
        print_json(result)
    elif result["post"] is not None:
        say(result["post"])
    click.get_current_context().exit(ended.status(result["status"] == "completed"))


def run_post(
    runs: Runner, variant: str, brief: Brief, max_attempts: int | None, on_event: OnEvent
) -> Ended:
    """One run of the variant's job."""
    from promptchain_dagster.pipelines import blog_post
    from promptchain_dagster.pipelines.resources import with_resources

    ops: dict[str, Any] = {"brief": {"config": brief.model_dump()}}
    if max_attempts is not None:
        ops["outline"] = {"config": {"max_retries_per_step": max_attempts - 1}}
    job = blog_post.gated_exit if variant == GATED_EXIT else blog_post.gate_with_retry
    return runs.run(with_resources(job), ops, on_event)


def result_of(ended: Ended, store: Store) -> dict[str, Any]:
    """The run's result; of a run that broke off before it came to one, what its trace tells."""
    if ended.result is not None:
        return ended.result
    from promptchain_dagster.chain.outcome import Halted, Reason
    from promptchain_dagster.chain.result import chain_result
    from promptchain_dagster.chain.trace import read_trace

    why = "interrupted" if ended.interrupted else ended.error or "the run broke off"
    halted = Halted(attempts=(), step=ended.step or "brief", reason=Reason.FAILED, messages=(why,))
    return chain_result(ended.run_id, "post", read_trace(store, ended.run_id), halted=halted)
