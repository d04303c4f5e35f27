"""Starting up: what help costs, and where Dagster's own files go."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from promptchain_dagster.blog_post import Variant
from promptchain_dagster.cli import commands
from promptchain_dagster.cli.bad_input import BadInput
from promptchain_dagster.cli.post import GATE_WITH_RETRY, GATED_EXIT
from promptchain_dagster.cli.runs import set_dagster_home
from tests.cli.conftest import ROOT
from tests.support.dagster_home import instance_at


def test_help_loads_neither_dagster_nor_openai_nor_a_tokenizer() -> None:
    """So that it comes at once."""
    code = (
        "import sys, promptchain_dagster.cli;"
        "print(*{'dagster', 'openai', 'tiktoken', 'rich', 'xllamacpp'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


@pytest.mark.parametrize(
    "name", ["demo", "post", "summarize", "plan", "trace", "quarantine", "prune"]
)
def test_the_options_of_every_command_go_with_each(name: str) -> None:
    """`--model`, `--base-url`, `--home` and `--json`."""
    told = CliRunner().invoke(commands, [name, "--help"]).stdout
    for option in ("--model", "--base-url", "--home", "--json"):
        assert option in told


def test_the_variants_offered_are_those_there_are() -> None:
    """The command names them itself, so as not to load them for help."""
    assert {GATE_WITH_RETRY, GATED_EXIT} == {variant.value for variant in Variant}


def test_without_dagster_home_dagsters_files_go_beside_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`.promptchain/dagster` is made, absolute, with telemetry off; a file there is kept."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DAGSTER_HOME", "")
    folder = set_dagster_home()
    assert folder == tmp_path / ".promptchain" / "dagster"
    file = folder / "dagster.yaml"
    assert "telemetry:\n  enabled: false" in file.read_text()
    file.write_text("# mine")
    monkeypatch.setenv("DAGSTER_HOME", "")
    set_dagster_home()
    assert file.read_text() == "# mine"


def test_the_instance_file_is_one_that_dagster_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An instance opens on it, with telemetry off."""

    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "made"))
    folder = set_dagster_home()
    with instance_at(folder) as instance:
        assert not instance.telemetry_enabled


def test_a_dagster_home_of_ones_own_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is put into a folder that was there."""
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    assert set_dagster_home() == tmp_path
    assert list(tmp_path.iterdir()) == []


def test_a_dagster_home_that_cannot_be_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its place is told."""
    monkeypatch.setenv("DAGSTER_HOME", "/dev/null/dagster")
    with pytest.raises(BadInput, match="DAGSTER_HOME '/dev/null/dagster'"):
        set_dagster_home()
