"""`promptchain plan`: numbers, and no call."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from promptchain_dagster.cli import commands
from tests.support.chat_server import ChatServer


def test_a_plan_counts_chunks_calls_tokens_and_cost_without_a_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Documents without content take nothing; one that can't be read is told and takes nothing."""
    monkeypatch.chdir(tmp_path)
    Path("docs").mkdir()
    Path("docs/a.md").write_text("\n\n".join(f"On day {n} it rained." for n in range(60)))
    Path("docs/b.txt").write_text("2\n")
    Path("docs/c.txt").write_bytes(b"PK\x03\x04" + bytes(99))
    args = ["plan", "docs", "--chunk-tokens", "100", "--model", "gpt-4o-mini"]
    with ChatServer(["never"]) as server:
        told = CliRunner().invoke(commands, [*args, "--json", "--base-url", server.url])
        shown = CliRunner().invoke(commands, [*args, "--base-url", server.url])
        unpriced = CliRunner().invoke(
            commands, [*args[:-1], "in-house", "--json", "--base-url", server.url]
        )
    assert server.requests == []
    assert (told.exit_code, shown.exit_code) == (0, 0)
    plan = json.loads(told.stdout)
    numbers = {
        "chunks",
        "chunks_left",
        "least_calls",
        "most_calls",
        "input_tokens",
        "output_tokens",
        "cost_usd",
    }
    assert set(plan) == {"model", "documents", "seconds", *numbers}
    assert plan["seconds"] is None
    assert {frozenset(one) for one in plan["documents"]} == {
        frozenset({"path", "status", "error", *numbers})
    }
    assert [one["status"] for one in plan["documents"]] == ["planned", "no_content", "failed"]
    assert plan["least_calls"] == plan["chunks"] == plan["documents"][0]["chunks"] > 1
    assert plan["most_calls"] > plan["least_calls"]
    assert plan["cost_usd"] > 0
    assert json.loads(unpriced.stdout)["cost_usd"] is None
    assert "3 documents with gpt-4o-mini" in shown.stdout


def test_a_plan_tells_the_time_at_a_rate_and_counts_equal_documents_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One document's calls come one by one, however many may be in flight."""
    monkeypatch.chdir(tmp_path)
    Path("docs").mkdir()
    text = "\n\n".join(f"On day {n} it rained." for n in range(60))
    for name in ("a", "same", "other"):
        Path(f"docs/{name}.md").write_text(text + name * (name == "other"))
    args = ["plan", "docs", "--chunk-tokens", "100", "--seconds-per-call", "2"]
    with ChatServer(["never"]) as server:
        runs = [
            CliRunner().invoke(commands, [*args, *more, "--base-url", server.url])
            for more in (["--json", "--max-in-flight", "1"], ["--json"], [])
        ]
    assert [one.exit_code for one in runs] == [0, 0, 0]
    slow, fast = (json.loads(one.stdout) for one in runs[:2])
    chunks = [one["chunks"] for one in slow["documents"]]
    assert [one["chunks_left"] for one in slow["documents"]] == [chunks[0], chunks[1], 0]
    assert slow["least_calls"] == chunks[0] + chunks[1]
    assert slow["seconds"] == 2 * slow["least_calls"]
    assert fast["seconds"] == 2 * max(chunks)
    assert f"{fast['seconds']:.0f} s" in runs[2].stdout


@pytest.mark.parametrize("given", ["0", "-1", "nan", "inf"])
def test_a_rate_that_cannot_be_is_refused(given: str) -> None:
    """It is a time."""
    result = CliRunner().invoke(commands, ["plan", "x.md", "--seconds-per-call", given])
    assert result.exit_code == 2
    assert "--seconds-per-call is" in result.stderr
