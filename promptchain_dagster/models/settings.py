"""Which model answers, with what parameters; holds no secret, so it may be shown and pickled."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from promptchain_dagster.errors import InvalidInput

OPENAI_URL = "https://api.openai.com/v1"
DEFAULT_OPENAI_MODEL = "gpt-4o-mini"
DEFAULT_TIMEOUT_SECONDS = 120.0


@dataclass(frozen=True)
class ModelSettings:
    """A model and its parameters; what is None is not sent (case e4).

    `model` is a name at the endpoint, or the path of a `.gguf` file for the embedded model;
    `base_url` an OpenAI-compatible endpoint, None being OpenAI's own where a key is set. The key
    comes from `OPENAI_API_KEY` alone and is never a setting (case f26). `timeout_seconds` is for
    each request, None being 120 for an endpoint and 600 for the embedded model;
    `output_limit_parameter` the name that `max_output_tokens` is sent under; `use_schema` sends
    the JSON schema of a step that has one, None being yes for the embedded model alone;
    `context_tokens` is what prompt and reply may have together.

    Raises `InvalidInput` for a value that cannot work.
    """

    model: str | None = None
    base_url: str | None = None
    timeout_seconds: float | None = None
    temperature: float | None = None
    max_output_tokens: int | None = None
    output_limit_parameter: str = "max_completion_tokens"
    seed: int | None = None
    use_schema: bool | None = None
    context_tokens: int | None = None

    def __post_init__(self) -> None:
        if self.timeout_seconds is not None and not 0 < self.timeout_seconds < float("inf"):
            raise InvalidInput(f"timeout_seconds is {self.timeout_seconds}, must be more than 0")
        if self.temperature is not None and not 0 <= self.temperature <= 2:
            raise InvalidInput(f"temperature is {self.temperature}, must be 0 to 2")
        for name in ("max_output_tokens", "context_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidInput(f"{name} is {value}, must be 1 or more")
        for name in ("model", "output_limit_parameter"):
            value = getattr(self, name)
            if value is not None and not value.strip():
                raise InvalidInput(f"{name} is empty")
        if self.base_url is not None:
            _check_url(self.base_url)

    @classmethod
    def from_environment(cls, **given: Any) -> ModelSettings:
        """`OPENAI_BASE_URL` and `PROMPTCHAIN_MODEL`, under what is given and not None."""
        settings: dict[str, Any] = {
            "base_url": os.environ.get("OPENAI_BASE_URL", "").strip() or None,
            "model": os.environ.get("PROMPTCHAIN_MODEL", "").strip() or None,
        }
        settings.update({name: value for name, value in given.items() if value is not None})
        return cls(**settings)


def _check_url(url: str) -> None:
    """A URL may hold a password; so what is wrong with one is said without showing it."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable, parts = False, None
    if parts is not None and (parts.username or parts.password or parts.query or parts.fragment):
        raise InvalidInput(
            "base_url holds a user, a password, a query or a fragment, which would be shown in "
            "logs; give the plain URL, and the key as OPENAI_API_KEY"
        )
    if not usable or any(c.isspace() for c in url):
        shown = url if "@" not in url else "what was given"
        raise InvalidInput(f"base_url: {shown} is no http:// or https:// URL with a host")
