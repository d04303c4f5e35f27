"""The blog post: brief, outline, code gate, draft, polish (spec: gated exit, gate with retry)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from promptchain_dagster.chain.accept import NOT_EMPTY, AcceptSpec, Bar, Criterion
from promptchain_dagster.chain.chain import Chain
from promptchain_dagster.chain.guard import OneLine
from promptchain_dagster.chain.step import MAX_RETRIES_PER_STEP, PromptStep
from promptchain_dagster.criteria import headings_match
from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.prompts import PromptTemplate
from promptchain_dagster.words import count_words

MAX_SECTIONS = 50
MAX_WORDS = 50_000
DEFAULT_ATTEMPTS = 3

_INVISIBLE = dict.fromkeys(map(ord, "\u200b\u2060\ufeff\u00ad\u2800\u3164"))


def _visible(text: str) -> str:
    if not text.translate(_INVISIBLE).strip():
        raise ValueError("is empty, must say something")
    return text


Words = Annotated[int, Field(ge=1, le=MAX_WORDS)]
SectionCount = Annotated[int, Field(ge=1, le=MAX_SECTIONS)]
NonBlank = Annotated[str, AfterValidator(_visible)]


class Variant(str, Enum):
    """What a failed gate leads to."""

    GATED_EXIT = "gated-exit"
    """The first failed gate ends the chain."""
    GATE_WITH_RETRY = "gate-with-retry"
    """The gate's errors go back to the model, a capped number of times."""


class Brief(BaseModel):
    """What to write, for whom, and how long: what the chain is given."""

    model_config = ConfigDict(extra="forbid", strict=True)

    brief: NonBlank
    audience: OneLine
    min_sections: SectionCount = 4
    max_sections: SectionCount = 6
    word_count: Words = 800

    @model_validator(mode="after")
    def _bounds_in_order(self) -> Brief:
        if self.min_sections > self.max_sections:
            raise ValueError(
                f"min_sections is {self.min_sections}, must not be over max_sections,"
                f" {self.max_sections}"
            )
        return self


class Section(BaseModel):
    """A heading and one sentence on what the section must prove."""

    # The model is asked for both; one that is missing is for the gate to name, beside the rest.
    model_config = ConfigDict(
        json_schema_extra={"required": ["heading", "point"], "additionalProperties": False}
    )

    heading: str = ""
    point: str = ""


class Outline(BaseModel):
    """The sections of a post, in order."""

    model_config = ConfigDict(json_schema_extra={"additionalProperties": False})

    sections: list[Section]


def blog_post_chain(
    variant: Variant = Variant.GATE_WITH_RETRY, max_attempts: int | None = None
) -> Chain:
    """The chain of `variant`. `max_attempts` at the outline, 1 to 4, goes with the retry alone."""
    if variant is Variant.GATED_EXIT:
        if max_attempts is not None:
            raise InvalidInput(
                f"max_attempts is {max_attempts}, but goes with the variant gate-with-retry alone"
            )
        attempts = 1
    else:
        attempts = DEFAULT_ATTEMPTS if max_attempts is None else max_attempts
    if not 1 <= attempts <= MAX_RETRIES_PER_STEP + 1:
        raise InvalidInput(
            f"max_attempts is {attempts}, must be from 1 to {MAX_RETRIES_PER_STEP + 1}"
        )
    return Chain(
        variant.value.replace("-", "_"),
        inputs=Brief,
        steps=[
            PromptStep(
                name="outline",
                prompt=PromptTemplate.load("outline"),
                reads={
                    "brief": NonBlank,
                    "audience": OneLine,
                    "min_sections": SectionCount,
                    "max_sections": SectionCount,
                },
                output_type=Outline,
                hold_to=_outline_schema,
                accept=OUTLINE_GATE,
                max_retries_per_step=attempts - 1,
            ),
            PromptStep(
                name="draft",
                prompt=PromptTemplate.load("draft"),
                reads={"outline": Outline, "word_count": Words},
                advise=AcceptSpec(FOLLOWS_OUTLINE, NEAR_WORD_COUNT),
            ),
            PromptStep(
                name="polish",
                output="post",
                prompt=PromptTemplate.load("polish"),
                reads={"draft": str},
                accept=AcceptSpec(NOT_EMPTY),
                advise=AcceptSpec(KEEPS_HEADINGS),
            ),
        ],
    )


def _outline_schema(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the gate asks for, as far as a schema can say it."""
    schema = Outline.model_json_schema()
    section = schema["$defs"]["Section"]["properties"]
    section["heading"] |= {"minLength": 3, "maxLength": 100}
    section["point"] |= {"minLength": 3, "maxLength": 300}
    low, high = fields["min_sections"], fields["max_sections"]
    schema["properties"]["sections"] |= {"minItems": low, "maxItems": high}
    return schema


def _section_count(outline: Outline, fields: Mapping[str, Any]) -> Iterable[str]:
    count, low, high = len(outline.sections), fields["min_sections"], fields["max_sections"]
    if not low <= count <= high:
        yield f"{count} section{'' if count == 1 else 's'}, need {low} to {high}"


def _headings(outline: Outline, fields: Mapping[str, Any]) -> Iterable[str]:
    for number, section in enumerate(outline.sections, 1):
        yield from _says_something(f"section {number}", "heading", section.heading)


def _points(outline: Outline, fields: Mapping[str, Any]) -> Iterable[str]:
    for number, section in enumerate(outline.sections, 1):
        yield from _says_something(f"section {number}", "point", section.point)


_PLACEHOLDER = re.compile(
    r"\.{2,}|…|[<\[{]+[^<>\[\]{}]*[>\]}]+|one sentence on what it must prove\.?", re.IGNORECASE
)
"""The prompt's own example, or a blank to be filled in: `...`, `<title>`, `[Heading]`."""


def _says_something(where: str, what: str, text: str) -> Iterable[str]:
    # Case a26: the prompt's example comes back, or the right keys with nothing in them.
    said = text.translate(_INVISIBLE).strip()
    if not said:
        yield f"{where} has an empty {what}"
    elif _PLACEHOLDER.fullmatch(said):
        yield f"{where} has a placeholder for a {what}: {text.strip()[:40]!r}"


OUTLINE_GATE = AcceptSpec(
    Criterion("section_count", _section_count),
    Criterion("headings", _headings),
    Criterion("points", _points),
)
"""4 to 6 sections by default, each with a heading and a point that say something."""


def _near_word_count(draft: str, fields: Mapping[str, Any], tolerance: float) -> Iterable[str]:
    words, wanted = count_words(draft), fields["word_count"]
    if abs(words - wanted) > tolerance * wanted:
        yield f"{words} words, asked for about {wanted}"


FOLLOWS_OUTLINE = headings_match(
    "outline", lambda outline: [one.heading for one in outline.sections], name="follows_outline"
)
KEEPS_HEADINGS = headings_match("draft", bar=Bar.STRICT, name="keeps_headings")
NEAR_WORD_COUNT = Criterion(
    "near_word_count",
    _near_word_count,
    bars={Bar.LENIENT: 0.5, Bar.NORMAL: 0.25, Bar.STRICT: 0.1},
)
