"""AcceptSpec: the contract that a step's output meets whole, or the output is rejected whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from promptchain_dagster.errors import ChainDefinitionError

Check = Callable[..., "Iterable[str] | str | None"]
"""`check(output, fields)`, or `check(output, fields, limit)` where the criterion has bars.

Gives one specific message for each failure ("3 sections, need 4 to 6"), nothing when met. `fields`
are the step's own inputs by name.
"""


class Bar(str, Enum):
    """How high a criterion stands. A bar moves the limit; it never tolerates a failure."""

    LENIENT = "lenient"
    NORMAL = "normal"
    STRICT = "strict"


@dataclass(frozen=True)
class Criterion:
    """One named condition on a step's output.

    `bars` maps each bar to the limit that `check` is given; `bar` says which one holds.
    """

    name: str
    check: Check
    bars: Mapping[Bar, Any] | None = None
    bar: Bar = Bar.NORMAL

    def __post_init__(self) -> None:
        if self.bars is not None and self.bar not in self.bars:
            have = ", ".join(bar.value for bar in self.bars)
            raise ChainDefinitionError(
                f"criterion {self.name!r} has no {self.bar.value!r} bar; it has: {have}"
            )

    def judge(self, output: Any, fields: Mapping[str, Any]) -> Judgement:
        """Hold `output` to this criterion. A check that itself breaks does not pass."""
        limit = () if self.bars is None else (self.bars[self.bar],)
        try:
            said = self.check(output, fields, *limit)
            messages = (said,) if isinstance(said, str) else tuple(said or ())
        except Exception as error:  # the check is the user's code
            messages = (f"the check itself failed: {type(error).__name__}: {error}",)
        return Judgement(self.name, messages)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one criterion said of one output: no messages where it is met."""

    check: str
    messages: tuple[str, ...] = ()

    @property
    def met(self) -> bool:
        return not self.messages


@dataclass(frozen=True, slots=True)
class FailedCheck:
    """One failure: the criterion's name and its message."""

    check: str
    message: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """Every criterion's judgement of one output; accepted only when all are met."""

    judgements: tuple[Judgement, ...] = ()

    @property
    def accepted(self) -> bool:
        return all(judgement.met for judgement in self.judgements)

    @property
    def failed_checks(self) -> tuple[FailedCheck, ...]:
        return tuple(
            FailedCheck(judgement.check, message)
            for judgement in self.judgements
            for message in judgement.messages
        )

    @property
    def messages(self) -> tuple[str, ...]:
        return tuple(failed.message for failed in self.failed_checks)


@dataclass(frozen=True)
class AcceptSpec:
    """Criteria that are all evaluated; any failure rejects the output, every failure is told."""

    criteria: tuple[Criterion, ...] = ()

    def __init__(self, *criteria: Criterion) -> None:
        names = [criterion.name for criterion in criteria]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ChainDefinitionError(f"criteria named twice: {', '.join(twice)}")
        object.__setattr__(self, "criteria", criteria)

    def judge(self, output: Any, fields: Mapping[str, Any]) -> Verdict:
        """Hold `output` to every criterion."""
        return Verdict(tuple(criterion.judge(output, fields) for criterion in self.criteria))


def _is_not_empty(text: str, fields: Mapping[str, Any]) -> Iterable[str]:
    if not text.strip():
        yield "the text is empty"


NOT_EMPTY = Criterion("not_empty", _is_not_empty)
"""Text that says something."""
