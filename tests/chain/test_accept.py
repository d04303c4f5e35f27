"""AcceptSpec: every criterion is evaluated, any failure rejects, every failure is told."""

import pytest

from promptchain_dagster.chain.accept import NOT_EMPTY, AcceptSpec, Bar, Criterion
from promptchain_dagster.errors import ChainDefinitionError


def _at_most(text, fields, limit):
    if len(text) > limit:
        yield f"{len(text)} characters, at most {limit}"


SHORT = Criterion(
    "short", _at_most, bars={Bar.LENIENT: 9, Bar.NORMAL: 6, Bar.STRICT: 3}, bar=Bar.NORMAL
)


def test_every_criterion_is_evaluated_and_every_failure_is_told():
    spec = AcceptSpec(
        Criterion("a", lambda text, _: ["first", "second"]),
        Criterion("b", lambda text, _: None),
        Criterion("c", lambda text, _: "third"),
    )
    verdict = spec.judge("anything", {})
    assert not verdict.accepted
    assert [(f.check, f.message) for f in verdict.failed_checks] == [
        ("a", "first"),
        ("a", "second"),
        ("c", "third"),
    ]
    assert [judgement.met for judgement in verdict.judgements] == [False, True, False]


@pytest.mark.parametrize(
    ("bar", "accepted"), [(Bar.LENIENT, True), (Bar.NORMAL, False), (Bar.STRICT, False)]
)
def test_the_bar_moves_the_limit(bar, accepted):
    criterion = Criterion("short", _at_most, bars=SHORT.bars, bar=bar)
    assert AcceptSpec(criterion).judge("12345678", {}).accepted is accepted


def test_even_the_lenient_bar_tolerates_no_failure():
    spec = AcceptSpec(Criterion("short", _at_most, bars=SHORT.bars, bar=Bar.LENIENT), NOT_EMPTY)
    assert spec.judge("0123456789", {}).messages == ("10 characters, at most 9",)


def test_a_check_that_breaks_does_not_pass():
    spec = AcceptSpec(Criterion("broken", lambda output, fields: fields["missing"]))
    verdict = spec.judge("x", {})
    assert not verdict.accepted
    assert "KeyError" in verdict.messages[0]


def test_a_check_sees_the_steps_own_fields():
    spec = AcceptSpec(
        Criterion("echo", lambda out, fields: [] if out == fields["word"] else ["not the word"])
    )
    assert spec.judge("a", {"word": "a"}).accepted
    assert spec.judge("b", {"word": "a"}).messages == ("not the word",)


def test_two_criteria_of_one_name_are_refused():
    with pytest.raises(ChainDefinitionError, match="named twice: not_empty"):
        AcceptSpec(NOT_EMPTY, NOT_EMPTY)


def test_a_bar_without_a_limit_is_refused():
    with pytest.raises(ChainDefinitionError, match="no 'strict' bar; it has: normal"):
        Criterion("short", _at_most, bars={Bar.NORMAL: 3}, bar=Bar.STRICT)
