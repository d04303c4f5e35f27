"""`promptchain report`: one HTML page of a run, or of all runs under the home."""

from __future__ import annotations

from pathlib import Path

import click

from promptchain_dagster.cli.bad_input import BadInput
from promptchain_dagster.cli.options import Common, common_options


@click.command()
@click.argument("run_id", required=False)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("report.html"),
    show_default=True,
    help="The file to write; one that is there is replaced.",
)
@common_options
def report(common: Common, run_id: str | None, output: Path) -> None:
    """Write a page on a run, or on all: which documents failed and why, what the gates turned away,
    where tokens and money went.

    The page needs nothing beside it. It holds summaries and replies: mind to whom it is given. The
    beginning of a run's id is enough where no other run begins so.
    """
    from promptchain_dagster.cli.streams import only_results_on_stdout, print_json, say
    from promptchain_dagster.cli.trace import find_run
    from promptchain_dagster.report import page, report_of_home, report_of_run
    from promptchain_dagster.store import open_store

    with only_results_on_stdout():
        store = open_store(common.home, read_only=True)
        found = report_of_run(store, find_run(store, run_id)) if run_id else report_of_home(store)
        try:
            output.write_text(page(found), encoding="utf-8")
        except OSError as error:
            raise BadInput(f"--output {str(output)!r} can't be written: {error.strerror}") from None
    path = str(output.resolve())
    if common.as_json:
        told = {"path": path, "run_id": found.run_id, "runs": len(found.runs)}
        print_json({**told, "documents": len(found.documents), "chains": len(found.chains)})
    else:
        say(path)
