"""`promptchain summarize`: each document folded chunk by chunk into a summary."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from promptchain_dagster.cli.bad_input import BadInput
from promptchain_dagster.cli.options import Common, common_options

if TYPE_CHECKING:
    from promptchain_dagster.refine.definition import Refine
    from promptchain_dagster.refine.settings import RefineSettings

F = TypeVar("F", bound=Callable[..., Any])


def refine_options(command: F) -> F:
    """The paths, and what shapes a summary."""
    for option in (
        refine_option,
        click.option("--max-words", type=int, help="Length cap of a summary.  [default: 500]"),
        click.option("--chunk-tokens", type=int, help="Tokens in a chunk.  [default: 2000]"),
        click.option(
            "--document-type",
            metavar="TEXT",
            help="What the prompt calls a document, one line.  [default: document]",
        ),
        click.argument("paths", nargs=-1, required=True, metavar="PATH..."),
    ):
        command = option(command)
    return command


def refine_option(command: F) -> F:
    """`--refine`, by the import path of a `Refine`; modules in the working folder are found."""

    def found(context: click.Context, option: click.Parameter, value: str | None) -> Refine | None:
        if value is None:
            return None
        from promptchain_dagster.errors import ChainDefinitionError
        from promptchain_dagster.refine.definition import Refine

        if (here := os.getcwd()) not in sys.path:
            sys.path.insert(0, here)
        try:
            return Refine.named(value)
        except ChainDefinitionError as error:
            raise BadInput(f"--refine: {str(error).removeprefix('refine: ')}") from None

    return click.option(
        "--refine",
        metavar="MODULE.NAME",
        callback=found,
        help="A refine of one's own, by its import path.  [default: a summary]",
    )(command)


def in_flight_option(command: F) -> F:
    """`--max-in-flight`, 1 or more."""

    def checked(context: click.Context, option: click.Parameter, value: int | None) -> int | None:
        if value is not None and value < 1:
            raise BadInput(f"--max-in-flight is {value}, must be 1 or more")
        return value

    return click.option(
        "--max-in-flight",
        type=int,
        callback=checked,
        help="Model calls at once, over all documents.  [default: 32, or what the model serves]",
    )(command)


def refine_settings(**given: Any) -> RefineSettings:
    """The settings, options not given left at their defaults; raises `InvalidInput`."""
    from promptchain_dagster.refine.settings import RefineSettings

    return RefineSettings(**{name: value for name, value in given.items() if value is not None})


@click.command()
@refine_options
@in_flight_option
@click.option("--fresh", is_flag=True, help="Pay again although nothing changed.")
@common_options
def summarize(
    common: Common, paths: tuple[str, ...], max_in_flight: int | None, fresh: bool, **shape: Any
) -> None:
    """Summarize documents of any length, in one run. A PATH is a document, or a folder of them.

    Those set aside because they failed for good are left alone inside a folder, and tried again
    where they are named.
    """
    from promptchain_dagster.cli.paths import find_sources
    from promptchain_dagster.cli.preflight import known_model
    from promptchain_dagster.cli.runs import runner
    from promptchain_dagster.cli.show_summaries import show_documents
    from promptchain_dagster.cli.streams import only_results_on_stdout, print_json
    from promptchain_dagster.cli.summarize_run import SummarizeRun
    from promptchain_dagster.refine.room import require_room
    from promptchain_dagster.store import open_store

    settings = refine_settings(**shape)
    sources = find_sources(paths)
    with only_results_on_stdout():
        store = open_store(common.home)
        model = known_model(common.model_settings())
        require_room(settings, model.context_tokens, model.max_output_tokens)
        with runner(store, common) as runs:
            run = SummarizeRun(runs, settings, common.model_settings())
            summaries = run.summarize(sources, max_in_flight=max_in_flight, fresh=fresh)
    if common.as_json:
        print_json(summaries.result())
    show_documents(summaries, store, as_text=not common.as_json)
    click.get_current_context().exit(summaries.exit_status)
