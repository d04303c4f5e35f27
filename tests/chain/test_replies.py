"""Replies that should hold one JSON object, and replies that are text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptchain_dagster.chain.replies import ParsedObject, Unparsed, clean_text, parse_object

OUTLINE = {"sections": [{"heading": "Tides", "point": "They turn."}]}
OTHER = {"sections": [{"heading": "Moon", "point": "It pulls."}]}
TEXT, OTHER_TEXT = json.dumps(OUTLINE), json.dumps(OTHER)


def _fault(reply: str) -> str:
    parsed = parse_object(reply)
    assert isinstance(parsed, Unparsed), parsed
    return "; ".join(parsed.messages)


def _title(title: str) -> str:
    return json.dumps({"title": title})


@pytest.mark.parametrize(
    "title",
    [
        "Run ```make``` first",
        "```json\n{}\n```",
        "~~~",
        "a <think> b",
        "</think>",
        "<think>x</think>",
        '{"title": "inner"}',
        "a, ] b ,}",
        "{ [ \\ \" '",
        '[{"a": 1}]',
        "new\nline and\n\ttab",
        "\u2028\ufeff\u200b",
    ],
)
@pytest.mark.parametrize(
    "around", ["{}", "Sure:\n{}\nDone.", "```json\n{}\n```", "<think>hm</think>{}"]
)
def test_a1_text_in_strings_is_never_taken_for_fences_thinking_or_objects(title, around):
    """Strings come out identical, whatever the object is wrapped in."""
    assert parse_object(around.replace("{}", _title(title))) == ParsedObject({"title": title})


@pytest.mark.parametrize(
    "reply",
    [
        "```bash\nmake\n```\n```json\n{}\n```",
        "```sh\ncurl -d '{\"a\": 1}' localhost\n```\nThen:\n```\n{}\n```",
        '```bash\necho "{"\n```\n\n~~~json\n{}\n~~~',
        "```python\nx = {'a': 1}\n```\n```JSON\n{}\n```\n```text\n{no}\n```",
        "Here is {curly} prose.\n\n  ```json5 title=x\n{}\n  ```\nand { more",
        "```json\r\n{}\r\n```\r\n",
        "```json\n{}",
        "````\n{}\n````",
        "```json {} ```",
        'Follow {"sections": [...]}:\n```json\n{}\n```',
        '```json\n{"sections": [...]}\n```\nbecomes\n```json\n{}\n```',
    ],
)
def test_a3_the_fence_that_parses_to_an_object_is_used(reply):
    """Fences of anything else are passed over."""
    assert parse_object(reply.replace("{}", TEXT)) == ParsedObject(OUTLINE)


@pytest.mark.parametrize(
    "reply",
    [
        f"<think>maybe {OTHER_TEXT}</think>{TEXT}",
        f"<thinking>\n```json\n{OTHER_TEXT}\n```\n</thinking>\n\n{TEXT}",
        f'<reasoning>{{ [ " </reasoning>\n```json\n{TEXT}\n```',
        f"<think></think>\n<think>{OTHER_TEXT}</think>{TEXT}",
        f"<THINK >\n{OTHER_TEXT}</Think >\nHere: {TEXT}",
        f"Well, {OTHER_TEXT}\n</think>\n{TEXT}",
        f"```json\n{OTHER_TEXT}\n```\n</think>\n\n```json\n{TEXT}\n```",
        f"Sure.\n<think>{OTHER_TEXT}</think>\n{TEXT}",
        f"<think>I close with </think> then. {OTHER_TEXT}</think>{TEXT}",
        f"[THINK]{OTHER_TEXT}[/THINK]{TEXT}",
        f"◁think▷{OTHER_TEXT}◁/think▷\n{TEXT}",
        f"<analysis>{OTHER_TEXT}</analysis>\nHere: {TEXT}",
        f"<seed:think>{OTHER_TEXT}</seed:think>{TEXT}",
        f"Well, {OTHER_TEXT}\n[/THINK]\n{TEXT}",
    ],
)
def test_a5_the_object_after_the_thinking_is_returned_never_the_draft(reply):
    """Also where the server swallowed the opening tag."""
    assert parse_object(reply) == ParsedObject(OUTLINE)


@pytest.mark.parametrize("reply", [f"<think>so {TEXT}", f"<think>a</think><think>b {TEXT}"])
def test_a5_thinking_that_never_ends_holds_no_object(reply):
    """The message says why."""
    assert "think block" in _fault(reply)


@pytest.mark.parametrize("between", [" </think> or ", " ends at </think>, so ", "\n`</think>`\n"])
def test_a5_a_closing_tag_inside_a_line_cuts_no_object_off(between):
    """Nothing opened it, so it is spoken of: both objects stand."""
    assert "more than one object" in _fault(OTHER_TEXT + between + TEXT)
    assert parse_object(TEXT + between + "done.") == ParsedObject(OUTLINE)


@pytest.mark.parametrize(
    ("written", "command"),
    [
        (r"Slope \frac{a}{b}", "frac"),
        (r"x \times y", "times"),
        (r"\beta decay", "beta"),
        (r"\text{if} x", "text"),
        (r"\theta_1", "theta"),
        (r"a \neq b", "neq"),
        (r"\nabla f", "nabla"),
        (r"\rho", "rho"),
        (r"\left( x \right)", "right"),
        (r"x \to 0", "to"),
        (r"\forall x", "forall"),
        (r"\tan x", "tan"),
        (r"$\tan x$", "tan"),
        (r"C:\temp", "temp"),
        (r"in C:\\Users\tom", "tom"),
        (r"C:\new", "new"),
        (r"C:\\src\notes", "notes"),
        (r"C:\reports", "reports"),
        (r"the frequency \nu of light", "nu"),
        (r"$\nu$", "nu"),
        (r"\nu = 3", "nu"),
        (r"E = h\nu_0", "nu"),
        (r"x \ne y", "ne"),
        (r"$a_1 \ne 0$", "ne"),
        (r"A \ni x", "ni"),
    ],
)
def test_a8_a_backslash_that_json_swallowed_is_a_fault_and_how_to_write_it_is_said(
    written, command
):
    """The path, the character and the right spelling are told."""
    written = written.replace(r"\left", "left")
    fault = _fault(f'{{"sections": [{{"heading": "{written}", "point": "p"}}]}}')
    assert fault.startswith("sections[0].heading: ")
    assert f"a backslash in \\{command} must be written \\\\{command}" in fault


@pytest.mark.parametrize("escape", [r"\u000b", r"\u0000", r"\u001b", r"\b", r"\f"])
def test_a8_control_characters_in_text_or_keys_are_a_fault(escape):
    """Whatever follows them."""
    assert "U+00" in _fault(f'{{"a": "x{escape} 1"}}')
    assert "a key of the object" in _fault(f'{{"x{escape} 1": "a"}}')


@pytest.mark.parametrize(
    "text",
    [
        "a\n\tb",
        "a\n  \t\tb",
        "to\t1",
        "line\nnot",
        "a\r\nb",
        "x\nodes",
        "line one\nu turn",
        "a\ne\ni\no\nu",
        "bread\ne wine",
        "bread  \ne wine",
        "so,\ni think",
        "Plan B:\nwe wait",
        "Plan B:\nnew shoes",
        "tea\newer",
    ],
)
def test_a8_ordinary_tabs_and_line_breaks_are_good_text(text):
    """Only a whole command that lost its backslash is a fault."""
    assert parse_object(_title(text)) == ParsedObject({"title": text})
    assert parse_object(_title("right \\frac{a}{b} \\times")) == ParsedObject(
        {"title": "right \\frac{a}{b} \\times"}
    )


@pytest.mark.parametrize(
    ("reply", "key"),
    [
        ('{"title":"T","sections":["A"],"sections":["B"]}', "sections"),
        ('{"a": [{"b": {"c": 1, "c": 1}}]}', "c"),
        ('Here: {"a": 1, "a": 2} ok', "a"),
        ('```json\n{"a": 1, "\\u0061": 2,}\n```', "a"),
    ],
)
def test_a10_a_repeated_key_is_a_fault_that_names_it(reply, key):
    """On any level, however the object is found."""
    assert f"key '{key}' is repeated" in _fault(reply)


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ('{"title":"a, ] b","sections":["A",],}', {"title": "a, ] b", "sections": ["A"]}),
        ('Here: {"t": ", }", "n": [1, 2,\n], "b": true , }.', {"t": ", }", "n": [1, 2], "b": True}),
        ('```json\n{"t": "\\", ]",}\n```', {"t": '", ]'}),
    ],
)
def test_a11_trailing_commas_are_dropped_outside_strings_only(reply, value):
    """What is in strings stays as it is."""
    assert parse_object(reply) == ParsedObject(value)


@pytest.mark.parametrize("reply", ['{"a": ,}', '{"a": [,]}', "{,}", '{"a": [1,,]}', '{"a" "b",}'])
def test_a11_no_other_repair_is_made(reply):
    """A comma after nothing is asked for again."""
    assert "not valid JSON" in _fault(reply)


@given(
    st.integers(1, len(TEXT) - 1), st.sampled_from(["", "Here: ", "```json\n", "<think></think>"])
)
def test_a14_a_cut_object_is_never_closed_nor_its_inner_ones_taken_for_it(length, before):
    """However much of it came."""
    assert "not valid JSON" in _fault(before + TEXT[:length])


@pytest.mark.parametrize("reply", [TEXT + "\n" + OTHER_TEXT[:20], TEXT + " or " + OTHER_TEXT[:-1]])
def test_a14_an_object_before_a_cut_one_is_not_taken_for_the_reply(reply):
    """The cut one may have been the answer."""
    assert "not valid JSON" in _fault(reply)


@pytest.mark.parametrize("around", ["{}", " \ufeff{}\n", "<think>x</think>{}", "```json\n{}\n```"])
def test_a20_a_reply_encoded_twice_is_decoded_once_more(around):
    """Bare, after thinking, or in a fence."""
    assert parse_object(around.replace("{}", json.dumps(TEXT))) == ParsedObject(OUTLINE)


def test_a20_text_in_the_object_that_looks_like_json_stays_text():
    """Unwrapping a field would be a guess; its type is the gate's business."""
    value = {"title": '{"a": 1}', "sections": '["A"]'}
    assert parse_object(json.dumps(value)) == ParsedObject(value)
    assert "string" in _fault(json.dumps(json.dumps(TEXT)))


