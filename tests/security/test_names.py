"""A document whose name is odd stops nothing but, at worst, itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from promptchain_dagster.pipelines.metadata import PREVIEW, preview
from tests.support.chat_server import ChatServer

ROOT = Path(__file__).parents[2]
NAMES = [b"caf\xe9.txt", b"line\nend.txt", b"\x1b[31mred.txt", "\u202etxt.md".encode(), b"-h.txt"]


def test_documents_with_odd_names_are_summarized_beside_the_others(tmp_path: Path) -> None:
    """Undecodable bytes, line ends, commands to a terminal, and what looks like an option."""
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in (*NAMES, b"plain.txt"):
        Path(os.fsdecode(os.fsencode(docs) + b"/" + name)).write_text(f"Three words {name!r}")
    env = {
        **os.environ,
        "DAGSTER_HOME": str(tmp_path / "dagster"),
        "PROMPTCHAIN_HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(ROOT),
    }
    with ChatServer(lambda request: "Anna went.") as server:
        command = [sys.executable, "-m", "promptchain_dagster.cli", "summarize", "docs", "--json"]
        done = subprocess.run(
            [*command, "--base-url", server.url],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            timeout=200,
            check=False,
        )
    assert done.returncode == 0, done.stderr.decode()
    documents = json.loads(done.stdout)["documents"]
    found = {os.fsencode(one["path"]).removeprefix(b"docs/"): one for one in documents}
    assert found.keys() == {*NAMES, b"plain.txt"}
    for one in documents:
        assert (one["status"], one["summary"]) == ("completed", "Anna went.")
        assert (tmp_path / "home" / "summaries" / f"{one['document_key']}.md").is_file()
    assert len({one["document_key"] for one in documents}) == len(documents)


def test_a_preview_can_be_sent_to_a_browser() -> None:
    """Half a character is escaped, and the bound holds."""
    assert preview("caf\udce9") == "caf\\udce9"
    assert len(preview("\udce9" * PREVIEW)) == PREVIEW
