"""Reading a template: its slots, its blocks, its own tags, and where each slot stands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import regex
from jinja2 import Environment, TemplateSyntaxError, nodes

from promptchain_dagster.errors import ChainDefinitionError
from promptchain_dagster.prompts.tags import lookalikes, opens_into

ERRORS = "errors"
"""The slot for the messages of a rejected attempt."""

# Stand for a slot, and for the bounds of a block, where the tags of a template are looked for.
_SLOT, _ENTER, _LEAVE = "\ufdd0", "\ufdd1", "\ufdd2"
_TAG = re.compile(rf"<(/?)([A-Za-z][\w-]*)((?:\s[^<>{_ENTER}{_LEAVE}]*)?)>", re.ASCII)

_JINJA = Environment(trim_blocks=True, lstrip_blocks=True, autoescape=False)


class Place(Enum):
    """Where a slot stands."""

    OUTSIDE = "outside all tags"
    ATTRIBUTE = "in a tag's attribute"
    BETWEEN_TAGS = "between tags"


@dataclass(frozen=True)
class Slot:
    """`{{ name }}`, on a line of the template counted from 1."""

    name: str
    line: int
    place: Place = Place.OUTSIDE


@dataclass(frozen=True)
class Branch:
    """`{% if name %}…{% else %}…{% endif %}`: taken when the variable's text is not empty."""

    name: str
    then: tuple[Part, ...]
    otherwise: tuple[Part, ...]

    def taken(self, texts: Mapping[str, str]) -> tuple[Part, ...]:
        """The parts to write, given every variable's text."""
        return self.then if texts[self.name] else self.otherwise


Part = str | Slot | Branch


@dataclass(frozen=True)
class ParsedTemplate:
    """What a template holds; `lookalikes` finds everything that resembles its own `tags`."""

    parts: tuple[Part, ...]
    variables: frozenset[str]
    tags: frozenset[str]
    lookalikes: regex.Pattern[str]


def read_template(text: str, prompt: str) -> ParsedTemplate:
    """Parse `text`; raise ChainDefinitionError, naming `prompt` and the line, if it can't work."""
    parts = tuple(_parts(_parsed(text, prompt).body, prompt))
    layout = "".join(_layout(parts))
    tags = _own_tags(layout, prompt)
    pattern = lookalikes(tags)
    _check_tags(layout, tags, pattern, prompt)
    parts = tuple(_placed(parts, iter(_places(layout, tags)), prompt))
    variables = frozenset(_variables(parts))
    if not variables:
        raise ChainDefinitionError(f"prompt {prompt}: no slot in it, so it reads no field")
    return ParsedTemplate(parts, variables, frozenset(tags), pattern)


def _parsed(text: str, prompt: str) -> nodes.Template:
    try:
        text.encode()
        return _JINJA.parse(text)
    except TemplateSyntaxError as error:
        raise _refusal(prompt, error.lineno, str(error.message)) from error
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise _refusal(prompt, line, "half of a surrogate pair, not a character") from None
    except RecursionError:
        raise ChainDefinitionError(f"prompt {prompt}: nested too deeply to be read") from None
    except ValueError as error:  # Python's limit on the digits of an integer
        raise ChainDefinitionError(f"prompt {prompt}: {error}") from None


def _refusal(prompt: str, line: int, problem: str) -> ChainDefinitionError:
    return ChainDefinitionError(f"prompt {prompt}, line {line}: {problem}")


def _parts(body: Sequence[nodes.Node], prompt: str) -> Iterator[Part]:
    for node in body:
        if isinstance(node, nodes.Output):
            yield from _parts(node.nodes, prompt)
        elif isinstance(node, nodes.TemplateData):
            yield node.data
        elif isinstance(node, nodes.Name):
            yield Slot(node.name, node.lineno)
        elif isinstance(node, nodes.If) and isinstance(node.test, nodes.Name) and not node.elif_:
            then, otherwise = _parts(node.body, prompt), _parts(node.else_, prompt)
            yield Branch(node.test.name, tuple(then), tuple(otherwise))
        else:
            kind = type(node).__name__
            problem = f"only {{{{ name }}}} and {{% if name %}} can be used, not {kind}"
            raise _refusal(prompt, node.lineno, problem)


