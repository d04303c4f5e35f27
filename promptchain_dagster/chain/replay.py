"""Recorded attempts, run again without a model: byte for byte the same, or the first difference.

The calls are answered from the trace, each compared with the one that was recorded. Everything
else is the code of now: prompts, parsing, gates, what follows from them. How often a call was sent,
and what it took, are facts of then and are taken from the trace.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from promptchain_dagster.chain.chain import Chain
from promptchain_dagster.chain.outcome import Attempt, Halted
from promptchain_dagster.chain.result import chain_result
from promptchain_dagster.chain.run import Record, run_step, schema_messages
from promptchain_dagster.chain.step import Step
from promptchain_dagster.chain.trace import as_json
from promptchain_dagster.models.base import CallError, Completion, Problem, Usage
from promptchain_dagster.models.calls import Call, Calls
from promptchain_dagster.models.judge import problem_of

Recorded = Mapping[str, Any]
"""An attempt, or a result, as JSON values."""

COMPARED = (
    "step",
    "attempt",
    "inputs",
    "prompt",
    "reply",
    "call_error",
    "output",
    "checks",
    "warnings",
    "model",
    "finish_reason",
    "problem",
    "requests",
    "usage",
)
"""All of an attempt but when it was and how long it took."""

_NO_CALL = "(no further call)"
_LONGEST = 240
"""Characters of a line in a diff; of a longer one, what lies around its first difference."""


def settings_of(chain: Chain, max_retries_per_step: int) -> dict[str, Any]:
    """What the trace holds of a chain's step for `replay_chain`, beside the inputs."""
    return {"chain": chain.name, "max_retries_per_step": max_retries_per_step}


@dataclass(frozen=True, slots=True)
class Same:
    """`calls` recorded attempts, and the result, came out as they did then."""

    calls: int


@dataclass(frozen=True, slots=True)
class Different:
    """After `calls` attempts that came out as they did then, something did not.

    `what` is the first thing that differs: "prompt", "output", "checks", …; "calls" where a call
    is made that was not made then, or the other way round; "result". `label` and `step` say where.
    """

    calls: int
    what: str
    recorded: str
    now: str
    label: str = ""
    step: str | None = None
    attempt: int | None = None

    @property
    def diff(self) -> list[str]:
        """The lines of a unified diff, long ones cut to where they differ."""
        before, after = self.recorded.splitlines(), self.now.splitlines()
        lines = difflib.unified_diff(before, after, "recorded", "now", lineterm="")
        return _shortened(list(lines))


@dataclass(frozen=True, slots=True)
class NotReplayable:
    """The trace does not hold all that a replay takes; up to there nothing differed."""

    calls: int
    reason: str


Replayed = Same | Different | NotReplayable


class Ended(Exception):
    """Ends a replay from within: what it came to."""

    def __init__(self, outcome: Different | NotReplayable) -> None:
        super().__init__()
        self.outcome = outcome


@dataclass(frozen=True)
class RecordedModel:
    """The model of then, as far as a replay asks for it; it answers nothing itself."""

    name: str = "recorded"
    parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict[str, Any])
    context_tokens: int | None = None
    max_output_tokens: int | None = None
    max_in_flight: int | None = None

    async def complete(
        self,
        prompt: str,
        *,
        schema: Mapping[str, Any] | None = None,
        max_output_tokens: int | None = None,
    ) -> Completion:
        raise AssertionError("a replay calls no model")


