"""`promptchain prune`: old traces and checkpoints, removed by age."""

from __future__ import annotations

import dataclasses
import re
import sys
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from promptchain_dagster.cli.bad_input import BadInput
from promptchain_dagster.cli.options import Common, common_options

if TYPE_CHECKING:
    from promptchain_dagster.library.prune import Pruned

UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@click.command()
@click.option("--older-than", required=True, metavar="AGE", help="An age such as 30d, 12h or 2w.")
@click.option("--dry-run", is_flag=True, help="List what would go; remove nothing.")
@click.option("--yes", "-y", is_flag=True, help="Remove it without asking, as in a script.")
@common_options
def prune(common: Common, older_than: str, dry_run: bool, yes: bool) -> None:
    """Remove the traces and checkpoints that nobody has written to for so long.

    Shows how much that is and asks, but for --yes. AGE should be longer than a run takes.

    Summaries, posts and results stay, and of each document that is done the last two checkpoints:
    unchanged, it costs nothing again, and grown at its end what is new. One that is not done, or
    that is edited further up, is paid for from its first chunk on.
    """
    from promptchain_dagster.cli.streams import note, only_results_on_stdout, print_json, say
    from promptchain_dagster.library.prune import prune
    from promptchain_dagster.store import open_store

    age = age_of(older_than)
    if not (dry_run or yes or _can_ask()):
        raise BadInput(
            "standard input is no terminal, so nobody can be asked: give --yes to remove,"
            " or --dry-run to see what would go"
        )
    with only_results_on_stdout():
        store = open_store(common.home, read_only=True)
        pruned = prune(store, age, dry_run=True)
    if not dry_run and any(dataclasses.astuple(pruned)):
        if not yes:
            note(f"{_told(pruned)} would be removed from {common.home}")
            dry_run = not click.confirm("Remove them?", err=True)
        if not dry_run:
            with only_results_on_stdout():
                pruned = prune(open_store(common.home), age)
    folders = [*pruned.traces, *pruned.checkpoints]
    if common.as_json:
        counts = {
            "traces": len(pruned.traces),
            "checkpoints": len(pruned.checkpoints),
            "leftovers": pruned.leftovers,
        }
        print_json({"removed": not dry_run, **counts, "folders": folders})
        return
    if dry_run:
        for folder in folders:
            say(folder)
    say(f"{'nothing removed; it would be' if dry_run else 'removed'} {_told(pruned)}")


def _can_ask() -> bool:
    # A process may have been started without any.
    return bool(sys.stdin) and sys.stdin.isatty()  # pyright: ignore[reportUnnecessaryComparison]


def _told(pruned: Pruned) -> str:
    counts = (
        (len(pruned.traces), "the traces of {} run{}"),
        (len(pruned.checkpoints), "checkpoints in {} folder{}"),
        (pruned.leftovers, "{} unfinished file{}"),
    )
    traces, checkpoints, leftovers = (
        text.format(f"{count:,}", "" if count == 1 else "s") for count, text in counts
    )
    return f"{traces}, {checkpoints} and {leftovers}"


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
