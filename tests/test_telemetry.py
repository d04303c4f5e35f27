"""Spans, as an application sees them that has OpenTelemetry's SDK."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[1]

SET_UP = """
import json
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exported = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exported))
trace.set_tracer_provider(provider)
"""

RUN = """
import asyncio, json
from promptchain_dagster import Brief, Calls, Variant, blog_post_chain, run_chain
from promptchain_dagster.models.base import CallError, Completion, Problem, Usage
from promptchain_dagster.testing import ScriptedChatModel

headings = ["One", "Two", "Three", "Four"]
sections = [{"heading": name, "point": f"It proves {name}."} for name in headings]
outline = json.dumps({"sections": sections, "SECRET": 1})
replies = [
    CallError(Problem.UNAVAILABLE, "SECRET words of a server"),
    Completion(outline, "answering-model", finish_reason="stop", usage=Usage(30, 12, 0.1)),
    CallError(Problem.REFUSED, "SECRET refusal"),
]
model = ScriptedChatModel(replies)

async def main():
    calls = Calls(model, delay_seconds=0)
    brief = Brief(brief="SECRET", audience="SECRET")
    return await run_chain(blog_post_chain(Variant.GATED_EXIT), brief, calls)

asyncio.run(main())
"""

TELL = """
names = {span.context.span_id: span.name for span in exported.get_finished_spans()}
print(json.dumps([
    {
        "name": span.name,
        "kind": span.kind.name,
        "parent": names.get(span.parent.span_id) if span.parent else None,
        "status": span.status.status_code.name,
        "description": span.status.description,
        "attributes": dict(span.attributes),
        "events": len(span.events),
    }
    for span in exported.get_finished_spans()
]))
"""


def run(*code: str) -> str:
    script = "\n".join(textwrap.dedent(one) for one in code)
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_each_request_and_each_step_is_a_span_after_the_genai_conventions():
    """A retried request is a span of its own, within that of its step; no words of any in them."""
    told = run(SET_UP, RUN, TELL)
    spans = json.loads(told)
    shown = [(one["name"], one["parent"], one["status"]) for one in spans]
    assert shown == [
        ("chat scripted", "step outline", "ERROR"),
        ("chat scripted", "step outline", "UNSET"),
        ("step outline", None, "UNSET"),
        ("chat scripted", "step draft", "ERROR"),
        ("step draft", None, "ERROR"),
    ]
    answered = spans[1]
    assert answered["kind"] == "CLIENT"
    assert answered["attributes"] == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "scripted",
        "gen_ai.response.model": "answering-model",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": 30,
        "gen_ai.usage.output_tokens": 12,
    }
    assert spans[0]["attributes"]["error.type"] == "unavailable"
    assert spans[2]["attributes"] == {"promptchain.step": "outline", "promptchain.attempts": 1}
    assert spans[4]["attributes"]["error.type"] == "failed"
    assert "SECRET" not in told


def test_a_gate_that_rejects_is_named_in_the_span_of_its_step():
    """Which check failed, without what was rejected."""
    rejected = RUN.replace('"Two", "Three", "Four"', "")
    spans = json.loads(run(SET_UP, rejected, TELL))
    last = spans[-1]
    assert last["name"] == "step outline"
    assert last["attributes"]["error.type"] == "rejected"
    assert last["attributes"]["promptchain.failed_checks"]


def test_without_an_sdk_nothing_is_recorded_and_all_goes_on():
    """The API alone is a dependency."""
    assert run(RUN, "import sys; print('opentelemetry.sdk' in sys.modules)").strip() == "False"
