"""What a step's attempts came to, in short: for Dagster's log, metadata and failures."""

import json
from collections.abc import Sequence
from typing import Any

import dagster as dg

from promptchain_dagster.chain.outcome import Accepted, Attempt, Halted
from promptchain_dagster.pipelines import metadata as md
from promptchain_dagster.pipelines.chains.descriptions import fenced
from promptchain_dagster.words import count_words

_FIELD = 200  # characters of each field in a log line
_TABLE = 1500  # characters of what criteria said, in a table of attempts


def log_line(attempt: Attempt) -> str:
    """One attempt: what went in, what came out, the gate's result, what it took."""
    given = ", ".join(f"{name}={md.preview(v, _FIELD)}" for name, v in attempt.inputs.items())
    usage = attempt.usage
    return (
        f"{attempt.step}, attempt {attempt.number}: {_gate(attempt)}\n"
        f"input: {md.preview(given)}\n"
        f"output: {md.preview(attempt.output)}\n"
        f"tokens: {_known(usage.input_tokens)} in, {_known(usage.output_tokens)} out;"
        f" requests: {attempt.requests}; seconds: {attempt.seconds:.2f};"
        f" finish reason: {attempt.finish_reason}"
    )


def of_accepted(outcome: Accepted, trace: str) -> md.Metadata:
    """The metadata of an output that was accepted."""
    last = outcome.attempts[-1]
    told: md.Metadata = {
        md.INPUT: md.bounded(last.inputs),
        md.PREVIEW_KEY: md.preview(last.output),
        md.GATE: _gate(last),
        md.ATTEMPTS: len(outcome.attempts),
        md.TRACE: dg.MetadataValue.path(trace),
        **md.of_usage(outcome.usage, outcome.model_calls),
    }
    if last.model:
        told[md.MODEL] = last.model
    if outcome.warnings:
        told[md.WARNINGS] = md.lines(outcome.warnings)
    return told


def of_asset(
    outcome: Accepted, value: Any, trace: str, warnings: Sequence[str] = ()
) -> md.Metadata:
    """The metadata of an asset that was made: `warnings` are of what it was made from."""
    told = of_accepted(outcome, trace)
    if isinstance(value, str):
        shown = md.without_images(md.preview(value))
        told[md.WORDS] = count_words(value)
    else:
        shown = fenced(md.preview(json.dumps(value, ensure_ascii=False, indent=2)), "json")
    told[md.PREVIEW_KEY] = dg.MetadataValue.md(shown)
    told[md.SECONDS] = round(sum(attempt.seconds for attempt in outcome.attempts), 3)
    if warnings:
        told[md.WARNINGS] = md.lines([*warnings, *outcome.warnings])
    return told


def of_gate(outcome: Accepted | Halted, trace: str) -> md.Metadata:
    """The metadata of a gate's check: the verdict, every attempt, and what was rejected."""
    last = outcome.attempts[-1]
    told: md.Metadata = {
        md.GATE: _gate(last),
        md.ATTEMPTS: len(outcome.attempts),
        md.ATTEMPT_TABLE: dg.MetadataValue.md(attempts_table(outcome.attempts)),
        md.TRACE: dg.MetadataValue.path(trace),
    }
    if isinstance(outcome, Halted):
        told[md.MESSAGES] = md.lines(outcome.messages)
        if outcome.rejected_output is not None:
            told[md.REJECTED_OUTPUT] = md.bounded(outcome.rejected_output)
    return told


def attempts_table(attempts: Sequence[Attempt]) -> str:
    """A Markdown table: a row for each attempt, in a column for each criterion what it said."""
    checks = list(dict.fromkeys(one.check for a in attempts for one in a.judgements))
    room = max(20, _TABLE // (len(attempts) * max(1, len(checks))))
    rows = [["attempt", "verdict", *(_cell(check, room) for check in checks)]]
    rows.append(["---"] * len(rows[0]))
    for attempt in attempts:
        said = {one.check: "; ".join(one.messages) or "met" for one in attempt.judgements}
        cells = [_cell(said.get(check, "not judged"), room) for check in checks]
        rows.append([str(attempt.number), _verdict(attempt), *cells])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def failure(halted: Halted, trace: str, result: str | None) -> dg.Failure:
    """The failure of the op that ends the run: what was rejected, why, and every attempt.

    Never retried by Dagster: the retries there are belong to the step and to its calls, and have
    been made. To be raised as it is, since within another exception it would be retried (f11).
    """
    told: md.Metadata = {
        md.STEP: halted.step,
        md.REASON: halted.reason.value,
        md.MESSAGES: md.lines(halted.messages),
        md.TRACE: dg.MetadataValue.path(trace),
        **md.of_usage(halted.usage, halted.model_calls),
    }
    if halted.failed_checks:
        checks = [{"check": one.check, "message": one.message} for one in halted.failed_checks]
        told[md.FAILED_CHECKS] = md.bounded(checks)
    if halted.rejected_output is not None:
        told[md.REJECTED_OUTPUT] = md.bounded(halted.rejected_output)
    for attempt in halted.attempts:
        told[f"{md.ATTEMPT}_{attempt.number}"] = md.bounded(
            {"output": attempt.output, "errors": list(attempt.errors)}
        )
    if result:
        told[md.RESULT] = dg.MetadataValue.path(result)
    text = "; ".join(dict.fromkeys(halted.messages))
    return dg.Failure(
        md.preview(f"{halted.step} {halted.reason.value}: {text}"), told, allow_retries=False
    )


def _gate(attempt: Attempt) -> str:
    if attempt.call_error:
        return md.preview(f"failed: {attempt.call_error}")
    if attempt.accepted:
        return "accepted"
    failed = [f"{one.check}: {message}" for one in attempt.judgements for message in one.messages]
    return md.preview("rejected: " + "; ".join(failed))


def _verdict(attempt: Attempt) -> str:
    if attempt.call_error:
        return "failed"
    return "accepted" if attempt.accepted else "rejected"


def _cell(text: str, room: int) -> str:
    # A message may quote the model, whose markup must not end the cell.
    flat = " ".join(text.split())
    plain = md.preview(flat, room).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
    return md.without_images(plain)


def _known(count: int | None) -> str:
    return "unknown" if count is None else str(count)
