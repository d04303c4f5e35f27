"""OpenTelemetry spans: one for each request to a model, one for each step around its requests.

Through OpenTelemetry's API alone: without an SDK nothing is recorded. Names and attributes are
those of the GenAI semantic conventions where these have one, `promptchain.…` otherwise. A span
holds counts and names; never a prompt, a reply or an error's words, which may quote either.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

NAME = "promptchain_dagster"

_REQUEST = {"temperature": "gen_ai.request.temperature", "seed": "gen_ai.request.seed"}


@cache
def _tracer() -> Tracer:
    from opentelemetry import trace  # late, so that importing the core stays quick

    return trace.get_tracer(NAME)


@contextmanager
def request_span(
    model: str, parameters: Mapping[str, Any], max_output_tokens: int | None
) -> Generator[Span]:
    """One request; `attributes_of_reply` and `failed` tell what became of it."""
    from opentelemetry.trace import SpanKind

    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        # The protocol that is spoken; whose server answers is not known here.
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": model,
    }
    if max_output_tokens is not None:
        attributes["gen_ai.request.max_tokens"] = max_output_tokens
    attributes |= {_REQUEST[name]: value for name, value in parameters.items() if name in _REQUEST}
    with _span(f"chat {model}", SpanKind.CLIENT, attributes) as span:
        yield span


@contextmanager
def step_span(step: str) -> Generator[Span]:
    """One step with all its attempts."""
    from opentelemetry.trace import SpanKind

    with _span(f"step {step}", SpanKind.INTERNAL, {"promptchain.step": step}) as span:
        yield span


def tell(span: Span, attributes: Mapping[str, Any], error: str | None = None) -> None:
    """Set what is known of `attributes` (None is unknown), and the kind of `error`, if any."""
    if not span.is_recording():
        return
    span.set_attributes({name: value for name, value in attributes.items() if value is not None})
    if error is not None:
        from opentelemetry.trace import StatusCode

        span.set_attribute("error.type", error)
        span.set_status(StatusCode.ERROR)


@contextmanager
def _span(name: str, kind: Any, attributes: Mapping[str, Any]) -> Generator[Span]:
    with _tracer().start_as_current_span(
        name,
        kind=kind,
        attributes=attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield span
        except BaseException as error:
            # Not its message: it may quote a prompt, and a cancellation has none.
            tell(span, {}, type(error).__name__)
            raise
