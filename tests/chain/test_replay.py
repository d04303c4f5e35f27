"""A recorded chain, run again from its trace."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import pytest

from promptchain_dagster.blog_post import Brief, Variant, blog_post_chain
from promptchain_dagster.chain.accept import AcceptSpec, Criterion
from promptchain_dagster.chain.chain import Chain
from promptchain_dagster.chain.outcome import Halted
from promptchain_dagster.chain.replay import Different, Replayed, Same, replay_chain, settings_of
from promptchain_dagster.chain.result import chain_result
from promptchain_dagster.chain.run import run_step
from promptchain_dagster.chain.trace import read_trace, recorder
from promptchain_dagster.models import CallError, Calls, Completion, Problem, Usage
from promptchain_dagster.models.base import UNKNOWN_USAGE
from promptchain_dagster.prompts import PromptTemplate
from promptchain_dagster.testing import Script, ScriptedChatModel
from tests.support.folding import no_wait
from tests.support.memory_store import MemoryStore

BRIEF = Brief(brief="Why tests pay </brief>", audience="developers", word_count=5)


def outline(sections: int, point: str = "It proves something.") -> str:
    listed = [{"heading": f"Part {n} of it", "point": point} for n in range(1, sections + 1)]
    return json.dumps({"sections": listed})


class Run:
    """One recorded run of `chain`: its trace and its result, as they are stored."""

    def __init__(self, chain: Chain, replies: Script, first: int = 0, **fields: Any) -> None:
        self.chain = chain
        store = MemoryStore()
        calls = Calls(ScriptedChatModel(replies), sleep=no_wait)
        ending = asyncio.run(self._work(calls, store, first, {**dict(BRIEF), **fields}))
        self.attempts = read_trace(store, "run")
        result = chain_result("run", chain.output, self.attempts, **ending)
        self.result: dict[str, Any] = json.loads(json.dumps(result))

    async def _work(
        self, calls: Calls, store: MemoryStore, first: int, fields: dict[str, Any]
    ) -> dict[str, Any]:
        output = None
        for step in self.chain.steps[first:]:
            settings = settings_of(self.chain, step.max_retries_per_step)
            record = recorder(store, "run", settings=settings)
            outcome = await run_step(step, fields, calls, record=record)
            if isinstance(outcome, Halted):
                return {"halted": outcome}
            fields[step.output] = outcome.output
            output = step.adapter.dump_python(outcome.output, mode="json")
        return {"output": output}

    def replay(self, chain: Chain | None = None) -> Replayed:
        return asyncio.run(replay_chain(chain or self.chain, self.attempts, self.result))


UNAVAILABLE = CallError(Problem.UNAVAILABLE, "HTTP 500: it broke", usage=UNKNOWN_USAGE)
CUT = Completion("cut", "stub", "length", Usage(5, 2, None))
GOOD: list[Any] = [outline(4), "# The draft", "# The post"]
WAYS: Mapping[str, tuple[Variant, list[Any]]] = {
    "a post": (Variant.GATED_EXIT, GOOD),
    "rejected": (Variant.GATED_EXIT, [outline(2)]),
    "twice rejected": (Variant.GATE_WITH_RETRY, ["no JSON", outline(7), *GOOD]),
    "rejected for good": (Variant.GATE_WITH_RETRY, [outline(1), CUT, ""]),
    "one call repeated": (Variant.GATE_WITH_RETRY, [UNAVAILABLE, *GOOD]),
    "a call failed": (Variant.GATE_WITH_RETRY, [outline(4), UNAVAILABLE, UNAVAILABLE]),
    "refused": (Variant.GATED_EXIT, [outline(4), CallError(Problem.REFUSED, "no")]),
    "cut": (Variant.GATED_EXIT, [outline(4), CUT]),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_run_comes_out_as_it_did_however_it_ended(way: str) -> None:
    """Every attempt and the result, byte for byte; no model is asked."""
    variant, replies = WAYS[way]
    run = Run(blog_post_chain(variant), replies)
    assert run.replay() == Same(len(run.attempts))


def test_the_attempts_that_were_allowed_then_are_allowed_again() -> None:
    """They are of the run, not of the code."""
    run = Run(blog_post_chain(Variant.GATE_WITH_RETRY, 4), [outline(1)] * 4)
    assert run.replay(blog_post_chain(Variant.GATE_WITH_RETRY)) == Same(4)


def test_a_run_that_went_on_from_a_stored_outline_begins_at_its_first_recorded_step() -> None:
    """What the steps before it gave is in its inputs."""
    chain = blog_post_chain(Variant.GATED_EXIT)
    made = chain.steps[0].adapter.validate_json(outline(4))
    run = Run(chain, GOOD[1:], first=1, outline=made)
    assert [one["step"] for one in run.attempts] == ["draft", "polish"]
    assert run.replay() == Same(2)


def changed(step: str, **changes: Any) -> Chain:
    """The blog post with one step defined otherwise."""
    chain = blog_post_chain(Variant.GATE_WITH_RETRY)
    steps = [
        dataclasses.replace(one, **changes) if one.name == step else one for one in chain.steps
    ]
    return Chain(chain.name, inputs=Brief, steps=steps)


def test_a_changed_prompt_is_the_first_difference_and_its_diff_is_shown() -> None:
    """At its step and attempt; what came before it was the same."""
    run = Run(blog_post_chain(Variant.GATE_WITH_RETRY), [outline(2), *GOOD])
    text = PromptTemplate.load("draft").text.replace("no new sections", "none added")
    found = run.replay(changed("draft", prompt=PromptTemplate(text)))
    assert isinstance(found, Different)
    assert (found.what, found.step, found.attempt, found.calls) == ("prompt", "draft", 1, 2)
    assert found.diff[:2] == ["--- recorded", "+++ now"]
    assert "-same sections, same order, no new sections." in found.diff
    assert "+same sections, same order, none added." in found.diff


def test_a_changed_gate_is_found_at_the_first_output_that_it_judges_otherwise() -> None:
    """A criterion more, that the recorded outline does not meet."""
    run = Run(blog_post_chain(Variant.GATE_WITH_RETRY), GOOD)
    strict = AcceptSpec(Criterion("never", lambda output, fields: ["nothing is good enough"]))
    found = run.replay(changed("outline", accept=strict))
    assert isinstance(found, Different)
    assert (found.what, found.step) == ("checks", "outline")
    assert "nothing is good enough" in found.now


def test_a_result_that_differs_is_told_though_every_call_was_the_same() -> None:
    """The code that makes results may have changed too."""
    run = Run(blog_post_chain(Variant.GATE_WITH_RETRY), GOOD)
    run.result["post"] = "# Another post"
    found = run.replay()
    assert isinstance(found, Different)
    assert (found.what, found.calls) == ("result", 3)
    assert '-  "post": "# Another post",' in found.diff
    assert '+  "post": "# The post",' in found.diff


def test_a_call_that_was_not_made_then_and_one_that_is_not_made_now_are_differences() -> None:
    """More steps, fewer steps."""
    chain = blog_post_chain(Variant.GATE_WITH_RETRY)
    shorter = Chain(chain.name, inputs=Brief, steps=chain.steps[:2])
    whole, part = Run(chain, GOOD), Run(shorter, GOOD[:2])
    fewer, more = whole.replay(shorter), part.replay(chain)
    assert isinstance(fewer, Different) and isinstance(more, Different)
    assert (fewer.what, fewer.step, fewer.now) == ("calls", "polish", "(no further call)")
    assert (more.what, more.recorded, more.calls) == ("calls", "(no further call)", 2)


def test_a_long_line_is_shown_around_its_first_difference() -> None:
    """Prompts hold whole chunks in one line."""
    before, after = "x" * 5000 + "a" + "y" * 5000, "x" * 5000 + "b" + "y" * 5000
    removed, added = Different(0, "prompt", before, after).diff[-2:]
    assert removed.startswith("-…x") and "xay" in removed and removed.endswith("y…")
    assert "xby" in added
    assert max(len(removed), len(added)) < 300
