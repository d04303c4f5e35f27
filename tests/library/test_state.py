"""What was done with each document, and what follows for the next run."""

from __future__ import annotations

import dataclasses
import itertools
from datetime import datetime, timezone
from typing import Any

import pytest

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.library.quarantine import quarantine
from promptchain_dagster.library.recipe import WITHOUT_TEXT, digest_of, recipe
from promptchain_dagster.library.registry import Entry, Registry
from promptchain_dagster.library.scanned import Known, Scanned
from promptchain_dagster.library.state import (
    Done,
    Kind,
    SetAside,
    State,
    Todo,
    Tried,
    failure_of,
)
from promptchain_dagster.library.worklist import Why, Worklist, worklist
from promptchain_dagster.models.base import CallError, Problem
from promptchain_dagster.refine.documents import document_key
from promptchain_dagster.refine.outcome import (
    DocumentOutcome,
    NoContent,
    NotStarted,
    Stopped,
    Summarized,
    Unreadable,
)
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.testing import ScriptedChatModel
from tests.support.folding import chunks_of, fold
from tests.support.memory_store import Killed, MemoryStore

TEXT, OTHER_TEXT = "a" * 64, "b" * 64
RECIPE, OTHER_RECIPE = "1" * 64, "2" * 64
DIGEST = digest_of(TEXT, RECIPE)
KEY = document_key("a/Report, Q1.txt")
FOR_GOOD = [Kind.REFUSED, Kind.TOO_LONG, Kind.UNREADABLE]


def fail(state: State, run: str, kind: Kind = Kind.FAILED, digest: str = DIGEST) -> None:
    state.mark_failed(KEY, digest, kind, f"{kind.value} in {run}", run)


def known(path: str, content_hash: str | None = TEXT, unreadable: str | None = None) -> Known:
    return Known(path, (1, 1, 1), content_hash, unreadable)


def register(store: MemoryStore, path: str, content_hash: str = TEXT) -> None:
    Registry(store).put(
        Entry(
            key=document_key(path),
            path=path,
            root="/documents",
            content_hash=content_hash,
            size=1,
            registered_at="2026-01-01T00:00:00+00:00",
        )
    )


def test_a_document_is_to_do_until_it_is_done_with_this_text_and_recipe(
    store: MemoryStore,
) -> None:
    """A new text or a new recipe makes it to do again."""
    state = State.read(store)
    assert state.status(KEY, DIGEST) == Todo()
    state.mark_done(KEY, DIGEST, "run")
    for each in (state, State.read(store)):
        assert each.status(KEY, DIGEST) == Done()
        assert each.status(KEY, digest_of(OTHER_TEXT, RECIPE)) == Todo()
        assert each.status(KEY, digest_of(TEXT, OTHER_RECIPE)) == Todo()
        assert each.status(document_key("b.txt"), DIGEST) == Todo()


def test_fifty_thousand_documents_are_one_listing_and_no_read(store: MemoryStore) -> None:
    """The names alone tell."""
    keys = [document_key(f"{number}.txt") for number in range(50_000)]
    store.objects = {f"state/{key}.{DIGEST}.done.json": b"" for key in keys}
    state = State.read(store)
    assert all(state.status(key, DIGEST) == Done() for key in keys)
    assert (store.lists, store.reads) == (1, 0)


@pytest.mark.parametrize("kind", FOR_GOOD)
def test_what_cannot_end_otherwise_is_set_aside_at_once(store: MemoryStore, kind: Kind) -> None:
    """Refused, filtered, too long or unreadable: one try is enough."""
    fail(State.read(store), "run", kind)
    state = State.read(store)
    assert state.status(KEY, DIGEST) == SetAside(kind, 1)
    assert state.status(KEY, digest_of(OTHER_TEXT, RECIPE)) == Todo()
    assert state.status(KEY, digest_of(TEXT, OTHER_RECIPE)) == Todo()


