"""One instance on disk for all tests, and a home for each."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from tests.support.s3 import bucket, objects, s3_endpoint, s3_environment

__all__ = ["bucket", "objects", "s3_endpoint", "s3_environment"]


@pytest.fixture(scope="session")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dg.DagsterInstance]:
    folder = tmp_path_factory.mktemp("dagster")
    with dg.DagsterInstance.local_temp(str(folder)) as instance:
        yield instance


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"
