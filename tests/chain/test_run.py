"""Running a chain: no failed output is forwarded, recovery is bounded, everything is traced."""

import asyncio
import enum
import json
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from promptchain_dagster.chain.accept import NOT_EMPTY, AcceptSpec, Criterion
from promptchain_dagster.chain.chain import Chain
from promptchain_dagster.chain.outcome import Completed, Halted, Reason
from promptchain_dagster.chain.run import run_chain
from promptchain_dagster.chain.step import PromptStep, ToolStep
from promptchain_dagster.errors import GuardRejection
from promptchain_dagster.models.base import CallError, Completion, Problem, Usage
from promptchain_dagster.models.calls import Calls
from promptchain_dagster.prompts import PromptTemplate
from promptchain_dagster.testing import ScriptedChatModel


class Topic(BaseModel):
    topic: str


class Fact(BaseModel):
    claim: str


async def _no_wait(seconds: float) -> None:
    return None


def calls_of(*replies) -> Calls:
    return Calls(ScriptedChatModel(replies), sleep=_no_wait)


def run(chain: Chain, calls: Calls, inputs=None, record=None):
    return asyncio.run(run_chain(chain, inputs or {"topic": "tea"}, calls, record=record))


def _good(text, fields):
    if "bad" in text:
        yield f"{text!r} is bad"


ACCEPT_GOOD = AcceptSpec(NOT_EMPTY, Criterion("good", _good))
RETRY_PROMPT = "<t>{{ topic }}</t>{% if errors %} <errors>{{ errors }}</errors>{% endif %}"


def step(name="one", *, reads="topic", text=None, **more) -> PromptStep:
    template = PromptTemplate(text or f"{name}: <x>{{{{ {reads} }}}}</x>", name=name)
    more.setdefault("accept", ACCEPT_GOOD)
    return PromptStep(name=name, prompt=template, reads={reads: str}, **more)


def test_each_step_gets_only_its_named_fields_and_passes_one_output_on():
    chain = Chain("c", inputs=Topic, steps=[step("one"), step("two", reads="one")])
    calls = calls_of("first", "second")
    outcome = run(chain, calls)
    assert isinstance(outcome, Completed)
    assert outcome.output == "second"
    assert outcome.outputs == {"one": "first", "two": "second"}
    assert calls.model.prompts == ["one: <x>tea</x>", "two: <x>first</x>"]


def test_a_rejected_output_halts_the_chain_before_the_next_step():
    chain = Chain("c", inputs=Topic, steps=[step("one"), step("two", reads="one")])
    calls = calls_of("bad")
    outcome = run(chain, calls)
    assert isinstance(outcome, Halted)
    assert (outcome.step, outcome.reason) == ("one", Reason.REJECTED)
    assert outcome.rejected_output == "bad"
    assert [f.check for f in outcome.failed_checks] == ["good"]
    assert outcome.model_calls == 1


def test_a_reattempt_gets_the_newest_messages_alone_and_verbatim():
    chain = Chain("c", inputs=Topic, steps=[step(text=RETRY_PROMPT, max_retries_per_step=3)])
    calls = calls_of("bad 1", "bad 2", "fine")
    outcome = run(chain, calls)
    assert isinstance(outcome, Completed)
    assert calls.model.prompts == [
        "<t>tea</t>",
        "<t>tea</t> <errors>'bad 1' is bad</errors>",
        "<t>tea</t> <errors>'bad 2' is bad</errors>",
    ]


def test_a_prompt_without_a_slot_for_errors_is_the_same_call_again():
    chain = Chain("c", inputs=Topic, steps=[step(max_retries_per_step=1)])
    calls = calls_of("bad", "fine")
    assert isinstance(run(chain, calls), Completed)
    assert len(set(calls.model.prompts)) == 1


@pytest.mark.parametrize("retries", [0, 1, 2, 3])
def test_a_spent_budget_halts_with_every_message_in_order(retries):
    chain = Chain("c", inputs=Topic, steps=[step(max_retries_per_step=retries)])
    outcome = run(chain, calls_of(*(f"bad {n}" for n in range(9))))
    assert isinstance(outcome, Halted)
    assert outcome.model_calls == retries + 1
    assert outcome.messages == tuple(f"'bad {n}' is bad" for n in range(retries + 1))
    assert outcome.rejected_output == f"bad {retries}"


