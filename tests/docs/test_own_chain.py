"""`docs/own-chain.md`, done to the letter: its files written, its commands run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.chat_server import Answer, ChatServer, Request, reply

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "own-chain.md").read_text(encoding="utf-8")

_FILE = re.compile(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", re.DOTALL)
_COMMANDS = re.compile(r"```console\n(.*?)```", re.DOTALL)


def answer(request: Request) -> Answer:
    if "in one word" in request.prompt:
        return reply(json.dumps({"product": "kettle", "problem": "it leaks"}))
    assert "warranty is 2 years" in request.prompt
    return reply("We are sorry that it leaks, and will send you another kettle.")


def test_every_file_and_command_of_the_tutorial_does_what_it_says(tmp_path):
    """A line that begins with `!` is an error that the command must end in."""
    for name, text in _FILE.findall(PAGE):
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "dagster").mkdir()
    with ChatServer(answer) as server:
        env = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}",
            "OPENAI_BASE_URL": server.url,
            "DAGSTER_HOME": str(tmp_path / "dagster"),
            "DAGSTER_DISABLE_TELEMETRY": "1",
        }
        env.pop("PROMPTCHAIN_HOME", None)
        for block in _COMMANDS.findall(PAGE):
            lines = block.splitlines()
            wanted = [line[2:] for line in lines if line.startswith("! ")]
            for line in (line[2:] for line in lines if line.startswith("$ ")):
                done = subprocess.run(
                    line, shell=True, cwd=tmp_path, env=env, capture_output=True, text=True
                )
                assert bool(done.returncode) == bool(wanted), done.stdout + done.stderr
                assert all(error in done.stderr for error in wanted), done.stderr
    (result,) = (tmp_path / ".promptchain" / "results").glob("*.json")
    assert "another kettle" in result.read_text()
    made = tmp_path / ".promptchain" / "answer_review" / "r1"
    names = {one.name for one in made.iterdir()}
    assert {"answer.md", "complaint.json", "warranty.json"} <= names
    assert len(server.requests) == 4
