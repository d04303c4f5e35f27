from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from promptchain_dagster.refine.checkpoints import Trail
from promptchain_dagster.refine.outcome import Stopped, Summarized
from promptchain_dagster.refine.steps import summary_refine
from promptchain_dagster.store import open_store
from promptchain_dagster.testing import ScriptedChatModel
from tests.support.folding import TO_COMPRESS, chunks_of, fold, index_sent, summary_sent
from tests.support.memory_store import Killed, MemoryStore

NINE = tuple(f"Part {number} tells of year {number}." for number in range(1, 10))


class DiesAfter:
    """The replies of a run whose process ends once `calls` of them have come."""

    def __init__(self, calls: int, reply: Callable[[str], str]) -> None:
        self.calls, self.reply = calls, reply

    def __call__(self, prompt: str) -> str:
        if self.calls == 0:
            raise AssertionError("killed")
        self.calls -= 1
        return self.reply(prompt)


def retelling(prompt: str) -> str:
    """A reply that depends on all it was given; over a cap of 6 words at every third chunk."""
    index = index_sent(prompt)
    if index is None:
        return "short " + TO_COMPRESS.findall(prompt)[0].split()[0]
    tag = f"s{index}x{len(prompt) % 97}"
    return f"{tag} one two three four five six" if index % 3 == 0 else f"{tag} one"


def killed_run(chunks: list[Any], store: MemoryStore, calls: int) -> int:
    """A run that is killed after that many replies; how many calls were answered."""
    model = ScriptedChatModel(DiesAfter(calls, retelling))
    try:
        fold(chunks, model, store, max_words=6)
    except AssertionError:
        return calls
    return len(model.prompts)


@settings(max_examples=60, deadline=None)
@given(total=st.integers(1, 9), kills=st.lists(st.integers(0, 4), max_size=4))
def test_d11_a_kill_after_any_call_then_a_resume_makes_only_the_calls_that_are_left(
    total: int, kills: list[int]
) -> None:
    """However often it is killed, all calls add up to those of one run, and the text is its own."""
    chunks = chunks_of(*NINE[:total])
    whole = ScriptedChatModel(retelling)
    expected = fold(chunks, whole, MemoryStore(), max_words=6)
    store = MemoryStore()
    paid = sum(killed_run(chunks, store, kill) for kill in kills)
    last = ScriptedChatModel(retelling)
    outcome = fold(chunks, last, store, max_words=6)
    assert isinstance(outcome, Summarized)
    assert outcome.summary == expected.summary
    assert paid + len(last.prompts) == len(whole.prompts)


@settings(max_examples=60, deadline=None)
@given(total=st.integers(1, 6), dies_at=st.integers(1, 9), after_write=st.booleans())
def test_d12_a_kill_at_any_write_leaves_the_old_state_or_the_new_one(
    total: int, dies_at: int, after_write: bool
) -> None:
    """At most the one reply that was not yet kept is paid again, and the text is the same."""
    chunks = chunks_of(*NINE[:total])
    whole = ScriptedChatModel(retelling)
    expected = fold(chunks, whole, MemoryStore(), max_words=6)
    store = MemoryStore()
    store.dies_at, store.after_write = dies_at, after_write
    first = ScriptedChatModel(retelling)
    try:
        fold(chunks, first, store, max_words=6)
    except Killed:
        store.dies_at = None
    second = ScriptedChatModel(retelling)
    assert fold(chunks, second, store, max_words=6).summary == expected.summary
    extra = len(first.prompts) + len(second.prompts) - len(whole.prompts)
    assert 0 <= extra <= (0 if after_write else 1)


def test_d11_a_run_killed_after_three_of_six_chunks_pays_six_calls_in_all(tmp_path: Path) -> None:
    """On disk too, and the resumed outcome says where it began."""
    chunks = chunks_of(*NINE[:6])
    with pytest.raises(AssertionError):
        fold(chunks, ["S1", "S2", "S3"], tmp_path)
    outcome = fold(chunks, ["S4", "S5", "S6"], tmp_path)
    assert isinstance(outcome, Summarized)
    assert (outcome.summary, outcome.resumed_from, outcome.model_calls) == ("S6", 3, 3)


