"""What Dagster's Helm chart makes of `deploy/kubernetes/values.yaml`, as far as it is told there.

Neither the chart nor Helm can be had where the tests run. So this says once more, in Python, which
field of the instance each of our values becomes; a value that it does not know is an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

VALUES = Path(__file__).parents[2] / "deploy" / "kubernetes" / "values.yaml"


def values() -> dict[str, Any]:
    return yaml.safe_load(VALUES.read_text("utf-8"))


def deployment(given: Mapping[str, Any]) -> dict[str, Any]:
    """The one code server."""
    (one,) = given["dagster-user-deployments"]["deployments"]
    return one


def instance(given: Mapping[str, Any], services: Mapping[str, str]) -> dict[str, Any]:
    """The `dagster.yaml` of the release."""
    storage = {"config": {"postgres_db": _postgres(given["postgresql"], services)}}
    coordinator = given["dagsterDaemon"]["runCoordinator"]
    assert coordinator["type"] == "QueuedRunCoordinator"
    assert coordinator["config"] == {"queuedRunCoordinator": {"maxConcurrentRuns": None}}
    assert given["computeLogManager"] == {"type": "NoOpComputeLogManager"}
    assert given["runLauncher"]["type"] == "K8sRunLauncher"
    return {
        "run_storage": {
            "module": "dagster_postgres.run_storage",
            "class": "PostgresRunStorage",
            **storage,
        },
        "event_log_storage": {
            "module": "dagster_postgres.event_log",
            "class": "PostgresEventLogStorage",
            **storage,
        },
        "schedule_storage": {
            "module": "dagster_postgres.schedule_storage",
            "class": "PostgresScheduleStorage",
            **storage,
        },
        "run_launcher": {
            "module": "dagster_k8s",
            "class": "K8sRunLauncher",
            "config": _launcher(given["runLauncher"]["config"]["k8sRunLauncher"]),
        },
        "run_coordinator": {
            "module": "dagster.core.run_coordinator",
            "class": "QueuedRunCoordinator",
        },
        "compute_logs": {
            "module": "dagster.core.storage.noop_compute_log_manager",
            "class": "NoOpComputeLogManager",
        },
        "run_monitoring": _snake(given["dagsterDaemon"]["runMonitoring"]),
        "run_retries": _snake(given["dagsterDaemon"]["runRetries"]),
        "concurrency": {
            name: _snake(part) for name, part in given["concurrency"].items() if name != "enabled"
        },
        "telemetry": given["telemetry"],
    }


def kubeconfig(folder: Path) -> Path:
    """Of a cluster that nobody reaches: where the launcher looks for one when it is made."""
    file = folder / "kubeconfig"
    cluster = {"name": "none", "cluster": {"server": "https://127.0.0.1:1"}}
    context = {"name": "none", "context": {"cluster": "none", "user": "none"}}
    file.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [cluster],
                "contexts": [context],
                "users": [{"name": "none", "user": {}}],
                "current-context": "none",
            }
        )
    )
    return file


def _postgres(given: Mapping[str, Any], services: Mapping[str, str]) -> dict[str, Any]:
    assert given["enabled"] is False
    assert given["postgresqlHost"]
    assert given["service"] == {"port": 5432}
    return {
        "scheme": given["postgresqlScheme"],
        "hostname": services["DAGSTER_PG_HOST"],
        "port": int(services["DAGSTER_PG_PORT"]),
        "db_name": services["DAGSTER_PG_DB"],
        "username": given["postgresqlUsername"],
        "password": {"env": "DAGSTER_PG_PASSWORD"},
    }


def _launcher(given: Mapping[str, Any]) -> dict[str, Any]:
    allowed = {"imagePullPolicy", "resources", "runK8sConfig"}
    assert set(given) <= allowed, set(given) - allowed
    return {
        "job_namespace": "default",
        "service_account_name": "dagster",
        "dagster_home": "/opt/dagster/dagster_home",
        "instance_config_map": "dagster-instance",
        "postgres_password_secret": "dagster-postgresql",
        "image_pull_policy": given["imagePullPolicy"],
        "resources": given["resources"],
        # What is inside of each is Kubernetes' own, and as it is there.
        "run_k8s_config": _snake(given["runK8sConfig"]),
    }


def _snake(given: Mapping[str, Any]) -> dict[str, Any]:
    return {re.sub(r"([A-Z])", r"_\1", name).lower(): value for name, value in given.items()}
