"""The blog post's two variants, as the spec says them."""

import asyncio
import json

import pytest
from pydantic import ValidationError

from promptchain_dagster.blog_post import Brief, Variant, blog_post_chain
from promptchain_dagster.chain.outcome import Completed, Halted, Reason
from promptchain_dagster.chain.run import run_chain
from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.models.base import CallError, Problem
from promptchain_dagster.models.calls import Calls
from promptchain_dagster.testing import ScriptedChatModel

BRIEF = Brief(brief="Why small tools last", audience="engineers")
GATED_EXIT, RETRY = Variant.GATED_EXIT, Variant.GATE_WITH_RETRY


def outline(sections: int, **replaced: str) -> str:
    made = [
        {"heading": f"Part {n} of it", "point": f"It must prove claim {n}."}
        for n in range(1, sections + 1)
    ]
    if replaced:
        made[1] |= replaced
    return json.dumps({"sections": made})


async def _no_wait(seconds: float) -> None:
    return None


def write(variant, *replies, brief=BRIEF, **more):
    model = ScriptedChatModel(replies)
    chain = blog_post_chain(variant, **more)
    return model, asyncio.run(run_chain(chain, brief, Calls(model, sleep=_no_wait)))


def test_spec_an_outline_of_2_sections_ends_a_gated_exit_after_exactly_one_call():
    model, outcome = write(GATED_EXIT, outline(2))
    assert len(model.prompts) == 1
    assert isinstance(outcome, Halted)
    assert outcome.reason is Reason.REJECTED
    assert outcome.rejected_output == json.loads(outline(2))
    assert [(f.check, f.message) for f in outcome.failed_checks] == [
        ("section_count", "2 sections, need 4 to 6")
    ]


def test_spec_an_outline_of_2_then_of_4_sections_gives_a_post_after_two_outline_calls():
    model, outcome = write(RETRY, outline(2), outline(4), "The draft.", "The post.")
    assert isinstance(outcome, Completed)
    assert outcome.output == "The post."
    assert [attempt.step for attempt in outcome.attempts] == [
        "outline",
        "outline",
        "draft",
        "polish",
    ]
    assert "2 sections, need 4 to 6" in model.prompts[1]


def test_the_retry_prompt_is_the_same_brief_plus_the_messages():
    model, _ = write(RETRY, outline(2), outline(4), "d", "p")
    first, second = model.prompts[:2]
    start, end = second.index("Your previous outline"), second.index("Write an outline")
    assert second[:start] + second[end:] == first


def test_three_failed_outlines_end_the_retries_with_every_message_and_no_draft():
    model, outcome = write(RETRY, outline(2), outline(3), outline(7))
    assert isinstance(outcome, Halted)
    assert len(model.prompts) == 3
    assert outcome.messages == (
        "2 sections, need 4 to 6",
        "3 sections, need 4 to 6",
        "7 sections, need 4 to 6",
    )
    assert outcome.rejected_output == json.loads(outline(7))


@pytest.mark.parametrize("attempts", [1, 2, 4])
def test_the_attempt_cap_is_a_parameter(attempts):
    model, _ = write(RETRY, *[outline(2)] * 9, max_attempts=attempts)
    assert len(model.prompts) == attempts


@pytest.mark.parametrize("attempts", [0, 5, -1])
def test_attempts_out_of_1_to_4_are_refused(attempts):
    with pytest.raises(InvalidInput, match=f"max_attempts is {attempts}, must be from 1 to 4"):
        blog_post_chain(RETRY, attempts)


def test_attempts_go_with_the_retry_alone():
    with pytest.raises(InvalidInput, match="gate-with-retry alone"):
        blog_post_chain(GATED_EXIT, 2)


def test_a_gated_exit_makes_three_calls_and_each_sees_only_what_it_needs():
    model, outcome = write(GATED_EXIT, outline(5), "The draft.", "The post.")
    assert isinstance(outcome, Completed)
    to_outline, to_draft, to_polish = model.prompts
    assert "Why small tools last" in to_outline
    assert "engineers" in to_outline
    assert "Part 5 of it" in to_draft
    assert "about 800 words" in to_draft
    assert "Why small tools last" not in to_draft
    assert "The draft." in to_polish
    assert "Part 5 of it" not in to_polish


def test_bounds_and_word_count_are_parameters_that_reach_the_prompts():
    brief = BRIEF.model_copy(update={"min_sections": 2, "max_sections": 3, "word_count": 120})
    model, outcome = write(GATED_EXIT, outline(2), "d", "p", brief=brief)
    assert isinstance(outcome, Completed)
    assert "Write an outline with 2 to 3 sections" in model.prompts[0]
    assert "about 120 words" in model.prompts[1]
    _, outcome = write(GATED_EXIT, outline(4), brief=brief)
    assert isinstance(outcome, Halted)
    assert outcome.messages == ("4 sections, need 2 to 3",)