def test_a_reply_that_is_no_json_is_a_rejected_attempt_with_the_parse_error():
    chain = Chain("c", inputs=Topic, steps=[step(output_type=Fact, accept=AcceptSpec())])
    outcome = run(chain, calls_of("{oops"))
    assert isinstance(outcome, Halted)
    assert outcome.reason is Reason.REJECTED
    assert outcome.failed_checks[0].check == "json"
    assert outcome.rejected_output == "{oops"


def test_a_reply_of_the_wrong_shape_is_rejected_with_its_path_and_its_object():
    chain = Chain("c", inputs=Topic, steps=[step(output_type=Fact, accept=AcceptSpec())])
    outcome = run(chain, calls_of('{"claim": 5}'))
    assert isinstance(outcome, Halted)
    assert outcome.messages[0].startswith("claim: ")
    assert outcome.rejected_output == {"claim": 5}


def test_a18_an_empty_reply_is_one_rejected_attempt_at_a_gate():
    chain = Chain("c", inputs=Topic, steps=[step(text=RETRY_PROMPT, max_retries_per_step=1)])
    calls = calls_of("", "fine")
    outcome = run(chain, calls)
    assert isinstance(outcome, Completed)
    assert outcome.model_calls == 2
    assert "empty reply" in calls.model.prompts[1]
    assert "stop" in calls.model.prompts[1]


@pytest.mark.parametrize("reply", ["<think>x</think>", "<think>foo", "```\n```"])
@pytest.mark.parametrize("output_type", [str, Fact])
def test_a18_a_reply_of_thinking_alone_is_an_empty_reply(reply, output_type):
    good = "fine" if output_type is str else '{"claim": "A"}'
    retried = step(
        text=RETRY_PROMPT, output_type=output_type, accept=AcceptSpec(), max_retries_per_step=1
    )
    calls = calls_of(reply, good)
    assert isinstance(run(Chain("c", inputs=Topic, steps=[retried]), calls), Completed)
    assert "empty reply" in calls.model.prompts[1]


@pytest.mark.parametrize("reply", ["<think>x</think>", "<think>foo", "```\n```"])
def test_a18_a_text_step_calls_once_more_after_thinking_alone_and_then_fails(reply):
    chain = Chain("c", inputs=Topic, steps=[step(accept=AcceptSpec())])
    assert isinstance(run(chain, calls_of(reply, "fine")), Completed)
    outcome = run(chain, calls_of(reply, reply))
    assert isinstance(outcome, Halted)
    assert (outcome.reason, outcome.model_calls) == (Reason.FAILED, 2)


def test_an_empty_reply_without_a_gate_is_a_call_that_errored():
    outcome = run(Chain("c", inputs=Topic, steps=[step()]), calls_of("", ""))
    assert isinstance(outcome, Halted)
    assert outcome.reason is Reason.FAILED
    assert outcome.model_calls == 2


CUT = Completion('{"claim": "A', "scripted", finish_reason="length", usage=Usage(5, 5, None))


def test_a14_a_cut_reply_is_an_output_limit_and_asks_for_a_shorter_one():
    prompt_step = step(
        text=RETRY_PROMPT, output_type=Fact, accept=AcceptSpec(), max_retries_per_step=1
    )
    calls = calls_of(CUT, '{"claim": "A"}')
    outcome = run(Chain("c", inputs=Topic, steps=[prompt_step]), calls)
    assert isinstance(outcome, Completed)
    assert "output limit" in calls.model.prompts[1]
    assert "JSON" not in calls.model.prompts[1]
    assert outcome.attempts[0].reply == CUT.text


