"""`promptchain usage`, end to end."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pytest
from click.testing import CliRunner

from promptchain_dagster.cli import commands
from promptchain_dagster.models.ledger import read_day
from promptchain_dagster.store import open_store
from tests.cli.conftest import Command, outline
from tests.cli.test_post import BRIEF
from tests.cli.test_summarize import SHAPE, tale, write_story
from tests.support.chat_server import ChatServer, error, reply

USAGE = {"input_tokens", "output_tokens", "cost_usd", "calls_without_usage"}


def today() -> date:
    return datetime.now(timezone.utc).date()


def files(home: Path) -> dict[str, tuple[int, bytes]]:
    """Everything under the home, with the time of its last write."""
    return {
        str(file): (file.stat().st_mtime_ns, file.read_bytes())
        for file in home.rglob("*")
        if file.is_file()
    }


def test_posts_and_summaries_are_told_by_day_and_run_and_the_parts_add_up(
    command: Command,
) -> None:
    """Failed requests too; each run as its own result has it; nothing is written."""
    story = write_story(command.cwd / "a.md", 10)
    model = ("--model", "gpt-4o-mini")
    answers = [error(500), outline(2), outline(4), reply("The draft."), "The post."]
    with ChatServer(answers) as server:
        post = command.run("post", *BRIEF, "--json", *model, "--base-url", server.url).json
    with ChatServer(tale) as server:
        summary = command.run("summarize", story, *SHAPE, *model, "--base-url", server.url).json
    before = files(command.home)
    done = command.run("usage", "--since", str(today() - timedelta(days=1)), "--json")
    shown = command.run("usage")

    assert done.status == shown.status == 0
    assert files(command.home) == before
    told = done.json
    assert set(told) == {"since", "until", "model_calls", "usage", "days"}
    assert set(told["usage"]) == USAGE
    runs = {run["run_id"]: run for day in told["days"] for run in day["runs"]}
    assert {frozenset(day) for day in told["days"]} == {
        frozenset({"date", "model_calls", "usage", "runs"})
    }
    for result, run_id in (
        (post, post["run_id"]),
        (summary, summary["documents"][0]["run_id"]),
    ):
        expected = {key: result[key] for key in ("model_calls", "usage")}
        assert runs.pop(run_id) == {"run_id": run_id, **expected, "ended": True}
    assert runs == {}
    assert post["usage"]["calls_without_usage"] == 1, "nobody knows what the 500 cost"
    assert told["model_calls"] == post["model_calls"] + summary["model_calls"]
    for name in USAGE:
        total = post["usage"][name] + summary["usage"][name]
        assert told["usage"][name] == pytest.approx(total)
    assert post["run_id"] in shown.out
    assert "2 runs" in shown.out
    assert "total" in shown.out


def test_a_period_without_any_run_says_so_and_a_home_that_is_not_there_is_not_made(
    tmp_path: Path,
) -> None:
    """Status 0: nothing spent is an answer."""
    home = tmp_path / "home"
    args = ["usage", "--home", str(home), "--since", "2026-01-01", "--until", "2026-01-31"]
    shown = CliRunner().invoke(commands, args)
    assert (shown.exit_code, shown.stdout) == (0, "2026-01-01 to 2026-01-31: nothing was spent\n")
    assert not home.exists()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--since", "yesterday"], "--since is 'yesterday', must be a date such as 2026-11-30"),
        (["--until", "20261130"], "--until is '20261130', must be a date such as 2026-11-30"),
        (["--until", "2026-02-30"], "--until is '2026-02-30', must be a date"),
        (["--since", "0001-01-01"], "--since is '0001-01-01', must be a date"),
        (
            ["--since", "2026-02-01", "--until", "2026-01-01"],
            "--since is 2026-02-01, must not be after --until, 2026-01-01",
        ),
    ],
)
def test_a_date_that_is_none_is_bad_usage(args: list[str], said: str) -> None:
    """Status 2, one line, the option and its value in it."""
    done = CliRunner().invoke(commands, ["usage", *args], standalone_mode=False)
    assert said in str(done.exception)
    assert getattr(done.exception, "exit_code", None) == 2


def test_the_usage_of_a_day_is_what_the_ledger_has(command: Command) -> None:
    """A post's three steps are three processes' pages at most, and one run."""
    with ChatServer([outline(4), "The draft.", "The post."]) as server:
        post = command.run("post", *BRIEF, "--json", "--base-url", server.url).json
    day = read_day(open_store(str(command.home)), str(today()))
    assert day.runs[post["run_id"]].requests == post["model_calls"] == 3
    assert day.runs[post["run_id"]].usage.input_tokens == post["usage"]["input_tokens"] == 30
