"""Where tokens and dollars went, and what the gates turned away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from promptchain_dagster.models.base import NO_USAGE, Usage

KEEPS_FAILING = 2
"""So many rejections of one brief or document, and it is named."""


@dataclass
class StepTally:
    """The attempts at one step."""

    step: str
    attempts: int = 0
    rejected: int = 0
    failed: int = 0
    requests: int = 0
    seconds: float = 0.0
    usage: Usage = NO_USAGE

    @property
    def tokens(self) -> int:
        """In and out together; what is unknown counts as none."""
        return _tokens(self.usage)


@dataclass
class CheckTally:
    """What one criterion of a step said: of how many outputs, and which it turned away."""

    step: str
    check: str
    judged: int = 0
    rejected: int = 0
    subjects: Counter[str] = field(default_factory=Counter[str])
    messages: Counter[str] = field(default_factory=Counter[str])

    @property
    def share(self) -> float:
        """Of those judged, how many were turned away: 0 to 1."""
        return self.rejected / self.judged if self.judged else 0.0

    @property
    def keeps_failing(self) -> list[tuple[str, int]]:
        """The briefs or documents that it turned away again and again."""
        return [
            (one, times) for one, times in self.subjects.most_common(5) if times >= KEEPS_FAILING
        ]

    @property
    def message(self) -> str:
        """What it said most often."""
        return self.messages.most_common(1)[0][0] if self.messages else ""


class Spending:
    """Adds attempts up."""

    def __init__(self) -> None:
        self.usage: Usage = NO_USAGE
        self.requests = 0
        self.by_document: dict[str, Usage] = {}
        self._steps: dict[str, StepTally] = {}
        self._checks: dict[tuple[str, str], CheckTally] = {}

    def add(
        self, run_id: str, attempts: Iterable[Mapping[str, Any]], paths: Mapping[str, str]
    ) -> None:
        """Those of one run; `paths` gives the path of a document by its key."""
        for attempt in attempts:
            usage = Usage(**attempt["usage"])
            self.usage += usage
            self.requests += attempt["requests"]
            subject = _subject(run_id, attempt, paths)
            self.by_document[subject] = self.by_document.get(subject, NO_USAGE) + usage
            self._add_step(attempt, usage)
            for check in attempt["checks"]:
                self._add_check(attempt["step"], check, subject)

    def by_step(self) -> list[StepTally]:
        return sorted(self._steps.values(), key=lambda one: one.tokens, reverse=True)

    def by_check(self) -> list[CheckTally]:
        found = [one for one in self._checks.values() if one.rejected]
        return sorted(found, key=lambda one: one.rejected, reverse=True)

    def dearest(self, most: int = 10) -> list[tuple[str, Usage]]:
        """What took most tokens."""
        return sorted(self.by_document.items(), key=lambda one: _tokens(one[1]), reverse=True)[
            :most
        ]

    def _add_step(self, attempt: Mapping[str, Any], usage: Usage) -> None:
        tally = self._steps.setdefault(attempt["step"], StepTally(attempt["step"]))
        tally.attempts += 1
        tally.failed += bool(attempt["call_error"])
        tally.rejected += not attempt["accepted"] and not attempt["call_error"]
        tally.requests += attempt["requests"]
        tally.seconds += attempt["seconds"]
        tally.usage += usage

    def _add_check(self, step: str, check: Mapping[str, Any], subject: str) -> None:
        name = check["check"]
        tally = self._checks.setdefault((step, name), CheckTally(step, name))
        tally.judged += 1
        if not check["met"]:
            tally.rejected += 1
            tally.subjects[subject] += 1
            tally.messages.update(check["messages"])


def _tokens(usage: Usage) -> int:
    return (usage.input_tokens or 0) + (usage.output_tokens or 0)


def _subject(run_id: str, attempt: Mapping[str, Any], paths: Mapping[str, str]) -> str:
    """The document or brief that an attempt was for."""
    key = str(attempt["label"]).partition("/")[0]
    if key:
        return paths.get(key, key)
    brief = attempt["inputs"].get("brief")
    return " ".join(str(brief).split())[:80] if brief else f"run {run_id[:8]}"
