"""What must hold when all is done; each function tells what does not."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from promptchain_dagster.models.base import NO_USAGE, Usage
from promptchain_dagster.models.prices import cost_usd
from soak.documents import original
from soak.faults import KINDS
from soak.limits import Limits
from soak.replies import concise
from soak.resources import slope
from soak.server import MODEL, Seen

MOST_GROWTH = 5.0
"""MB per 1,000 documents."""
_ENOUGH_DOCUMENTS = 1000
"""For a slope to say anything."""
_WINDOW = 59.0
"""Seconds: of the minute in which a limit holds, what the way to the server may take is left."""
_PAID = ("", "slow bytes")

Result = Mapping[str, Any]


@dataclass(frozen=True)
class Pass:
    """All documents once: what the process told, what became of each, what the server saw."""

    told: Mapping[str, Any]
    results: Sequence[Result]
    seen: Sequence[Seen]

    @property
    def unreached(self) -> int:
        """Requests that no server saw."""
        return sum(self.told["unreached"].values())

    def keys(self, status: str) -> set[str]:
        """The documents of that status."""
        return {one["document_key"] for one in self.results if one["status"] == status}


@dataclass(frozen=True)
class Soak:
    """Two passes on one home: the first with a server that misbehaves, then again with a good one.

    `undisturbed` holds the summaries to be compared with, by key.
    """

    home: Path
    limits: Limits
    undisturbed: Mapping[str, Result]
    first: Pass
    again: Pass

    @property
    def passes(self) -> tuple[Pass, Pass]:
        """Both."""
        return self.first, self.again


def text_of(key: str) -> str:
    """Which document's text the document of that key has, as `Seen.document` names it."""
    return f"{original(int(key[:6])):06}"


def statuses(soak: Soak) -> Iterator[str]:
    """Every document has a status, one."""
    times = Counter(one["document_key"] for one in soak.first.results)
    for key in soak.undisturbed:
        if times[key] != 1:
            yield f"{key} has {times[key]} results"
    for one in soak.first.results:
        if one["status"] not in ("completed", "failed", "no_content"):
            yield f"{one['document_key']} is {one['status']}: {one['error']}"


def summaries(soak: Soak) -> Iterator[str]:
    """Each summary is the undisturbed one, but where its compression failed, which it said."""
    warned = {one["document_key"] for one in _each(soak) if _warnings(one)}
    for one in _each(soak):
        key = one["document_key"]
        expected = soak.undisturbed[key]["summary"]
        if one["status"] != "completed" or one["summary"] == expected:
            continue
        if key not in warned or concise(one["summary"]) != expected:
            yield f"{key} has another summary: {one['summary']!r}"


def kept_summaries(soak: Soak) -> Iterator[str]:
    """What lies in the home is what the results say, where it keeps summaries by name."""
    for path in sorted((soak.home / "summaries").glob("*.md")):
        found = concise(path.read_text(encoding="utf-8").strip())
        if found != soak.undisturbed[path.stem]["summary"]:
            yield f"{path.name} holds another summary: {found!r}"


def reasons(soak: Soak) -> Iterator[str]:
    """A document that failed says why, in words that the server gave for it."""
    for run in soak.passes:
        given: dict[str, list[Seen]] = {}
        for seen in run.seen:
            given.setdefault(seen.document, []).append(seen)
        for one in run.results:
            key = one["document_key"]
            if one["chunks"] is None and one["status"] == "failed":
                if soak.undisturbed[key]["status"] != "failed":
                    yield f"{key} could be read: {one['error']}"
                continue
            text = text_of(key)
            for said in _said(one):
                told = _was_given(said, given.get(text, ()))
                if not told and not (run.told["unreached"].get(text) and "onnect" in said):
                    yield f"{key} gives a reason that nobody gave: {said}"


def failures(soak: Soak) -> Iterator[str]:
    """In the end only what nobody could summarize has failed."""
    for one in soak.again.results:
        key = one["document_key"]
        if one["status"] == "failed" and soak.undisturbed[key]["status"] != "failed":
            yield f"{key} failed again: {one['error']}"
    done = {one["document_key"] for one in _each(soak) if one["status"] == "completed"}
    for key, one in soak.undisturbed.items():
        if one["status"] == "completed" and key not in done:
            yield f"{key} has no summary"


def requests(soak: Soak) -> Iterator[str]:
    """What was counted is what was sent, and what was sent is what the server saw."""
    for run in soak.passes:
        counts = {
            "the run": run.told["requests"],
            "its documents": sum(one["model_calls"] for one in run.results),
            "its model": run.told["asked"],
            "the server, and what did not reach it": len(run.seen) + run.unreached,
        }
        if len(set(counts.values())) > 1:
            yield f"requests: {counts}"