def _layout(parts: Sequence[Part]) -> Iterator[str]:
    """The template's text, slots and bounds of blocks marked."""
    for part in parts:
        if isinstance(part, str):
            yield part
        elif isinstance(part, Slot):
            yield _SLOT
        else:
            for branch in (part.then, part.otherwise):
                yield from (_ENTER, *_layout(branch), _LEAVE)


def _own_tags(layout: str, prompt: str) -> dict[str, tuple[int, int]]:
    """Every own tag of the template, with the span of what stands in it.

    A tag that no slot follows and that is never closed is an example, not an own tag.
    """
    opened: dict[str, list[re.Match[str]]] = {}
    closed: dict[str, list[re.Match[str]]] = {}
    for tag in _TAG.finditer(layout):
        (closed if tag[1] else opened).setdefault(tag[2], []).append(tag)
        if not tag[1] and layout[tag.end() :].lstrip().startswith(_SLOT):
            closed.setdefault(tag[2], [])
    spans: dict[str, tuple[int, int]] = {}
    for name, ends in closed.items():
        starts = opened.get(name, [])
        if len(starts) != 1 or len(ends) != 1:
            counts = f"opens {len(starts)} times and closes {len(ends)} times"
            raise ChainDefinitionError(f"prompt {prompt}: <{name}> {counts}, need once each")
        spans[name] = (starts[0].end(), ends[0].start())
        if not _in_one_block(layout[slice(*spans[name])]) or starts[0].end() > ends[0].start():
            raise ChainDefinitionError(f"prompt {prompt}: <{name}> does not close where it opens")
    return spans


def _in_one_block(text: str) -> bool:
    depth = 0
    for character in text:
        depth += (character == _ENTER) - (character == _LEAVE)
        if depth < 0:
            return False
    return depth == 0


def _check_tags(
    layout: str, tags: Mapping[str, object], pattern: regex.Pattern[str], prompt: str
) -> None:
    found = [match.group() for match in pattern.finditer(layout)]
    if len(found) != 2 * len(tags):
        raise ChainDefinitionError(
            f"prompt {prompt}: something in it looks like one of its own tags: {found}"
        )
    if opens_into(layout, _SLOT, tags):
        raise ChainDefinitionError(f"prompt {prompt}: a slot can't be part of a tag's name")


def _places(layout: str, tags: Mapping[str, tuple[int, int]]) -> Iterator[Place]:
    """Where each slot stands, in the order of the template."""
    in_attributes = [tag.span() for tag in _TAG.finditer(layout)]
    for slot in re.finditer(_SLOT, layout):
        at = slot.start()
        if any(start < at < end for start, end in in_attributes):
            yield Place.ATTRIBUTE
        elif any(start <= at < end for start, end in tags.values()):
            yield Place.BETWEEN_TAGS
        else:
            yield Place.OUTSIDE


def _placed(parts: Sequence[Part], places: Iterator[Place], prompt: str) -> Iterator[Part]:
    for part in parts:
        if isinstance(part, Slot):
            place = next(places)
            if part.name == ERRORS and place is not Place.BETWEEN_TAGS:
                raise _refusal(prompt, part.line, "errors has several lines, so needs tags")
            yield replace(part, place=place)
        elif isinstance(part, Branch):
            then = tuple(_placed(part.then, places, prompt))
            yield Branch(part.name, then, tuple(_placed(part.otherwise, places, prompt)))
        else:
            yield part


def _variables(parts: Sequence[Part]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Slot):
            yield part.name
        elif isinstance(part, Branch):
            yield part.name
            yield from _variables((*part.then, *part.otherwise))
