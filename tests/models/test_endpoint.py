"""What an endpoint answers, and what follows from it: the table of `docs/models.md`."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any

import pytest

from promptchain_dagster.models import Problem, Usage
from tests.models.conftest import Ask
from tests.support.chat_server import HANG, HTML, Answer, error, free_port_url, raw, reply

LONG = '{"id": "1", "choices": []}' + " " * 2000

TRANSIENT: dict[str, Answer] = {
    "408": error(408),
    "409": error(409),
    "429": error(429),
    "500": error(500),
    "502 with a page": Answer(HTML.body, 502),
    "503 without a body": Answer("", 503),
    "529": error(529),
    "418, unknown": error(418),
    "405, unknown": error(405),
    "reset in mid-body": Answer(LONG, fault="reset"),
    "closed in mid-body": Answer(LONG, fault="cut"),
    "bad gzip": Answer("not gzip", headers={"Content-Encoding": "gzip"}),
    "redirect": Answer("", 302, {"Location": "/login"}),
    "e10 cut body": Answer('{"id": "1", "choi'),
    "e10 empty body": Answer(""),
    "e10 blank body": Answer(" \n"),
    "e10 html": HTML,
    "e10 html said to be JSON": Answer(HTML.body),
    "e10 text": Answer("upstream request timeout", headers={"Content-Type": "text/plain"}),
    "e10 list": raw([1, 2]),
    "e10 null": raw(None),
    "e10 string": raw("ok"),
    "e10 nested too deep": Answer("[" * 100_000),
    "e5 no choices": raw({"choices": []}),
    "e5 null choices": raw({"choices": None}),
    "e5 choices of null": raw({"choices": [None]}),
    "e5 choices as an object": raw({"choices": {"0": "x"}}),
    "e5 null message": raw({"choices": [{"message": None}]}),
    "e5 usage only": raw({"usage": {"prompt_tokens": 3, "completion_tokens": 0}}),
    "e5 error with 200": raw({"error": {"message": "upstream dead"}}),
    "e5 error as text": raw({"error": "upstream dead"}),
    "e5 empty object": raw({}),
    "error inside the choice": raw(
        {"choices": [{"finish_reason": "error", "message": {"content": "par"}}]}
    ),
}


@pytest.mark.parametrize("answer", TRANSIENT.values(), ids=TRANSIENT)
def test_e5_e10_a_passing_fault_is_retried_once_and_then_fails(ask: Ask, answer: Answer) -> None:
    """Two requests, one wait with jitter, and a typed error that ends this call alone."""
    asked = ask(answer)
    assert asked.sent == 2
    assert asked.error.problem is Problem.UNAVAILABLE
    assert len(asked.waits) == 1
    assert 0.5 <= asked.waits[0] <= 1.0
    assert not asked.ended
    assert "invalid JSON" not in str(asked.error)


@pytest.mark.parametrize("answer", TRANSIENT.values(), ids=TRANSIENT)
def test_a_passing_fault_passes(ask: Ask, answer: Answer) -> None:
    """The second request's reply is the call's, also on the same client and connection pool."""
    asked = ask(answer, "hello")
    assert asked.text == "hello"
    assert asked.sent == 2


def test_e5_no_choices_shows_the_keys_of_the_body(ask: Ask) -> None:
    """The message names what was there instead, and the server's words where there are any."""
    assert "keys are: id, usage" in str(ask(raw({"id": "1", "usage": None})).error)
    assert "upstream dead" in str(ask(raw({"error": {"message": "upstream dead"}})).error)


def test_e10_a_web_page_is_no_api(ask: Ask) -> None:
    """The message says so, and which endpoint it was."""
    asked = ask(HTML)
    assert "endpoint is not an API" in str(asked.error)
    assert asked.server.url in str(asked.error)


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_e1_a_hang_takes_as_many_requests_as_configured(ask: Ask, retries: int) -> None:
    """Retries have one owner: the SDK adds none, whichever timeout strikes first."""
    assert ask(HANG, retries=retries, timeout_seconds=0.2).sent == retries + 1
    assert ask(HANG, retries=retries, settings={"timeout_seconds": 0.2}).sent == retries + 1


