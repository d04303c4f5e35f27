"""What a step's attempts came to, in short: for Dagster's log, metadata and failures."""

import dagster as dg

from promptchain_dagster.chain.outcome import Accepted, Attempt, Halted
from promptchain_dagster.pipelines import metadata as md

_FIELD = 200  # characters of each field in a log line


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


def _known(count: int | None) -> str:
    return "unknown" if count is None else str(count)
