"""The soak runs and all holds; and each of its promises is seen to be broken where it is."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from promptchain_dagster.models.base import NO_USAGE, Usage
from promptchain_dagster.models.prices import cost_usd
from soak.faults import FAULTS, fault_of
from soak.limits import Limits
from soak.promises import PROMISES, Pass, Soak, broken
from soak.resources import slope
from soak.server import MODEL, Seen

ROOT = Path(__file__).parents[1]
DONE, FAILED = "000001-0123456789abcdef", "000002-0123456789abcdef"


@pytest.mark.timeout(300)
def test_a_quick_soak_holds_every_promise(tmp_path: Path) -> None:
    """60 documents, on the core and under Dagster, the server gone for a second."""
    command = [sys.executable, "-m", "soak", "--documents", "60", "--gone-seconds", "1"]
    done = subprocess.run(
        [*command, "--folder", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "every promise holds" in done.stdout


def usage(*seen: Seen) -> dict[str, Any]:
    """What those answers told."""
    tokens = sum(one.input_tokens for one in seen), sum(one.output_tokens for one in seen)
    untold = sum(one.fault == "500" for one in seen)
    return asdict(Usage(*tokens, cost_usd(MODEL, *tokens), untold))


def result(key: str, seen: list[Seen], **fields: Any) -> dict[str, Any]:
    """As the runs give it, of a document of one chunk."""
    return {
        "document_key": key,
        "run_id": "run",
        "status": "completed",
        "summary": f"of {key}",
        "chunks": 1,
        "failed_chunk": None,
        "resumed_from": 0,
        "model_calls": len(seen),
        "usage": usage(*seen),
        "warnings": [],
        "error": None,
        **fields,
    }


def pass_of(seen: list[Seen], *results: dict[str, Any], events: dict[str, int]) -> Pass:
    """One in which nothing was left behind."""
    told = {
        "requests": len(seen),
        "asked": len(seen),
        "unreached": {},
        "usage": usage(*seen),
        "memory": [(count, 100.0) for count in range(100, 1100, 100)],
        "left": {},
        "tasks": 0,
        "events": events,
    }
    return Pass(told, results, seen)


@pytest.fixture
def soak(tmp_path: Path) -> Soak:
    """Two documents: one is done, the other fails twice, and is done in the second pass."""
    good = Seen(1, 1.0, 1, "000001", "refine", 1, "", 50, 10)
    bad = [Seen(n, n, 1, "000002", "refine", 1, "500") for n in (2, 3)]
    late = Seen(1, 9.0, 1, "000002", "refine", 1, "", 60, 10)
    error = "refine, chunk 1 of 1: HTTP 500: request 3 of this server"
    failed = {"status": "failed", "summary": "", "failed_chunk": 1, "error": error}
    summarized = "document_summary ASSET_MATERIALIZATION"
    folded = "running_summary ASSET_MATERIALIZATION"
    first = pass_of(
        [good, *bad],
        result(DONE, [good]),
        result(FAILED, bad, **failed),
        events={folded: 1, summarized: 1, "document_summary ASSET_OBSERVATION": 1},
    )
    again = pass_of([late], result(FAILED, [late]), events={folded: 1, summarized: 1})
    (tmp_path / "summaries").mkdir()
    for key in (DONE, FAILED):
        (tmp_path / "summaries" / f"{key}.md").write_text(f"of {key}\n")
    (tmp_path / "ledger").mkdir()
    for name, one in (("first", first), ("again", again)):
        page = {"requests": one.told["requests"], "usage": one.told["usage"]}
        (tmp_path / "ledger" / f"{name}.json").write_text(json.dumps(page))
    undisturbed = {key: result(key, []) for key in (DONE, FAILED)}
    return Soak(tmp_path, Limits(1000), undisturbed, first, again)


def test_where_all_is_well_no_promise_is_broken(soak: Soak) -> None:
    """So that what is changed below is what breaks one."""
    assert broken(soak) == []


def told(name: str, value: Any) -> Callable[[Soak], Soak]:
    """The first pass told something else."""
    return lambda soak: replace(
        soak, first=replace(soak.first, told={**soak.first.told, name: value})
    )


def of_document(key: str, **fields: Any) -> Callable[[Soak], Soak]:
    """The first pass had another result."""

    def change(soak: Soak) -> Soak:
        results = [
            {**one, **fields} if one["document_key"] == key else one for one in soak.first.results
        ]
        return replace(soak, first=replace(soak.first, results=results))

    return change


def seen_again(document: str, **fields: Any) -> Callable[[Soak], Soak]:
    """The second server saw another request."""

    def change(soak: Soak) -> Soak:
        more = replace(soak.again.seen[0], document=document, **fields)
        return replace(soak, again=replace(soak.again, seen=[*soak.again.seen, more]))

    return change


def half_written(soak: Soak) -> Soak:
    """A file with a hidden name is left."""
    (soak.home / "summaries" / ".1-0123.tmp").touch()
    return soak


def other_summary(soak: Soak) -> Soak:
    """A summary in the home is another document's."""
    (soak.home / "summaries" / f"{DONE}.md").write_text("of something else")
    return soak


