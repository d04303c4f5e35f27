"""`promptchain demo`, with a model on 127.0.0.1."""

from __future__ import annotations

from tests.cli.conftest import Command, outline
from tests.support.chat_server import ChatServer, Request


def test_the_demo_shows_each_stage_and_makes_a_run_for_each_result(command: Command) -> None:
    """A rejected outline, the next one, the draft; then the post and the summary."""
    outlines = [outline(1), outline(4)]

    def answer(request: Request) -> str:
        if '{"sections"' in request.prompt:
            return outlines.pop(0)
        if "<part" in request.prompt:
            return "The lamp was lit at dusk, and the basin closed."
        return "Sleep well."

    with ChatServer(answer) as server:
        done = command.run("demo", "--base-url", server.url)
    assert done.status == 0
    assert "1 section, need 4 to 6" in done.err
    assert "3. Part 3 of the story" in done.err
    assert "draft, attempt 1" in done.err
    assert "Sleep well." in done.out
    assert done.out.count("The lamp was lit at dusk") == 1
    assert "make ui" in done.err


def test_the_demo_ends_with_status_0_where_the_gate_rejects_every_outline(
    command: Command,
) -> None:
    """A rejection is an honest end of a run."""

    def answer(request: Request) -> str:
        if '{"sections"' in request.prompt:
            return outline(1)
        return "The lamp was lit at dusk, and the basin closed."

    with ChatServer(answer) as server:
        done = command.run("demo", "--json", "--base-url", server.url)
    assert done.status == 0
    assert set(done.json) == {"post", "summaries"}
    assert done.json["post"]["status"] == "rejected"
    assert [one["status"] for one in done.json["summaries"]["documents"]] == ["completed"]
