"""`promptchain trace`: what each step of a run saw, said and cost."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from promptchain_dagster.cli.bad_input import BadInput
from promptchain_dagster.cli.options import Common, common_options
from promptchain_dagster.cli.show_post import dollars

if TYPE_CHECKING:
    from promptchain_dagster.store import Store


@click.command()
@click.argument("run_id")
@common_options
def trace(common: Common, run_id: str) -> None:
    """Show every attempt of a run: inputs, prompt, reply, verdict, tokens, cost, seconds.

    The beginning of a run's id is enough where no other run begins so.
    """
    from promptchain_dagster.chain.trace import read_trace
    from promptchain_dagster.cli.runs import result_key
    from promptchain_dagster.cli.streams import print_json, say
    from promptchain_dagster.store import open_store

    store = open_store(common.home, read_only=True)
    run_id = find_run(store, run_id)
    data = store.read(result_key(run_id))
    result = json.loads(data) if data is not None else None
    attempts = read_trace(store, run_id)
    if common.as_json:
        print_json({"run_id": run_id, "attempts": attempts, "result": result})
        return
    say("\n".join(_told(run_id, attempts, result)))


def find_run(store: Store, given: str) -> str:
    """The one run whose id begins with `given` and that left a trace or a result."""
    kept = {key.split("/")[1] for key in store.list("traces/")}
    kept |= {key.split("/")[1].removesuffix(".json") for key in store.list("results/")}
    if given in kept:
        return given
    found = sorted(run_id for run_id in kept if given and run_id.startswith(given))
    if not found:
        place = store.url_of("traces")
        raise BadInput(f"RUN_ID {given!r}: no such run under {place}; runs kept: {len(kept)}")
    if len(found) > 1:
        shown = ", ".join(found[:5]) + (", …" if len(found) > 5 else "")
        raise BadInput(f"RUN_ID {given!r} is the beginning of {len(found)} runs: {shown}")
    return found[0]


def _told(
    run_id: str, attempts: list[dict[str, Any]], result: Mapping[str, Any] | None
) -> Iterator[str]:
    status = result.get("status", "ended") if result else "not ended, or broken off"
    yield f"run {run_id}: {status}"
    for attempt in attempts:
        yield ""
        yield from _attempt(attempt)
    if not attempts:
        yield "no attempt was made"


def _attempt(attempt: Mapping[str, Any]) -> Iterator[str]:
    where = f"{attempt['label']}, " if attempt["label"] else ""
    verdict = "accepted" if attempt["accepted"] else "rejected"
    if attempt["call_error"]:
        verdict = "failed"
    yield f"== {where}{attempt['step']}, attempt {attempt['attempt']}: {verdict}"
    yield f"   {_took(attempt)}"
    for name, value in attempt["inputs"].items():
        yield from _block(f"input {name}", value)
    for name in ("prompt", "reply"):
        yield from _block(name, attempt[name])
    if attempt["output"] != attempt["reply"]:
        yield from _block("output", attempt["output"])
    for check in attempt["checks"]:
        yield f"   check {check['check']}: " + ("met" if check["met"] else "not met")
        yield from (f"     {message}" for message in check["messages"])
    if attempt["call_error"]:
        yield f"   error: {attempt['call_error']}"
    yield from (f"   warning: {warning}" for warning in attempt["warnings"])


def _took(attempt: Mapping[str, Any]) -> str:
    usage = attempt["usage"]
    known = {
        "model": attempt["model"],
        "finish reason": attempt["finish_reason"],
        "tokens in": usage["input_tokens"],
        "tokens out": usage["output_tokens"],
        "cost": dollars(usage["cost_usd"]),
        "seconds": f"{attempt['seconds']:.2f}",
        "requests": attempt["requests"],
        "retries": attempt["retries"],
    }
    told = [f"{name} {'unknown' if value is None else value}" for name, value in known.items()]
    return f"{attempt['started_at']}; " + ", ".join(told)


def _block(name: str, value: Any) -> Iterator[str]:
    if value is None:
        return
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
    lines = text.splitlines() or [""]
    if len(lines) == 1:
        yield f"   {name}: {lines[0]}"
        return
    yield f"   {name}:"
    yield from (f"     {line}" for line in lines)
