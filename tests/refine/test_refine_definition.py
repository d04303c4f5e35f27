"""A refine that can't work is refused when it is defined, by step and field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, computed_field

from promptchain_dagster.chain.step import PromptStep
from promptchain_dagster.errors import ChainDefinitionError, InvalidInput
from promptchain_dagster.prompts import PromptTemplate
from promptchain_dagster.refine.definition import Refine
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.refine.steps import summary_refine
from tests.support.minutes import READS, Actions, minutes, shorten, step

STATE = "<open>{{ actions }}</open>\n<part>{{ chunk }}</part>"


def text_step(prompt: str, name: str = "note", output: str = "notes", **reads: Any) -> PromptStep:
    return PromptStep(name=name, output=output, prompt=PromptTemplate(prompt), reads=reads)


class Owner(BaseModel):
    name: str


class Closed(BaseModel):
    """What the model is shown has a field that it may not give back."""

    model_config = ConfigDict(extra="forbid")
    names: list[str] = []

    @computed_field
    @property
    def count(self) -> int:
        return len(self.names)


class FromCode(BaseModel):
    """What JSON schema has no word for."""

    do: Callable[[], int] | None = None


WRONG = {
    "the chunk is not read": (
        lambda: Refine(text_step("<n>{{ notes }}</n>", notes=str)),
        r"step 'note': does not read 'chunk', which would not be seen; put it into reads",
    ),
    "the state is not read": (
        lambda: Refine(text_step("<p>{{ chunk }}</p>", chunk=str)),
        r"step 'note': does not read 'notes', which would be lost",
    ),
    "something that nobody gives": (
        lambda: Refine(step(STATE + "{{ page }}", reads={"chunk": str, "page": int})),
        r"step 'note': reads 'page', which it is not given; it may read: actions, chunk,",
    ),
    "a state of another type": (
        lambda: Refine(step(kind=Actions, reads={"chunk": str}, prompt=STATE, output_type=Owner)),
        r"step 'note': the state before the first chunk is the empty object, which Owner does not"
        r" admit: name: Field required; give each field a default",
    ),
    "a read type that the state does not satisfy": (
        lambda: Refine(
            PromptStep(
                name="note",
                output="actions",
                output_type=Actions,
                prompt=PromptTemplate(STATE),
                reads={"actions": str, "chunk": str},
            )
        ),
        r"step 'note': 'actions' as it is given does not fit: actions is an object, must be a str",
    ),
    "a number that is too small": (
        lambda: Refine(
            step(
                STATE + "{{ index }}",
                reads={"chunk": str, "index": Annotated[int, Field(ge=2)]},
            )
        ),
        r"step 'note': 'index' as it is given does not fit: index may be 1, must keep minimum 2",
    ),
    "an output of a given name": (
        lambda: Refine(text_step("<p>{{ chunk }}</p>", output="chunk", chunk=str)),
        r"step 'note': its output 'chunk' is given for each chunk; name the running state other",
    ),
    "a chunk outside all tags": (
        lambda: Refine(text_step("{{ chunk }}<n>{{ notes }}</n>", notes=str, chunk=str)),
        r"step 'note': prompt prompt: chunk: has a line break.*stands between tags",
    ),
    "a list": (
        lambda: Refine(step(STATE, reads={"chunk": str}, kind=list[str])),
        r"step 'note': the state before the first chunk is the empty object, which list does not",
    ),
    "a type that refuses its own json": (
        lambda: Refine(step(STATE, reads={"chunk": str}, kind=Closed)),
        r"Closed can't be carried on: its own JSON does not validate: count: Extra inputs",
    ),
    "a type without a schema": (
        lambda: Refine(step(STATE, reads={"chunk": str}, kind=FromCode)),
        r"step 'note': FromCode has no JSON schema",
    ),
    "compress under the same name": (
        lambda: Refine(step(), compress=shorten(name="note")),
        r"step 'note': refine and compress need names of their own",
    ),
    "compress of another output": (
        lambda: Refine(step(), compress=shorten(output="shorter")),
        r"step 'shorten': its output is 'shorter', must be 'actions', the state that step 'note'",
    ),
    "compress of another type": (
        lambda: Refine(step(), compress=shorten(output_type=Closed)),
        r"step 'shorten': 'actions' must have the type that step 'note' gives",
    ),
    "compress that reads a chunk": (
        lambda: Refine(step(), compress=shorten(STATE, reads={"actions": Actions, "chunk": str})),
        r"step 'shorten': reads 'chunk', which it is not given; it may read: actions, document_",
    ),
    "compress that does not read the state": (
        lambda: Refine(
            step(), compress=shorten("At most {{ max_words }} words.", reads={"max_words": int})
        ),
        r"step 'shorten': does not read 'actions'",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_cannot_work_is_told_by_step_and_field(wrong: str) -> None:
    """Before any document is read."""
    define, told = WRONG[wrong]
    with pytest.raises(ChainDefinitionError, match=told):
        define()


def test_settings_want_a_refine_and_not_a_step() -> None:
    """The error says what to write."""
    with pytest.raises(InvalidInput, match=r"refine is a PromptStep, must be a Refine\(step\)"):
        RefineSettings(refine=step())  # type: ignore[arg-type]


def test_the_built_in_refine_is_one_like_any_other_and_the_default() -> None:
    """Its steps are the requirement's, untouched."""
    built_in = RefineSettings().refine
    assert built_in is summary_refine()
    assert (built_in.field, built_in.start, built_in.gives_text) == ("summary", "", True)
    assert [one.name for one in built_in.step.accept.criteria] == ["not_empty", "is_a_summary"]
    assert RefineSettings() == RefineSettings()


def test_a_mapping_may_be_a_running_state() -> None:
    """Whatever a JSON object validates as, not only a model."""
    refine = Refine(step(STATE, reads={"chunk": str}, kind=dict[str, list[str]]))
    assert refine.start == {}
    assert refine.state_in('{"Ana": ["chairs"]}') == {"Ana": ["chairs"]}
    assert refine.state_in('{"Ana": "chairs"}') is None


def test_all_that_the_fold_gives_may_be_read() -> None:
    """Six fields, each by its type."""
    refine = Refine(step(reads={**READS}))
    assert set(refine.step.reads) == {*READS, "actions"}


def test_the_steps_of_one_refine_make_another() -> None:
    """As where only a compress step is added; the same steps are the same refine."""
    own = minutes()
    again = Refine(own.step, compress=own.compress)
    assert again.fingerprint == own.fingerprint
    names = [one.name for one in again.step.accept.criteria]
    assert names == ["everyone_is_named", "can_be_carried_on"]
    assert Refine(own.step).fingerprint != own.fingerprint
