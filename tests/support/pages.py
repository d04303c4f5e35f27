"""Pages of `docs/` that are done to the letter: their files written, their commands run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

_FILE = re.compile(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", re.DOTALL)
_COMMANDS = re.compile(r"```console\n(.*?)```", re.DOTALL)


def do_page(name: str, folder: Path, base_url: str) -> list[str]:
    """Write the page's files into `folder` and run its commands there, in order; their outputs.

    A line that begins with `!` is an error that the command before it must end in.
    """
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    for file, text in _FILE.findall(page):
        (folder / file).write_text(text, encoding="utf-8")
    (folder / "dagster").mkdir()
    env = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}",
        "OPENAI_BASE_URL": base_url,
        "DAGSTER_HOME": str(folder / "dagster"),
        "DAGSTER_DISABLE_TELEMETRY": "1",
    }
    env.pop("PROMPTCHAIN_HOME", None)
    printed: list[str] = []
    for block in _COMMANDS.findall(page):
        lines = block.splitlines()
        wanted = [line[2:] for line in lines if line.startswith("! ")]
        for line in (line[2:] for line in lines if line.startswith("$ ")):
            done = subprocess.run(
                line, shell=True, cwd=folder, env=env, capture_output=True, text=True
            )
            assert bool(done.returncode) == bool(wanted), done.stdout + done.stderr
            assert all(error in done.stderr for error in wanted), done.stderr
            printed.append(done.stdout)
    return printed
