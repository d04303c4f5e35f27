"""Markdown's front matter, apart from the text."""

from __future__ import annotations

import re

MOST_CHARACTERS = 16 * 1024
"""Looked for no further: reading YAML is slow."""

MOST_DEEP = 50
"""The time for brackets in brackets grows with the square of their depth."""

_FENCED = re.compile(r"---[ \t]*\n(.*?\n)(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)


def split_front_matter(text: str) -> tuple[str, str]:
    """The front matter without its fences, and the text after it; of a text with LF line ends.

    Only a YAML mapping that begins directly after a first line `---` counts; a rule at the top of
    a text is a rule, and all of the text is kept (g6).
    """
    found = _FENCED.match(text, 0, MOST_CHARACTERS)
    if found is None:
        return "", text
    first = found[1].partition("\n")[0].strip()
    if not first or first == "---" or not _is_mapping(found[1]):
        return "", text
    return found[1], text[found.end() :].lstrip("\n")


def _is_mapping(block: str) -> bool:
    import yaml

    if _depth(block) > MOST_DEEP:
        return False
    try:
        # Scalars stay strings, so that no value of it can fail, and nothing is built of it.
        held = yaml.load(block, yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError):
        return False
    return isinstance(held, dict) and held != {}


def _depth(block: str) -> int:
    depth = deepest = 0
    for character in re.findall(r"[\[\]{}]", block):
        depth = depth + 1 if character in "[{" else max(depth - 1, 0)
        deepest = max(deepest, depth)
    return deepest
