"""A refine of one's own for tests: the open action items of the minutes of meetings."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field

from promptchain_dagster.chain.accept import AcceptSpec, Criterion
from promptchain_dagster.chain.step import PromptStep
from promptchain_dagster.prompts import PromptTemplate
from promptchain_dagster.refine.definition import Refine

PROMPT = """\
These are the actions open so far, from the minutes of a {{ document_type }}:

<open>{{ actions }}</open>
<part number="{{ index }}" of="{{ total }}">{{ chunk }}</part>

Add those that this part opens, leave out those that it closes. Output JSON.
{% if errors %}
<errors>{{ errors }}</errors>{% endif %}"""

SHORTER = "Leave out what can wait; at most {{ max_words }} words.\n\n<long>{{ actions }}</long>"

READS: dict[str, Any] = {"document_type": str, "index": int, "total": int, "chunk": str}


class Action(BaseModel):
    what: str = Field(min_length=1)
    who: str


class Actions(BaseModel):
    """The running state."""

    open: list[Action] = []
    seen: int = 0


def _everyone_is_named(actions: Actions, fields: Mapping[str, Any]) -> list[str]:
    return [f"{one.what!r} is nobody's" for one in actions.open if not one.who]


EVERYONE_IS_NAMED = Criterion("everyone_is_named", _everyone_is_named)


def step(
    prompt: str = PROMPT, *, reads: Mapping[str, Any] = READS, kind: Any = Actions, **more: Any
) -> PromptStep:
    """The step for each chunk."""
    given = {
        "name": "note",
        "output": "actions",
        "reads": {**reads, "actions": kind},
        "output_type": kind,
        "accept": AcceptSpec(EVERYONE_IS_NAMED),
        "max_retries_per_step": 1,
        **more,
    }
    return PromptStep(prompt=PromptTemplate(prompt, "note"), **given)


def shorten(prompt: str = SHORTER, **more: Any) -> PromptStep:
    """The step for a state over the cap."""
    given = {
        "name": "shorten",
        "output": "actions",
        "reads": {"actions": Actions, "max_words": int},
        "output_type": Actions,
        **more,
    }
    return PromptStep(prompt=PromptTemplate(prompt, "shorten"), **given)


def minutes(**more: Any) -> Refine:
    """The refine, with a compress step."""
    return Refine(step(**more), compress=shorten())


SENT = re.compile(r"<open>(.*)</open>", re.DOTALL)
LONG = re.compile(r"<long>(.*)</long>", re.DOTALL)
PART = re.compile(r'<part number="(\d+)" of="(\d+)">(.*)</part>', re.DOTALL)


def state_sent(prompt: str) -> Any:
    """The running state that a prompt holds, as JSON values."""
    found = SENT.search(prompt) or LONG.search(prompt)
    assert found, prompt
    return json.loads(found[1])


def noting(prompt: str) -> str:
    """A reply that depends on all it was given: one action more for each part, once each."""
    state = state_sent(prompt)
    part = PART.search(prompt)
    if part is None:
        return json.dumps({**state, "open": state["open"][-1:]})
    action = {"what": f"part {part[1]}", "who": part[3].split()[0]}
    return json.dumps({"open": [*state["open"], action], "seen": state["seen"] + 1})
