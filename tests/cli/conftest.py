"""The command in a process of its own, against a model on 127.0.0.1."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.forks import Forked, ForkServer

ROOT = Path(__file__).parents[2]
KEY = "sk-planted-0123456789abcdef"


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output, which must be one JSON object and nothing else."""
        return json.loads(self.out)


class Command:
    """`promptchain` in the working folder `cwd`, with a key of its own in the environment."""

    def __init__(self, cwd: Path, dagster_home: Path, forks: ForkServer) -> None:
        self.cwd, self._forks = cwd, forks
        self.home = cwd / "home"
        self.env = {
            **os.environ,
            "OPENAI_API_KEY": KEY,
            "DAGSTER_HOME": str(dagster_home),
            "PROMPTCHAIN_HOME": str(self.home),
            "PYTHONPATH": str(ROOT),
        }

    def start(self, *args: str) -> Forked:
        return self._forks.start(*args, cwd=self.cwd, env=self.env)

    def finish(self, process: Forked | subprocess.Popen[str]) -> Done:
        out, err = process.communicate(timeout=200)
        assert process.returncode is not None
        done = Done(process.returncode, out, err)
        assert KEY not in done.out + done.err
        assert "Traceback" not in done.err
        return done

    def run(self, *args: str) -> Done:
        return self.finish(self.start(*args))


@pytest.fixture(scope="session")
def dagster_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One instance for all tests of a process: making one takes seconds."""
    return tmp_path_factory.mktemp("cli") / "dagster"


@pytest.fixture(scope="session")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    with ForkServer(tmp_path_factory.mktemp("forks")) as forks:
        yield forks


@pytest.fixture
def command(tmp_path: Path, dagster_home: Path, forks: ForkServer) -> Iterator[Command]:
    command = Command(tmp_path, dagster_home, forks)
    yield command
    for file in command.home.rglob("*"):
        assert not file.is_file() or KEY.encode() not in file.read_bytes(), file


def outline(sections: int) -> str:
    """An outline that passes the gate where the number of its sections does."""
    return json.dumps(
        {
            "sections": [
                {"heading": f"Part {n} of the story", "point": f"It proves thing {n}."}
                for n in range(1, sections + 1)
            ]
        }
    )