@pytest.mark.parametrize("most", [1, 2, 3, 5])
def test_what_may_succeed_is_set_aside_after_so_many_tries(store: MemoryStore, most: int) -> None:
    """Each run that failed is a try; with the same text and recipe alone they add up."""
    for tries in range(1, most):
        fail(State.read(store), f"run {tries}")
        fail(State.read(store), f"run {tries}", digest=digest_of(OTHER_TEXT, RECIPE))
        assert State.read(store, max_tries=most).status(KEY, DIGEST) == Tried(tries)
    fail(State.read(store), "last run")
    state = State.read(store, max_tries=most)
    assert state.status(KEY, DIGEST) == SetAside(Kind.FAILED, most)
    assert state.status(KEY, digest_of(TEXT, OTHER_RECIPE)) == Todo()


def test_runs_at_once_lose_no_try_and_one_run_counts_once(store: MemoryStore) -> None:
    """Each of three runs listed before the others marked."""
    states = [State.read(store) for _ in range(3)]
    for number, state in enumerate(states):
        fail(state, f"run {number}")
        fail(state, f"run {number}")
        assert state.status(KEY, DIGEST) == Tried(1)
    assert State.read(store).status(KEY, DIGEST) == SetAside(Kind.FAILED, 3)


def test_max_tries_has_to_allow_one(store: MemoryStore) -> None:
    """Nothing would ever be done."""
    with pytest.raises(InvalidInput, match="max_tries is 0, must be 1 or more"):
        State.read(store, max_tries=0)


def test_release_makes_it_to_do_again_and_keeps_what_is_done(store: MemoryStore) -> None:
    """The next run tries, and counts from one."""
    state = State.read(store)
    state.mark_done(KEY, digest_of(OTHER_TEXT, RECIPE))
    fail(state, "run", Kind.REFUSED)
    assert state.release(KEY)
    assert not state.release(KEY)
    for each in (state, State.read(store)):
        assert each.status(KEY, DIGEST) == Todo()
        assert each.status(KEY, digest_of(OTHER_TEXT, RECIPE)) == Done()


def test_done_leaves_one_marker_a_document(store: MemoryStore) -> None:
    """Failures and earlier digests go, so that the listing does not grow."""
    state = State.read(store)
    state.mark_done(KEY, digest_of(OTHER_TEXT, OTHER_RECIPE))
    fail(state, "one")
    fail(state, "two", digest=digest_of(OTHER_TEXT, RECIPE))
    state.mark_done(KEY, DIGEST)
    assert list(store.objects) == [f"state/{KEY}.{DIGEST}.done.json"]


@pytest.mark.parametrize("after_write", [False, True])
def test_a_text_that_returns_to_an_earlier_state_is_not_taken_for_done(
    store: MemoryStore, after_write: bool
) -> None:
    """The summary that is kept is of the later text, also when marking it was killed."""
    State.read(store).mark_done(KEY, DIGEST)
    later = digest_of(OTHER_TEXT, RECIPE)
    store.writes, store.dies_at, store.after_write = 0, 1, after_write
    with pytest.raises(Killed):
        State.read(store).mark_done(KEY, later)
    state = State.read(store)
    assert state.status(KEY, DIGEST) == Todo()
    assert state.status(KEY, later) == (Done() if after_write else Todo())


def test_two_runs_that_disagree_leave_nothing_done(store: MemoryStore) -> None:
    """Which of the two summaries was kept last is not known."""
    first, second = State.read(store), State.read(store)
    first.mark_done(KEY, DIGEST)
    second.mark_done(KEY, digest_of(TEXT, OTHER_RECIPE))
    assert State.read(store).status(KEY, DIGEST) == Todo()
    State.read(store).mark_done(KEY, DIGEST)
    assert State.read(store).status(KEY, DIGEST) == Done()


