"""`chain_job` on chains of a user's own."""

import asyncio
import os
import signal
from enum import Enum
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from pydantic import BaseModel, Field

from promptchain_dagster.chain.accept import AcceptSpec, Criterion
from promptchain_dagster.chain.chain import Chain
from promptchain_dagster.chain.step import PromptStep, ToolStep
from promptchain_dagster.errors import ChainDefinitionError
from promptchain_dagster.pipelines.chain_job import chain_job
from promptchain_dagster.pipelines.materializer import Writer
from promptchain_dagster.pipelines.resources import chain_resources
from promptchain_dagster.pipelines.run_async import run_async
from promptchain_dagster.prompts import PromptTemplate
from promptchain_dagster.testing import ScriptedChatModel
from tests.pipelines.scripted import failure_of, result_of, run, succeeded


class Tone(Enum):
    DRY = "dry"
    WARM = "warm"


class NewsItem(BaseModel):
    """What the chain is given: a nested model, a list, an enum and defaults."""

    class Source(BaseModel):
        name: str
        year: int | None = None

    text: str
    source: Source
    tags: list[str] = Field(default=["news"])
    tone: Tone = Tone.DRY


class Facts(BaseModel):
    facts: list[str]


def shout(facts: Facts) -> str:
    return " / ".join(facts.facts).upper()


def short(output: str, fields: dict[str, Any]) -> str | None:
    return None if len(output) <= 20 else f"{len(output)} characters, need 20 or fewer"


def news_chain(**changed: Any) -> Chain:
    steps = [
        PromptStep(
            name="facts",
            prompt=PromptTemplate("List the facts.\n<text>{{text}}</text>\nJSON.", "facts"),
            reads={"text": str},
            output_type=Facts,
            accept=AcceptSpec(),
        ),
        ToolStep(name="shout", output="loud", function=shout),
        PromptStep(
            name="headline",
            prompt=PromptTemplate("A headline:\n<loud>{{loud}}</loud>", "headline"),
            reads={"loud": str},
            accept=AcceptSpec(Criterion("short", short)),
            **changed,
        ),
    ]
    return Chain("news", inputs=NewsItem, steps=steps)


ITEM = {"text": "It rained in Oslo.", "source": {"name": "The Post"}}


def test_any_chain_becomes_a_line_of_ops_with_a_door_after_each_gate() -> None:
    """A tool step is an op; a gate on the last step too has its door."""
    job = chain_job(news_chain())

    assert job.name == "news"
    names = [node.name for node in job.nodes_in_topological_order]
    assert names == ["news_item", "facts", "shout", "headline", "check_headline"]


def test_a_chain_of_a_tool_and_two_prompts_completes(
    home: Path, instance: dg.DagsterInstance
) -> None:
    """Each op reads what it declares, as the type it declares; the result bears its name."""
    model = ScriptedChatModel(['{"facts": ["rain", "Oslo"]}', "Rain in Oslo"])

    done = run(chain_job(news_chain()), {"news_item": ITEM}, home, model, instance)

    assert done.success
    assert "RAIN / OSLO" in model.prompts[1]
    result = result_of(home, done.run_id)
    assert (result["status"], result["headline"]) == ("completed", "Rain in Oslo")
    assert [one["step"] for one in result["attempts"]] == ["facts", "shout", "headline"]
    assert result["model_calls"] == 2


def test_a_gate_on_the_last_step_rejects_the_run(home: Path, instance: dg.DagsterInstance) -> None:
    """Its budget is the step's own."""
    model = ScriptedChatModel(['{"facts": []}', "x" * 21, "y" * 22])

    job = chain_job(news_chain(max_retries_per_step=1), name="strict_news")
    done = run(job, {"news_item": ITEM}, home, model, instance)

    assert succeeded(done) == ["news_item", "facts", "shout"]
    error = result_of(home, done.run_id)["error"]
    assert error["messages"] == [
        "21 characters, need 20 or fewer",
        "22 characters, need 20 or fewer",
    ]
    assert "need 20 or fewer" in failure_of(done, "headline").description


def test_two_jobs_of_one_chain_share_a_code_location() -> None:
    """Op definitions bear the job's name, the ops in a run only their own."""
    jobs = [chain_job(news_chain()), chain_job(news_chain(), name="other", first_op="given")]
    loaded = dg.Definitions(jobs=jobs, resources=chain_resources()).get_repository_def()

    assert {job.name for job in loaded.get_all_jobs()} >= {"news", "other"}


@pytest.mark.parametrize(
    ("item", "wrong"),
    [
        ({"text": "x"}, "source"),
        ({**ITEM, "text": 3}, "text"),
        ({**ITEM, "tags": "a"}, "tags"),
        ({**ITEM, "extra": 1}, "extra"),
        ({**ITEM, "source": {"name": "n", "year": "old"}}, "year"),
    ],
)
def test_the_inputs_are_typed_config(item: dict[str, Any], wrong: str) -> None:
    """What is of the wrong type does not start a run."""
    job = dg.Definitions(
        jobs=[chain_job(news_chain())], resources=chain_resources()
    ).resolve_job_def("news")

    assert dg.validate_run_config(job, {"ops": {"news_item": {"config": ITEM}}})
    with pytest.raises(dg.DagsterInvalidConfigError, match=wrong):
        dg.validate_run_config(job, {"ops": {"news_item": {"config": item}}})


@pytest.mark.parametrize("first_op", ["facts", "check_headline", "loud"])
def test_names_that_clash_are_refused_when_the_job_is_made(first_op: str) -> None:
    """Op names and what they hand on are distinct."""
    with pytest.raises(ChainDefinitionError, match=first_op):
        chain_job(news_chain(), first_op=first_op)


def test_an_output_named_as_a_key_of_the_result_is_refused() -> None:
    """The result of a run holds the output under its own name."""
    step = ToolStep(name="shout", output="status", function=shout)
    chain = Chain("c", inputs=Facts2, steps=[step])

    with pytest.raises(ChainDefinitionError, match="status"):
        chain_job(chain)


class Facts2(BaseModel):
    facts: Facts


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_inside_a_coroutine_stops_the_op(number: signal.Signals) -> None:
    """Even where a gather would have swallowed it; the handlers from before are back."""
    before = signal.getsignal(number)

    async def work() -> None:
        async def strike() -> None:
            os.kill(os.getpid(), number)
            await asyncio.Event().wait()

        await asyncio.gather(strike(), strike(), return_exceptions=True)
        await asyncio.Event().wait()

    with pytest.raises(dg.DagsterExecutionInterruptedError):
        run_async(work)
    assert signal.getsignal(number) is before


def test_the_writer_has_written_everything_in_order_when_it_is_left() -> None:
    """Also where the block raised."""
    written: list[int] = []

    async def put(writer: Writer[int]) -> None:
        for number in range(100):
            await writer.put(number)
        raise KeyError("the block's own")

    with pytest.raises(KeyError), Writer(written.append) as writer:
        asyncio.run(put(writer))
    assert written == list(range(100))


def test_what_the_writer_could_not_write_is_raised_where_it_is_left() -> None:
    """An event that is lost is not lost in silence."""

    def refuse(item: int) -> None:
        raise OSError(f"no room for {item}")

    with pytest.raises(OSError, match="no room for 1"), Writer(refuse) as writer:
        asyncio.run(writer.put(1))
