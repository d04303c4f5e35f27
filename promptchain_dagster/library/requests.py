"""Which documents a watcher has asked runs for: one object, `documents.asked.json`.

A batch is written down before it is asked for, and asked for again, under the same name, until its
run is seen. So whatever is killed in between, none is lost, and none runs twice.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.library.registry import utc
from promptchain_dagster.library.state import MAX_TRIES
from promptchain_dagster.library.worklist import Why, Work
from promptchain_dagster.store import Store

ASKED = "documents.asked.json"
RETRY_AFTER = timedelta(hours=1)
"""How long a document whose run came to nothing waits for the next: what failed may pass."""

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Asked:
    """The last run asked for a document: what it is to summarize, how many were asked for the
    same, and when (UTC, ISO 8601)."""

    digest: str
    times: int
    when: str


@dataclass(frozen=True, slots=True)
class Pending:
    """A batch whose run was not yet seen: `documents` are digests by key, `name` is its own."""

    name: str
    documents: Mapping[str, str]


@dataclass
class Requests:
    """What was asked for. One watcher at a time; nothing is kept before `write`."""

    asked: dict[str, Asked] = field(default_factory=dict[str, Asked])
    pending: list[Pending] = field(default_factory=list[Pending])

    @classmethod
    def read(cls, store: Store) -> Requests:
        """What is kept; nothing where that is missing or damaged: then all is asked for again."""
        data = store.read(ASKED)
        try:
            held = json.loads(data or b"{}")
            if held["format"] != _FORMAT:
                return cls()
            asked = {key: Asked(*one) for key, one in held["asked"].items()}
            return cls(asked, [Pending(**one) for one in held["pending"]])
        except (ValueError, TypeError, KeyError, AttributeError):
            return cls()

    def write(self, store: Store) -> None:
        """Replace what is kept, whole, where it has changed."""
        held = {
            "format": _FORMAT,
            "asked": {key: [one.digest, one.times, one.when] for key, one in self.asked.items()},
            "pending": [asdict(batch) for batch in self.pending],
        }
        data = json.dumps(held, separators=(",", ":")).encode()
        if data != store.read(ASKED):
            store.write(ASKED, data)

    def settle(self, work: Iterable[Work], was_seen: Callable[[Pending], bool]) -> None:
        """Forget the batches whose run was seen, and what was asked for documents that are no
        longer to do. A batch that never ran and is out of date is taken apart, to be asked anew."""
        digests = {one.key: one.digest for one in work}
        kept: list[Pending] = []
        for batch in self.pending:
            if was_seen(batch):
                continue
            if all(digests.get(key) == digest for key, digest in batch.documents.items()):
                kept.append(batch)
            else:
                for key in batch.documents:
                    self.asked.pop(key, None)
        self.pending = kept
        self.asked = {key: one for key, one in self.asked.items() if digests.get(key) == one.digest}

    def due(
        self, work: Iterable[Work], busy: Collection[str], now: datetime, *, limit: int
    ) -> list[Work]:
        """At most `limit` of the work, counting what is pending, that is to be asked for now.

        That is what is new or changed. The same text and recipe is asked for again only when the
        run came to nothing: an hour later, and no more than 3 times. `busy` are the documents that
        a run is at.
        """
        pending = {key for batch in self.pending for key in batch.documents}
        found: list[Work] = []
        for one in work:
            if len(found) + len(pending) >= limit:
                break
            if one.why is Why.OUT_OF_DATE or one.key in busy or one.key in pending:
                continue
            if self._is_due(one, now):
                found.append(one)
        return found

    def ask(self, work: Iterable[Work], now: datetime, *, size: int) -> None:
        """Make the work pending, in batches of at most `size` documents."""
        if size < 1:
            raise InvalidInput(f"size is {size}, must be 1 or more")
        when, rest = utc(now), list(work)
        for one in rest:
            before = self.asked.get(one.key)
            times = before.times + 1 if before and before.digest == one.digest else 1
            self.asked[one.key] = Asked(one.digest, times, when)
        for start in range(0, len(rest), size):
            batch = {one.key: one.digest for one in rest[start : start + size]}
            self.pending.append(Pending(secrets.token_hex(8), batch))

    def _is_due(self, one: Work, now: datetime) -> bool:
        before = self.asked.get(one.key)
        if before is None or before.digest != one.digest:
            if not one.tries:
                return True
            # Another run has tried it, and failed: it waits as long.
            self.asked[one.key] = Asked(one.digest, one.tries, utc(now))
            return False
        waited = now - datetime.fromisoformat(before.when)
        return before.times < MAX_TRIES and waited >= RETRY_AFTER