@pytest.mark.parametrize(
    "name",
    [
        "state/readme.txt",
        f"state/{KEY}.{DIGEST}.json",
        f"state/{KEY}.{DIGEST}.other.json",
        f"state/{KEY}.{DIGEST[:-1]}.done.json",
        f"state/sub/{KEY}.{DIGEST}.done.json",
        f"state/{KEY}.x.{DIGEST}.done.json",
    ],
)
def test_a_name_that_is_no_marker_says_nothing(store: MemoryStore, name: str) -> None:
    """Other files among the markers do no harm."""
    store.objects[name] = b""
    assert State.read(store).status(KEY, DIGEST) == Todo()


@pytest.mark.parametrize("key", ["a.b", "a/b", "", "A", "../x"])
def test_what_is_no_document_key_is_refused(store: MemoryStore, key: str) -> None:
    """A marker that could not be read back would be lost."""
    with pytest.raises(InvalidInput):
        State.read(store).mark_done(key, DIGEST)
    with pytest.raises(InvalidInput):
        State.read(store).mark_failed(key, DIGEST, Kind.FAILED, "reason", "run")
    assert store.objects == {}


@pytest.mark.parametrize("path", ["报告.txt", "a" * 300, "a_b.txt", "-.txt", "._.md", "\udcff", ""])
def test_f3_f4_every_document_key_makes_a_marker(store: MemoryStore, path: str) -> None:
    """Whatever the document is called."""
    key = document_key(path)
    State.read(store).mark_done(key, DIGEST)
    assert State.read(store).status(key, DIGEST) == Done()


STOPPED = Stopped(summary="", chunks=3, failed_chunk=2, error="error")


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        (dataclasses.replace(STOPPED, problem=Problem.REFUSED), Kind.REFUSED),
        (dataclasses.replace(STOPPED, problem=Problem.TOO_LONG), Kind.TOO_LONG),
        (dataclasses.replace(STOPPED, problem=Problem.UNAVAILABLE), Kind.FAILED),
        (dataclasses.replace(STOPPED, problem=Problem.EMPTY_REPLY), Kind.FAILED),
        (dataclasses.replace(STOPPED, problem=Problem.OUTPUT_LIMIT), Kind.FAILED),
        (STOPPED, Kind.FAILED),
        (dataclasses.replace(STOPPED, problem=Problem.UNUSABLE, ends_run=True), None),
        (Unreadable(error="binary"), Kind.UNREADABLE),
        (Unreadable(error="disk", may_pass=True), Kind.FAILED),
        (NotStarted(reason="quota"), None),
        (NoContent(), None),
        (Summarized(summary="", chunks=1), None),
    ],
)
def test_an_outcome_says_what_it_counts_as(outcome: DocumentOutcome, kind: Kind | None) -> None:
    """A run that ended early is no try."""
    assert failure_of(outcome) is kind


@pytest.mark.parametrize("problem", list(Problem))
def test_why_a_call_failed_reaches_the_documents_outcome(
    store: MemoryStore, problem: Problem
) -> None:
    """By its kind, not by its text."""
    replies: list[Any] = ["S1", *[CallError(problem, "what came back")] * 2]
    stopped = fold(chunks_of("one", "two"), replies, store)
    assert isinstance(stopped, Stopped)
    assert (stopped.problem, stopped.failed_chunk) == (problem, 2)


def test_a_prompt_that_does_not_fit_is_too_long_without_a_call(store: MemoryStore) -> None:
    """The check before the call counts like the endpoint's own."""
    model = ScriptedChatModel([], context_tokens=50)
    stopped = fold(chunks_of("one two three"), model, store)
    assert isinstance(stopped, Stopped)
    assert (stopped.problem, model.prompts) == (Problem.TOO_LONG, [])


