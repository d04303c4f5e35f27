"""A folder of every kind of file, summarized from the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.chat_server import ChatServer, Request
from tests.support.made_files import WHOLE

ROOT = Path(__file__).parents[2]


def tale(request: Request) -> str:
    """A summary, where the sentence has come through."""
    assert "The keeper lit the lamp at dusk." in request.prompt
    return "The keeper lit the lamp as soon as it was dusk."


def test_g9_a_folder_of_all_formats_is_summarized_and_what_is_damaged_fails_alone(
    tmp_path: Path,
) -> None:
    """Each file is a document; one that is no document of its kind is told of by name."""
    folder = tmp_path / "docs"
    folder.mkdir()
    for ending, data in WHOLE.items():
        (folder / f"a-{ending[1:]}{ending}").write_bytes(data)
    (folder / "damaged.docx").write_bytes(WHOLE[".docx"][:200])
    (folder / "photo.jpg").write_bytes(b"\xff\xd8\xff")
    env = {
        **os.environ,
        "OPENAI_API_KEY": "sk-planted-0123456789",
        "DAGSTER_HOME": str(tmp_path / "dagster"),
        "PROMPTCHAIN_HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(ROOT),
    }
    with ChatServer(tale) as server:
        command = [sys.executable, "-m", "promptchain_dagster.cli", "summarize", "docs", "--json"]
        done = subprocess.run(
            [*command, "--base-url", server.url],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 1, done.stderr
    documents = {Path(one["path"]).name: one for one in json.loads(done.stdout)["documents"]}
    damaged = documents.pop("damaged.docx")
    assert damaged["status"] == "failed"
    assert "damaged.docx' is a damaged zip archive" in damaged["error"]
    assert set(documents) == {f"a-{ending[1:]}{ending}" for ending in WHOLE}
    assert {one["status"] for one in documents.values()} == {"completed"}