class Recording:
    """The attempts of one chain or document, in order, each to be met once.

    `place_of` tells where an attempt belongs; `at` says where the replay is.
    """

    def __init__(self, attempts: Sequence[Recorded], place_of: Callable[[Recorded], str]) -> None:
        self._attempts, self._place_of = attempts, place_of
        self._met = 0
        self._place: str | None = None
        self._asked: Recorded | None = None

    @property
    def same(self) -> int:
        """How many attempts came out as they did then."""
        return self._met

    def at(self, place: str) -> Record:
        """The replay goes on at `place`; what compares the attempts there."""
        self._place = place
        return self._compare

    def calls(self, model: RecordedModel) -> Calls:
        """Calls that are answered from here."""
        return _RecordedCalls(model, self)

    def answer_to(self, prompt: str) -> Recorded:
        """The attempt that this prompt was sent in; raises `Ended` where it was another one."""
        recorded = self._next(prompt)
        if recorded["prompt"] != prompt:
            raise self._different("prompt", recorded, str(recorded["prompt"]), prompt)
        if recorded["problem"] == Problem.INTERRUPTED.value:
            where = f"{recorded['label']} {recorded['step']}".strip()
            reason = f"the run was interrupted there: {where}, attempt {recorded['attempt']}"
            raise Ended(NotReplayable(self._met, reason))
        self._asked = recorded
        return recorded

    def finish(self) -> None:
        """Raises `Ended` where attempts are left that were made then and are not now."""
        if self._met < len(self._attempts):
            left = self._attempts[self._met]
            raise self._different("calls", left, str(left["prompt"]), _NO_CALL)

    def _next(self, now: str) -> Recorded:
        if self._met == len(self._attempts):
            raise Ended(Different(self._met, "calls", _NO_CALL, now, self._place or ""))
        recorded = self._attempts[self._met]
        if self._place_of(recorded) != self._place:
            raise self._different("calls", recorded, str(recorded["prompt"]), now)
        return recorded

    async def _compare(self, attempt: Attempt) -> None:
        now = _as_stored(as_json(attempt))
        recorded = self._asked or self._next(str(now["inputs"]))
        self._asked = None
        for name in COMPARED:
            if now[name] != recorded.get(name):
                then = recorded.get(name)
                raise self._different(name, recorded, _as_text(then), _as_text(now[name]))
        self._met += 1

    def _different(self, what: str, recorded: Recorded, then: str, now: str) -> Ended:
        step, attempt = recorded["step"], recorded["attempt"]
        label = recorded["label"]
        return Ended(Different(self._met, what, then, now, label, step, attempt))


class _RecordedCalls(Calls):
    def __init__(self, model: RecordedModel, recording: Recording) -> None:
        super().__init__(model)
        self._recording = recording

    async def complete(
        self,
        prompt: str,
        *,
        schema: Mapping[str, Any] | None = None,
        at_gate: bool = False,
        max_output_tokens: int | None = None,
    ) -> Call:
        call = _call_of(self._recording.answer_to(_as_stored(prompt)))
        self._count(call.requests, call.usage)
        return call


def _call_of(recorded: Recorded) -> Call:
    """What the call came to then. A reply that was usable is judged again: the code may differ."""
    usage, model = Usage(**recorded["usage"]), recorded["model"]
    completion = None
    if recorded["reply"] is not None:
        completion = Completion(recorded["reply"], model, recorded["finish_reason"], usage)
    error = None
    if recorded["problem"] is not None:
        told = recorded["errors"]  # the failed call's own message, or the gate's on its reply
        error = CallError(Problem(recorded["problem"]), told[0] if told else "", usage=usage)
    elif completion is not None:
        error = problem_of(completion, None)
    return Call(completion, error, recorded["requests"], usage, recorded["seconds"], model)


async def replayed(work: Callable[[], Awaitable[None]], recording: Recording) -> Replayed:
    """Do the `work`, which asks the calls of `recording`; what it came to."""
    try:
        await work()
    except Ended as ended:
        return ended.outcome
    return Same(recording.same)


async def replay_chain(chain: Chain, attempts: Sequence[Recorded], result: Recorded) -> Replayed:
    """Run `chain` again as `attempts`, those of one run, tell, and compare the run's `result`.

    A run that went on from what an earlier one had stored begins at its first recorded step.
    """
    recording = Recording(_in_order(chain, attempts), lambda attempt: attempt["step"])

    async def work() -> None:
        ending = await _run(_Chain(chain, attempts), recording)
        recording.finish()
        now = chain_result(str(result["run_id"]), chain.output, attempts, **ending)
        compare_results(recording, result, now)

    return await replayed(work, recording)