def test_a_chunk_that_failed_is_the_first_of_the_next_run(tmp_path: Path) -> None:
    """A stopped run resumes after the last good chunk."""
    chunks = chunks_of(*NINE[:4])
    model = ScriptedChatModel(["S1", "S2", RuntimeError("gone"), RuntimeError("gone")])
    stopped = fold(chunks, model, tmp_path)
    assert isinstance(stopped, Stopped)
    again = ScriptedChatModel(["S3", "S4"])
    outcome = fold(chunks, again, tmp_path)
    assert isinstance(outcome, Summarized)
    assert index_sent(again.prompts[0]) == stopped.failed_chunk == 3
    assert summary_sent(again.prompts[0]) == "S2"


def test_an_unchanged_document_costs_no_call_and_one_read() -> None:
    """The last chunk's checkpoint is found under its own key."""
    store = MemoryStore()
    chunks = chunks_of(*NINE)
    fold(chunks, retelling, store)
    store.reads = store.lists = 0
    outcome = fold(chunks, [], store)
    assert isinstance(outcome, Summarized)
    assert (outcome.model_calls, outcome.resumed_from) == (0, 9)
    assert (store.reads, store.lists) == (1, 0)


def test_appended_text_costs_only_the_new_chunks() -> None:
    """The total is no part of a key."""
    store = MemoryStore()
    fold(chunks_of(*NINE[:7]), retelling, store)
    model = ScriptedChatModel(retelling)
    outcome = fold(chunks_of(*NINE), model, store)
    assert [index_sent(prompt) for prompt in model.prompts] == [8, 9]
    assert (outcome.resumed_from, outcome.warnings) == (7, ())


def test_a_last_chunk_that_grew_is_folded_again_without_a_warning() -> None:
    """Text appended where the last chunk had room is no edit."""
    store = MemoryStore()
    fold(chunks_of(*NINE[:7]), retelling, store)
    model = ScriptedChatModel(retelling)
    outcome = fold(chunks_of(*NINE[:6], NINE[6] + " And more.", "New."), model, store)
    assert [index_sent(prompt) for prompt in model.prompts] == [7, 8]
    assert outcome.warnings == ()


def test_a_shortened_document_costs_no_call() -> None:
    """What was folded up to its new end is there."""
    store = MemoryStore()
    fold(chunks_of(*NINE), retelling, store)
    outcome = fold(chunks_of(*NINE[:4]), [], store)
    assert isinstance(outcome, Summarized)
    assert outcome.model_calls == 0


@pytest.mark.parametrize("edited", range(9))
def test_d10_an_edit_restarts_at_the_first_changed_chunk_and_says_why(edited: int) -> None:
    """Only the unbroken prefix is taken; finished chunks after the edit are not."""
    store = MemoryStore()
    killed_run(chunks_of(*NINE), store, 12)
    texts = [*NINE[:edited], "Edited since.", *NINE[edited + 1 :]]
    model = ScriptedChatModel(retelling)
    outcome = fold(chunks_of(*texts), model, store, max_words=6)
    expected = fold(chunks_of(*texts), retelling, MemoryStore(), max_words=6)
    assert outcome.summary == expected.summary
    assert outcome.resumed_from == edited
    refined = [index for prompt in model.prompts if (index := index_sent(prompt))]
    assert refined == list(range(edited + 1, 10))
    said = any(f"chunk {edited + 1} is not the one" in warning for warning in outcome.warnings)
    assert said == (0 < edited < 8)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "another model"},
        {"parameters": {"temperature": 0.5}},
        {"max_words": 400},
        {"generation": "again"},
    ],
)
def test_d10_a_changed_model_parameter_or_cap_starts_over(change: dict[str, Any]) -> None:
    """All that shapes a summary is part of the key."""
    store = MemoryStore()
    fold(chunks_of(*NINE), retelling, store)
    of_model = {name: value for name, value in change.items() if name in ("name", "parameters")}
    of_run = {name: value for name, value in change.items() if name not in of_model}
    model = ScriptedChatModel(retelling, **of_model)
    outcome = fold(chunks_of(*NINE), model, store, **of_run)
    assert (outcome.resumed_from, len(model.prompts)) == (0, 9)


def test_d14_keys_are_of_content_and_not_of_names() -> None:
    """Where the chunks lie in a file changes nothing: equal documents cost one."""
    store = MemoryStore()
    chunks = chunks_of(*NINE)
    fold(chunks, retelling, store)
    moved = [dataclasses.replace(chunk, start=chunk.start + 5, tokens=9) for chunk in chunks]
    assert fold(moved, [], store).model_calls == 0


