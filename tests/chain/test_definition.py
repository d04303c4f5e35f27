"""A chain that cannot work does not load; the error names step, field and remedy."""

from typing import Annotated

import pytest
from pydantic import BaseModel, Field

from promptchain_dagster.chain.accept import NOT_EMPTY, AcceptSpec, Criterion
from promptchain_dagster.chain.chain import Chain
from promptchain_dagster.chain.step import PromptStep, ToolStep
from promptchain_dagster.errors import ChainDefinitionError
from promptchain_dagster.prompts import PromptTemplate


class Topic(BaseModel):
    topic: str


class Fact(BaseModel):
    claim: str


def prompt(text: str) -> PromptTemplate:
    return PromptTemplate(text, name="test")


def ask(name: str = "ask", reads: str = "topic", **more) -> PromptStep:
    return PromptStep(
        name=name, prompt=prompt(f"<it>{{{{ {reads} }}}}</it>"), reads={reads: str}, **more
    )


@pytest.mark.parametrize("retries", [-1, 4, 100, 1.0, True, "2", None])
def test_retries_out_of_0_to_3_are_refused(retries):
    with pytest.raises(ChainDefinitionError, match=r"'ask': max_retries_per_step is .*0 to 3"):
        ask(max_retries_per_step=retries)


@pytest.mark.parametrize("retries", [0, 1, 2, 3])
def test_retries_of_0_to_3_are_taken(retries):
    assert ask(max_retries_per_step=retries).reattempt.budget == retries


def test_a_field_that_nothing_gives_is_refused():
    with pytest.raises(ChainDefinitionError, match=r"'ask': reads 'theme', which nothing.*: topic"):
        Chain("c", inputs=Topic, steps=[ask(reads="theme")])


def test_a_field_that_only_a_later_step_gives_is_refused():
    with pytest.raises(ChainDefinitionError, match="'first': reads 'second'"):
        Chain("c", inputs=Topic, steps=[ask("first", reads="second"), ask("second")])


def test_an_output_that_does_not_satisfy_the_next_input_is_refused_with_its_path():
    class Strict(BaseModel):
        claim: Annotated[str, Field(max_length=10)]

    use = PromptStep(name="use", prompt=prompt("<f>{{ fact }}</f>"), reads={"fact": Strict})
    with pytest.raises(ChainDefinitionError, match=r"step 'use': 'fact' as step 'fact' gives it"):
        Chain("c", inputs=Topic, steps=[ask("fact", output_type=Fact), use])
    with pytest.raises(ChainDefinitionError, match=r"fact\.claim has no bound.*maxLength 10"):
        Chain("c", inputs=Topic, steps=[ask("fact", output_type=Fact), use])


def test_inputs_that_do_not_satisfy_the_first_step_are_refused():
    def shout(topic: int) -> str:
        return str(topic)

    with pytest.raises(ChainDefinitionError, match=r"'topic' as the chain's inputs gives it"):
        Chain("c", inputs=Topic, steps=[ToolStep(name="shout", function=shout)])


def test_a_variable_of_the_prompt_that_is_not_read_is_refused():
    with pytest.raises(ChainDefinitionError, match="'ask': its prompt uses 'b'"):
        PromptStep(name="ask", prompt=prompt("<x>{{ a }}</x> <y>{{ b }}</y>"), reads={"a": str})


def test_a_field_that_the_prompt_does_not_use_is_refused():
    with pytest.raises(ChainDefinitionError, match="'ask': it reads 'b', which its prompt"):
        PromptStep(name="ask", prompt=prompt("<x>{{ a }}</x>"), reads={"a": str, "b": str})


@pytest.mark.parametrize("name", ["", "my step", "1st", "a-b", "naïve!", "a.b"])
def test_a_step_name_that_can_be_no_op_is_refused(name):
    with pytest.raises(ChainDefinitionError, match="letters, digits and underscores"):
        ask(name)


def test_two_steps_of_one_name_are_refused():
    with pytest.raises(ChainDefinitionError, match="two steps named 'ask'"):
        Chain("c", inputs=Topic, steps=[ask(output="a"), ask(output="b")])


def test_an_output_given_twice_is_refused():
    with pytest.raises(ChainDefinitionError, match="its output 'topic' is already given by"):
        Chain("c", inputs=Topic, steps=[ask(output="topic")])


def test_a_chain_without_steps_is_refused():
    with pytest.raises(ChainDefinitionError, match="has no steps"):
        Chain("c", inputs=Topic, steps=[])


def _untyped(topic):
    return topic


def _no_return(topic: str):
    return topic


def _any_number(*topics: str) -> str:
    return ""


def _by_place(topic: str, /) -> str:
    return topic


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (_untyped, "parameter 'topic' of its function has no type"),
        (_no_return, "declares no return type"),
        (_any_number, r"'\*topics: str' of its function names no field"),
        (_by_place, "positional-only"),
    ],
)
def test_a_tool_whose_signature_proves_nothing_is_refused(function, message):
    with pytest.raises(ChainDefinitionError, match=message):
        ToolStep(name="tool", function=function)


def test_the_fingerprint_changes_with_prompt_type_and_criteria_alone():
    base = Chain("c", inputs=Topic, steps=[ask()])
    assert base.fingerprint == Chain("other", inputs=Topic, steps=[ask()]).fingerprint
    reworded = PromptStep(name="ask", prompt=prompt("<it>{{ topic }}</it>!"), reads={"topic": str})
    retyped = ask(output_type=Fact)
    judged = ask(accept=AcceptSpec(NOT_EMPTY, Criterion("more", lambda *_: None)))
    others = {Chain("c", inputs=Topic, steps=[s]).fingerprint for s in (reworded, retyped, judged)}
    assert len({base.fingerprint, *others}) == 4