def compare_results(recording: Recording, then: Recorded, now: Recorded) -> None:
    """Raises `Ended` where they are not the same."""
    before, after = _as_text(then), _as_text(_as_stored(now))
    if before != after:
        raise Ended(Different(recording.same, "result", before, after))


async def _run(chain: _Chain, recording: Recording) -> dict[str, Any]:
    """How the chain ends, as `chain_result` takes it."""
    calls = recording.calls(RecordedModel())
    output: Any = None
    for step in chain.steps:
        fields = chain.fields(step, recording)
        outcome = await run_step(step, fields, calls, record=recording.at(step.name))
        if isinstance(outcome, Halted):
            return {"halted": outcome}
        chain.known[step.output] = outcome.output
        output = step.adapter.dump_python(outcome.output, mode="json")
    return {"output": output}


class _Chain:
    """The steps from the first recorded one on, and the fields that were given to them."""

    def __init__(self, chain: Chain, attempts: Sequence[Recorded]) -> None:
        retries = {one["step"]: one["settings"]["max_retries_per_step"] for one in attempts}
        places = [place for place, step in enumerate(chain.steps) if step.name in retries]
        self.steps = [
            dataclasses.replace(step, max_retries_per_step=retries[step.name])
            if step.name in retries
            else step
            for step in chain.steps[min(places, default=0) :]
        ]
        self.known: dict[str, Any] = {}
        self._given = {name: value for one in attempts for name, value in one["inputs"].items()}
        self._types = {
            **{name: TypeAdapter[Any](kind) for name, kind in chain.input_types.items()},
            **{step.output: step.adapter for step in chain.steps},
        }

    def fields(self, step: Step, recording: Recording) -> dict[str, Any]:
        """What the step reads: of what was given then, and of what was passed on now."""
        fields: dict[str, Any] = {}
        for name in step.reads:
            if name not in self.known and name not in self._given:
                told = f"the step {step.name!r}, which reads {name!r}"
                raise Ended(Different(recording.same, "calls", _NO_CALL, told, step=step.name))
            fields[name] = self.known[name] if name in self.known else self._value(name, recording)
        return fields

    def _value(self, name: str, recording: Recording) -> Any:
        text = json.dumps(self._given[name])
        try:
            return self._types[name].validate_json(text, strict=True)
        except ValidationError as error:
            said = f"refused: {'; '.join(schema_messages(error))}"
            raise Ended(Different(recording.same, f"input {name}", text, said)) from None


def _in_order(chain: Chain, attempts: Sequence[Recorded]) -> list[Recorded]:
    places = {step.name: place for place, step in enumerate(chain.steps)}
    return sorted(attempts, key=lambda one: (places.get(one["step"], len(places)), one["attempt"]))


def _as_stored(value: Any) -> Any:
    """`value` as it comes back from a trace."""
    return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def _shortened(lines: list[str]) -> list[str]:
    removed = [line[1:] for line in lines[2:] if line.startswith("-")]
    added = [line[1:] for line in lines[2:] if line.startswith("+")]
    start = 0
    if removed and added:
        start = max(0, _common(removed[0], added[0]) - _LONGEST // 3)
    return [*lines[:2], *(_cut(line, start if line[:1] in "+-" else 0) for line in lines[2:])]


def _common(one: str, other: str) -> int:
    """How many characters they begin with alike."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _cut(line: str, start: int) -> str:
    if len(line) <= _LONGEST:
        return line
    sign, text = line[:1], line[1:]
    start = max(0, min(start, len(text) - _LONGEST))
    end = start + _LONGEST
    return sign + "…" * (start > 0) + text[start:end] + "…" * (end < len(text))