def usage(soak: Soak) -> Iterator[str]:
    """Tokens and cost are those that the server told, by run, by document and in the ledger."""
    for run in soak.passes:
        told = Usage(
            sum(seen.input_tokens for seen in run.seen),
            sum(seen.output_tokens for seen in run.seen),
            0,
            sum(KINDS[seen.fault].tells_usage is False for seen in run.seen),
        )
        by_document = _sum(one["usage"] for one in run.results)
        for name, found in (("run", Usage(**run.told["usage"])), ("documents", by_document)):
            yield from _differs(f"usage by {name}", found, told)
    pages = [json.loads(page.read_bytes()) for page in (soak.home / "ledger").rglob("*.json")]
    total = _sum(run.told["usage"] for run in soak.passes)
    yield from _differs("usage in the ledger", _sum(page["usage"] for page in pages), total)
    counted = sum(page["requests"] for page in pages)
    if counted != (sent := sum(run.told["requests"] for run in soak.passes)):
        yield f"the ledger counts {counted} requests, the runs {sent}"


def paid_once(soak: Soak) -> Iterator[str]:
    """No answer is paid for twice, and only what failed is asked for again."""
    paid = Counter(
        (seen.document, seen.step, seen.part)
        for run in soak.passes
        for seen in run.seen
        if seen.fault in _PAID
    )
    yield from (f"{what} was paid for {times} times" for what, times in paid.items() if times > 1)
    failed = {text_of(key) for key in soak.first.keys("failed")}
    for seen in soak.again.seen:
        if seen.document not in failed:
            yield f"document {seen.document} had not failed, and was asked for again"


def pace(soak: Soak) -> Iterator[str]:
    """The server saw no more at once, and no more in a minute, than was allowed."""
    for run in soak.passes:
        most = max((seen.in_flight for seen in run.seen), default=0)
        if most > soak.limits.max_in_flight:
            yield f"{most} requests at once"
        window: deque[float] = deque()
        for seen in run.seen:
            window.append(seen.at)
            while seen.at - window[0] >= _WINDOW:
                window.popleft()
            if len(window) > soak.limits.requests_per_minute:
                yield f"{len(window)} requests in {_WINDOW:g} s"
                break


def resources(soak: Soak) -> Iterator[str]:
    """Nothing is held that was not held at the start, and memory does not grow."""
    for run in soak.passes:
        for what, count in run.told["left"].items():
            yield f"left: {count} more, {what}"
        if run.told["tasks"]:
            yield f"left: {run.told['tasks']} tasks"
    growth = slope(soak.first.told["memory"])
    if soak.limits.documents >= _ENOUGH_DOCUMENTS and growth > MOST_GROWTH:
        yield f"memory grows by {growth:.1f} MB per 1,000 documents"


def home(soak: Soak) -> Iterator[str]:
    """No file in the home is a half-written one."""
    for path in soak.home.rglob(".*"):
        yield f"left in the home: {path.relative_to(soak.home)}"


def events(soak: Soak) -> Iterator[str]:
    """Under Dagster, every chunk and every document is recorded, once."""
    for run in soak.passes:
        if (stored := run.told.get("events")) is None:
            continue
        # What the scan saw to be unreadable came into no run.
        came = [one for one in run.results if one["run_id"]]
        failed = sum(one["status"] == "failed" for one in came)
        folded = sum(_chunks_folded(one) for one in came)
        expected = {
            "running_summary ASSET_MATERIALIZATION": folded,
            "document_summary ASSET_MATERIALIZATION": len(came) - failed,
            "document_summary ASSET_OBSERVATION": failed,
        }
        expected = {name: count for name, count in expected.items() if count}
        if stored != expected:
            yield f"events: {stored}, expected {expected}"


PROMISES = (
    statuses,
    summaries,
    kept_summaries,
    reasons,
    failures,
    requests,
    usage,
    paid_once,
    pace,
    resources,
    home,
    events,
)


def broken(soak: Soak) -> list[str]:
    """Each way in which a promise is broken."""
    return [f"{one.__name__}: {what}" for one in PROMISES for what in one(soak)]


def _each(soak: Soak) -> Iterator[Result]:
    for run in soak.passes:
        yield from run.results


def _chunks_folded(result: Result) -> int:
    """In its own run."""
    last = result["failed_chunk"] - 1 if result["failed_chunk"] else result["chunks"] or 0
    return last - result["resumed_from"]


def _said(result: Result) -> list[str]:
    """The reasons that a document gives: of its failure, and of compressions that failed."""
    error = [result["error"]] if result["error"] else []
    return [*_warnings(result), *error]


def _warnings(result: Result) -> list[str]:
    return [one for one in result["warnings"] if "could not be compressed" in one]


def _was_given(said: str, given: Sequence[Seen]) -> bool:
    return any(
        KINDS[seen.fault].reason.format(number=seen.number) in said
        for seen in given
        if KINDS[seen.fault].reason
    )


def _sum(usages: Iterator[Mapping[str, Any]] | Any) -> Usage:
    return sum((Usage(**one) for one in usages), NO_USAGE)


def _differs(name: str, found: Usage, expected: Usage) -> Iterator[str]:
    tokens = found.input_tokens or 0, found.output_tokens or 0
    told = tokens, found.calls_without_usage
    if told != (
        (expected.input_tokens, expected.output_tokens),
        expected.calls_without_usage,
    ):
        yield f"{name}: {found}, expected {expected}"
    cost = cost_usd(MODEL, *tokens) or 0
    if abs((found.cost_usd or 0) - cost) > 1e-6:
        yield f"{name}: {found.cost_usd} USD, expected {cost}"
