"""InputGuard: strict, fail closed, and logged."""

import logging

import pytest
from pydantic import BaseModel, Field

from promptchain_dagster.chain.guard import InputGuard, OneLine
from promptchain_dagster.errors import ChainDefinitionError, GuardRejection


class Section(BaseModel):
    heading: str
    point: str


class Outline(BaseModel):
    sections: list[Section] = Field(min_length=1)


GOOD = Outline(sections=[Section(heading="Tides", point="They turn.")])


def _problems(kind, value):
    with pytest.raises(GuardRejection) as raised:
        InputGuard("step draft", {"field": kind}).admit({"field": value})
    assert str(raised.value).startswith("step draft: field")
    return raised.value.problems


def test_good_values_are_admitted_as_they_are():
    """Text stays verbatim, whatever it holds."""
    guard = InputGuard("step draft", {"outline": Outline, "word_count": int, "text": str})
    values = {"outline": GOOD, "word_count": 800, "text": "a\n\u200b</x> {{ y }} \U0001f600"}
    assert guard.admit(values) == values


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (int, "4"),
        (int, 4.0),
        (int, True),
        (int, None),
        (int, b"4"),
        (float, "4.0"),
        (bool, 1),
        (bool, "true"),
        (str, 4),
        (str, b"text"),
        (str, None),
        (str, ["a"]),
        (list[str], ("a",)),
        (list[str], "a"),
        (list[int], ["1"]),
        (dict[str, int], [("a", 1)]),
        (Outline, "{}"),
        (Outline, [1]),
    ],
)
def test_nothing_is_coerced(kind, value):
    """A value of another type is refused, however easily it could be turned."""
    assert _problems(kind, value)


def test_every_problem_is_told_with_the_path_to_it_and_a_short_preview():
    """The thing, the value and the limit; at most 100 characters of the value."""
    bad = {"sections": [{"heading": "a", "point": "b"}, {"heading": 7, "point": "x"}, {}]}
    problems = _problems(Outline, bad)
    assert problems[0] == "field.sections[1].heading: Input should be a valid string, got 7"
    assert problems[1:] == [
        "field.sections[2].heading: Field required",
        "field.sections[2].point: Field required",
    ]
    (problem,) = _problems(int, "x" * 100_000)
    assert len(problem) < 200


def test_missing_and_surplus_fields_are_refused_by_name():
    """Neither is filled in nor dropped."""
    guard = InputGuard("chain 'post'", {"brief": str, "audience": str})
    with pytest.raises(GuardRejection) as raised:
        guard.admit({"brief": "b", "extra": 1})
    assert raised.value.problems == ["audience: missing", "extra: not a field here"]
    assert raised.value.guards == "chain 'post'"


def test_a_model_built_or_changed_without_validation_is_refused():
    """An instance is no proof of its content."""
    assert "sections" in _problems(Outline, Outline.model_construct(sections=[]))[0]
    changed = GOOD.model_copy(deep=True)
    changed.sections[0].heading = 5
    assert "field.sections[0].heading" in _problems(Outline, changed)[0]


@pytest.mark.parametrize("bad", ["a\0b", "a\ud800b", "\udfff"])
@pytest.mark.parametrize(
    ("kind", "wrap", "path"),
    [
        (str, lambda text: text, "field"),
        (list[str], lambda text: ["good", text], "field[1]"),
        (dict[str, str], lambda text: {"k": text}, "field.k"),
        (dict[str, str], lambda text: {text: "v"}, "field (a key)"),
        (
            Outline,
            lambda text: {"sections": [{"heading": "h", "point": text}]},
            "field.sections[0].point",
        ),
    ],
)
def test_text_that_no_model_could_be_sent_is_refused_wherever_it_stands(bad, kind, wrap, path):
    """NUL and half a surrogate pair, each with the path to it."""
    assert _problems(kind, wrap(bad))[0].startswith(path)


def test_a_value_that_holds_itself_is_refused():
    """Fails closed rather than for ever."""
    loop: list[object] = []
    loop.append(loop)
    assert _problems(list, loop)


@pytest.mark.parametrize("line", ["builders", "新人", "x" * 200, "Größe <b>"])
def test_one_line_admits_a_bounded_line(line):
    """Up to 200 characters."""
    assert InputGuard("chain", {"audience": OneLine}).admit({"audience": line})


@pytest.mark.parametrize("line", ["", " ", "\u200b", "a\nb", "a\u2028b", "a\x85", "x" * 201, 4])
def test_one_line_refuses_what_could_not_stand_outside_a_prompts_tags(line):
    """Before any call, with the same rule as the prompt's own."""
    assert _problems(OneLine, line)


def test_a_refusal_is_logged_by_name(caplog):
    """The log names the guarded component and the field."""
    with caplog.at_level(logging.WARNING, "promptchain_dagster"):
        _problems(int, "4")
    assert "step draft: refused: field: " in caplog.text


def test_a_type_that_cannot_be_validated_is_refused_when_the_guard_is_made():
    """Not in the middle of a run."""
    with pytest.raises(ChainDefinitionError, match="step draft: field"):
        InputGuard("step draft", {"field": object()})
