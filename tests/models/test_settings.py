"""Which model answers, and that no secret shows."""

from __future__ import annotations

import asyncio
import logging
import pickle
import traceback
from typing import Any

import pytest

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.models import Calls, ModelSettings, connect, is_embedded
from promptchain_dagster.models.redact import redact
from tests.models.conftest import KEY, Ask
from tests.support.chat_server import Answer, ChatServer, error, raw


def test_e7_e8_pickled_settings_serve_two_event_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing live is held: a client is made in each loop."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    async def ask(settings: ModelSettings) -> bool:
        async with connect(settings) as model:
            return (await Calls(model, retries=0).complete("x")).error is None

    with ChatServer(["hello"]) as server:
        settings = ModelSettings(base_url=server.url)
        pickled = pickle.dumps(settings)
        assert KEY.encode() not in pickled
        assert asyncio.run(ask(settings))
        assert asyncio.run(ask(pickle.loads(pickled)))


def test_e4_nothing_is_sent_that_was_not_set(ask: Ask) -> None:
    """A model and one message, unless more is set; the limit's name is a setting."""
    schema = {"type": "object"}
    asked = ask("hello", schema=schema)
    assert asked.server.requests[0].body == {
        "model": "stub",
        "messages": [{"role": "user", "content": "Say hello."}],
    }
    settings: dict[str, Any] = {
        "temperature": 0.0,
        "seed": 0,
        "max_output_tokens": 9,
        "output_limit_parameter": "max_tokens",
        "use_schema": True,
    }
    body = ask("hello", schema=schema, settings=settings).server.requests[0].body
    del body["messages"]
    assert body == {
        "model": "stub",
        "temperature": 0.0,
        "seed": 0,
        "max_tokens": 9,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "reply", "schema": schema},
        },
    }


def test_the_key_goes_into_the_header_alone(ask: Ask) -> None:
    """Trimmed of the line end that files give it."""
    request = ask("hello").server.requests[0]
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in str(request.body) + request.path


def test_a_local_server_needs_no_key() -> None:
    """With a base URL and no key, a placeholder is sent."""

    async def ask(url: str) -> bool:
        async with connect(ModelSettings(base_url=url)) as model:
            return (await Calls(model).complete("x")).error is None

    with ChatServer(["hello"]) as server:
        assert asyncio.run(ask(server.url))


ECHOES: dict[str, Answer] = {
    "whole": error(401, f"Incorrect API key provided: {KEY}."),
    "cut": error(401, f"Incorrect API key provided: {KEY[:12]}"),
    "masked": error(401, f"Incorrect API key provided: {KEY[:8]}***{KEY[-4:]}."),
    "header": error(500, f"bad header: Authorization: Bearer {KEY}"),
    "page": Answer(f"<html>{KEY}</html>", 502),
    "text": Answer(f"key={KEY}", 500),
    "200 text": Answer(f"key={KEY}"),
    "200 error": raw({"error": {"message": KEY}}),
    "200 keys": raw({KEY: 1}),
    "parameter": error(400, "no", param=KEY),
    "location": Answer("", 302, {"Location": f"/login?key={KEY}"}),
    "long": error(500, "x" * 290 + KEY),
}