def test_e1_a_reply_that_drips_is_timed_out_as_a_whole(ask: Ask) -> None:
    """Each byte arrives in time, the reply does not."""
    asked = ask(Answer("x" * 10_000, fault="drip"), timeout_seconds=0.3, retries=0)
    assert str(asked.error) == "no reply within 0.3 s"
    assert asked.calls[0].usage == Usage(None, None, None, 1)


def test_a_refused_connection_costs_nothing(ask: Ask) -> None:
    """Nothing was sent, so the usage is known: none."""
    asked = ask("unused", settings={"base_url": free_port_url()})
    assert asked.error.problem is Problem.UNAVAILABLE
    assert asked.calls[0].usage == Usage()


RETRY_AFTER: dict[str, tuple[dict[str, str], float | None]] = {
    "2": ({"Retry-After": "2"}, 2.0),
    "1.5": ({"Retry-After": "1.5"}, 1.5),
    "120, the limit itself": ({"Retry-After": "120"}, 120.0),
    "ms": ({"retry-after-ms": "2500"}, 2.5),
    "ms before s": ({"retry-after-ms": "2500", "Retry-After": "9"}, 2.5),
    "garbage ms, good s": ({"retry-after-ms": "soon", "Retry-After": "9"}, 9.0),
    "0": ({"Retry-After": "0"}, None),
    "negative": ({"Retry-After": "-5"}, None),
    "garbage": ({"Retry-After": "soon"}, None),
    "nan": ({"Retry-After": "nan"}, None),
    "inf": ({"Retry-After": "inf"}, None),
    "empty": ({"Retry-After": ""}, None),
    "a date gone by": ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, None),
    "an impossible date": ({"Retry-After": "Wed, 99 Oct 2015 07:28:00 GMT"}, None),
}


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(("headers", "wait"), RETRY_AFTER.values(), ids=RETRY_AFTER)
def test_e3_retry_after_is_waited_or_the_normal_delay(
    ask: Ask, status: int, headers: dict[str, str], wait: float | None
) -> None:
    """What is usable is waited exactly; what is not leaves the delay of 0.5 to 1 s."""
    asked = ask(error(status, headers=headers), "hello")
    assert asked.text == "hello"
    if wait is None:
        assert 0.5 <= asked.waits[0] <= 1.0
    else:
        assert asked.waits == [wait]


def test_e3_a_date_is_waited_for(ask: Ask) -> None:
    """An HTTP date in the future is as many seconds as there are until then."""
    then = datetime.now(timezone.utc) + timedelta(seconds=60)
    asked = ask(error(429, headers={"Retry-After": format_datetime(then, usegmt=True)}), "hello")
    assert 30 < asked.waits[0] <= 60


def test_e3_more_than_the_limit_fails_and_says_how_long(ask: Ask) -> None:
    """121 s is over the default limit of 120 s, and within one of 121 s."""
    answer = error(429, headers={"Retry-After": "121"})
    asked = ask(answer, "hello")
    assert asked.sent == 1
    assert asked.waits == []
    assert "121 s" in str(asked.error)
    assert "120 s" in str(asked.error)
    assert ask(answer, "hello", max_retry_after_seconds=121).waits == [121.0]


HOPELESS: dict[str, tuple[Answer, str]] = {
    "e2 quota": (error(429, code="insufficient_quota"), "quota exhausted"),
    "e2 quota by type": (error(429, type="insufficient_quota", code=None), "quota exhausted"),
    "e2 quota by words": (error(429, "You exceeded your current quota, …"), "quota exhausted"),
    "e2 no credit": (error(402, "Insufficient credits"), "quota exhausted"),
    "wrong key": (error(401, code="invalid_api_key"), "OPENAI_API_KEY"),
    "no such right": (error(403), "OPENAI_API_KEY"),
    "unknown model": (error(404, code="model_not_found"), "'stub' was not found at http://127"),
    "unknown model, plain": (raw({"error": "model 'stub' not found"}, 404), "'stub' was not found"),
    "unknown path": (Answer(HTML.body, 404), "OPENAI_BASE_URL"),
    "e4 max_tokens": (error(400, param="max_tokens"), "'max_tokens'"),
    "e4 temperature": (error(400, param="temperature", code="unsupported_value"), "'temperature'"),
    "e4 seed, 422": (error(422, param="seed"), "'seed'"),
    "400 without a parameter": (error(400, "no such thing"), "no such thing"),
    "422 of another shape": (raw({"detail": [{"loc": ["body", "n"]}]}, 422), "body"),
}


