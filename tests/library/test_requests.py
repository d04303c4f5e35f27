"""What a watcher has asked for: nothing lost, nothing twice."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.library.requests import ASKED, RETRY_AFTER, Pending, Requests
from promptchain_dagster.library.worklist import Why, Work
from tests.support.memory_store import MemoryStore

NOW = datetime(2031, 5, 4, 12, tzinfo=timezone.utc)
EARLY = NOW + RETRY_AFTER - timedelta(seconds=1)


def work(key: str, digest: str = "1", why: Why = Why.NEW, tries: int = 0) -> Work:
    return Work(key, f"{key}.txt", digest, digest, why, tries)


def never(batch: Pending) -> bool:
    return False


def always(batch: Pending) -> bool:
    return True


def due(requests: Requests, *todo: Work, now: datetime = NOW, limit: int = 10) -> list[str]:
    return [one.key for one in requests.due(todo, (), now, limit=limit)]


def asked(*todo: Work, size: int = 10) -> Requests:
    requests = Requests()
    requests.ask(todo, NOW, size=size)
    return requests


def test_what_is_written_is_read_again() -> None:
    """Whole, and only where it has changed."""
    store = MemoryStore()
    requests = asked(work("a"), work("b"), work("c"), size=2)
    requests.write(store)
    assert Requests.read(store) == requests
    assert [list(one.documents) for one in requests.pending] == [["a", "b"], ["c"]]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"format": 0}',
        b'{"format": 1, "asked": {"a": ["1"]}, "pending": []}',
        b'{"format": 1, "asked": {}, "pending": [{"name": "n"}]}',
    ],
)
def test_what_is_damaged_counts_as_nothing(data: bytes) -> None:
    """Then all is asked for again."""
    store = MemoryStore()
    store.write(ASKED, data)
    assert Requests.read(store) == Requests()


def test_f20_new_and_changed_are_due_and_what_is_merely_out_of_date_is_not() -> None:
    """Nor is what a run is at, or what is pending."""
    todo = [work("a"), work("b", why=Why.CHANGED), work("c", why=Why.OUT_OF_DATE)]
    assert due(Requests(), *todo) == ["a", "b"]
    assert [one.key for one in Requests().due(todo, {"a"}, NOW, limit=10)] == ["b"]
    assert due(asked(work("b", "0")), *todo) == ["a"]


def test_the_limit_counts_what_is_pending() -> None:
    """So a daemon that makes no run does not let them pile up."""
    todo = [work("a"), work("b"), work("c"), work("d")]
    assert due(Requests(), *todo, limit=3) == ["a", "b", "c"]
    assert due(asked(work("a"), work("b")), *todo, limit=3) == ["c"]


def test_a_batch_stays_pending_under_its_name_until_its_run_is_seen() -> None:
    """However often it is asked for."""
    requests = asked(work("a"), work("b"))
    before = list(requests.pending)
    for _ in range(3):
        requests.settle([work("a"), work("b")], never)
        assert requests.pending == before
    requests.settle([work("a"), work("b")], always)
    assert requests.pending == []
    assert due(requests, work("a"), work("b")) == []


@pytest.mark.parametrize("left", [[work("a")], [work("a"), work("b", "2")], []])
def test_a_batch_that_never_ran_and_is_out_of_date_is_asked_for_anew(left: list[Work]) -> None:
    """All that is left of it; one that was done or edited since makes it another batch."""
    requests = asked(work("a"), work("b"))
    requests.settle(left, never)
    assert requests.pending == []
    assert due(requests, *left) == [one.key for one in left]


def test_f20_the_same_is_due_again_after_an_hour_and_three_times_in_all() -> None:
    """Another text is due at once, whatever was asked for before."""
    requests, now = Requests(), NOW
    for _ in range(3):
        assert due(requests, work("a"), now=now) == ["a"]
        requests.ask([work("a")], now, size=1)
        requests.settle([work("a")], always)
        assert due(requests, work("a"), now=now + (EARLY - NOW)) == []
        now += RETRY_AFTER
    assert due(requests, work("a"), now=now) == []
    assert due(requests, work("a", "2"), now=now) == ["a"]


def test_what_others_have_failed_at_waits_an_hour_from_when_it_was_seen() -> None:
    """Their tries count."""
    requests = Requests()
    failed = work("a", tries=2)
    assert due(requests, failed) == []
    assert due(requests, failed, now=EARLY) == []
    assert due(requests, failed, now=NOW + RETRY_AFTER) == ["a"]
    requests.ask([failed], NOW, size=1)
    requests.settle([failed], always)
    assert due(requests, failed, now=NOW + 9 * RETRY_AFTER) == []


def test_what_is_no_longer_to_do_is_forgotten() -> None:
    """What is kept doesn't grow with the collection; a text that returns is due at once."""
    requests = asked(work("a"), work("b"))
    requests.settle([work("b")], always)
    assert requests.asked.keys() == {"b"}
    assert due(requests, work("a"), work("b")) == ["a"]


def test_two_batches_of_the_same_have_two_names() -> None:
    """Also within the same second: each is a run of its own."""
    requests = asked(work("a"))
    requests.ask([work("a")], NOW, size=1)
    first, second = requests.pending
    assert first.documents == second.documents and first.name != second.name


def test_a_batch_of_none_is_refused() -> None:
    """The error names the value and the bound."""
    with pytest.raises(InvalidInput, match="size is 0, must be 1 or more"):
        Requests().ask([work("a")], NOW, size=0)
