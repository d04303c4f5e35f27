"""What became of the documents of a command."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from promptchain_dagster.cli.runs import INTERRUPTED, Ended
from promptchain_dagster.models.base import NO_USAGE, Usage


@dataclass(frozen=True)
class Summaries:
    """An entry for each document, in the order given; calls and usage are those of the run, so
    that a request counts too whose reply nobody waited for."""

    documents: Sequence[Mapping[str, Any]]
    model_calls: int
    usage: Mapping[str, Any]
    interrupted: bool = False

    @classmethod
    def of(
        cls,
        documents: Sequence[Mapping[str, Any]],
        ended: Ended | None = None,
        *,
        interrupted: bool = False,
    ) -> Summaries:
        """The documents' sums, where the run has not come to a result of its own."""
        if ended is not None and ended.result is not None:
            spent = ended.result
            return cls(documents, spent["model_calls"], spent["usage"], ended.interrupted)
        usage = sum((Usage(**one["usage"]) for one in documents), NO_USAGE)
        calls = sum(one["model_calls"] for one in documents)
        stopped = interrupted or (ended is not None and ended.interrupted)
        return cls(documents, calls, dataclasses.asdict(usage), stopped)

    def result(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {
            "model_calls": self.model_calls,
            "usage": self.usage,
            "warnings": [
                f"{document['path']}: {warning}"
                for document in self.documents
                for warning in document["warnings"]
            ],
            "documents": self.documents,
        }

    @property
    def exit_status(self) -> int:
        if self.interrupted:
            return INTERRUPTED
        good = ("completed", "no_content")
        return 0 if all(document["status"] in good for document in self.documents) else 1
