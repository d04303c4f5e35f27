"""The instance of a `DAGSTER_HOME`."""

from __future__ import annotations

import os
from pathlib import Path

import dagster as dg


def instance_at(folder: str | Path) -> dg.DagsterInstance:
    """As a process has it that is started with `DAGSTER_HOME` set to `folder`."""
    before = os.environ.get("DAGSTER_HOME")
    os.environ["DAGSTER_HOME"] = str(folder)
    try:
        return dg.DagsterInstance.get()
    finally:
        if before is None:
            del os.environ["DAGSTER_HOME"]
        else:
            os.environ["DAGSTER_HOME"] = before
