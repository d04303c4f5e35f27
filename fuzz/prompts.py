"""What must hold of a prompt, whatever is put into it, and of a template, whatever it says."""

from __future__ import annotations

import re
import unicodedata
from contextlib import suppress

from fuzz.inputs import refused, text_of, texts_of
from promptchain_dagster.errors import ChainDefinitionError, GuardRejection, InvalidInput
from promptchain_dagster.pipelines.brief_files import parse_brief
from promptchain_dagster.prompts import PromptTemplate
from promptchain_dagster.refine.steps import compress_step, refine_step

OUTLINE, POLISH = PromptTemplate.load("outline"), PromptTemplate.load("polish")


def tags_in(prompt: str, name: str) -> list[str]:
    """What a reader could take for a tag `name`, found without what the product finds it by."""
    plain = "".join(map(_plain, prompt))
    return re.findall(rf"<[\s/\\]*{re.escape(name)}(?!-*\w)", plain)


def _plain(character: str) -> str:
    if unicodedata.category(character) in ("Cf", "Mn", "Me", "Cc") and character not in "\t\n\r":
        return ""
    plain = unicodedata.normalize("NFKD", character)
    plain = "".join(part for part in plain if not unicodedata.combining(part))
    return plain.lower() if len(plain) == 1 else character


def check_structure(template: PromptTemplate, prompt: str) -> None:
    """Each own tag opens once and closes once, in the order in which the template has them."""
    for name in template.tags:
        found = tags_in(prompt, name)
        assert len(found) == 2, f"<{name}>: {found}"
        assert found[0] == f"<{name}" and found[1] == f"</{name}"


def filled_prompt(data: bytes) -> None:
    """Exactly one pair of each own tag, and every value there verbatim but for `&lt;`."""
    first, second = texts_of(data, 2)
    refine, compress = refine_step().prompt, compress_step().prompt
    numbers = {"document_type": "report", "index": 2, "total": 9, "max_words": 500}
    cases = [
        (refine, refine.render({**numbers, "summary": first, "chunk": second})),
        (compress, compress.render({"summary": first, "max_words": 500})),
        (POLISH, POLISH.render({"draft": first})),
    ]
    fields = {"brief": first, "audience": "readers", "min_sections": 4, "max_sections": 6}
    if second:
        cases.append((OUTLINE, OUTLINE.render(fields, [second])))
    with suppress(GuardRejection):
        forged = {**numbers, "summary": "", "chunk": first, "index": second}
        cases.append((refine, refine.render(forged)))
    for template, prompt in cases:
        check_structure(template, prompt)


def any_template(data: bytes) -> None:
    """A template works, or is refused when it is defined; what it says is never carried out."""
    text = text_of(data)
    try:
        template = PromptTemplate(text)
    except ChainDefinitionError:
        return
    try:
        prompt = template.render(dict.fromkeys(template.variables, "a<b"), ["e"])
    except GuardRejection:
        return
    for name in template.tags:
        assert prompt.lower().count(f"<{name.lower()}") <= 2


def any_brief(data: bytes) -> None:
    """A brief's file is a brief or is refused by name."""
    try:
        parse_brief(data[: 64 * 1024], "a.yaml")
    except InvalidInput as error:
        refused(error, "a.yaml")