@pytest.mark.parametrize("answer", ECHOES.values(), ids=ECHOES)
def test_f26_no_key_in_an_error_a_log_or_a_trace(
    ask: Ask, answer: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    """Also where the server echoes it, whole or in part, with the SDK's logger at debug."""
    with caplog.at_level(logging.INFO), caplog.at_level(logging.DEBUG, "openai"):
        asked = ask(answer)
    shown = "".join(traceback.format_exception(asked.error)) + str(asked.error)
    shown += repr(asked.error.__cause__) + repr(asked.error.__context__) + caplog.text
    for part in (KEY, KEY[:12], KEY[-12:], KEY[8:20]):
        assert part not in shown


@pytest.mark.parametrize(
    "text",
    [
        "sk-proj-Ab12Cd34",
        "your key sk-ab***yz is wrong",
        "Bearer abc.def.ghi",
        "gsk_1234567890",
        "key: ************wxyz",
        "secret-Key/+=12",
        "cret-Key/+",
    ],
)
def test_f26_what_looks_like_a_key_is_redacted(text: str) -> None:
    """A key of any alphabet, whole or in part, and masks that servers make."""
    shown = redact(text, "secret-Key/+=12")
    assert "[redacted]" in shown
    for part in ("Ab12", "ab***", "abc.def", "123456", "wxyz", "cret-K"):
        assert part not in shown


def test_f26_ordinary_words_stay() -> None:
    """An error stays readable."""
    words = "The model `gpt-4o` does not exist; ask-me-later, task-1234 and http://api-gw/v1 stay"
    assert redact(words, KEY) == words


def test_f26_a_key_no_header_can_carry_is_refused_unshown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The transport's own error would quote it."""

    async def connected() -> None:
        async with connect(ModelSettings(base_url="http://127.0.0.1:9/v1")):
            pass

    for bad in ("sk-plan\nted", "sk-plan ted", "sk-planté", "sk-pl\x00an".replace("\x00", "\x01")):
        monkeypatch.setenv("OPENAI_API_KEY", bad)
        with pytest.raises(InvalidInput, match="OPENAI_API_KEY") as raised:
            asyncio.run(connected())
        assert "sk-pl" not in str(raised.value)


BAD: list[dict[str, Any]] = [
    {"timeout_seconds": 0},
    {"timeout_seconds": -1.0},
    {"timeout_seconds": float("inf")},
    {"timeout_seconds": float("nan")},
    {"temperature": -0.1},
    {"temperature": float("nan")},
    {"max_output_tokens": 0},
    {"context_tokens": -5},
    {"model": " "},
    {"output_limit_parameter": ""},
    {"base_url": ""},
    {"base_url": "localhost:8000"},
    {"base_url": "ftp://host/v1"},
    {"base_url": "http://"},
    {"base_url": "http://host:99999/v1"},
    {"base_url": "http://ho st/v1"},
    {"base_url": "http://[::1/v1"},
]


@pytest.mark.parametrize("settings", BAD, ids=str)
def test_settings_that_cannot_work_are_refused_by_name(settings: dict[str, Any]) -> None:
    """Before any call."""
    (name,) = settings
    with pytest.raises(InvalidInput, match=name):
        ModelSettings(**settings)


@pytest.mark.parametrize(
    "url",
    [
        "https://user:planted@host/v1",
        "https://planted@host/v1",
        "https://host/v1?key=planted",
        "https://host/v1#planted",
        "ftp://user:planted@host",
        "https://user:planted@host:99999/v1",
        "user:planted@host",
    ],
)
def test_f26_a_url_that_holds_a_secret_is_refused_unshown(url: str) -> None:
    """URLs are shown in logs; the message does not repeat it."""
    with pytest.raises(InvalidInput) as raised:
        ModelSettings(base_url=url)
    assert "planted" not in str(raised.value)


def test_the_environment_is_under_what_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """None gives way to the environment, and blank variables to the defaults."""
    monkeypatch.setenv("OPENAI_BASE_URL", "http://host/v1")
    monkeypatch.setenv("PROMPTCHAIN_MODEL", " ")
    settings = ModelSettings.from_environment(model=None, temperature=0.5)
    assert settings == ModelSettings(base_url="http://host/v1", temperature=0.5)
    assert ModelSettings.from_environment(base_url="http://other/v1").base_url == "http://other/v1"


def test_who_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The embedded model with neither key nor base URL, or with a file; else an endpoint."""
    assert is_embedded(ModelSettings())
    assert is_embedded(ModelSettings(model="~/models/other.GGUF"))
    assert not is_embedded(ModelSettings(base_url="http://host/v1"))
    assert not is_embedded(ModelSettings(base_url="http://host/v1", model="served.gguf"))
    with pytest.raises(InvalidInput, match="'gpt-4o' needs OPENAI_API_KEY or OPENAI_BASE_URL"):
        is_embedded(ModelSettings(model="gpt-4o"))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert not is_embedded(ModelSettings(model="gpt-4o"))
    assert is_embedded(ModelSettings(model="models/other.gguf"))