@pytest.mark.parametrize(
    "junk", ["\ufeff", "\u200b", "\u2060", "\ufeff\u200b \n", "\u200e", "\xa0"]
)
def test_a24_marks_and_invisible_characters_around_the_object_are_ignored(junk):
    """Before it, after it, and around a fence."""
    assert parse_object(f"{junk}{TEXT}{junk}") == ParsedObject(OUTLINE)
    assert parse_object(f"{junk}```json\n{TEXT}\n```{junk}") == ParsedObject(OUTLINE)


@pytest.mark.parametrize("between", ["", "\n", " and also ", "\n```\n```\n"])
def test_a25_different_objects_are_a_fault_and_identical_ones_are_one(between):
    """Neither the first nor the last is picked."""
    assert "more than one object" in _fault(TEXT + between + OTHER_TEXT)
    assert "more than one object" in _fault(f'{{"a": 1}}{between}{{"a": true}}')
    assert parse_object(TEXT + between + TEXT) == ParsedObject(OUTLINE)


def test_a25_fences_with_different_objects_are_a_fault():
    """Which of them was meant is not guessed."""
    fenced = [f"```json\n{one}\n```\n" for one in (TEXT, OTHER_TEXT)]
    assert "more than one object" in _fault("".join(fenced))
    assert parse_object(fenced[0] * 2) == ParsedObject(OUTLINE)


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        ("", "empty reply"),
        (" \ufeff\n", "empty reply"),
        ("<think>x</think>", "empty reply"),
        ("<think>x", "empty reply: it ends inside its think block"),
        ("```json\n```", "empty reply"),
        ("I can't do that.", "reply is not valid JSON: Expecting value at line 1 column 1"),
        ("{\n'a': 1}", "enclosed in double quotes at line 2 column 1"),
        (f"[{TEXT}]", "reply is a JSON list, need an object"),
        (f"Here: [{TEXT}]", "reply is a JSON list, need an object"),
        ("4", "reply is a JSON number, need an object"),
        ("null", "reply is a JSON null, need an object"),
        ("true", "reply is a JSON boolean, need an object"),
        ('"sorry"', "reply is a JSON string, need an object"),
        ('{"a": [NaN]}', "a[0]: nan is not a JSON number"),
        ('{"a": -Infinity}', "a: -inf is not a JSON number"),
        ('{"a": 1e999}', "a: inf is not a JSON number"),
        ('{"a": "\\ud83d"}', "a: half of a surrogate pair"),
        ('{"a": ' + "9" * 5000 + "}", "a number in it has thousands of digits"),
        ('{"a": "x\ny"}', "Invalid control character"),
    ],
)
def test_a_reply_without_a_usable_object_is_told_what_it_is(reply, says):
    """The message can go back to the model as it stands."""
    assert says in _fault(reply)


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "unit",
    [
        "{",
        "[",
        '{"',
        '{"a":',
        "[{",
        '{"a"}',
        "{}",
        "```\n",
        "<think>",
        "</think>",
        "</think>\n",
        "[THINK]",
        '"',
        "\\",
        "{a:",
        '{"a":1,}',
        '```json\n{"a":\n```\n',
        "<think></think>",
        " " * 99 + "\n",
        '{"a":1 , , ',
    ],
)
def test_a_million_characters_of_garbage_fail_cleanly(unit):
    """In linear time and without a traceback."""
    garbage = (unit * 1_000_000)[:1_000_000]
    assert _fault(garbage)
    clean_text(garbage)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("rest", ["{}", "{}\x01", "\n{}\n~~~"])
