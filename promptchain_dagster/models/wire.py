"""Chat Completions on the wire: what the bodies, statuses and headers of an endpoint mean."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, cast

from promptchain_dagster.models.base import (
    UNKNOWN_USAGE,
    CallError,
    Completion,
    Problem,
    Usage,
)
from promptchain_dagster.models.prices import cost_usd

_SURROGATE = re.compile("[\ud800-\udfff]")


def completion_of(body: str, asked: str, *, priced: bool = True) -> Completion:
    """The reply in the body of a 200; raises `CallError` where there is none (cases e5, e10).

    `asked` is the name of the model that was asked; unless `priced`, the cost is unknown.

    Such an error is one of the transport, never the model's bad JSON. The message may hold the
    server's own words, not yet redacted.
    """
    answer = _json_object(body)
    model = _text(answer.get("model")) or asked
    usage = _usage(answer.get("usage"), (model, asked) if priced else ())
    choices = answer.get("choices")
    first = cast("list[Any]", choices)[0] if isinstance(choices, list) and choices else None
    choice = _mapping(first)
    message = _mapping(choice.get("message"))
    if not message:
        raise _no_choices(answer, usage)
    finish_reason = _text(choice.get("finish_reason"))
    if choice.get("error") or finish_reason == "error":
        words = error_message(choice.get("error")) or "finish_reason: error"
        raise CallError(Problem.UNAVAILABLE, f"the reply broke off: {words}", usage=usage)
    content, refusal = _content(message)
    return Completion(
        text=content,
        model=model,
        finish_reason=finish_reason,
        usage=usage,
        refusal=refusal,
        reasoning_tokens=_reasoning_tokens(answer.get("usage")),
    )


def problem_in(status: int, error: object) -> Problem:
    """What an error means, by its code and words first and by its HTTP status after that."""
    details = _mapping(error)
    words = " ".join(
        str(details.get(name) or "") for name in ("code", "type", "message", "innererror")
    ).lower()
    words = words if details else str(error).lower()
    for problem, pattern in _BY_WORDS:
        if status < 500 and pattern.search(words):
            return problem
    param = str(details.get("param") or "")
    if status in (400, 422) and re.match(r"messages|prompt|input", param):
        return Problem.REFUSED
    return _BY_STATUS.get(status, Problem.UNAVAILABLE)


_BY_WORDS = (
    (
        Problem.UNUSABLE,
        re.compile(r"insufficient_quota|exceeded your current quota|billing_hard_limit|no credits"),
    ),
    (
        Problem.TOO_LONG,
        re.compile(
            r"context_length|context.?size|context window|context length|string_above_max_length"
            r"|(prompt|input) is too long|too many (input )?tokens in"
        ),
    ),
    (
        Problem.REFUSED,
        re.compile(
            r"content.?filter|content.?policy|responsibleai|moderation|content management policy"
        ),
    ),
    (Problem.UNUSABLE, re.compile(r"invalid_api_key|model_not_found")),
)

_BY_STATUS = {
    400: Problem.UNUSABLE,
    401: Problem.UNUSABLE,
    402: Problem.UNUSABLE,
    403: Problem.UNUSABLE,
    404: Problem.UNUSABLE,
    413: Problem.TOO_LONG,
    422: Problem.UNUSABLE,
}


def advice(status: int, error: object, model: str, endpoint: str) -> str:
    """What a person can do about an error that ends the run."""
    details = _mapping(error)
    code, param = str(details.get("code") or ""), details.get("param")
    if _BY_WORDS[0][1].search(f"{code} {details.get('type')} {error}".lower()) or status == 402:
        return f"quota exhausted at {endpoint}: add credit or raise the limit there, then run again"
    if status in (401, 403) or code == "invalid_api_key":
        return f"the key was not accepted by {endpoint}: check OPENAI_API_KEY"
    if status == 404 or code == "model_not_found":
        return (
            f"model {model!r} was not found at {endpoint}: check the model's name "
            "(PROMPTCHAIN_MODEL) and the address (OPENAI_BASE_URL)"
        )
    if param:
        return f"{endpoint} refused the parameter {param!r} for {model!r}: change or unset it"
    return f"{endpoint} refused the request for {model!r}: check the settings"


def error_message(error: object) -> str:
    """The server's own words in an error body, whatever their shape."""
    details = _mapping(error)
    words = next(
        (details[name] for name in ("message", "detail", "error") if details.get(name)), error
    )
    if isinstance(words, str):
        return "a web page" if words.lstrip().startswith("<") else words
    return json.dumps(words, default=str) if words else ""


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that `Retry-After` (seconds or an HTTP date) or `retry-after-ms` asks to wait.

    None where neither says anything usable or more than 0 (case e3): the normal delay holds.
    """
    said = headers.get("retry-after-ms"), headers.get("retry-after")
    for value, scale in zip(said, (1000, 1), strict=True):
        seconds = _number(value)
        if seconds is None and scale == 1 and value:
            seconds = _seconds_until(value)
        if seconds is not None and 0 < seconds < float("inf"):
            return seconds / scale
    return None


def _number(value: str | None) -> float | None:
    return float(value) if value and re.fullmatch(r"\s*\d+(\.\d+)?\s*", value, re.ASCII) else None


def _seconds_until(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp() - time.time()
    except (TypeError, ValueError, OverflowError):
        return None


def _json_object(body: str) -> Mapping[str, Any]:
    body = body.lstrip("\ufeff \t\r\n")
    if body.startswith("<"):
        raise _unreadable("endpoint is not an API, it answered with a web page: check the base URL")
    if not body:
        raise _unreadable("the body of the reply is empty")
    try:
        answer: object = json.loads(body)
    except (ValueError, RecursionError):
        raise _unreadable(f"the body of the reply is cut or no JSON: {body[:80]}") from None
    if not isinstance(answer, dict):
        raise _unreadable(f"the body of the reply is no JSON object: {body[:80]}")
    return cast("Mapping[str, Any]", answer)


def _unreadable(message: str) -> CallError:
    return CallError(Problem.UNAVAILABLE, message, usage=UNKNOWN_USAGE)


def _no_choices(answer: Mapping[str, Any], usage: Usage) -> CallError:
    error = answer.get("error")
    message = f"no choices in the reply, whose keys are: {', '.join(answer) or 'none'}"
    if error:
        message += f"; error: {error_message(error)}"
    problem = problem_in(200, error) if error else Problem.UNAVAILABLE
    return CallError(problem, message, usage=usage)


def _content(message: Mapping[str, Any]) -> tuple[str, str | None]:
    """Text and refusal; some endpoints send a list of parts."""
    content = message.get("content")
    refusal = message.get("refusal")
    if isinstance(content, list):
        parts = [_mapping(part) for part in cast("list[Any]", content)]
        content = "".join(_text(part.get("text")) or "" for part in parts)
        refusal = refusal or next((p["refusal"] for p in parts if p.get("refusal")), None)
    return _text(content) or "", _text(refusal)


def _usage(told: object, names: Iterable[str]) -> Usage:
    told = _mapping(told)
    tokens_in, tokens_out = _count(told.get("prompt_tokens")), _count(told.get("completion_tokens"))
    if tokens_in is None or tokens_out is None:
        return Usage(tokens_in, tokens_out, None, calls_without_usage=1)
    costs = (cost_usd(name, tokens_in, tokens_out) for name in names)
    return Usage(tokens_in, tokens_out, next((c for c in costs if c is not None), None))


def _reasoning_tokens(told: object) -> int | None:
    details = _mapping(_mapping(told).get("completion_tokens_details"))
    return _count(details.get("reasoning_tokens")) or _count(_mapping(told).get("reasoning_tokens"))


def _count(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _text(value: object) -> str | None:
    # JSON may hold half a surrogate pair, which no file and no request can be written with.
    return _SURROGATE.sub("\ufffd", value) if isinstance(value, str) and value else None


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