def test_two_documents_that_begin_alike_keep_apart() -> None:
    """They share the checkpoints of what they share, and no more."""
    store = MemoryStore()
    one = fold(chunks_of("Same start.", "The king died."), retelling, store)
    model = ScriptedChatModel(retelling)
    other = fold(chunks_of("Same start.", "The queen was crowned in Reims."), model, store)
    assert len(model.prompts) == 1
    assert one.summary != other.summary
    assert fold(chunks_of("Same start.", "The king died."), [], store).summary == one.summary


def half(data: bytes) -> bytes:
    return data[: len(data) // 2]


def other_summary(data: bytes) -> bytes:
    held = json.loads(data)
    held["summary"] = "Tampered."
    return json.dumps(held).encode()


DAMAGES: list[Callable[[bytes], bytes]] = [
    half,
    other_summary,
    lambda data: b"",
    lambda data: b"\x00" * len(data),
    lambda data: b"null",
    lambda data: b"[" * 100_000,
    lambda data: b'{"summary": 5}',
    lambda data: data + b"}",
    lambda data: data + b" ",
    lambda data: data.decode().encode("utf-16"),
]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("damaged", [3, 4])
def test_d12_a_damaged_checkpoint_is_reported_and_the_last_good_one_used(
    damage: Callable[[bytes], bytes], damaged: int, tmp_path: Path
) -> None:
    """Of a finished document and of one under way; the next run finds all in order again."""
    store = open_store(str(tmp_path))
    texts = NINE[:4]
    expected = fold(chunks_of(*texts[:damaged]), retelling, tmp_path)
    key = checkpoint_key(store, damaged)
    store.write(key, damage(store.read(key) or b""))
    model = ScriptedChatModel(retelling)
    outcome = fold(chunks_of(*texts), model, tmp_path)
    assert isinstance(outcome, Summarized)
    assert outcome.resumed_from == damaged - 1
    assert [index_sent(prompt) for prompt in model.prompts] == list(range(damaged, 5))
    assert len(outcome.warnings) == 1
    assert store.url_of(key) in outcome.warnings[0]
    again = fold(chunks_of(*texts), [], tmp_path)
    assert (again.summary, again.warnings) == (outcome.summary, ())
    assert expected.chunks == damaged


def test_d12_no_bit_of_a_checkpoint_can_change_unnoticed() -> None:
    """Nor one that leaves its meaning as it was, as in the escape of a control character."""
    store = MemoryStore()
    trail = Trail(store, ["3f" * 32], summary_refine())
    trail.save(1, 'Él said:\x1f "no".')
    assert trail.furthest().summary == 'Él said:\x1f "no".'
    (key, good), *_ = store.objects.items()
    for bit in range(8 * len(good)):
        changed = bytearray(good)
        changed[bit // 8] ^= 1 << bit % 8
        store.objects[key] = bytes(changed)
        found = trail.furthest()
        assert (found.index, found.summary) == (0, ""), bytes(changed)
        assert "damaged" in found.warnings[0]


def checkpoint_key(store: Any, index: int) -> str:
    """The one checkpoint of that index."""
    (key,) = [key for key in store.list("checkpoints/") if f"/{index:06}-" in key]
    return key


def test_d12_a_checkpoint_in_the_place_of_another_is_not_taken(tmp_path: Path) -> None:
    """A file that was swapped is whole, but stands for something else."""
    store = open_store(str(tmp_path))
    fold(chunks_of(*NINE[:3]), retelling, tmp_path)
    second = store.read(checkpoint_key(store, 2))
    assert second
    store.write(checkpoint_key(store, 3), second)
    outcome = fold(chunks_of(*NINE[:3]), ["S3"], tmp_path)
    assert (outcome.summary, outcome.resumed_from, len(outcome.warnings)) == ("S3", 2, 1)


def test_d12_when_every_checkpoint_is_damaged_the_document_starts_over(tmp_path: Path) -> None:
    """Each is named, and none is taken."""
    store = open_store(str(tmp_path))
    fold(chunks_of(*NINE[:3]), retelling, tmp_path)
    for key in store.list("checkpoints/"):
        store.write(key, b"{")
    outcome = fold(chunks_of(*NINE[:3]), retelling, tmp_path)
    assert isinstance(outcome, Summarized)
    assert (outcome.resumed_from, outcome.model_calls, len(outcome.warnings)) == (0, 3, 3)


def test_other_files_among_the_checkpoints_are_left_alone(tmp_path: Path) -> None:
    """A stray file neither stops a run nor is taken."""
    store = open_store(str(tmp_path))
    fold(chunks_of(*NINE[:3]), retelling, tmp_path)
    folder = checkpoint_key(store, 1).rpartition("/")[0]
    store.write(f"{folder}/notes.txt", b"mine")
    outcome = fold(chunks_of(*NINE[:4]), retelling, tmp_path)
    assert (outcome.resumed_from, outcome.warnings) == (3, ())
    assert store.read(f"{folder}/notes.txt") == b"mine"


def test_a_fresh_run_pays_again_and_later_runs_take_its_summary() -> None:
    """The earlier summary is returned, and kept beside the new one."""
    store = MemoryStore()
    chunks = chunks_of(*NINE[:3])
    fold(chunks, ["Old1", "Old2", "Old3"], store)
    fresh = fold(chunks, ["New1", "New2", "New3"], store, generation="run-7")
    assert isinstance(fresh, Summarized)
    assert (fresh.summary, fresh.earlier, fresh.model_calls) == ("New3", "Old3", 3)
    assert fold(chunks, [], store).summary == "New3"
    assert any(b"Old3" in data for data in store.objects.values())


def test_a_document_that_grows_after_a_fresh_run_goes_on_from_it() -> None:
    """Nothing of the earlier run comes back, whichever chunk is the last unchanged one."""
    store = MemoryStore()
    fold(chunks_of(*NINE[:3]), ["Old1", "Old2", "Old3"], store)
    fold(chunks_of(*NINE[:3]), ["New1", "New2", "New3"], store, generation="run-7")
    model = ScriptedChatModel(["S"])
    fold(chunks_of(*NINE[:2], "Another ending."), model, store)
    assert summary_sent(model.prompts[0]) == "New2"


@settings(max_examples=40, deadline=None)
@given(dies_at=st.integers(1, 14), after_write=st.booleans())
def test_a_fresh_run_that_was_killed_resumes_and_loses_nothing(
    dies_at: int, after_write: bool
) -> None:
    """With the same generation it goes on; the earlier summary stays known to the end."""
    store = MemoryStore()
    chunks = chunks_of(*NINE[:4])
    fold(chunks, ["Old1", "Old2", "Old3", "Old4"], store)
    store.writes, store.dies_at, store.after_write = 0, dies_at, after_write
    first = ScriptedChatModel(retelling)
    with contextlib.suppress(Killed):
        fold(chunks, first, store, generation="run-7")
    store.dies_at = None
    second = ScriptedChatModel(retelling)
    outcome = fold(chunks, second, store, generation="run-7")
    assert isinstance(outcome, Summarized)
    assert len(first.prompts) + len(second.prompts) <= 4 + (not after_write)
    assert fold(chunks, [], store).summary == outcome.summary
    assert any(b"Old4" in data for data in store.objects.values())
    grown = ScriptedChatModel(["S"])
    fold(chunks_of(*NINE[:3], "Another ending."), grown, store)
    assert "Old" not in grown.prompts[0]


def test_a_fresh_run_of_a_new_document_has_no_earlier_summary() -> None:
    """There was nothing to keep beside it."""
    outcome = fold(chunks_of(*NINE[:2]), ["S1", "S2"], MemoryStore(), generation="run-7")
    assert isinstance(outcome, Summarized)
    assert outcome.earlier is None


def test_f26_a_checkpoint_holds_no_more_than_the_summary_and_its_key(tmp_path: Path) -> None:
    """Neither the document, the model's parameters nor anything secret is written down."""
    store = open_store(str(tmp_path))
    fold(chunks_of("A secret passage."), ["S1"], tmp_path)
    (key,) = store.list("checkpoints/")
    held = json.loads(store.read(key) or b"")
    assert set(held) == {"key", "uncompressed", "summary", "checksum"}


def test_resuming_at_chunk_900_of_1000_makes_exactly_100_calls() -> None:
    """The furthest checkpoint is found by one listing, whatever the number of chunks."""
    store = MemoryStore()
    texts = [f"Part {number}." for number in range(1, 1001)]
    fold(chunks_of(*texts[:900]), retelling, store)
    store.reads = store.lists = 0
    model = ScriptedChatModel(retelling)
    outcome = fold(chunks_of(*texts), model, store)
    assert (len(model.prompts), outcome.resumed_from) == (100, 900)
    assert (store.reads, store.lists) == (2, 1)
