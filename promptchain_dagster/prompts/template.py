"""Prompts with named slots: read and checked once, filled in one pass."""

from __future__ import annotations

import hashlib
import os
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from itertools import accumulate
from pathlib import Path

from promptchain_dagster.errors import ChainDefinitionError, GuardRejection
from promptchain_dagster.prompts.slots import ERRORS, Branch, Part, Place, Slot, read_template
from promptchain_dagster.prompts.tags import has_less_than
from promptchain_dagster.prompts.values import one_line_problem, to_text


class PromptTemplate:
    """One prompt in Jinja2's syntax: text, slots `{{ name }}` and `{% if name %}` blocks only.

    A tag such as `<brief>…</brief>` must open once and close once, and then nothing put into the
    prompt can open or close it (d7, d8). A value outside all tags is one line of at most 200
    characters. The slot `errors` is optional and takes the messages of a rejected attempt.

    Raises ChainDefinitionError, naming the prompt and the line, for a template that can't work.
    """

    def __init__(self, text: str, name: str = "prompt") -> None:
        self.text = text
        self.name = name
        parsed = read_template(text, name)
        self.fingerprint = hashlib.sha256(text.encode()).hexdigest()
        self.tags = parsed.tags
        self.has_errors_slot = ERRORS in parsed.variables
        self.variables = parsed.variables - {ERRORS}
        self._parts = parsed.parts
        self._lookalikes = parsed.lookalikes

    @classmethod
    def load(cls, name: str) -> PromptTemplate:
        """One of this package's prompts: outline, draft, polish, refine or compress."""
        file = resources.files("promptchain_dagster.prompts") / f"{name}.md"
        if not file.is_file():
            raise ChainDefinitionError(f"prompt {name}: no such prompt in this package")
        return cls(file.read_text(encoding="utf-8"), name)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> PromptTemplate:
        """A prompt of one's own, in UTF-8; it is called as the file is, without the ending.

        Relative to the working folder: `Path(__file__).with_name("….md")` finds it from anywhere.
        """
        file = Path(path)
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise ChainDefinitionError(f"prompt {file}: it can't be read: {error}") from None
        return cls(text, file.stem)

    def __repr__(self) -> str:
        return f"PromptTemplate({self.name!r}, variables={sorted(self.variables)})"

    def render(self, values: Mapping[str, object], errors: Sequence[str] = ()) -> str:
        """The prompt with `values` in its slots and `errors`, one a line, in its errors slot.

        Text goes in verbatim, look-alikes of the prompt's own tags apart: their less-than sign
        becomes `&lt;`. Models, mappings and lists go in as JSON.

        Raises GuardRejection for a missing or surplus value, and one that its place can't take.
        """
        texts = self._texts(values)
        texts[ERRORS] = "\n".join(errors)
        problems = _misplaced(self._parts, texts)
        if problems:
            raise GuardRejection(self._guard, problems)
        pieces = list(_filled(self._parts, texts))
        prompt = "".join(piece for piece, _ in pieces)
        if not any(is_value and has_less_than(piece) for piece, is_value in pieces):
            return prompt
        ends = accumulate(len(piece) for piece, _ in pieces)
        edges = [
            edge
            for (piece, is_value), end in zip(pieces, ends, strict=True)
            if is_value
            for edge in (end - len(piece), end)
        ]
        return self._protect(prompt, edges)

    @property
    def _guard(self) -> str:
        return f"prompt {self.name}"

    def _texts(self, values: Mapping[str, object]) -> dict[str, str]:
        problems = [f"{name}: missing" for name in sorted(self.variables - values.keys())]
        problems += [f"{name}: no such slot" for name in sorted(values.keys() - self.variables)]
        texts: dict[str, str] = {}
        for name, value in values.items():
            try:
                texts[name] = to_text(value)
            except ValueError as error:
                problems.append(f"{name}: {error}")
        if problems:
            raise GuardRejection(self._guard, problems)
        return texts

    def _protect(self, text: str, edges: Sequence[int]) -> str:
        """`text` with every look-alike that begins inside a value made harmless.

        The whole prompt is searched, so a tag split over two values, or over a value and the text
        after it, is found too. `edges` are the offsets where values start and end, in turn.
        """
        safe: list[str] = []
        done = 0
        for match in self._lookalikes.finditer(text):
            at = match.start()
            if bisect_right(edges, at) % 2:
                safe += text[done:at], "&lt;"
                done = at + 1
        safe.append(text[done:])
        return "".join(safe)


def _filled(parts: Sequence[Part], texts: Mapping[str, str]) -> Iterator[tuple[str, bool]]:
    """The pieces of a prompt in order, each with whether it is a value."""
    for part in parts:
        if isinstance(part, str):
            yield part, False
        elif isinstance(part, Slot):
            yield texts[part.name], True
        else:
            yield from _filled(part.taken(texts), texts)


def _misplaced(parts: Sequence[Part], texts: Mapping[str, str]) -> list[str]:
    """Why values can't stand where the template puts them."""
    problems: list[str] = []
    for part in parts:
        if isinstance(part, Branch):
            problems += _misplaced(part.taken(texts), texts)
        elif isinstance(part, Slot) and part.place is not Place.BETWEEN_TAGS:
            text = texts[part.name]
            problem = one_line_problem(text)
            if problem is None and part.place is Place.ATTRIBUTE and set(text) & set("\"'<>"):
                problem = f"quotes or angle brackets in an attribute: {text!r}"
            if problem is not None:
                problems.append(f"{part.name}: {problem}")
    return problems