def test_a14_a_cut_reply_is_not_repeated_unchanged():
    prompt_step = step(output_type=Fact, accept=AcceptSpec(), max_retries_per_step=3)
    outcome = run(Chain("c", inputs=Topic, steps=[prompt_step]), calls_of(CUT))
    assert isinstance(outcome, Halted)
    assert outcome.reason is Reason.REJECTED
    assert outcome.model_calls == 1


def test_a15_a_refusal_ends_the_step_at_once_with_its_text():
    refusal = Completion("", "scripted", refusal="I cannot help with that.")
    outcome = run(Chain("c", inputs=Topic, steps=[step(max_retries_per_step=3)]), calls_of(refusal))
    assert isinstance(outcome, Halted)
    assert outcome.reason is Reason.FAILED
    assert outcome.model_calls == 1
    assert "I cannot help with that." in outcome.messages[0]
    assert not outcome.ends_run


def test_a_call_that_errors_is_retried_once_and_then_names_the_step():
    down = CallError(Problem.UNAVAILABLE, "server error 500")
    outcome = run(Chain("c", inputs=Topic, steps=[step()]), calls_of(down, down))
    assert isinstance(outcome, Halted)
    assert (outcome.step, outcome.reason, outcome.model_calls) == ("one", Reason.FAILED, 2)
    assert "500" in outcome.messages[0]


def test_an_error_that_no_call_escapes_ends_the_run():
    quota = CallError(Problem.UNUSABLE, "quota exhausted")
    outcome = run(Chain("c", inputs=Topic, steps=[step(max_retries_per_step=3)]), calls_of(quota))
    assert isinstance(outcome, Halted)
    assert outcome.ends_run
    assert outcome.model_calls == 1


def test_a22_the_prompt_does_not_grow_with_the_attempts():
    chain = Chain("c", inputs=Topic, steps=[step(text=RETRY_PROMPT, max_retries_per_step=3)])
    calls = calls_of(*(f"bad {n} " + "x" * 20_000 for n in range(3)), "fine")

    def short(text, fields):
        return ["too long"] if len(text) > 100 else []

    chain.steps[0].__dict__["accept"] = AcceptSpec(Criterion("short", short))
    assert isinstance(run(chain, calls), Completed)
    assert len({len(prompt) for prompt in calls.model.prompts[1:]}) == 1


def test_advice_is_a_warning_and_stops_nothing():
    advise = AcceptSpec(Criterion("long", lambda text, _: f"only {len(text)} characters"))
    outcome = run(Chain("c", inputs=Topic, steps=[step(advise=advise)]), calls_of("fine"))
    assert isinstance(outcome, Completed)
    assert outcome.warnings == ("one: only 4 characters",)


def test_a_tool_step_gets_its_arguments_and_passes_its_result_on():
    async def count(one: str) -> int:
        return len(one)

    report = PromptStep(
        name="report", prompt=PromptTemplate("{{ count }}?", name="p"), reads={"count": int}
    )
    chain = Chain(
        "c", inputs=Topic, steps=[step("one"), ToolStep(name="count", function=count), report]
    )
    calls = calls_of("fine", "done")
    outcome = run(chain, calls)
    assert isinstance(outcome, Completed)
    assert outcome.outputs["count"] == 4
    assert calls.model.prompts[-1] == "4?"
    assert outcome.attempts[1].output == 4


def test_a_tool_that_raises_fails_its_step_and_its_error_is_observed():
    def broken(topic: str) -> str:
        raise LookupError(f"no {topic} here")

    outcome = run(
        Chain("c", inputs=Topic, steps=[ToolStep(name="broken", function=broken)]), calls_of()
    )
    assert isinstance(outcome, Halted)
    assert outcome.reason is Reason.FAILED
    assert outcome.messages == ("broken: LookupError: no tea here",)


def test_a_tool_that_gives_another_type_than_it_declares_is_rejected():
    def liar(topic: str) -> int:
        return topic  # type: ignore[return-value]

    outcome = run(
        Chain("c", inputs=Topic, steps=[ToolStep(name="liar", function=liar)]), calls_of()
    )
    assert isinstance(outcome, Halted)
    assert outcome.failed_checks[0].check == "schema"


