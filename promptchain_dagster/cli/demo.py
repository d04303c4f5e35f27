"""`promptchain demo`: the jobs on the bundled examples, each stage shown as it comes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from promptchain_dagster.cli.options import Common, common_options
from promptchain_dagster.cli.streams import note, only_results_on_stdout, print_json, say

if TYPE_CHECKING:
    from dagster import DagsterEvent

    from promptchain_dagster.blog_post import Brief
    from promptchain_dagster.cli.runs import Runner
    from promptchain_dagster.cli.summaries import Summaries
    from promptchain_dagster.refine.outcome import NotStarted, Unreadable
    from promptchain_dagster.store import Store

BRIEF = "briefs/sleep.yaml"
DOCUMENT = "documents/how-our-town-gets-its-water.md"
# Short enough for a small model on two cores, and several chunks all the same.
SETTINGS = {"document_type": "report", "chunk_tokens": 120, "max_words": 80}


@click.command()
@common_options
def demo(common: Common) -> None:
    """Write a post and summarize a document, from the bundled examples.

    The configured model answers, or else the embedded one. That a gate rejects every outline is
    an honest end of a run: the status is 1 only where a call failed.
    """
    from promptchain_dagster.cli.preflight import known_model
    from promptchain_dagster.cli.runs import INTERRUPTED, runner
    from promptchain_dagster.cli.show_summaries import show_documents
    from promptchain_dagster.store import open_store

    folder = examples()
    brief = read_brief(folder / BRIEF)
    with only_results_on_stdout():
        store = open_store(common.home)
        model = known_model(common.model_settings())
        note(f"{model.name} answers\n")
    with runner(store, common) as runs:
        post, interrupted = _write_post(runs, store, brief, common)
        document = str(folder / DOCUMENT)
        summaries = _not_started(document) if interrupted else _summarize(runs, document)
        show_documents(summaries, store, as_text=not common.as_json)
    if common.as_json:
        print_json({"post": post, "summaries": summaries.result()})
    note("\nEach run above is a Dagster run. To look at them, in a checkout: make ui")
    note(f"(DAGSTER_HOME is {os.environ['DAGSTER_HOME']})")
    failed = int(post["status"] == "failed")
    click.get_current_context().exit(
        INTERRUPTED if summaries.interrupted else failed or summaries.exit_status
    )


def examples() -> Path:
    """The bundled examples: within the package where it is installed, beside it in a checkout."""
    package = Path(str(resources.files("promptchain_dagster")))
    inside = package / "examples"
    return inside if inside.is_dir() else package.parent / "examples"


def read_brief(path: Path) -> Brief:
    """The brief in a YAML file."""
    import yaml

    from promptchain_dagster.blog_post import Brief

    return Brief.model_validate(yaml.safe_load(path.read_text("utf-8")))


def _write_post(
    runs: Runner, store: Store, brief: Brief, common: Common
) -> tuple[dict[str, Any], bool]:
    from promptchain_dagster.cli.post import GATE_WITH_RETRY, result_of, run_post
    from promptchain_dagster.cli.progress import StepProgress
    from promptchain_dagster.cli.show_post import show_ending

    note(f"job gate_with_retry\nbrief: {brief.brief.strip()}")
    with only_results_on_stdout(), StepProgress() as progress:
        stages = _Stages(store)

        def on_event(event: DagsterEvent, run_id: str) -> None:
            progress.on_event(event, run_id)
            stages.on_event(event, run_id)

        ended = run_post(runs, GATE_WITH_RETRY, brief, None, on_event)
        result = result_of(ended, store)
    if result["post"] is not None and not common.as_json:
        note("post:")
        say(result["post"] + "\n")
    show_ending(result, ended, store)
    return result, ended.interrupted


class _Stages:
    """Shows the outline's attempts, each with its verdict, and the draft, as soon as they are."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def on_event(self, event: DagsterEvent, run_id: str) -> None:
        if event.event_type_value not in ("STEP_OUTPUT", "STEP_FAILURE"):
            return
        from promptchain_dagster.chain.trace import read_trace

        for attempt in read_trace(self._store, run_id):
            if attempt["step"] == event.step_key and attempt["step"] != "polish":
                _show_attempt(attempt)


def _show_attempt(attempt: Mapping[str, Any]) -> None:
    note(f"\n{attempt['step']}, attempt {attempt['attempt']} ({attempt['seconds']:.0f} s):")
    output = attempt["output"]
    if isinstance(output, dict):
        for number, section in enumerate(output.get("sections", ()), 1):
            note(f"  {number}. {section.get('heading')}: {section.get('point')}")
    else:
        note(f"  {str(output)[:400]}")
    for check in attempt["checks"]:
        for message in check["messages"]:
            note(f"  gate, {check['check']}: {message}")
    note("  accepted" if attempt["accepted"] else "  rejected")


def _summarize(runs: Runner, path: str) -> Summaries:
    from promptchain_dagster.cli.progress import FoldProgress
    from promptchain_dagster.cli.summaries import Summaries
    from promptchain_dagster.pipelines.resources import with_resources
    from promptchain_dagster.pipelines.summaries import incremental_refine
    from promptchain_dagster.refine.documents import document_key
    from promptchain_dagster.refine.outcome import Unreadable

    note(f"\njob incremental_refine: {DOCUMENT}")
    config = {**SETTINGS, "path": path}
    with only_results_on_stdout(), FoldProgress({document_key(path): 0}) as progress:
        ops = {"document": {"config": config}}
        ended = runs.run(with_resources(incremental_refine), ops, progress.on_event)
    if ended.result is not None:
        return Summaries.of([ended.result], ended)
    why = "interrupted" if ended.interrupted else ended.error or "the run broke off"
    return Summaries.of([_entry(Unreadable(error=why), path, ended.run_id)], ended)


def _not_started(path: str) -> Summaries:
    from promptchain_dagster.cli.summaries import Summaries
    from promptchain_dagster.refine.outcome import NotStarted

    entry = _entry(NotStarted(reason="interrupted"), path, None)
    return Summaries.of([entry], interrupted=True)


def _entry(outcome: Unreadable | NotStarted, path: str, run_id: str | None) -> dict[str, Any]:
    from promptchain_dagster.refine.documents import document_key
    from promptchain_dagster.refine.result import document_result

    return document_result(outcome, path=path, document_key=document_key(path), run_id=run_id)