def test_every_failed_check_is_told_at_once():
    bad = json.dumps({"sections": [{"heading": " ", "point": "p1 proves"}, {"heading": "Ham"}]})
    _, outcome = write(GATED_EXIT, bad)
    assert isinstance(outcome, Halted)
    assert outcome.messages == (
        "2 sections, need 4 to 6",
        "section 1 has an empty heading",
        "section 2 has an empty point",
    )


@pytest.mark.parametrize(
    "text",
    [
        "...",
        "…",
        "<heading>",
        "[Heading]",
        "<title>",
        "{{point}}",
        " ... ",
        "One sentence on what it must prove.",
    ],
)
@pytest.mark.parametrize("field", ["heading", "point"])
def test_a26_placeholder_text_does_not_pass_the_gate(field, text):
    _, outcome = write(GATED_EXIT, outline(4, **{field: text}))
    assert isinstance(outcome, Halted)
    assert outcome.messages[0].startswith(f"section 2 has a placeholder for a {field}")


@pytest.mark.parametrize(
    "text",
    [
        "Heading 1",
        "Section 2",
        "The Point",
        "TODO",
        "???",
        "标题的力量",
        "C++",
        "Why <b> is not <strong>",
    ],
)
def test_a26_a_real_heading_is_no_placeholder(text):
    _, outcome = write(GATED_EXIT, outline(4, heading=text), "d", "p")
    assert isinstance(outcome, Completed)


@pytest.mark.parametrize("sections", ['"[1]"', '"A"', "null", "{}", "[1]", '["A"]'])
def test_a20_sections_that_are_no_list_of_objects_name_the_field(sections):
    _, outcome = write(GATED_EXIT, f'{{"sections": {sections}}}')
    assert isinstance(outcome, Halted)
    assert outcome.failed_checks[0].check == "schema"
    assert outcome.messages[0].startswith("sections")


@pytest.mark.parametrize("failing", ["outline", "draft", "polish"])
def test_a_call_that_errors_twice_ends_the_chain_naming_the_step(failing):
    down = CallError(Problem.UNAVAILABLE, "server error 503")
    before = {"outline": [], "draft": [outline(4)], "polish": [outline(4), "d"]}[failing]
    model, outcome = write(GATED_EXIT, *before, down, down)
    assert isinstance(outcome, Halted)
    assert (outcome.step, outcome.reason) == (failing, Reason.FAILED)
    assert len(model.prompts) == len(before) + 2


def test_a_draft_that_leaves_the_outline_or_the_length_is_a_warning():
    _, outcome = write(GATED_EXIT, outline(4), "# Part 1 of it\n\nShort.", "# Other\n\nShort.")
    assert isinstance(outcome, Completed)
    assert [w.split(":")[0] for w in outcome.warnings] == ["draft"] * 4 + ["polish"] * 2
    assert "draft: 5 words, asked for about 800" in outcome.warnings
    assert "polish: the draft's heading 'Part 1 of it' is missing" in outcome.warnings
    assert "polish: the heading 'Other' is new" in outcome.warnings


def test_headings_are_found_whatever_their_markup():
    draft = "## 1. Part 1 of it\n**Part 2 of it**\n### Part 3 of it:\nPart 4 of it\n" + "w " * 800
    _, outcome = write(GATED_EXIT, outline(4), draft, draft)
    assert isinstance(outcome, Completed)
    assert outcome.warnings == ()


@pytest.mark.parametrize(
    "wrong",
    [
        {"brief": ""},
        {"brief": " \n\t "},
        {"brief": "\u200b\ufeff"},
        {"audience": ""},
        {"audience": "two\nlines"},
        {"audience": "x" * 1000},
        {"min_sections": 0},
        {"min_sections": -1},
        {"min_sections": 7},
        {"max_sections": 3},
        {"max_sections": 51},
        {"word_count": 0},
        {"word_count": "800"},
        {"min_sections": 4.0},
        {"unknown": 1},
    ],
)
def test_a_brief_out_of_bounds_is_refused(wrong):
    with pytest.raises(ValidationError):
        Brief(**({"brief": "b", "audience": "a"} | wrong))


def test_a_model_that_can_be_held_to_a_schema_is_held_to_the_bounds_of_the_gate():
    brief = BRIEF.model_copy(update={"min_sections": 2, "max_sections": 3})
    model, _ = write(GATED_EXIT, outline(2), "d", "p", brief=brief)
    to_outline, to_draft, to_polish = model.schemas
    assert to_outline is not None
    sections = to_outline["properties"]["sections"]
    assert (sections["minItems"], sections["maxItems"]) == (2, 3)
    assert to_draft is None
    assert to_polish is None
