"""A model in this process that answers at once, so that only our own time is measured."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from benchmarks.workload import REPLY
from promptchain_dagster.models.base import CallError, Completion, Problem, Usage


class InstantModel:
    """A `ChatModel`. `calls` counts; `first_at` is when the first one came (`perf_counter`);
    the call after `limit` is refused."""

    name = "instant"
    parameters: Mapping[str, Any] = {}
    context_tokens = None
    max_output_tokens = None
    max_in_flight = None

    def __init__(self, limit: int | None = None) -> None:
        self.calls = 0
        self.first_at = 0.0
        self._limit = limit

    async def complete(
        self,
        prompt: str,
        *,
        schema: Mapping[str, Any] | None = None,
        max_output_tokens: int | None = None,
    ) -> Completion:
        """The same reply each time."""
        if self.calls == self._limit:
            raise CallError(Problem.REFUSED, "stopped here on purpose")
        self.first_at = self.first_at or time.perf_counter()
        self.calls += 1
        return Completion(REPLY, self.name, usage=Usage(2100, 200, None))
