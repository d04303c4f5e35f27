"""`promptchain usage`: calls, tokens and dollars of a period, by day and by run."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import click

from promptchain_dagster.cli.bad_input import BadInput
from promptchain_dagster.cli.options import Common, common_options

if TYPE_CHECKING:
    from promptchain_dagster.library.usage import DayUsage, RunUsage

DAYS = 7


@click.command()
@click.option(
    "--since", metavar="DATE", help=f"The first day, UTC.  [default: the last {DAYS} days]"
)
@click.option("--until", metavar="DATE", help="The last day, UTC.  [default: today]")
@common_options
def usage(common: Common, since: str | None, until: str | None) -> None:
    """Show what was spent, by day and by run: every request, failed ones too.

    DATE is a day such as 2026-11-30. What a reply did not tell is unknown, not 0.
    """
    from promptchain_dagster.cli.streams import only_results_on_stdout, print_json
    from promptchain_dagster.library.usage import usage_between
    from promptchain_dagster.store import open_store

    last = _date("--until", until) if until is not None else datetime.now(timezone.utc).date()
    first = _date("--since", since) if since is not None else last - timedelta(days=DAYS - 1)
    if first > last:
        raise BadInput(f"--since is {first}, must not be after --until, {last}")
    with only_results_on_stdout():
        days = usage_between(open_store(common.home, read_only=True), first, last)
    if common.as_json:
        print_json({"since": str(first), "until": str(last), **_sum_of(days), "days": _days(days)})
    else:
        _show(days, first, last)


def _date(option: str, given: str) -> date:
    try:
        day = date.fromisoformat(given.strip())
    except ValueError:
        day = None
    # Python 3.11 reads more forms than 3.10 does.
    if day is None or day.isoformat() != given.strip() or day == date.min:
        raise BadInput(f"{option} is {given!r}, must be a date such as 2026-11-30")
    return day


def _sum_of(days: Sequence[DayUsage]) -> dict[str, Any]:
    from promptchain_dagster.models.base import NO_USAGE

    total = sum((day.usage for day in days), NO_USAGE)
    calls = sum(day.model_calls for day in days)
    return {"model_calls": calls, "usage": dataclasses.asdict(total)}


def _days(days: Sequence[DayUsage]) -> list[dict[str, Any]]:
    return [
        {
            "date": day.date,
            "model_calls": day.model_calls,
            "usage": dataclasses.asdict(day.usage),
            "runs": [dataclasses.asdict(run) for run in day.runs],
        }
        for day in days
    ]


def _show(days: Sequence[DayUsage], first: date, last: date) -> None:
    from rich.console import Console
    from rich.table import Table

    from promptchain_dagster.cli.streams import note, say

    period = f"{first} to {last}" if first != last else str(first)
    if not days:
        say(f"{period}: nothing was spent")
        return
    table = Table(box=None, pad_edge=False)
    for name in ("day (UTC)", "run"):
        table.add_column(name, no_wrap=True)
    for name in ("calls", "tokens in", "tokens out", "cost", "without usage"):
        table.add_column(name, justify="right", no_wrap=True)
    for day in days:
        table.add_row(day.date, f"{len(day.runs)} runs", *_cells(day), style="bold")
        for run in day.runs:
            table.add_row("", run.run_id + ("" if run.ended else " *"), *_cells(run))
    total = _sum_of(days)
    table.add_row("total", period, *_cells_of(total["model_calls"], total["usage"]), style="bold")
    console = Console()
    # What is read by a program, or kept, is not cut to a width.
    (console if console.is_terminal else Console(width=200)).print(table)
    unpriced = sum(run.usage.cost_usd is None for day in days for run in day.runs)
    if unpriced:
        note(f"the cost of {unpriced} of these runs is unknown, and not in the total")
    if any(not run.ended for day in days for run in day.runs):
        note("* under way, or killed: a request that was in flight then is not counted")


def _cells(spent: DayUsage | RunUsage) -> list[str]:
    return _cells_of(spent.model_calls, dataclasses.asdict(spent.usage))


def _cells_of(calls: int, usage: dict[str, Any]) -> list[str]:
    from promptchain_dagster.cli.show_post import dollars

    tokens = (usage["input_tokens"], usage["output_tokens"])
    return [
        f"{calls:,}",
        *("unknown" if count is None else f"{count:,}" for count in tokens),
        dollars(usage["cost_usd"]),
        f"{usage['calls_without_usage']:,}",
    ]
