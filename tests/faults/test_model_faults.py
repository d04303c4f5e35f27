"""Every kind of fault of an endpoint, over real HTTP, at every call of a document and of a post.

What a fault is taken for, and what a single call makes of it: `tests/models/test_endpoint.py`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from promptchain_dagster.blog_post import Brief, Variant, blog_post_chain
from promptchain_dagster.chain.outcome import Completed, Halted, Reason
from promptchain_dagster.chain.run import run_chain
from promptchain_dagster.chain.trace import read_trace, recorder
from promptchain_dagster.models import Calls, ModelSettings, connect
from promptchain_dagster.refine.checkpoints import Checkpoints
from promptchain_dagster.refine.fold import refine_document
from promptchain_dagster.refine.outcome import Stopped, Summarized
from promptchain_dagster.store import Store, open_store
from tests.faults.documents import FILLER, SETTINGS, answer, summary_of, text_of
from tests.support.chat_server import (
    HANG,
    HTML,
    Answer,
    ChatServer,
    Request,
    error,
    raw,
    reply,
)
from tests.support.folding import chunks_of, index_sent, no_wait

LATE, IN_TIME = 1.5, 60.0
"""Seconds after which an answer is no longer waited for, where none will come, and elsewhere."""

PASSING: dict[str, Answer] = {
    "500": error(500),
    "503 with a wait": error(503, headers={"Retry-After": "1"}),
    "429": error(429),
    "reset": Answer('{"choices": []}' + " " * 2000, fault="reset"),
    "cut": Answer('{"choices": []}' + " " * 2000, fault="cut"),
    "half a body": Answer('{"id": "1", "choi'),
    "a web page": HTML,
    "no choices": raw({"choices": []}),
    "an empty reply": reply(""),
    "no answer": HANG,
    "slow bytes": Answer("x" * 10_000, fault="drip"),
}
OF_THE_PROMPT: dict[str, Answer] = {
    "refusal": reply(None, refusal="I will not."),
    "content filter": error(400, code="content_filter"),
    "too long": error(400, code="context_length_exceeded"),
}
OF_THE_ENDPOINT: dict[str, Answer] = {
    "quota": error(429, code="insufficient_quota"),
    "wrong key": error(401, code="invalid_api_key"),
    "unknown model": error(404, code="model_not_found"),
}
FOR_GOOD = {**PASSING, **OF_THE_PROMPT, **OF_THE_ENDPOINT}

CHUNKS = chunks_of(*text_of("d", 3).split("\n\n"))
CALLS: list[int | None] = [1, 2, 3, None]
"""The calls that the document takes: a chunk's number, or None for the compression."""

SUMMARY = summary_of("d", 3)


def timeout_of(fault: Answer) -> float:
    """How long to wait for an endpoint with that fault."""
    return LATE if fault.fault in ("hang", "drip") else IN_TIME


class Endpoint:
    """Answers well, but for the call `at`: that one `times` times not."""

    def __init__(self, fault: Answer, at: int | None, times: int) -> None:
        self._fault, self._at, self._left = fault, at, times
        self.timeout = timeout_of(fault)

    def __call__(self, request: Request) -> Answer | str:
        if index_sent(request.prompt) == self._at and self._left > 0:
            self._left -= 1
            return self._fault
        return answer(request.prompt)


@dataclass
class Ended:
    """What became of the document, what was sent for it, and what is kept of it."""

    outcome: Summarized | Stopped
    sent: int
    kept: int


async def fold_at(endpoint: Endpoint | None, store: Store) -> Ended:
    """One run over the document, against a server of its own."""
    timeout = endpoint.timeout if endpoint else IN_TIME
    with ChatServer(endpoint or (lambda request: answer(request.prompt))) as server:
        async with connect(ModelSettings(model="stub", base_url=server.url)) as model:
            calls = Calls(model, sleep=no_wait, timeout_seconds=timeout)
            outcome = await refine_document(CHUNKS, SETTINGS, calls, Checkpoints(store))
        sent = len(server.requests)
    assert calls.requests == outcome.model_calls == sent
    return Ended(outcome, sent, len(store.list("checkpoints/")))


def together(*work: Coroutine[Any, Any, Any]) -> list[Any]:
    """What several of them bring, beside each other, so that they wait together."""

    async def main() -> list[Any]:
        return list(await asyncio.gather(*work))

    return asyncio.run(main())


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
def test_a_fault_that_passes_costs_one_request_whichever_call_it_hits(
    fault: Answer, tmp_path: Path
) -> None:
    """The summary is that of an undisturbed run."""
    stores = [open_store(str(tmp_path / str(at))) for at in CALLS]
    runs = [fold_at(Endpoint(fault, at, 1), s) for at, s in zip(CALLS, stores, strict=True)]
    for ended in together(*runs):
        assert isinstance(ended.outcome, Summarized)
        assert ended.outcome.summary == SUMMARY
        assert (ended.sent, ended.kept) == (len(CALLS) + 1, len(CALLS))


