from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.deploy.services import need_modules, postgres, redis, s3


@pytest.fixture
def services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mapping[str, str]]:
    """A database, a broker and a bucket, as the variables that a deployment sets."""
    need_modules("dagster_postgres", "dagster_celery", "redis")
    with ExitStack() as stack:
        variables: dict[str, str] = {}
        for service in (postgres, redis, s3):
            variables.update(stack.enter_context(service(tmp_path)))
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        yield variables
