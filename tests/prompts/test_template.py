"""Templates: one pass, only declared slots, and a refusal at definition for what can't work."""

import pytest
from pydantic import BaseModel

from promptchain_dagster.errors import ChainDefinitionError, GuardRejection
from promptchain_dagster.prompts import PromptTemplate

BRIEF = {"audience": "builders", "brief": "Tides", "min_sections": 4, "max_sections": 6}


class Section(BaseModel):
    heading: str


def test_the_outline_prompt_is_the_specs_word_for_word():
    """Without errors it is the gated exit's prompt."""
    assert PromptTemplate.load("outline").render(BRIEF) == (
        "You are planning a blog post for builders.\n\n<brief>Tides</brief>\n\n"
        "Write an outline with 4 to 6 sections. Give each section a heading\n"
        "and one sentence on what it must prove. Output JSON:\n"
        '{"sections": [{"heading": "...", "point": "..."}]}'
    )


def test_the_outline_prompt_with_errors_is_the_retry_variants_word_for_word():
    """The messages stand verbatim, one a line, between the tags of the spec."""
    messages = ["3 sections, need 4 to 6", "section 2 has an empty heading"]
    assert PromptTemplate.load("outline").render(BRIEF, messages) == (
        "You are planning a blog post for builders.\n\n<brief>Tides</brief>\n\n"
        "Your previous outline failed these checks. Fix every one:\n"
        "<errors>3 sections, need 4 to 6\nsection 2 has an empty heading</errors>\n\n"
        "Write an outline with 4 to 6 sections. Give each section a heading\n"
        "and one sentence on what it must prove. Output JSON:\n"
        '{"sections": [{"heading": "...", "point": "..."}]}'
    )


def test_the_refine_and_compress_prompts_are_the_specs_word_for_word():
    """Position and cap go in as numbers, the text as it is."""
    refine = PromptTemplate.load("refine").render(
        {
            "document_type": "novel",
            "summary": "",
            "index": 3,
            "total": 40,
            "chunk": "It rained.",
            "max_words": 500,
        }
    )
    assert refine == (
        "You are summarizing a long novel one part at a time.\n\n"
        "<summary_so_far></summary_so_far>\n"
        '<part number="3" of="40">It rained.</part>\n\n'
        "Update the summary so it also covers this part. Keep earlier\n"
        "points unless this part contradicts them, keep events in order,\n"
        "and stay under 500 words. Return only the summary."
    )
    compress = PromptTemplate.load("compress").render({"max_words": 500, "summary": "S"})
    assert compress == (
        "Shorten this summary to under 500 words. Keep events\n"
        "in order, keep every name the later parts may need, and drop\n"
        "detail before dropping events. Return only the summary.\n\n<summary>S</summary>"
    )


def test_the_draft_prompt_shows_the_outline_as_json_and_polish_sees_only_the_draft():
    """Models go in as JSON with their own characters, not escapes."""
    draft = PromptTemplate.load("draft")
    assert draft.variables == {"outline", "word_count"}
    rendered = draft.render({"outline": Section(heading="Flut & Ebbe 潮"), "word_count": 800})
    assert '<outline>{\n  "heading": "Flut & Ebbe 潮"\n}</outline>' in rendered
    assert "Keep to about 800 words" in rendered
    assert PromptTemplate.load("polish").variables == {"draft"}


@pytest.mark.parametrize(
    "text",
    [
        "A = {1; 2} and {summary} and {{x}} 5}",
        "{{ brief }} {{ audience }}",
        "{% if errors %}{% endif %}",
        "{% raw %} {# comment #}",
        "{{ 7 * 7 }} {{ ''.__class__ }} ${x} %s %(brief)s $brief \\1 \\g<0>",
        "<b>bold</b> &amp; <!-- c --> <briefs> <brief-case> <my-brief> a<b & c>d",
        "trailing spaces  \n\n\n",
    ],
)
def test_d16_a_value_is_never_read_as_a_template(text):
    """Braces of any kind come out of the prompt as they went in."""
    rendered = PromptTemplate("Sum up.\n<brief>{{ brief }}</brief>").render({"brief": text})
    assert rendered == f"Sum up.\n<brief>{text}</brief>"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a\n{{ x", "line 2"),
        ("a\n\n{% if x %}{{ x }}", "line 3"),
        ("{{ x.y }}", "Getattr"),
        ("{{ x[0] }}", "Getitem"),
        ("{{ x|upper }}", "Filter"),
        ("{{ x() }}", "Call"),
        ("{{ 1 + x }}", "Add"),
        ("{% for a in x %}{{ a }}{% endfor %}", "For"),
        ("{% include 'other' %}{{ x }}", "Include"),
        ("{% extends 'other' %}", "Extends"),
        ("{% set x = 1 %}{{ x }}", "Assign"),
        ("{% if x == 1 %}{{ x }}{% endif %}", "Compare|only"),
        ("no slot at all", "no slot"),
        ("<a>{{ x }}", "<a> opens 1 times and closes 0 times"),
        ("{{ x }}</a>", "<a> opens 0 times"),
        ("<a>{{ x }}</a> <a>{{ y }}</a>", "<a> opens 2 times"),
        ("</a>{{ x }}<a>", "does not close where it opens"),
        ("{% if y %}<a>{% endif %}{{ x }}</a>", "does not close where it opens"),
        ("<a>{{ x }}</a> as in < A", "looks like one of its own tags"),
        ("<a>{{ x }}</a> <{{ y }}>", "part of a tag's name"),
        ("<ab>{{ x }}</ab> </ a{{ y }}>", "part of a tag's name"),
        ("{{ x }} {{ errors }}", "errors"),
        ("{{ x.__class__.__mro__ }}", "Getattr"),
        ("{{ cycler.__init__.__globals__.os.popen('id').read() }}", "Call"),
        ("{{ '%s'|format(x) }}", "Filter"),
        ("{{ 'a' * 10**9 }}", "Mul"),
        ("{% for a in range(10**10) %}{{ x }}{% endfor %}", "For"),
        ("{% import 'os' as os %}{{ x }}", "Import"),
        ("{% if x %}" * 5000 + "{% endif %}" * 5000, "nested too deeply"),
        ("{{ " + "(" * 5000 + "x" + ")" * 5000 + " }}", "nested too deeply"),
        ("{{ " + "9" * 5000 + " }}", "digits"),
        ("a\n{\ud800%", "line 2: half of a surrogate pair"),
    ],
)
def test_d16_a_template_that_cannot_work_is_refused_when_it_is_defined(text, says):
    """The error names the prompt and what is wrong."""
    with pytest.raises(ChainDefinitionError, match="prompt mine") as raised:
        PromptTemplate(text, "mine")
    assert any(word in str(raised.value) for word in says.split("|"))