@pytest.mark.parametrize(("answer", "advice"), HOPELESS.values(), ids=HOPELESS)
def test_e2_e4_what_cannot_succeed_is_not_repeated_and_ends_the_run(
    ask: Ask, answer: Answer, advice: str
) -> None:
    """One request in all, whatever is called afterwards, and the advice that helps."""
    asked = ask(answer, times=3, retries=3)
    assert asked.sent == 1
    assert asked.waits == []
    assert asked.ended
    assert [call.requests for call in asked.calls] == [1, 0, 0]
    assert all(call.error is asked.error for call in asked.calls)
    assert asked.error.problem is Problem.UNUSABLE
    assert advice in str(asked.error)


FOR_THIS_PROMPT: dict[str, tuple[Answer, Problem]] = {
    "too long": (error(400, code="context_length_exceeded", param="messages"), Problem.TOO_LONG),
    "too long, llama.cpp": (error(400, type="exceed_context_size_error"), Problem.TOO_LONG),
    "too long, by words": (
        error(400, "This model's maximum context length is 4096 tokens."),
        Problem.TOO_LONG,
    ),
    "too large": (error(413), Problem.TOO_LONG),
    "string too long": (error(400, code="string_above_max_length"), Problem.TOO_LONG),
    "content filter": (error(400, code="content_filter", param="prompt"), Problem.REFUSED),
    "content policy": (error(400, code="content_policy_violation"), Problem.REFUSED),
    "moderation": (error(403, "Your input was flagged by moderation"), Problem.REFUSED),
    "the message itself": (error(400, param="messages.[0].content"), Problem.REFUSED),
}


@pytest.mark.parametrize(("answer", "problem"), FOR_THIS_PROMPT.values(), ids=FOR_THIS_PROMPT)
def test_what_is_wrong_with_one_prompt_ends_that_call_alone(
    ask: Ask, answer: Answer, problem: Problem
) -> None:
    """Not repeated, and the next call is made as ever."""
    asked = ask(answer, "hello", times=2)
    assert asked.sent == 2
    assert asked.error.problem is problem
    assert asked.calls[1].error is None


def test_a_server_s_words_are_bounded(ask: Ask) -> None:
    """An error of a megabyte becomes a message of some hundred characters."""
    assert len(str(ask(error(400, "x" * 1_000_000)).error)) < 700


USAGES: dict[str, tuple[Any, Usage]] = {
    "known": ({"prompt_tokens": 7, "completion_tokens": 3}, Usage(7, 3, None)),
    "half": ({"prompt_tokens": 7}, Usage(7, None, None, 1)),
    "nonsense": ({"prompt_tokens": "7", "completion_tokens": -1}, Usage(None, None, None, 1)),
    "true": ({"prompt_tokens": True, "completion_tokens": 1.5}, Usage(None, None, None, 1)),
    "a list": ([1], Usage(None, None, None, 1)),
}


@pytest.mark.parametrize(("told", "usage"), USAGES.values(), ids=USAGES)
def test_usage_is_what_was_told_or_unknown(ask: Ask, told: Any, usage: Usage) -> None:
    """Nothing is made up, and a model without a price has no cost."""
    assert ask(reply("hello", usage=told)).calls[0].usage == usage


def test_the_cost_is_that_of_the_model_which_answered(ask: Ask) -> None:
    """Or, where that has no price, of the one that was asked."""
    told = {"prompt_tokens": 1_000_000, "completion_tokens": 1_000_000}
    answered = ask(reply("hello", usage=told, model="gpt-4o-mini-2024-07-18"))
    assert answered.calls[0].usage.cost_usd == pytest.approx(0.75)
    asked = ask(reply("hello", usage=told), settings={"model": "openai/gpt-4o-mini"})
    assert asked.calls[0].usage.cost_usd == pytest.approx(0.75)


def test_text_in_parts_is_one_text_and_half_a_surrogate_is_replaced(ask: Ask) -> None:
    """What comes back can be written to a file, whatever shape it came in."""
    parts = [{"type": "text", "text": "caf\ud83d "}, {"type": "text", "text": "\U0001f35e bar"}]
    body = {"choices": [{"message": {"content": parts}, "finish_reason": "stop"}]}
    assert ask(raw(body)).text == "caf\ufffd \U0001f35e bar"