def failed_for_good(soak: Soak) -> Soak:
    """What had failed fails again."""
    (one,) = soak.again.results
    one = {**one, "status": "failed", "error": "HTTP 500", "failed_chunk": 1}
    return replace(soak, again=replace(soak.again, results=[one]))


@pytest.mark.parametrize(
    ("promise", "change"),
    [
        ("statuses", of_document(DONE, document_key=FAILED)),
        ("statuses", of_document(DONE, status="not_started")),
        ("summaries", of_document(DONE, summary="of something else")),
        ("kept_summaries", other_summary),
        ("reasons", of_document(FAILED, error="refine, chunk 1 of 1: HTTP 503: request 3 of this")),
        ("reasons", of_document(FAILED, error="can't be read", chunks=None, failed_chunk=None)),
        ("failures", failed_for_good),
        ("requests", told("asked", 4)),
        ("requests", of_document(DONE, model_calls=2)),
        ("requests", told("unreached", {"000002": 1})),
        ("usage", told("usage", asdict(NO_USAGE))),
        ("usage", of_document(DONE, usage=asdict(NO_USAGE))),
        ("paid_once", seen_again("000001")),
        ("paid_once", seen_again("000002")),
        ("pace", seen_again("000002", in_flight=33)),
        ("resources", told("left", {"descriptor of socket": 1})),
        ("resources", told("tasks", 1)),
        ("resources", told("memory", [(n, n / 100) for n in range(100, 1100, 100)])),
        ("home", half_written),
        ("events", told("events", {"running_summary ASSET_MATERIALIZATION": 1})),
    ],
)
def test_a_promise_that_is_broken_is_seen(
    soak: Soak, promise: str, change: Callable[[Soak], Soak]
) -> None:
    """Each of them, by the one thing that breaks it."""
    assert promise in {one.partition(":")[0] for one in broken(change(soak))}


def test_the_limit_of_a_minute_is_looked_for_in_every_minute(soak: Soak) -> None:
    """One request more than allowed within 59 s."""
    limit = soak.limits.requests_per_minute
    seen = [Seen(n, 58.0 * n / limit, 1, "000002", "refine", 1, "500") for n in range(limit + 1)]
    problems = broken(replace(soak, first=replace(soak.first, seen=seen)))
    assert f"pace: {limit + 1} requests in 59 s" in problems


def test_every_promise_is_tested() -> None:
    """None is added without a way to break it."""
    mark = next(
        one
        for one in test_a_promise_that_is_broken_is_seen.pytestmark  # type: ignore[attr-defined]
        if one.name == "parametrize"
    )
    assert {promise.__name__ for promise in PROMISES} == {name for name, _ in mark.args[1]}


def test_the_faults_are_as_often_as_their_rates_and_the_same_for_a_seed() -> None:
    """Of 20,000 prompts; another seed gives others."""
    met = [fault_of(1, f"prompt {number}", 1) for number in range(20_000)]
    for name, fault in FAULTS.items():
        assert met.count(name) / len(met) == pytest.approx(fault.rate, rel=0.5)
    assert met == [fault_of(1, f"prompt {number}", 1) for number in range(20_000)]
    assert met != [fault_of(2, f"prompt {number}", 1) for number in range(20_000)]


def test_the_slope_leaves_out_the_first_quarter_and_single_jumps() -> None:
    """MB per 1,000 documents."""
    warming = [(n, 100.0 + 10 * n) for n in range(1, 5)]
    assert slope([*warming, *((n, 150 + n / 100) for n in range(5, 21))]) == pytest.approx(10)
    assert slope([]) == 0
