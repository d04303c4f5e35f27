"""`docs/own-refine.md`, done to the letter: its files written, its commands run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.chat_server import Answer, ChatServer, Request, reply
from tests.support.pages import ROOT, do_page

STATE = re.compile(r"<open_items>(.*)</open_items>", re.DOTALL)
PART = re.compile(r'<part number="(\d)" of="3">(.*)</part>', re.DOTALL)
OPENED = {
    "1": {"what": "order twelve chairs", "who": "Ana"},
    "2": {"what": "have the cellar key copied", "who": "Kim"},
    "3": {"what": "paint the hall before Easter", "who": "Bo"},
}


def answer(request: Request) -> Answer:
    """What a model makes of the minutes: each part opens one item, the last closes the chairs."""
    state, part = STATE.search(request.prompt), PART.search(request.prompt)
    assert state and part, request.prompt
    assert "minutes of a committee" in request.prompt
    kept = [one for one in json.loads(state[1])["open"] if part[1] != "3" or one["who"] != "Ana"]
    return reply(json.dumps({"open": [*kept, OPENED[part[1]]]}))


def promptchain(folder: Path, url: str, *args: str) -> subprocess.CompletedProcess[str]:
    """The command, in the folder, as a user has it: its modules are found there."""
    env = {**os.environ, "OPENAI_BASE_URL": url, "DAGSTER_HOME": str(folder / "dagster")}
    return subprocess.run(
        [sys.executable, "-m", "promptchain_dagster.cli", *args],
        cwd=folder,
        env={**env, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )


def test_every_file_and_command_of_the_page_does_what_it_says(tmp_path: Path) -> None:
    """The state is in both files; then again, a replay, and the second prompt."""
    with ChatServer(answer) as server:
        planned, printed, *_ = do_page("own-refine.md", tmp_path, server.url)
        assert "3 of 3 chunks to do, 3 to 18 calls" in planned
        assert json.loads(printed) == {"open": [OPENED["2"], OPENED["3"]]}
        assert len(server.requests) == 3

        shape = ["--refine", "actions.refine", "--chunk-tokens", "30"]
        shape += ["--document-type", "committee"]
        again = promptchain(tmp_path, server.url, "summarize", "minutes.txt", *shape, "--json")
        assert json.loads(again.stdout)["model_calls"] == 0, again.stderr
        first = min((tmp_path / ".promptchain" / "traces").iterdir()).name
        replays = [
            promptchain(tmp_path, server.url, "replay", first, *which).returncode
            for which in (shape[:2], [], ["--refine", "shorter.shorter"])
        ]
        assert len(server.requests) == 3
    assert replays == [0, 2, 0]
    summaries = tmp_path / ".promptchain" / "summaries"
    (state,) = summaries.glob("minutes*.json")
    assert json.loads(state.read_text()) == json.loads(printed)
    assert state.with_suffix(".md").read_text() == (
        "- **open:**\n"
        "  - **what:** have the cellar key copied; **who:** Kim\n"
        "  - **what:** paint the hall before Easter; **who:** Bo\n"
    )
