"""Signals that end the command as a person, a service manager or a container does.

SIGINT once: `tests/cli/test_summarize.py`. SIGTERM to a run that Dagster launched, as its
"terminate" sends it: `tests/pipelines/test_summary_processes.py`. A signal inside a coroutine:
`tests/pipelines/test_chain_job.py`.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from promptchain_dagster.store import open_store
from tests.faults.documents import answer, summary_of, text_of
from tests.faults.test_at_once import environment
from tests.support.chat_server import HANG, Answer, ChatServer, Request
from tests.support.folding import index_sent

SCRIPT = "from promptchain_dagster.cli import main; main()"


@pytest.mark.parametrize("signals", [[signal.SIGTERM], [signal.SIGINT, signal.SIGINT]], ids=str)
def test_a_signal_ends_the_command_and_the_same_command_pays_for_the_rest_alone(
    signals: list[signal.Signals], tmp_path: Path
) -> None:
    """SIGTERM as SIGINT, and an impatient second one: what is kept stays whole, the call that was
    under way is paid again, and nothing else is."""
    (tmp_path / "d.txt").write_text(text_of("d", 6), "utf-8")
    fourth = threading.Event()

    def hang_at_fourth(request: Request) -> Answer | str:
        if index_sent(request.prompt) == 4 and not fourth.is_set():
            fourth.set()
            return HANG
        return answer(request.prompt)

    command = [sys.executable, "-c", SCRIPT, "summarize", "d.txt", "--json", "--model", "stub"]
    command += ["--chunk-tokens", "30", "--max-words", "9", "--home", "home"]
    with ChatServer(hang_at_fourth) as server:
        command += ["--base-url", server.url]
        process = start(command, tmp_path)
        assert fourth.wait(120), process.communicate(timeout=10)
        for number in signals:
            process.send_signal(number)
        _, err = process.communicate(timeout=60)
        kept = len(open_store(str(tmp_path / "home")).list("checkpoints/"))
        sent = len(server.requests)
        again = start(command, tmp_path)
        out, said = again.communicate(timeout=120)
        paid_again = len(server.requests) - sent
    assert process.returncode != 0
    assert "Traceback" not in err
    assert again.returncode == 0, said
    (document,) = json.loads(out)["documents"]
    assert (document["summary"], document["resumed_from"]) == (summary_of("d", 6), 3)
    assert (kept, sent, paid_again) == (4, 5, 8 - 4)


def start(command: list[str], folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment(folder / "dagster"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
