"""`promptchain prune`: old traces and checkpoints, removed by age."""

from __future__ import annotations

import dataclasses
import re
from datetime import timedelta

import click

from promptchain_dagster.cli.bad_input import BadInput
from promptchain_dagster.cli.options import Common, common_options

UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@click.command()
@click.option("--older-than", required=True, metavar="AGE", help="An age such as 30d, 12h or 2w.")
@common_options
def prune(common: Common, older_than: str) -> None:
    """Remove the traces and checkpoints that nobody has written to for so long.

    Summaries, posts and results stay. What has lost its checkpoints is paid for again when it is
    summarized again.
    """
    from promptchain_dagster.cli.streams import only_results_on_stdout, print_json, say
    from promptchain_dagster.library.prune import prune
    from promptchain_dagster.store import open_store

    age = age_of(older_than)
    with only_results_on_stdout():
        pruned = prune(open_store(common.home), age)
    if common.as_json:
        print_json(dataclasses.asdict(pruned))
        return
    say(
        f"removed the traces of {pruned.traces:,} runs, the checkpoints of {pruned.checkpoints:,}"
        f" documents and {pruned.leftovers:,} unfinished files"
    )


def age_of(text: str) -> timedelta:
    """The age that "30d" stands for: minutes (m), hours, days or weeks; raises `BadInput`."""
    found = re.fullmatch(r"([0-9]{1,9})([mhdw])", text.strip(), re.ASCII)
    try:
        age = timedelta(**{UNITS[found[2]]: int(found[1])}) if found else timedelta(0)
    except OverflowError:
        age = timedelta.max
    if age <= timedelta(0) or age > timedelta(days=36_500):
        raise BadInput(
            f"--older-than is {text!r}, must be a number from 1 with m, h, d or w for minutes,"
            " hours, days or weeks, such as 30d, and at most 100 years"
        )
    return age