def test_all_that_shapes_a_summary_is_in_the_recipe_and_each_part_alone_changes_it() -> None:
    """The same is the same, whatever the order of the parameters."""
    plain = ("m", {"temperature": 0, "seed": 1}, "o200k_base")
    one = recipe(RefineSettings(), *plain)
    assert one == recipe(RefineSettings(), "m", {"seed": 1, "temperature": 0}, "o200k_base")
    others = [
        recipe(RefineSettings(document_type="report"), *plain),
        recipe(RefineSettings(chunk_tokens=1999), *plain),
        recipe(RefineSettings(max_words=499), *plain),
        recipe(RefineSettings(), "n", plain[1], plain[2]),
        recipe(RefineSettings(), "m", {"temperature": 0}, plain[2]),
        recipe(RefineSettings(), "m", plain[1], "cl100k_base"),
    ]
    assert len({one, *others}) == len(others) + 1


def paths(found: Worklist) -> list[list[str]]:
    return [[one.path for one in part] for part in (found.work, found.waiting, found.set_aside)]


def test_the_worklist_takes_what_lacks_a_summary_before_what_is_out_of_date(
    store: MemoryStore,
) -> None:
    """New and changed ones first, tried ones after them, then the rest; what is beyond waits."""
    state = State.read(store)
    state.mark_done(document_key("a-old.txt"), digest_of(TEXT, OTHER_RECIPE))
    state.mark_done(document_key("b-old.txt"), digest_of(TEXT, OTHER_RECIPE))
    state.mark_done(document_key("changed.txt"), digest_of(OTHER_TEXT, OTHER_RECIPE))
    state.mark_done(document_key("done.txt"), DIGEST)
    state.mark_failed(document_key("a-tried.txt"), DIGEST, Kind.FAILED, "503", "run")
    state.mark_failed(document_key("refused.txt"), DIGEST, Kind.REFUSED, "no", "run")
    documents = [
        *map(known, ("b-old.txt", "a-old.txt", "new.txt", "a-tried.txt", "done.txt")),
        *map(known, ("changed.txt", "refused.txt")),
        known("binary.txt", None, "binary"),
    ]
    order = ["changed.txt", "new.txt", "a-tried.txt", "a-old.txt", "b-old.txt"]
    whys = [Why.CHANGED, Why.NEW, Why.NEW, Why.OUT_OF_DATE, Why.OUT_OF_DATE]
    for shuffled in itertools.islice(itertools.permutations(documents), 0, None, 997):
        found = worklist(shuffled, State.read(store), RECIPE)
        assert paths(found) == [order, [], ["binary.txt", "refused.txt"]]
        assert [one.why for one in found.work] == whys
        assert found.done == 1
        found = worklist(shuffled, State.read(store), RECIPE, limit=2)
        assert paths(found)[:2] == [order[:2], order[2:]]
    assert {one.path: one.tries for one in found.waiting}["a-tried.txt"] == 1
    assert [one.kind for one in found.set_aside] == [Kind.UNREADABLE, Kind.REFUSED]


def test_a_new_recipe_takes_the_whole_collection_in_as_many_nights_as_it_needs(
    store: MemoryStore,
) -> None:
    """Each document once, none twice."""
    documents = [known(f"{number}.txt") for number in range(10)]
    taken: list[str] = []
    for left in (7, 4, 1, 0):
        state = State.read(store)
        found = worklist(documents, state, RECIPE, limit=3)
        assert len(found.waiting) == left
        for one in found.work:
            state.mark_done(one.key, one.digest)
            taken.append(one.path)
    assert sorted(taken) == sorted(one.path for one in documents)
    assert paths(worklist(documents, State.read(store), RECIPE)) == [[], [], []]


@pytest.mark.parametrize("limit", [0, -5])
def test_a_limit_below_one_is_refused(store: MemoryStore, limit: int) -> None:
    """A night that does nothing is a mistake."""
    with pytest.raises(InvalidInput, match=f"limit is {limit}, must be 1 or more"):
        worklist([], State.read(store), RECIPE, limit=limit)


