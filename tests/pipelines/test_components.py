"""The components: YAML in a defs folder becomes definitions that run."""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster.components.testing import create_defs_folder_sandbox

from promptchain_dagster.pipelines.components import (
    DocumentSummariesComponent,
    PromptChainComponent,
)
from promptchain_dagster.pipelines.resources import HomeResource, ModelResource, chain_resources
from tests.support.chat_server import ChatServer, reply

# Dagster's own, where it reads a component's YAML.
pytestmark = pytest.mark.filterwarnings("ignore:`parse_obj_as`")


def shout(facts: str) -> str:
    return facts.upper()


CHAIN: dict[str, Any] = {
    "name": "news",
    "inputs": {"text": "str"},
    "steps": [
        {
            "name": "facts",
            "prompt": "Facts of:\n<text>{{ text }}</text>",
            "accept": [{"word_count": {"least": 3, "bar": "strict"}}],
            "max_retries_per_step": 1,
        },
        {"name": "loud", "function": f"{__name__}.shout"},
    ],
}


def _defs(component: type[dg.Component], attributes: dict[str, Any] | None) -> dg.Definitions:
    kind = f"promptchain_dagster.pipelines.components.{component.__name__}"
    body = None if attributes is None else {"type": kind, "attributes": attributes}
    with create_defs_folder_sandbox() as sandbox:
        path = sandbox.scaffold_component(
            component_cls=component, defs_path="mine", defs_yaml_contents=body
        )
        with sandbox.load_component_and_build_defs(defs_path=path) as (_, defs):
            return defs


def test_a_chain_in_yaml_runs_with_its_gate(
    tmp_path: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
):
    """The first reply is too short, and is asked for again; the prompt's slot is the chain's."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    defs = _defs(PromptChainComponent, CHAIN)
    with ChatServer([reply("two words"), reply("three good words")]) as server:
        resources = {
            **chain_resources(),
            "model": ModelResource(model="stub", base_url=server.url),
            "home": HomeResource(home=str(tmp_path)),
        }
        job = dg.Definitions.merge(defs, dg.Definitions(resources=resources)).resolve_job_def(
            "news"
        )
        run = job.execute_in_process(
            {"ops": {"inputs": {"config": {"text": "A fire."}}}}, instance=instance
        )
        assert run.output_for_node("loud", "loud") == "THREE GOOD WORDS"
        assert [one.prompt.count("<text>A fire.</text>") for one in server.requests] == [1, 1]


def test_what_is_scaffolded_loads_as_it_is():
    assert [job.name for job in _defs(PromptChainComponent, None).jobs or ()] == ["mine"]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"accept": ["word_cuont"]}, "step 'facts': accept: 'word_cuont' is no criterion"),
        ({"accept": [{"word_count": {}}]}, "neither a least nor a most"),
        ({"accept": [{"no_refusal": {}, "not_empty": {}}]}, "step 'facts': accept: {'no_refusal'"),
        ({"output_type": "nowhere.Facts"}, "step 'facts': output_type: 'nowhere.Facts'"),
        ({"prompt": "<x>{{ other }}</x>"}, "step 'facts': reads 'other', which nothing"),
        ({"prompt_file": "x.md"}, "step 'facts': give one of prompt, prompt_file, function"),
    ],
)
def test_an_error_names_the_component_the_step_and_the_field(changed: Any, told: str):
    first, *rest = CHAIN["steps"]
    with pytest.raises(Exception, match="mine") as caught:
        _defs(PromptChainComponent, {**CHAIN, "steps": [{**first, **changed}, *rest]})
    assert told in _all_of(caught.value)


def _all_of(error: BaseException | None) -> str:
    return "" if error is None else f"{error}\n{_all_of(error.__cause__ or error.__context__)}"


def test_summaries_in_yaml_are_assets_a_job_a_sensor_and_a_schedule():
    fields = {"cron": "0 4 * * *", "timezone": "Europe/Berlin", "group_name": "reports"}
    defs = _defs(DocumentSummariesComponent, fields)
    [schedule] = list(defs.schedules or [])
    assert isinstance(schedule, dg.ScheduleDefinition)
    assert (schedule.cron_schedule, schedule.execution_timezone) == ("0 4 * * *", "Europe/Berlin")
    assert [sensor.name for sensor in defs.sensors or ()] == ["new_documents"]
    whole = dg.Definitions.merge(defs, dg.Definitions(resources=chain_resources()))
    keys = {key.to_user_string() for key in whole.resolve_all_asset_keys()}
    assert {"document_summary", "collection_summary"} <= keys
