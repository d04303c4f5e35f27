"""What a run over many documents came to."""

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from promptchain_dagster.models.base import NO_USAGE, Usage
from promptchain_dagster.pipelines import metadata as md

NAMED = 20
"""Documents that a message names; the results name them all."""


@dataclass
class Tally:
    """How many documents there are of each status, which were the first to fail or to be set
    aside, with the reason, what was spent, and what ended the run before its time."""

    counts: Counter[str] = field(default_factory=Counter[str])
    named: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    ended_by: str | None = None
    model_calls: int = 0
    usage: Usage = NO_USAGE
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, key: str, status: str, reason: str | None) -> None:
        """One document more, in whichever thread."""
        with self._lock:
            self.counts[status] += 1
            if reason is not None and self.counts[status] <= NAMED:
                self.named.setdefault(status, {})[key] = md.preview(reason)

    def count_not_started(self, documents: int) -> None:
        """All of the run's documents that it did not come to."""
        self.counts["not_started"] = documents - self.counts.total()

    @property
    def failed(self) -> bool:
        """Whether a document failed, or was not come to."""
        return self.counts["failed"] + self.counts["not_started"] > 0

    def result(self, run_id: str) -> dict[str, Any]:
        """The run's own result; each document has one of its own."""
        return {
            "status": "failed" if self.failed else "completed",
            "run_id": run_id,
            "documents": {name: count for name, count in self.counts.items() if count},
            **self.named,
            "error": self.ended_by,
            "model_calls": self.model_calls,
            "usage": asdict(self.usage),
        }

    def metadata(self) -> md.Metadata:
        """The counts, the first of the failed ones, and what was spent."""
        told: md.Metadata = {
            f"{md.DOCUMENTS}/{name}": count for name, count in self.counts.items() if count
        }
        reasons = [f"{key}: {reason}" for key, reason in self._reasons("failed").items()]
        if reasons:
            told[md.MESSAGES] = md.lines(reasons)
        return {**told, **md.of_usage(self.usage, self.model_calls)}

    def message(self) -> str:
        """What went wrong, with names."""
        said: list[str] = []
        total = self.counts.total()
        if failed := self.counts["failed"]:
            said.append(f"{failed} of {total} documents failed: {self.names('failed')}")
        if left := self.counts["not_started"]:
            ended_by = self.ended_by or "the run broke off"
            said.append(f"{left} of {total} documents were not started: {ended_by}")
        return "; ".join(said)

    def names(self, status: str) -> str:
        """The first documents of that status."""
        named = self._reasons(status)
        more = self.counts[status] - len(named)
        return ", ".join(named) + (f" and {more} more" if more else "")

    def _reasons(self, status: str) -> Mapping[str, str]:
        return self.named.get(status, {})
