"""The ready-made criteria: what each bar lets through, and what it says of the rest."""

import pytest
from pydantic import BaseModel

from promptchain_dagster import AcceptSpec, Bar, ChainDefinitionError
from promptchain_dagster.criteria import (
    fits_schema,
    headings_match,
    in_language,
    keeps_names_and_numbers,
    matches,
    no_refusal,
    not_empty,
    sections,
    word_count,
)
from promptchain_dagster.criteria.headings import markdown_headings


def words(count: int) -> str:
    return "word " * count


def met_by(make, output, fields=None) -> list[str]:
    """The bars at which `output` is accepted."""
    return [bar.value for bar in Bar if make(bar).judge(output, fields or {}).met]


ALL = ["lenient", "normal", "strict"]


def test_each_is_named_and_several_make_an_accept_spec():
    """Two of a kind have names of their own."""
    spec = AcceptSpec(
        word_count(1, 5), no_refusal(), matches("a", name="a"), matches("b", name="b")
    )
    verdict = spec.judge("I cannot do that, sorry, not now", {})
    assert [one.check for one in verdict.failed_checks] == ["word_count", "no_refusal", "a", "b"]


@pytest.mark.parametrize(
    ("count", "bars"),
    [
        (74, []),
        (75, ["lenient"]),
        (89, ["lenient"]),
        (90, ["lenient", "normal"]),
        (100, ALL),
        (200, ALL),
        (201, ["lenient", "normal"]),
        (221, ["lenient"]),
        (251, []),
    ],
)
def test_a_bar_moves_the_word_count_s_limits(count, bars):
    """A quarter, a tenth, nothing."""
    assert met_by(lambda bar: word_count(100, 200, bar=bar), words(count)) == bars


def test_word_count_takes_its_limits_from_a_field_and_says_what_it_needs():
    """`min_sections` of a brief, say."""
    assert not word_count("least").judge(words(3), {"least": 2}).messages
    assert word_count("least", bar=Bar.STRICT).judge(words(1), {"least": 2}).messages == (
        "1 words, need at least 2",
    )
    assert word_count(most=2).judge(words(5), {}).messages == ("5 words, need at most 2",)
    assert word_count(2, 3).judge(words(9), {}).messages == ("9 words, need 2 to 3",)


@pytest.mark.parametrize("make", [word_count, sections])
def test_a_count_without_limits_or_with_crossed_ones_is_an_error_at_definition(make):
    """Not one that passes everything."""
    with pytest.raises(ChainDefinitionError, match="neither"):
        make()
    with pytest.raises(ChainDefinitionError, match="least is 5, over most, 2"):
        make(5, 2)


TEXT = "# Title\n\n## One\n\nText.\n\n## Two\n\n### Deeper\n\nText.\n\n## Three\n"


def test_sections_are_headings_of_one_level_and_each_bar_asks_for_more():
    """One may be missing, none, and none may be bare."""
    assert met_by(lambda bar: sections(3, bar=bar), TEXT) == ["lenient", "normal"]
    assert met_by(lambda bar: sections(4, bar=bar), TEXT) == ["lenient"]
    assert met_by(lambda bar: sections(5, bar=bar), TEXT) == []
    assert met_by(lambda bar: sections(3, bar=bar), TEXT + "\nText.") == ALL
    assert sections(3, bar=Bar.STRICT).judge(TEXT, {}).messages == ("nothing stands under 'Three'",)


def test_what_looks_like_a_heading_within_a_fence_is_none():
    """A comment in a script."""
    text = "# Real\n\n```sh\n# not one\n```\n\n~~~\n## nor this\n~~~\n\n## Also real\n"
    assert [one.text for one in markdown_headings(text)] == ["Real", "Also real"]


@pytest.mark.parametrize(
    ("text", "bars"),
    [
        ("## One\na\n## Two\nb\n", ALL),
        ("## 1. One!\na\n## **two**\nb\n", ALL),
        ("One\na\nTwo\nb\n", ["lenient", "normal"]),
        ("## Two\na\n## One\nb\n", ["lenient"]),
        ("## One\na\n## Two\nb\n## Three\n", ["lenient", "normal"]),
        ("## One\na\n", []),
    ],
)
def test_headings_match_a_list_or_another_text(text, bars):
    """Present; in order; and no others."""
    fields = {"list": ["One", "Two"], "draft": "# One\n\n# Two\n"}
    for field in fields:
        assert met_by(lambda bar, name=field: headings_match(name, bar=bar), text, fields) == bars


@pytest.mark.parametrize(
    ("text", "bars"),
    [
        ("ab", ALL),
        (" ab\n", ALL),
        ("x\nab\ny", ["lenient", "normal"]),
        ("xaby", ["lenient"]),
        ("", []),
    ],
)
def test_a_pattern_matches_anywhere_a_line_or_the_whole(text, bars):
    """By its bar."""
    assert met_by(lambda bar: matches("a|ab", bar=bar), text) == bars


def test_a_pattern_that_is_none_is_an_error_at_definition():
    """Not at two in the morning."""
    with pytest.raises(ChainDefinitionError, match=r"'\(' is no pattern"):
        matches("(")


