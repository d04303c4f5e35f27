"""The `promptchain` command. Each command's work is imported when it runs, so that help is quick.

Exit status: 0 completed; 1 ended in an error result; 2 bad usage or bad input, before any model
call; 130 interrupted.
"""

from __future__ import annotations

import sys

import click

from promptchain_dagster.cli.demo import demo
from promptchain_dagster.cli.plan import plan
from promptchain_dagster.cli.post import post
from promptchain_dagster.cli.prune import prune
from promptchain_dagster.cli.quarantine import quarantine
from promptchain_dagster.cli.replay import replay
from promptchain_dagster.cli.report import report
from promptchain_dagster.cli.runs import INTERRUPTED
from promptchain_dagster.cli.summarize import summarize
from promptchain_dagster.cli.trace import trace
from promptchain_dagster.cli.usage import usage

__all__ = ["commands", "main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def commands() -> None:
    """Fixed chains of model calls with a gate after every step, run by Dagster.

    With neither OPENAI_API_KEY nor a base URL, a small embedded model answers.
    """


for command in (demo, post, summarize, plan, trace, report, replay, usage, quarantine, prune):
    commands.add_command(command)


def main() -> None:
    """Run the command line and exit with its status."""
    try:
        status = commands.main(prog_name="promptchain", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        status = error.exit_code
    except click.Abort:
        click.echo("interrupted", err=True)
        status = INTERRUPTED
    sys.exit(status)
