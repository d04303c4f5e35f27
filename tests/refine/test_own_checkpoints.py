"""Checkpoints of a refine of one's own: killed, damaged, changed, and found again."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, model_validator

from promptchain_dagster.chain.accept import AcceptSpec
from promptchain_dagster.library.recipe import recipe
from promptchain_dagster.refine.checkpoints import Checkpoints
from promptchain_dagster.refine.definition import Refine
from promptchain_dagster.refine.outcome import Summarized
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.refine.steps import summary_refine
from promptchain_dagster.store import open_store
from promptchain_dagster.testing import ScriptedChatModel
from tests.support.folding import chunks_of, fold
from tests.support.memory_store import Killed, MemoryStore
from tests.support.minutes import (
    PART,
    PROMPT,
    SHORTER,
    minutes,
    noting,
    shorten,
    step,
)

NAMES = ("Ana", "Bo", "Kim", "Lu", "Mo", "Ola", "Pia", "Quy", "Ro")
NINE = tuple(f"{name} is to see to it." for name in NAMES)
OWN = minutes()


class DiesAfter:
    """The replies of a run whose process ends once `calls` of them have come."""

    def __init__(self, calls: int) -> None:
        self.calls = calls

    def __call__(self, prompt: str) -> str:
        if self.calls == 0:
            raise AssertionError("killed")
        self.calls -= 1
        return noting(prompt)


@settings(max_examples=40, deadline=None)
@given(
    total=st.integers(1, 9),
    kills=st.lists(st.integers(0, 4), max_size=4),
    max_words=st.sampled_from([9, 500]),
)
def test_d11_no_chunk_is_lost_or_folded_twice_however_often_a_run_is_killed(
    total: int, kills: list[int], max_words: int
) -> None:
    """All calls add up to those of one run, and the state is its own."""
    chunks = chunks_of(*NINE[:total])
    options: dict[str, Any] = {"refine": OWN, "max_words": max_words}
    whole = ScriptedChatModel(noting)
    expected = fold(chunks, whole, MemoryStore(), **options)
    store, paid = MemoryStore(), list[str]()
    for kill in kills:
        model = ScriptedChatModel(DiesAfter(kill))
        try:
            fold(chunks, model, store, **options)
        except AssertionError:
            model.prompts.pop()
        paid += model.prompts
    last = ScriptedChatModel(noting)
    outcome = fold(chunks, last, store, **options)
    assert isinstance(outcome, Summarized)
    assert outcome.state == expected.state
    assert outcome.state.seen == total
    assert [*paid, *last.prompts] == whole.prompts
    assert [int(part[1]) for p in whole.prompts if (part := PART.search(p))] == [
        *range(1, total + 1)
    ]


@settings(max_examples=30, deadline=None)
@given(total=st.integers(1, 6), dies_at=st.integers(1, 9), after_write=st.booleans())
def test_d12_a_kill_at_any_write_leaves_the_old_state_or_the_new_one(
    total: int, dies_at: int, after_write: bool
) -> None:
    """At most the one reply that was not yet kept is paid again."""
    chunks = chunks_of(*NINE[:total])
    store = MemoryStore()
    store.dies_at, store.after_write = dies_at, after_write
    first = ScriptedChatModel(noting)
    try:
        fold(chunks, first, store, refine=OWN, max_words=9)
    except Killed:
        store.dies_at = None
    second, whole = ScriptedChatModel(noting), ScriptedChatModel(noting)
    outcome = fold(chunks, second, store, refine=OWN, max_words=9)
    assert outcome.state == fold(chunks, whole, MemoryStore(), refine=OWN, max_words=9).state
    extra = len(first.prompts) + len(second.prompts) - len(whole.prompts)
    assert 0 <= extra <= (0 if after_write else 1)


class Strict(BaseModel):
    """Its validator's code, which no schema shows, can change."""

    notes: list[str] = []
    most: int = 9

    @model_validator(mode="after")
    def _few(self) -> Strict:
        if len(self.notes) > LIMIT[0]:
            raise ValueError(f"{len(self.notes)} notes, at most {LIMIT[0]}")
        return self


LIMIT = [9]


def test_a_checkpoint_that_no_longer_validates_is_named_and_the_one_before_it_is_used(
    tmp_path: Path,
) -> None:
    """As with a damaged one (d12)."""
    refine = Refine(step(kind=Strict, accept=AcceptSpec()))
    chunks = chunks_of(*NINE[:3])
    replies = [json.dumps({"notes": ["x"] * n}) for n in (1, 2, 3)]
    assert isinstance(fold(chunks, replies, tmp_path, refine=refine), Summarized)
    LIMIT[0] = 1
    try:
        model = ScriptedChatModel([replies[0], replies[0]])
        outcome = fold(chunks, model, tmp_path, refine=refine)
    finally:
        LIMIT[0] = 9
    assert isinstance(outcome, Summarized)
    assert (outcome.resumed_from, len(model.prompts)) == (1, 2)
    damaged = [one for one in outcome.warnings if "is no longer valid and was not used" in one]
    assert [one[18:].split(" is ")[0] for one in damaged] == ["chunk 3", "chunk 2"]


def test_a_cut_checkpoint_of_a_typed_state_is_damaged_too(tmp_path: Path) -> None:
    """Its chunk is folded again."""
    chunks = chunks_of(*NINE[:2])
    fold(chunks, noting, tmp_path, refine=OWN)
    (last,) = tmp_path.glob("checkpoints/*/*/000002-*.json")
    last.write_bytes(last.read_bytes()[:-20])
    outcome = fold(chunks, noting, tmp_path, refine=OWN)
    assert (outcome.resumed_from, outcome.state.seen) == (1, 2)
    assert "damaged" in outcome.warnings[0]


