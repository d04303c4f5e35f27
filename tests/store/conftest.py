from __future__ import annotations

from pathlib import Path

import pytest

from promptchain_dagster.store import Store, open_store
from tests.support.s3 import bucket, objects, s3_endpoint, s3_environment

__all__ = ["bucket", "objects", "s3_endpoint", "s3_environment"]


@pytest.fixture(params=["folder", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty store of each kind."""
    if request.param == "folder":
        return open_store(str(tmp_path / "new" / "home"))
    return open_store(f"s3://{request.getfixturevalue('bucket')}/some/prefix/")
