"""What a refine of one's own takes, before anything is spent."""

from __future__ import annotations

import pytest

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.library.estimate import estimate
from promptchain_dagster.refine.checkpoints import Checkpoints
from promptchain_dagster.refine.definition import Refine
from promptchain_dagster.refine.plan import plan_document
from promptchain_dagster.refine.room import (
    PROMPT_TOKENS,
    prompt_tokens,
    require_room,
    summary_tokens,
)
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.testing import ScriptedChatModel
from promptchain_dagster.tokens import get_encoder
from promptchain_dagster.words import count_words
from tests.support.folding import chunks_of, fold
from tests.support.memory_store import MemoryStore
from tests.support.minutes import PROMPT, SHORTER, Action, Actions, minutes, noting, step

CHUNKS = chunks_of("Ana is to see to it.", "Bo is to see to it.", "Kim is to see to it.")
LONG_PROMPT = PROMPT + "\nTake your time, and look at every line. " * 40


def test_the_tokens_of_the_own_prompt_are_counted() -> None:
    """Slots and all, so on the high side; the built-in prompt has its constant."""
    count = get_encoder().count
    own = minutes(prompt=LONG_PROMPT)
    assert prompt_tokens(own) == count(LONG_PROMPT) > 400
    assert prompt_tokens(own, compress=True) == count(SHORTER)
    assert prompt_tokens(RefineSettings().refine) == PROMPT_TOKENS


def test_a_plan_has_the_own_prompt_once_for_each_chunk_that_is_left() -> None:
    """And in the most calls, each step with its re-attempts."""
    store, model = MemoryStore(), ScriptedChatModel([])
    plans = {
        prompt: plan_document(
            CHUNKS,
            RefineSettings(max_words=5, refine=minutes(prompt=prompt)),
            model,
            Checkpoints(store),
        )
        for prompt in (PROMPT, LONG_PROMPT)
    }
    more = get_encoder().count(LONG_PROMPT) - get_encoder().count(PROMPT)
    assert plans[LONG_PROMPT].input_tokens - plans[PROMPT].input_tokens == 3 * more
    assert (plans[PROMPT].least_calls, plans[PROMPT].most_calls) == (3, 3 * (2 + 1) * 2)
    alone = RefineSettings(max_words=5, refine=Refine(step()))
    assert plan_document(CHUNKS, alone, model, Checkpoints(store)).most_calls == 3 * 2 * 2


def test_a_plan_leaves_out_what_the_own_checkpoints_cover() -> None:
    """Those of the built-in refine cover nothing of it."""
    store, model = MemoryStore(), ScriptedChatModel([])
    settings = RefineSettings(refine=minutes())
    fold(CHUNKS, lambda prompt: "S", store)
    assert plan_document(CHUNKS, settings, model, Checkpoints(store)).least_calls == 3
    fold(CHUNKS, noting, store, refine=minutes())
    assert plan_document(CHUNKS, settings, model, Checkpoints(store)).least_calls == 0


def test_a_typed_state_takes_more_tokens_a_word_than_prose() -> None:
    """Brackets, quotes and indents are no words."""
    typed, text = RefineSettings(max_words=100, refine=minutes()), RefineSettings(max_words=100)
    assert summary_tokens(typed) == 400 > summary_tokens(text)
    actions = Actions(open=[Action(what=f"see to part {n}", who="Ana") for n in range(9)])
    state = minutes().text_of(actions)
    per_word = get_encoder().count(state) / count_words(state)
    assert 1.5 < per_word <= 4


def test_room_is_asked_for_the_own_prompt() -> None:
    """Before anything is spent."""
    fits = RefineSettings(chunk_tokens=100, max_words=10, refine=minutes())
    require_room(fits, 400)
    too_long = RefineSettings(chunk_tokens=100, max_words=10, refine=minutes(prompt=LONG_PROMPT))
    with pytest.raises(InvalidInput, match="chunk_tokens is 100, too many"):
        require_room(too_long, 400)


def test_an_estimate_by_size_is_of_the_own_prompt_too() -> None:
    """Calls at their worst with re-attempts."""
    short = estimate([4000], RefineSettings(refine=minutes()), "m")
    long = estimate([4000], RefineSettings(refine=minutes(prompt=LONG_PROMPT)), "m")
    assert long.input_tokens > short.input_tokens + 400
    assert short.most_calls == 2 * (2 + 1)