KEPT_BEFORE = (
    "checkpoints/79/79d00cdea7162ae43c0b5ca17bb10e02c4260c56739a9f291e7ce7c6051475f0/"
    "000001-79d00cdea7162ae43c0b5ca17bb10e02c4260c56739a9f291e7ce7c6051475f0.json",
    b'{"key": "79d00cdea7162ae43c0b5ca17bb10e02c4260c56739a9f291e7ce7c6051475f0",'
    b' "uncompressed": false, "summary": "S1",'
    b' "checksum": "f962b8d3e1a4fc6f78d74a3159efbdc1bc6f27a3e0a67838f012a53193d97b9d"}',
)


def test_a_checkpoint_that_was_kept_before_there_were_others_is_found() -> None:
    """The keys of the built-in refine, and what stands under them, are what they were."""
    store = MemoryStore()
    store.objects = dict([KEPT_BEFORE])
    chunks = chunks_of("One tells of ships.", "Two tells of storms.")
    model = ScriptedChatModel([], parameters={"temperature": 0.2})
    trail = Checkpoints(store).of(chunks, RefineSettings("report", 2000, 50), model)
    assert (trail.furthest().index, trail.furthest().summary) == (1, "S1")


def test_a_summary_that_was_made_before_there_were_others_is_not_out_of_date() -> None:
    """The recipe of the built-in refine is what it was; another one has another."""
    made_by = ("m", {"temperature": 0.2}, "o200k_base")
    before = "81321e79dd8b3de6388b6ebf28ea77bedb1197ccdd30ff8a008524dd0823176e"
    assert recipe(RefineSettings("report", 2000, 50), *made_by) == before
    assert recipe(RefineSettings("report", 2000, 50, OWN), *made_by) != before


OTHERS = {
    "the built-in one": summary_refine(),
    "own": OWN,
    "another prompt": minutes(prompt=PROMPT + "."),
    "another type": Refine(step(kind=Strict)),
    "no criterion": minutes(accept=AcceptSpec()),
    "no compress step": Refine(step()),
    "another compress prompt": Refine(step(), compress=shorten(SHORTER + ".")),
}


def test_no_two_refines_find_each_others_checkpoints() -> None:
    """Whatever differs: a prompt, the type, a criterion, the compress step."""
    chunks, model = chunks_of(*NINE[:2]), ScriptedChatModel([])
    keys = {
        name: Checkpoints(MemoryStore()).of(chunks, RefineSettings(refine=one), model).key
        for name, one in OTHERS.items()
    }
    assert len(set(keys.values())) == len(OTHERS)
    again = Checkpoints(MemoryStore()).of(chunks, RefineSettings(refine=minutes()), model).key
    assert again == keys["own"]


def test_a_finished_document_costs_one_read_and_no_call() -> None:
    """As with text."""
    store = MemoryStore()
    fold(chunks_of(*NINE), noting, store, refine=OWN)
    store.reads = store.lists = 0
    outcome = fold(chunks_of(*NINE), [], store, refine=OWN)
    assert (outcome.resumed_from, outcome.state.seen) == (9, 9)
    assert (store.reads, store.lists) == (1, 0)


def test_a_fresh_run_keeps_the_state_that_it_took_the_place_of(tmp_path: Path) -> None:
    """Whole, as JSON."""
    chunks = chunks_of(*NINE[:2])
    fold(chunks, noting, tmp_path, refine=OWN)
    other = json.dumps({"open": [], "seen": 7})
    outcome = fold(chunks, [other, other], open_store(str(tmp_path)), refine=OWN, generation="g")
    assert isinstance(outcome, Summarized) and outcome.earlier
    assert json.loads(outcome.earlier)["seen"] == 2
    assert fold(chunks, [], tmp_path, refine=OWN).state.seen == 7


class Mood(Enum):
    GOOD = "good"
    BAD = "bad"


class Rich(BaseModel):
    """What JSON has no types of its own for."""

    on: date | None = None
    mood: Mood = Mood.GOOD
    by: dict[str, list[tuple[int, str]]] = {}
    cost: Decimal = Decimal(0)
    named: str = Field(default="", alias="Name")


TEXT = st.text(
    st.characters(exclude_categories=["Cs", "Cc"]), max_size=9
)  # a8: no control characters
RICH = st.builds(
    Rich,
    on=st.none() | st.dates(),
    mood=st.sampled_from(Mood),
    by=st.dictionaries(TEXT, st.lists(st.tuples(st.integers(0, 9), TEXT), max_size=2), max_size=2),
    cost=st.decimals(0, 99, places=2),
    Name=TEXT,
)


@settings(max_examples=60, deadline=None)
@given(states=st.lists(RICH, min_size=1, max_size=4), killed_after=st.integers(0, 3))
def test_any_state_is_what_a_resumed_run_goes_on_with(
    states: list[Rich], killed_after: int
) -> None:
    """Dates, enums, decimals, aliases, any text: what comes back from a checkpoint is the same."""
    refine = Refine(step(kind=Rich, accept=AcceptSpec()))
    replies = [refine.text_of(state) for state in states]
    chunks = chunks_of(*NINE[: len(states)])
    store, done = MemoryStore(), min(killed_after, len(states) - 1)
    with pytest.raises(AssertionError):
        fold(chunks, replies[:done], store, refine=refine)
    model = ScriptedChatModel(replies[done:])
    outcome = fold(chunks, model, store, refine=refine)
    assert (outcome.state, outcome.resumed_from) == (states[-1], done)