def test_a_pattern_that_would_take_for_ever_is_stopped_and_does_not_pass():
    """It holds one document up, not the night."""
    judged = matches("(a|aa)+$", bar=Bar.STRICT).judge("a" * 60 + "b", {})
    assert judged.messages


class Found(BaseModel):
    name: str
    size: int


SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "format": "date"}, "size": {"type": "integer"}},
    "required": ["name", "size"],
    "additionalProperties": False,
}


def test_a_schema_holds_objects_and_models_and_its_bars_differ_in_extras_and_formats():
    """`format` is a remark in JSON Schema, unless one insists."""
    made = {"name": "2026-01-31", "size": 1}
    assert met_by(lambda bar: fits_schema(SCHEMA, bar=bar), made) == ALL
    assert met_by(lambda bar: fits_schema(SCHEMA, bar=bar), {**made, "more": 1}) == ["lenient"]
    loose = Found(name="no date", size=1)
    assert met_by(lambda bar: fits_schema(SCHEMA, bar=bar), loose) == ["lenient", "normal"]
    assert fits_schema(SCHEMA).judge({"name": "x"}, {}).messages == (
        "$: 'size' is a required property",
    )


def test_a_schema_that_is_none_is_an_error_and_a_reference_out_of_it_is_not_followed():
    """Nothing is fetched."""
    with pytest.raises(ChainDefinitionError, match="no JSON schema"):
        fits_schema({"type": "thing"})
    judged = fits_schema({"$ref": "http://127.0.0.1:9/schema.json"}).judge({}, {})
    assert "the check itself failed" in judged.messages[0]


def test_names_and_numbers_must_be_in_the_source():
    """A quarter may be new, a tenth, none."""
    source = {"text": "In 1905 Ada met Bob, Cyd, Dan, Eve, Fay, Gus and Hal."}
    one_of_nine = "There Ada met Bob, Cyd, Dan, Eve, Fay, Gus and Hal in 1906."
    assert met_by(lambda b: keeps_names_and_numbers("text", bar=b), one_of_nine, source) == [
        "lenient"
    ]
    assert met_by(lambda b: keeps_names_and_numbers("text", bar=b), "Then Ada left.", source) == ALL
    judged = keeps_names_and_numbers("text", bar=Bar.STRICT).judge("Then Zoe left in 1906.", source)
    assert judged.messages == ("2 of 2 names and numbers are not in the text: 1906, Zoe",)


def test_not_empty_wants_one_word_three_or_twenty():
    """White space and marks are no words."""
    for text, bars in [(" \n", []), ("***", []), ("one", ["lenient"]), ("one two three", ALL[:2])]:
        assert met_by(lambda bar: not_empty(bar=bar), text) == bars
    assert met_by(lambda bar: not_empty(bar=bar), words(20)) == ALL


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I cannot assist with this request.",
        "“I’m afraid I can’t do that.”",
        "As an AI language model, I have no opinion.",
        "Unfortunately, I am unable to write this.",
        "I must decline.",
        "**I won't write that.**",
        "Sorry, I can't do that.",
        "My apologies. That is not possible.",
    ],
)
def test_a_refusal_is_none_at_any_bar(text):
    """However it is put."""
    assert met_by(lambda bar: no_refusal(bar=bar), text) == []


@pytest.mark.parametrize(
    "text",
    [
        "The company is unable to deliver.",
        "I cannot help but admire it.",
        "Sorry is the hardest word.",
        "As an airline, it failed. Its pilots could not fly.",
        "I can't wait to tell you about pumps.",
        "Apologies were made by the minister.",
        "",
    ],
)
def test_a_text_that_speaks_of_refusing_is_no_refusal(text):
    """Its words, and not its act."""
    assert met_by(lambda bar: no_refusal(bar=bar), text) == ALL


def test_how_much_of_a_refusal_is_one_depends_on_the_bar():
    """A long text after it; one sentence somewhere within."""
    assert met_by(lambda bar: no_refusal(bar=bar), "I'm sorry. " + words(80)) == ["lenient"]
    within = "The pump works. I cannot tell you more."
    assert met_by(lambda bar: no_refusal(bar=bar), within) == ["lenient", "normal"]


ENGLISH = "The town takes its water from a lake in the hills, and cleans it with sand."
GERMAN = "Die Stadt holt ihr Wasser aus einem See in den Bergen und reinigt es mit Sand."


def test_a_text_is_held_to_its_language():
    """Where it is long enough to have one."""
    pytest.importorskip("py3langid")
    assert met_by(lambda bar: in_language("en", bar=bar), ENGLISH) == ALL
    assert met_by(lambda bar: in_language("de", bar=bar), GERMAN) == ALL
    assert "need 'en'" in in_language("en").judge(GERMAN, {}).messages[0]
    assert met_by(lambda bar: in_language("en", bar=bar), "Wasser, Sand") == ALL
    assert met_by(lambda bar: in_language("xx", bar=bar), ENGLISH) == []


@pytest.mark.parametrize("code", ["English", "EN", "", "e1"])
def test_a_language_that_is_none_is_an_error_at_definition(code):
    """Its ISO 639-1 code is meant."""
    with pytest.raises(ChainDefinitionError, match="no language"):
        in_language(code)