@pytest.mark.parametrize("kind", FOR_GOOD)
def test_a_fault_that_stays_keeps_the_summary_so_far_and_the_next_run_pays_for_the_rest(
    kind: str, tmp_path: Path
) -> None:
    """At every chunk: its index is told, and no reply that came is asked for again."""
    stores = [open_store(str(tmp_path / str(at))) for at in (1, 2, 3)]
    faults = [Endpoint(FOR_GOOD[kind], at, 9) for at in (1, 2, 3)]
    stopped = together(*map(fold_at, faults, stores))
    again = together(*(fold_at(None, store) for store in stores))
    for at, before, after in zip((1, 2, 3), stopped, again, strict=True):
        assert isinstance(before.outcome, Stopped)
        assert before.outcome.failed_chunk == at
        assert before.outcome.summary == summary_of("d", at - 1)
        assert before.outcome.ends_run == (kind in OF_THE_ENDPOINT)
        assert before.outcome.error.startswith(f"refine, chunk {at} of 3: ")
        assert (before.kept, before.sent) == (at - 1, at - 1 + (2 if kind in PASSING else 1))
        assert (after.outcome.summary, after.outcome.resumed_from) == (SUMMARY, at - 1)
        assert after.sent == len(CALLS) - before.kept


@pytest.mark.parametrize("kind", FOR_GOOD)
def test_a_compression_that_fails_for_good_loses_no_summary(kind: str, tmp_path: Path) -> None:
    """The longer one is kept; only where the whole run ends is the compression left to the next."""
    store = open_store(str(tmp_path))
    ended = asyncio.run(fold_at(Endpoint(FOR_GOOD[kind], None, 9), store))
    again = asyncio.run(fold_at(None, store))
    assert ended.outcome.summary == SUMMARY + FILLER
    assert ended.sent == 3 + (2 if kind in PASSING else 1)
    if kind in OF_THE_ENDPOINT:
        assert isinstance(ended.outcome, Stopped)
        assert (again.outcome.summary, again.sent) == (SUMMARY, 1)
    else:
        assert isinstance(ended.outcome, Summarized)
        assert (ended.outcome.over_cap, len(ended.outcome.warnings)) == (True, 2)
        assert (again.outcome.summary, again.sent) == (SUMMARY + FILLER, 0)


STEPS = ("outline", "draft", "polish")
REPLIES = {
    "outline": json.dumps(
        {"sections": [{"heading": f"Part {n}", "point": f"It proves {n}."} for n in range(1, 5)]}
    ),
    "draft": "A whole draft.",
    "polish": "A whole post.",
}


def step_of(prompt: str) -> str:
    """The step of the chain that a prompt belongs to."""
    if prompt.startswith("You are planning"):
        return "outline"
    return "draft" if prompt.startswith("Write the full post") else "polish"


async def write_post(fault: Answer, at: str, times: int, store: Store) -> Any:
    """One run of the chain, its step `at` being answered with `fault` so many times."""
    left = times

    def respond(request: Request) -> Answer | str:
        nonlocal left
        step = step_of(request.prompt)
        if step == at and left > 0:
            left -= 1
            return fault
        return REPLIES[step]

    with ChatServer(respond) as server:
        async with connect(ModelSettings(model="stub", base_url=server.url)) as model:
            calls = Calls(model, sleep=no_wait, timeout_seconds=timeout_of(fault))
            chain = blog_post_chain(Variant.GATE_WITH_RETRY)
            brief = Brief(brief="Why cats sleep.", audience="owners")
            outcome = await run_chain(chain, brief, calls, record=recorder(store, at))
        sent = [step_of(request.prompt) for request in server.requests]
    assert calls.requests == outcome.model_calls == len(sent)
    return outcome, sent, read_trace(store, at)


@pytest.mark.parametrize("kind", PASSING)
def test_a_fault_that_passes_costs_a_post_one_request_whichever_step_it_hits(
    kind: str, tmp_path: Path
) -> None:
    """At the outline an empty reply is a rejected attempt, which costs one request as well."""
    store = open_store(str(tmp_path))
    runs = [write_post(PASSING[kind], at, 1, store) for at in STEPS]
    for at, (outcome, sent, trace) in zip(STEPS, together(*runs), strict=True):
        assert isinstance(outcome, Completed)
        assert outcome.output == REPLIES["polish"]
        assert sent == [step for step in STEPS for _ in range(1 + (step == at))]
        assert sum(attempt["requests"] for attempt in trace) == len(sent)


@pytest.mark.parametrize("kind", [kind for kind in FOR_GOOD if kind != "an empty reply"])
def test_a_fault_that_stays_ends_a_post_with_the_step_s_name(kind: str, tmp_path: Path) -> None:
    """No later step is called, and the trace has what came before it."""
    store = open_store(str(tmp_path))
    runs = [write_post(FOR_GOOD[kind], at, 9, store) for at in STEPS]
    for number, (outcome, sent, trace) in enumerate(together(*runs)):
        at = STEPS[number]
        assert isinstance(outcome, Halted)
        assert (outcome.step, outcome.reason) == (at, Reason.FAILED)
        assert outcome.ends_run == (kind in OF_THE_ENDPOINT)
        assert sent == [*STEPS[:number], *[at] * (2 if kind in PASSING else 1)]
        assert [attempt["step"] for attempt in trace] == [*STEPS[:number], at]
        assert [attempt["accepted"] for attempt in trace] == [True] * number + [False]


def test_replies_that_stay_empty_are_three_rejected_outlines(tmp_path: Path) -> None:
    """The gate has its attempts; an empty draft is a call that errored."""
    store = open_store(str(tmp_path))
    runs = [write_post(PASSING["an empty reply"], at, 9, store) for at in STEPS[:2]]
    (outline, asked, _), (draft, drafted, _) = together(*runs)
    assert (outline.step, outline.reason, asked) == ("outline", Reason.REJECTED, ["outline"] * 3)
    assert (draft.step, draft.reason, drafted[1:]) == ("draft", Reason.FAILED, ["draft"] * 2)