def test_the_quarantine_names_path_reason_and_tries(store: MemoryStore) -> None:
    """The reason is that of the last try."""
    register(store, "a/Report, Q1.txt")
    state = State.read(store)
    for day in (2, 1, 3):
        when = datetime(2026, 5, day, tzinfo=timezone.utc)
        state.mark_failed(KEY, DIGEST, Kind.FAILED, f"day {day}", f"run {day}", when)
    (found,) = quarantine(store)
    assert (found.key, found.path, found.kind, found.tries) == (
        KEY,
        "a/Report, Q1.txt",
        Kind.FAILED,
        3,
    )
    assert (found.reason, found.run_id, found.when) == (
        "day 3",
        "run 3",
        "2026-05-03T00:00:00+00:00",
    )
    state.release(KEY)
    assert quarantine(store) == []


def test_the_quarantine_leaves_out_what_was_released_by_itself(store: MemoryStore) -> None:
    """A new text, another recipe, a document that is gone, or one that may be tried again."""
    register(store, "a/Report, Q1.txt")
    fail(State.read(store), "run", Kind.REFUSED)
    state = State.read(store)
    state.mark_failed(document_key("tried.txt"), DIGEST, Kind.FAILED, "503", "run")
    assert [one.key for one in quarantine(store)] == [KEY]
    assert [one.key for one in quarantine(store, recipe=RECIPE)] == [KEY]
    assert quarantine(store, recipe=OTHER_RECIPE) == []
    Registry(store).mark_absent("a/Report, Q1.txt")
    assert quarantine(store) == []
    register(store, "a/Report, Q1.txt", OTHER_TEXT)
    assert quarantine(store) == []


def test_the_quarantine_holds_what_the_scan_could_not_read(store: MemoryStore) -> None:
    """No run was needed to see it."""
    Scanned({"bad.txt": known("bad.txt", None, "'bad.txt' is a PDF")}).write(store)
    (found,) = quarantine(store)
    assert (found.path, found.reason, found.kind) == (
        "bad.txt",
        "'bad.txt' is a PDF",
        Kind.UNREADABLE,
    )


def test_what_a_run_could_not_read_is_held_as_what_a_scan_could_not(store: MemoryStore) -> None:
    """Once a document, whatever the recipe; until a later look could read it."""
    path = "a/Report, Q1.txt"
    registry, unread = Registry(store), "a PDF"

    def read(content_hash: str | None) -> None:
        entry = registry.find(KEY)
        assert entry
        registry.put(dataclasses.replace(entry, content_hash=content_hash))

    register(store, path)
    read(None)
    Scanned({path: known(path, None, unread)}).write(store)
    (scanned,) = quarantine(store, recipe=RECIPE)
    for run in ("one", "two"):
        fail(State.read(store), run, Kind.UNREADABLE, WITHOUT_TEXT)
    for by in (None, RECIPE, OTHER_RECIPE):
        (found,) = quarantine(store, recipe=by)
        assert (found.key, found.path, found.kind) == (KEY, path, scanned.kind)
        assert (scanned.tries, found.tries, found.run_id is None) == (0, 2, False)
    fail(State.read(store), "of an earlier text", Kind.REFUSED)
    assert [one.kind for one in quarantine(store)] == [Kind.UNREADABLE]
    read(OTHER_TEXT)
    assert quarantine(store) == []
    read(None)
    State.read(store).release(KEY)
    assert quarantine(store) == [scanned]


def test_the_quarantine_survives_a_damaged_marker(store: MemoryStore) -> None:
    """Its name says enough to set aside; that its body is damaged is said."""
    fail(State.read(store), "run", Kind.REFUSED)
    (name,) = store.objects
    for damage in (b"", b"{", b"[]", b"null"):
        store.objects[name] = damage
        (found,) = quarantine(store)
        assert (found.path, found.when) == (None, None)
        assert "damaged" in found.reason
