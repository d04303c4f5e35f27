"""What makes an asset out of date."""

from typing import Any

import pytest
from pydantic import BaseModel

from promptchain_dagster.chain.accept import AcceptSpec, Bar, Criterion
from promptchain_dagster.chain.chain import Chain
from promptchain_dagster.chain.step import PromptStep
from promptchain_dagster.models import ModelSettings
from promptchain_dagster.pipelines.chain_assets import chain_assets
from promptchain_dagster.pipelines.chains.code_versions import code_versions
from promptchain_dagster.prompts import PromptTemplate


class Given(BaseModel):
    topic: str


def short(text: str, fields: object, limit: int) -> str | None:
    return None if len(text) <= limit else "too long"


def chain(first: str = "Plan", last: str = "Write", bar: Bar = Bar.NORMAL) -> Chain:
    criterion = Criterion("short", short, bars={Bar.NORMAL: 100, Bar.STRICT: 50}, bar=bar)
    plan = PromptTemplate(f"{first} <topic>{{{{ topic }}}}</topic>")
    text = PromptTemplate(f"{last} <plan>{{{{ plan }}}}</plan>")
    return Chain(
        "two_steps",
        inputs=Given,
        steps=[
            PromptStep(name="plan", prompt=plan, reads={"topic": str}),
            PromptStep(name="text", prompt=text, reads={"plan": str}, accept=AcceptSpec(criterion)),
        ],
    )


MODEL = ModelSettings(model="m", base_url="http://127.0.0.1:1/v1")
BEFORE = code_versions(chain(), MODEL)


@pytest.mark.parametrize(
    ("changed", "out_of_date"),
    [
        (chain(), set()),
        (chain(first="Sketch"), {"plan", "text"}),
        (chain(last="Compose"), {"text"}),
        (chain(bar=Bar.STRICT), {"text"}),
    ],
)
def test_a_prompt_or_a_gate_counts_from_its_step_on(changed: Chain, out_of_date: set[str]) -> None:
    """What comes before it is still what it was."""
    after = code_versions(changed, MODEL)
    assert {name for name in BEFORE if BEFORE[name] != after[name]} == out_of_date


@pytest.mark.parametrize(
    ("setting", "counts"),
    [
        ({"model": "other"}, True),
        ({"temperature": 0.0}, True),
        ({"seed": 1}, True),
        ({"max_output_tokens": 100}, True),
        ({"use_schema": True}, True),
        ({"base_url": "http://127.0.0.1:2/v1"}, False),
        ({"timeout_seconds": 5.0}, False),
    ],
)
def test_the_model_and_its_parameters_count(setting: dict[str, Any], counts: bool) -> None:
    """Where it is reached, and how long one waits for it, do not."""
    settings = ModelSettings(**{"model": "m", "base_url": MODEL.base_url, **setting})
    assert (code_versions(chain(), settings) != BEFORE) == counts


def test_the_environment_names_the_model_when_the_assets_are_defined(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each asset bears its version; what can't be used is for the run to tell."""

    def versions() -> dict[str, str | None]:
        assets = chain_assets(chain(), inputs_of=lambda key: {"topic": "t"})
        return {key.path[-1]: v for one in assets for key, v in one.code_versions_by_key.items()}

    embedded = versions()
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("PROMPTCHAIN_MODEL", "m")
    assert versions() == BEFORE != embedded
    monkeypatch.setenv("OPENAI_BASE_URL", "not a URL")
    assert versions().keys() == BEFORE.keys()