def test_a_fence_without_end_is_read_in_linear_time(rest):
    """A line of a mark that no fence can be."""
    text = "~" * 1_000_000 + rest
    assert parse_object(text).value == {}
    assert clean_text(text + "{") == text + "{"


@pytest.mark.parametrize("depth", [101, 5_000, 200_000])
def test_nesting_without_end_is_a_fault(depth):
    """Deep objects would exhaust the stack of whatever reads them next."""
    assert "nested" in _fault('{"a":' * depth + "1" + "}" * depth)


TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | TEXTS
    | st.floats(allow_nan=False, width=16).filter(lambda number: abs(number) < 1e9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)


@given(
    value=st.dictionaries(TEXTS, JSON, max_size=4),
    indent=st.none() | st.integers(0, 4),
    escaped=st.booleans(),
    around=st.sampled_from(
        [
            "{}",
            "\ufeff {}\n",
            "Here you go:\n{}\nHope {it} helps, \\frac{a}{b}!",
            "```json\n{}\n```",
            '<think>{x} {"a": 1}</think>{}',
            "Sure.\n\n~~~\n{}\n~~~\nBye",
            'hm {"a": 1}\n</think>\n{}',
            "```sh\nmake {\n```\n```json\n{}\n```",
        ]
    ),
)
def test_any_object_comes_back_equal_from_whatever_it_is_wrapped_in(value, indent, escaped, around):
    """Prose, fences, thinking and marks around it change nothing."""
    reply = around.replace("{}", json.dumps(value, indent=indent, ensure_ascii=escaped))
    assert parse_object(reply) == ParsedObject(value)


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("A post.", "A post."),
        ("\ufeff\n A post. \u200b\n", "A post."),
        ("<think>hm ``` </think>\n\nA post.", "A post."),
        ("<think>a</think>\n<thinking>b</thinking>A post.", "A post."),
        ("so I say\n</think>\n\nA post.", "A post."),
        ("<think>never ends. A post.", ""),
        ("<think>a</think>", ""),
        ("[THINK]a[/THINK]A post.", "A post."),
        ("◁think▷a◁/think▷A post.", "A post."),
        ("<analysis>a</analysis>\n<seed:think>b</seed:think>\nA post.", "A post."),
        ("so I say</think>\nA post.", "A post."),
        ("so I say\n</think>", ""),
        ("so I say </think> here\n</think>\nA post.", "A post."),
        (
            "Use the stop token </think> here.\n\nRest.",
            "Use the stop token </think> here.\n\nRest.",
        ),
        ("The stop token is </think>", "The stop token is </think>"),
        ("A:\n```\nx\n</think>\n```\nRest.", "A:\n```\nx\n</think>\n```\nRest."),
        ("````markdown\n# T\n```\nmake\n```\n````", "# T\n```\nmake\n```"),
        ("````\n```\nmake\n```\nDone.\n````", "```\nmake\n```\nDone."),
        ("```markdown\n# T\n```\nmake\n```\nDone.\n```", "# T\n```\nmake\n```\nDone."),
        ("```text\nA\n```\nmake\n```\n```\nb\n```\n```", "A\n```\nmake\n```\n```\nb\n```"),
        ("~~~md\n```\nmake\n```\n~~~", "```\nmake\n```"),
        ("```\na\n```\nand\n```\nb\n```", "```\na\n```\nand\n```\nb\n```"),
        ("```md\na\n```\nand\n```sh\nb\n```", "```md\na\n```\nand\n```sh\nb\n```"),
        ("````\na\n```", "````\na\n```"),
        ("```\na\n~~~", "```\na\n~~~"),
        ("```markdown\n# T\n\nA post.\n```", "# T\n\nA post."),
        ("~~~\nA post.\n~~~", "A post."),
        ("<think>a</think>```\r\nA post.\r\n```\r\n", "A post."),
        ("```md\n# T\n```bash\nmake\n```\nDone.\n```", "# T\n```bash\nmake\n```\nDone."),
        ("```bash\na\n```\nand\n```bash\nb\n```", "```bash\na\n```\nand\n```bash\nb\n```"),
        ("A:\n```\nb\n```", "A:\n```\nb\n```"),
        ("```\nunclosed", "```\nunclosed"),
        ("It says <think>x</think> here.", "It says <think>x</think> here."),
        ("The tag `</think>` ends it.", "The tag `</think>` ends it."),
        ("", ""),
    ],
)
def test_a_text_reply_loses_its_thinking_and_its_wrapping_and_nothing_else(reply, text):
    """Fences and tags inside the text are text."""
    assert clean_text(reply) == text


@given(TEXTS.filter(lambda text: "<" not in text and "`" not in text and "~" not in text))
def test_clean_text_keeps_plain_text_but_for_its_ends(text):
    """Cleaning twice changes nothing more."""
    cleaned = clean_text(text)
    assert cleaned in text
    assert clean_text(cleaned) == cleaned