def test_d16_an_example_in_a_template_that_is_no_tag_pair_stays_literal():
    """A placeholder such as <title> is text, not a tag of the prompt's own."""
    template = PromptTemplate('Write {"title": "<title>"} about {{ x }}')
    assert template.tags == frozenset()
    assert template.render({"x": "tides"}) == 'Write {"title": "<title>"} about tides'


def test_missing_and_surplus_values_are_refused_by_name():
    """All of them are told at once."""
    with pytest.raises(GuardRejection) as raised:
        PromptTemplate("{{ x }} {{ y }}", "mine").render({"x": "1", "z": "2"})
    assert raised.value.problems == ["y: missing", "z: no such slot"]


@pytest.mark.parametrize(
    "value",
    [
        "",
        "  ",
        "\u200b\ufeff",
        "a\nb",
        "a\r",
        "a\u2028b",
        "a\x85b",
        "a\x0bb",
        "a\x0cb",
        "a\x1eb",
        "a\x00b",
        "a\x1b[0m",
        "x" * 201,
        ["a", "b"],
        {"a": 1},
    ],
)
def test_a_value_outside_all_tags_is_one_bounded_line(value):
    """Anything else is refused, naming prompt and slot."""
    with pytest.raises(GuardRejection, match="prompt mine: audience: "):
        PromptTemplate("For {{ audience }}.", "mine").render({"audience": value})


@pytest.mark.parametrize("value", ["x" * 200, "Größe: 3 × 4 <b>", "新人", 4, 2.5])
def test_a_line_outside_all_tags_goes_in_verbatim(value):
    """Up to 200 characters of any script, and numbers."""
    rendered = PromptTemplate("For {{ audience }}.").render({"audience": value})
    assert rendered == f"For {value}."


@pytest.mark.parametrize("value", ['1" evil="', "1>", "<x", "'"])
def test_a_value_in_an_attribute_cannot_leave_it(value):
    """Quotes and angle brackets have no place there."""
    template = PromptTemplate('<part number="{{ index }}">{{ chunk }}</part>')
    with pytest.raises(GuardRejection, match="attribute"):
        template.render({"index": value, "chunk": "x"})


def test_what_json_cannot_hold_is_refused_by_name():
    """An object without a JSON form names its slot and its type."""
    with pytest.raises(GuardRejection, match="x: a object cannot be written"):
        PromptTemplate("<a>{{ x }}</a>").render({"x": object()})


def test_the_fingerprint_follows_the_text():
    """Equal texts share it, another text has another."""
    one, same = PromptTemplate("a {{ x }}"), PromptTemplate("a {{ x }}", "other name")
    assert one.fingerprint == same.fingerprint != PromptTemplate("b {{ x }}").fingerprint


def test_a_prompt_in_a_file_is_called_as_the_file_is(tmp_path):
    """Its errors name it so."""
    file = tmp_path / "summary.md"
    file.write_text("<text>{{ text }}</text> – briefly", encoding="utf-8")
    prompt = PromptTemplate.from_file(file)
    assert (prompt.name, prompt.variables) == ("summary", {"text"})
    assert prompt.render({"text": "T"}) == "<text>T</text> – briefly"


@pytest.mark.parametrize("data", [None, b"\xff\xfe caf\xe9"])
def test_a_prompt_file_that_cannot_be_read_is_an_error_at_definition(tmp_path, data):
    """None there, or no UTF-8."""
    file = tmp_path / "summary.md"
    if data is not None:
        file.write_bytes(data)
    with pytest.raises(ChainDefinitionError, match=r"summary\.md: it can't be read"):
        PromptTemplate.from_file(file)
