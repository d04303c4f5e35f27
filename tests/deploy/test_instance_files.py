"""What `deploy/` sets, loaded by Dagster's own classes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml

from promptchain_dagster.pipelines.pool import runs_at_once
from tests.deploy import chart
from tests.deploy.services import need_modules

ROOT = Path(__file__).parents[2]
CELERY = ROOT / "deploy" / "celery"


@contextmanager
def loaded(folder: Path, settings: Mapping[str, Any]) -> Iterator[dg.DagsterInstance]:
    (folder / "dagster.yaml").write_text(yaml.safe_dump(dict(settings)), "utf-8")
    with dg.DagsterInstance.from_config(str(folder)) as instance:
        yield instance


def requires_that_nothing_is_left_running(instance: dg.DagsterInstance) -> None:
    """The settings that are off, or unbounded, unless they are asked for."""
    monitoring = instance.get_settings("run_monitoring")
    assert instance.run_monitoring_enabled
    assert monitoring["free_slots_after_run_end_seconds"] > 0
    assert 0 < instance.run_monitoring_max_runtime_seconds < 24 * 3600
    assert instance.run_monitoring_max_resume_run_attempts == 0
    assert instance.run_retries_enabled
    assert instance.run_retries_max_retries == 3
    assert not instance.run_retries_retry_on_asset_or_op_failure
    queue = instance.get_concurrency_config().run_queue_config
    assert queue is not None
    assert queue.max_concurrent_runs == runs_at_once(instance) == 8
    assert not instance.telemetry_enabled


def test_celery_s_instance_launches_whole_runs_over_a_database(
    tmp_path: Path, services: Mapping[str, str]
) -> None:
    """The file as it is shipped, the services as the environment names them."""
    from promptchain_dagster.pipelines.celery_launcher import WatchedWorkers

    shutil.copyfile(CELERY / "dagster.yaml", tmp_path / "dagster.yaml")
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        requires_that_nothing_is_left_running(instance)
        launcher = instance.run_launcher
        assert isinstance(launcher, WatchedWorkers)
        assert launcher.supports_check_run_worker_health
        assert launcher.broker == services["DAGSTER_CELERY_BROKER"]
        assert launcher.backend == services["DAGSTER_CELERY_BACKEND"]
        instance.add_dynamic_partitions("documents", ["a"])
    assert not list(tmp_path.rglob("*.db")), "something of the instance is in a file here"


def test_the_workers_find_the_same_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read as `dagster-celery worker start -y` does."""
    need_modules("dagster_celery")
    from dagster_celery.cli import get_validated_config

    monkeypatch.setenv("DAGSTER_CELERY_BROKER", "redis://broker")
    monkeypatch.setenv("DAGSTER_CELERY_BACKEND", "redis://backend")
    config = get_validated_config(str(CELERY / "worker.yaml"))
    assert (config["broker"], config["backend"]) == ("redis://broker", "redis://backend")
    assert config["config_source"] == {"worker_disable_prefetch": True}


def test_the_chart_s_values_make_an_instance_that_launches_kubernetes_jobs(
    tmp_path: Path, services: Mapping[str, str]
) -> None:
    """By the real launcher, with the database of this test in place of the values' host."""
    need_modules("dagster_k8s")
    from dagster_k8s import K8sRunLauncher

    settings = chart.instance(chart.values(), services)
    settings["run_launcher"]["config"] |= {
        "load_incluster_config": False,
        "kubeconfig_file": str(chart.kubeconfig(tmp_path)),
    }
    with loaded(tmp_path, settings) as instance:
        requires_that_nothing_is_left_running(instance)
        launcher = instance.run_launcher
        assert isinstance(launcher, K8sRunLauncher)
        assert launcher.supports_check_run_worker_health
        assert launcher.resources["limits"] == {"memory": "1Gi"}


def test_a_run_s_job_has_the_code_server_s_image_variables_and_secret() -> None:
    """The Kubernetes objects as dagster-k8s makes them of the deployment's context."""
    need_modules("dagster_k8s")
    from dagster_k8s.job import DagsterK8sJobConfig, construct_dagster_k8s_job

    deployment = chart.deployment(chart.values())
    image = f"{deployment['image']['repository']}:{deployment['image']['tag']}"
    job = construct_dagster_k8s_job(
        DagsterK8sJobConfig(
            job_image=image,
            dagster_home="/opt/dagster/dagster_home",
            env_secrets=[secret["name"] for secret in deployment["envSecrets"]],
        ),
        ["dagster", "api", "execute_run"],
        "run-1",
        env_vars=[{"name": k, "value": v} for k, v in deployment["env"].items()],
    )
    assert job.spec and job.spec.template.spec
    (container,) = job.spec.template.spec.containers
    assert container.image == image
    assert {source.secret_ref.name for source in container.env_from} == {"promptchain"}
    names = {variable.name for variable in container.env}
    assert {"PROMPTCHAIN_HOME", "PROMPTCHAIN_DOCUMENTS", "PROMPTCHAIN_MODEL"} <= names


def test_the_values_hold_no_secret_and_no_moving_tag() -> None:
    """A retried run is to have the code of the first one."""
    values = chart.values()
    assert chart.deployment(values)["image"]["tag"] != "latest"
    text = (ROOT / "deploy/kubernetes/values.yaml").read_text("utf-8")
    assert "postgresqlPassword:" not in text
    assert "sk-" not in text


def test_the_versions_that_are_named_are_those_of_the_lock() -> None:
    """Chart and image are of one Dagster."""
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    (version,) = [
        line.split("==")[1].split()[0] for line in lock.splitlines() if line.startswith("dagster==")
    ]
    text = (ROOT / "deploy/kubernetes/values.yaml").read_text("utf-8")
    assert f"--version {version} " in text
    assert os.path.exists(ROOT / "deploy" / "Dockerfile")
