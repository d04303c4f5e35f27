"""`docs/own-chain.md`, done to the letter: its files written, its commands run."""

from __future__ import annotations

import json

from tests.support.chat_server import Answer, ChatServer, Request, reply
from tests.support.pages import do_page


def answer(request: Request) -> Answer:
    if "in one word" in request.prompt:
        return reply(json.dumps({"product": "kettle", "problem": "it leaks"}))
    assert "warranty is 2 years" in request.prompt
    return reply("We are sorry that it leaks, and will send you another kettle.")


def test_every_file_and_command_of_the_tutorial_does_what_it_says(tmp_path):
    """A line that begins with `!` is an error that the command must end in."""
    with ChatServer(answer) as server:
        do_page("own-chain.md", tmp_path, server.url)
    (result,) = (tmp_path / ".promptchain" / "results").glob("*.json")
    assert "another kettle" in result.read_text()
    made = tmp_path / ".promptchain" / "answer_review" / "r1"
    names = {one.name for one in made.iterdir()}
    assert {"answer.md", "complaint.json", "warranty.json"} <= names
    assert len(server.requests) == 4