@pytest.mark.parametrize(
    "inputs", [{}, {"topic": 4}, {"topic": None}, {"topic": "tea", "more": "x"}]
)
def test_inputs_that_are_not_what_the_chain_declares_are_refused_before_any_call(inputs):
    calls = calls_of()
    with pytest.raises(GuardRejection, match="chain 'c'"):
        run(Chain("c", inputs=Topic, steps=[step()]), calls, inputs=inputs or {"x": 1})
    assert calls.model.prompts == []


def test_the_trace_holds_what_every_attempt_saw_said_and_cost():
    seen = []

    async def record(attempt):
        seen.append(attempt)

    chain = Chain("c", inputs=Topic, steps=[step(text=RETRY_PROMPT, max_retries_per_step=1)])
    outcome = run(chain, calls_of("bad", "fine"), record=record)
    assert tuple(seen) == outcome.attempts
    first, second = seen
    assert (first.step, first.number, first.accepted, first.errors) == (
        "one",
        1,
        False,
        ("'bad' is bad",),
    )
    assert first.inputs == {"topic": "tea"}
    assert first.prompt == "<t>tea</t>"
    assert (first.reply, first.output, first.model) == ("bad", "bad", "scripted")
    assert first.usage.output_tokens == 1
    assert (second.number, second.accepted) == (2, True)


REPLIES = st.one_of(
    st.sampled_from(["", "bad", "fine", "bad and fine"]),
    st.builds(lambda p: CallError(p, p.value), st.sampled_from(list(Problem))),
    st.just(CUT),
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(REPLIES, min_size=40, max_size=40),
    st.lists(st.integers(0, 3), min_size=3, max_size=3),
)
def test_no_failed_output_is_forwarded_and_no_budget_is_overrun(replies, budgets):
    names = ["one", "two", "three"]
    steps = [
        step(name, reads=before, max_retries_per_step=budget)
        for name, before, budget in zip(names, ["topic", *names], budgets, strict=False)
    ]
    calls = calls_of(*replies)
    outcome = run(Chain("c", inputs=Topic, steps=steps), calls)
    passed = {"topic": "tea"}
    for attempt in outcome.attempts:
        assert attempt.number <= budgets[names.index(attempt.step)] + 1
        assert attempt.retries <= 1
        for name, value in attempt.inputs.items():
            assert passed[name] == value
        if attempt.accepted:
            assert "bad" not in attempt.output
            assert attempt.output
            passed[attempt.step] = attempt.output
    assert outcome.model_calls == len(calls.model.prompts) == calls.requests
    if isinstance(outcome, Halted):
        assert outcome.step not in passed
        assert {a.step for a in outcome.attempts} <= {*passed, outcome.step}
    json.dumps([attempt.inputs for attempt in outcome.attempts])


def test_a_field_of_any_type_can_be_traced():
    class Mood(str, enum.Enum):
        GOOD = "good"

    class Given(BaseModel):
        mood: Mood
        day: date
        facts: list[Fact]

    def describe(mood: Mood, day: date, facts: list[Fact]) -> str:
        return f"{mood.value} {day} {facts[0].claim}"

    given = Given(mood=Mood.GOOD, day=date(2026, 1, 2), facts=[Fact(claim="c")])
    tool = ToolStep(name="describe", function=describe)
    outcome = run(Chain("c", inputs=Given, steps=[tool]), calls_of(), inputs=given)
    assert isinstance(outcome, Completed)
    assert json.loads(json.dumps(outcome.attempts[0].inputs)) == {
        "mood": "good",
        "day": "2026-01-02",
        "facts": [{"claim": "c"}],
    }


def test_a_step_that_parses_its_reply_needs_no_criteria_of_its_own():
    parse = PromptStep(
        name="one",
        prompt=PromptTemplate("<t>{{ topic }}</t>", name="p"),
        reads={"topic": str},
        output_type=Fact,
    )
    outcome = run(Chain("c", inputs=Topic, steps=[parse]), calls_of('{"claim": "A"}'))
    assert isinstance(outcome, Completed)
    assert outcome.output == Fact(claim="A")
