"""`chain_assets`: outline → draft → post, and chains of one's own, on an instance on disk."""

import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from pydantic import BaseModel

from promptchain_dagster.blog_post import Brief, Variant, blog_post_chain
from promptchain_dagster.chain.accept import AcceptSpec, Criterion
from promptchain_dagster.chain.chain import Chain
from promptchain_dagster.chain.step import PromptStep, ToolStep
from promptchain_dagster.chain.trace import read_trace
from promptchain_dagster.errors import ChainDefinitionError, InvalidInput
from promptchain_dagster.models.base import CallError, Problem
from promptchain_dagster.pipelines import metadata as md
from promptchain_dagster.pipelines.chain_assets import chain_assets
from promptchain_dagster.prompts import PromptTemplate
from promptchain_dagster.store import open_store
from promptchain_dagster.testing import ScriptedChatModel
from tests.pipelines.scripted import failure_of, outline, resources, succeeded

BRIEFS = dg.DynamicPartitionsDefinition(name="briefs")
DRAFT, POST = "The draft, from first to last.", "The post, polished."
GATE = dg.AssetCheckKey(dg.AssetKey("outline"), "outline_gate")

_briefs: dict[str | None, dict[str, Any]] = {}


def brief_of(key: str | None) -> dict[str, Any]:
    if key not in _briefs:
        raise InvalidInput(f"no brief has the key {key!r}")
    return _briefs[key]


ASSETS = chain_assets(
    blog_post_chain(), inputs_of=brief_of, partitions_def=BRIEFS, group_name="posts", folder="posts"
)


@pytest.fixture
def key(instance: dg.DagsterInstance) -> str:
    return brief(instance, f"brief-{uuid.uuid4().hex[:8]}")


def brief(instance: dg.DagsterInstance, key: str, **changed: Any) -> str:
    """A brief and its partition."""
    _briefs[key] = {"brief": "Why tests pay.", "audience": "developers", **changed}
    instance.add_dynamic_partitions("briefs", [key])
    return key


def make(
    home: Path,
    model: ScriptedChatModel,
    instance: dg.DagsterInstance,
    partition: str | None = None,
    only: Sequence[str] | None = None,
    assets: Sequence[Any] = ASSETS,
    **options: Any,
) -> dg.ExecuteInProcessResult:
    """One run that materializes all of `assets`, or `only` some; one that fails raises nothing."""
    return dg.materialize(
        list(assets),
        selection=only,
        partition_key=partition,
        instance=instance,
        resources=resources(home, model),
        raise_on_error=False,
        **options,
    )


def made(result: dg.ExecuteInProcessResult) -> dict[str, dg.AssetMaterialization]:
    """What the run materialized, by name."""
    events = [event for event in result.all_events if event.is_step_materialization]
    return {e.asset_key.path[-1]: e.step_materialization_data.materialization for e in events}


def verdict(result: dg.ExecuteInProcessResult) -> dg.AssetCheckEvaluation:
    """What the run's only check came to."""
    (evaluation,) = result.get_asset_check_evaluations()
    return evaluation


def files(home: Path, key: str) -> list[str]:
    return sorted(path.name for path in (home / "posts" / key).glob("*"))


def test_f9_a_rejected_outline_fails_its_check_and_nothing_is_made(
    home: Path, instance: dg.DagsterInstance, key: str
) -> None:
    """The check tells the verdict, every attempt and the rejected output; no draft is begun."""
    model = ScriptedChatModel([outline(2), outline(3), outline(7)])

    done = make(home, model, instance, key)

    assert not done.success
    assert succeeded(done) == []
    assert made(done) == {}
    assert files(home, key) == []
    assert len(model.prompts) == 3
    told = verdict(done)
    assert (told.asset_check_key, told.passed) == (GATE, False)
    assert told.metadata[md.GATE].value == "rejected: section_count: 7 sections, need 4 to 6"
    assert told.metadata[md.ATTEMPTS].value == 3
    rows = str(told.metadata[md.ATTEMPT_TABLE].value).splitlines()
    assert rows[0] == "| attempt | verdict | section_count | headings | points |"
    assert rows[2] == "| 1 | rejected | 2 sections, need 4 to 6 | met | met |"
    assert len(rows) == 2 + 3
    assert told.metadata[md.REJECTED_OUTPUT].value
    assert Path(str(told.metadata[md.TRACE].value)).is_dir()
    assert len(read_trace(open_store(str(home)), done.run_id)) == 3


def test_f9_the_draft_of_a_blocked_outline_fails_for_want_of_it(
    home: Path, instance: dg.DagsterInstance, key: str
) -> None:
    """A later run of `draft` alone makes no call and says what to do."""
    make(home, ScriptedChatModel(lambda prompt: outline(2)), instance, key)
    model = ScriptedChatModel([])

    done = make(home, model, instance, key, only=["draft"])

    assert not done.success
    assert made(done) == {}
    told = failure_of(done, "draft").description
    assert f"there is no outline of '{key}'" in told
    assert "materialize 'outline' first" in told


def test_an_accepted_outline_becomes_a_post_and_says_what_it_took(
    home: Path, instance: dg.DagsterInstance, key: str
) -> None:
    """Each asset is a file for people, with what is worth knowing beside it."""
    model = ScriptedChatModel([outline(2), outline(4), DRAFT, POST])

    done = make(home, model, instance, key)

    assert done.success
    assert files(home, key) == [
        "draft.made_from.json",
        "draft.md",
        "outline.json",
        "outline.made_from.json",
        "post.made_from.json",
        "post.md",
    ]
    assert (home / "posts" / key / "post.md").read_text() == POST
    assert json.loads((home / "posts" / key / "outline.json").read_text()) == json.loads(outline(4))
    told = verdict(done)
    assert told.passed
    assert told.metadata[md.ATTEMPTS].value == 2
    assert "| 2 | accepted | met | met | met |" in str(told.metadata[md.ATTEMPT_TABLE].value)
    first, last = made(done)["outline"].metadata, made(done)["post"].metadata
    assert (first[md.ATTEMPTS].value, first[md.MODEL_CALLS].value) == (2, 2)
    assert str(first[md.PREVIEW_KEY].value).startswith("```json\n{\n")
    assert isinstance(last[md.PREVIEW_KEY], dg.MarkdownMetadataValue)
    assert (last[md.PREVIEW_KEY].value, last[md.WORDS].value) == (POST, 3)
    assert last[md.PATH].value == str(home / "posts" / key / "post.md")
    assert {md.INPUT_TOKENS, md.OUTPUT_TOKENS, md.SECONDS, md.TRACE} <= last.keys()
    assert md.WARNINGS in made(done)["draft"].metadata
    assert all(one.partition == key for one in made(done).values())
    assert len({one.tags["dagster/data_version"] for one in made(done).values()}) == 3


def test_f14_metadata_stays_small_whatever_the_model_writes(
    home: Path, instance: dg.DagsterInstance, key: str
) -> None:
    """Fifty empty sections, an attempt after another, are previews and a path."""
    empty = json.dumps({"sections": [{"heading": "", "point": "| a ``` <b>\n" * 99}] * 50})

    done = make(home, ScriptedChatModel(lambda prompt: empty), instance, key)

    for name, value in verdict(done).metadata.items():
        limit = 2_500 if name == md.ATTEMPT_TABLE else 500
        assert len(str(value.value)) <= limit, name


def test_an_outline_that_was_accepted_before_stays_when_a_new_one_is_rejected(
    home: Path, instance: dg.DagsterInstance, key: str
) -> None:
    """Only the rejected one is not stored; the draft may still be made from the other."""
    make(home, ScriptedChatModel([outline(4)]), instance, key, only=["outline"])
    stored = (home / "posts" / key / "outline.json").read_text()

    make(home, ScriptedChatModel(lambda prompt: outline(9)), instance, key, only=["outline"])
    done = make(home, ScriptedChatModel([DRAFT]), instance, key, only=["draft"])

    assert (home / "posts" / key / "outline.json").read_text() == stored
    assert done.success


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"brief": "Why types pay."}, "another brief"),
        ({"audience": "managers"}, "another audience"),
        ({"min_sections": 2, "max_sections": 7}, "another max_sections, another min_sections"),
    ],
)
def test_a_draft_is_not_made_from_the_outline_of_an_earlier_brief(
    home: Path, instance: dg.DagsterInstance, key: str, changed: dict[str, Any], named: str
) -> None:
    """The brief was changed since: the draft, and a post, is refused before any call."""
    make(home, ScriptedChatModel([outline(4), DRAFT, POST]), instance, key)
    brief(instance, key, **changed)

    for name, op in (("draft", "draft"), ("post", "post")):
        done = make(home, ScriptedChatModel([]), instance, key, only=[name])
        assert f"outline of '{key}' was made from {named}" in failure_of(done, op).description

    again = make(home, ScriptedChatModel([outline(5), DRAFT, POST]), instance, key)
    assert again.success


def test_what_the_outline_did_not_read_may_change_without_a_new_one(
    home: Path, instance: dg.DagsterInstance, key: str
) -> None:
    """Another word count makes the draft too old for a post, and not the outline for a draft."""
    make(home, ScriptedChatModel([outline(4), DRAFT, POST]), instance, key)
    brief(instance, key, word_count=300)

    old = make(home, ScriptedChatModel([]), instance, key, only=["post"])
    new = make(home, ScriptedChatModel([DRAFT]), instance, key, only=["draft"])

    assert (
        f"draft of '{key}' was made from another word_count" in failure_of(old, "post").description
    )
    assert new.success


def test_a_post_is_not_made_from_the_draft_of_another_outline(
    home: Path, instance: dg.DagsterInstance, key: str
) -> None:
    """The outline was made again since; the brief is the same."""
    make(home, ScriptedChatModel([outline(4), DRAFT, POST]), instance, key)
    make(home, ScriptedChatModel([outline(5)]), instance, key, only=["outline"])

    done = make(home, ScriptedChatModel([]), instance, key, only=["post"])

    assert f"draft of '{key}' was made from another outline" in failure_of(done, "post").description


@pytest.mark.parametrize(
    ("edited", "named"),
    [
        (outline(5), None),
        (outline(2), "2 sections, need 4 to 6"),
        ('{"sections": [{"heading": 7}]}', "sections[1].heading: Input should be a valid string"),
        ('{"sections": [', "can't be read"),
        ("\ufeff", "can't be read"),
    ],
)
def test_the_outline_is_judged_once_more_as_it_is_stored(
    home: Path, instance: dg.DagsterInstance, key: str, edited: str, named: str | None
) -> None:
    """People may edit it; what the gate would not have passed does not become a draft."""
    make(home, ScriptedChatModel([outline(4)]), instance, key, only=["outline"])
    (home / "posts" / key / "outline.json").write_text(edited)
    model = ScriptedChatModel([DRAFT])

    done = make(home, model, instance, key, only=["draft"])

    assert done.success == (named is None)
    if named:
        assert named in failure_of(done, "draft").description
        assert model.prompts == []


def test_an_outline_put_there_by_hand_is_let_in_with_a_warning(
    home: Path, instance: dg.DagsterInstance, key: str
) -> None:
    """It has no record of what it was made from, and the metadata says so."""
    (home / "posts" / key).mkdir(parents=True)
    (home / "posts" / key / "outline.json").write_text(outline(4))

    done = make(home, ScriptedChatModel([DRAFT]), instance, key, only=["draft"])

    assert "has no record" in str(made(done)["draft"].metadata[md.WARNINGS].value)


def test_f10_a_check_is_of_its_own_partition_when_no_other_is_there(
    home: Path, instance: dg.DagsterInstance
) -> None:
    """One of three partitions is made: its check passes, and those of the others stay open."""
    keys = [brief(instance, f"f10-{uuid.uuid4().hex[:8]}") for _ in range(3)]

    done = make(home, ScriptedChatModel([outline(4), DRAFT, POST]), instance, keys[1])

    assert done.success
    assert verdict(done).partition == keys[1]
    assert set(keys) & instance.get_materialized_partitions(dg.AssetKey("post")) == {keys[1]}


def test_of_several_briefs_the_rejected_one_harms_no_other(
    home: Path, instance: dg.DagsterInstance
) -> None:
    """A backfill is one run for each brief."""
    subjects = {name: brief(instance, f"{name}-{uuid.uuid4().hex[:8]}", brief=name)
                for name in ("cats", "dogs", "owls")}  # fmt: skip

    def reply(prompt: str) -> str:
        if "Write an outline" in prompt:
            return outline(2 if "dogs" in prompt else 4)
        return DRAFT

    runs = {name: make(home, ScriptedChatModel(reply), instance, subjects[name])
            for name in subjects}  # fmt: skip

    assert {name: run.success for name, run in runs.items()} == {
        "cats": True,
        "dogs": False,
        "owls": True,
    }
    posts = instance.get_materialized_partitions(dg.AssetKey("post")) & set(subjects.values())
    assert posts == {subjects["cats"], subjects["owls"]}
    assert all(asset.backfill_policy == dg.BackfillPolicy.multi_run(1) for asset in ASSETS)


def test_a_run_over_several_briefs_is_refused_before_any_call(
    home: Path, instance: dg.DagsterInstance
) -> None:
    """A range asked for in one run says that a backfill makes a run for each."""
    first, last = (brief(instance, f"range-{uuid.uuid4().hex[:8]}") for _ in range(2))
    tags = {
        "dagster/asset_partition_range_start": first,
        "dagster/asset_partition_range_end": last,
    }

    done = make(home, ScriptedChatModel([]), instance, only=["outline"], tags=tags)

    assert "2 partitions, must be for 1" in failure_of(done, "outline").description


@pytest.mark.parametrize(
    ("inputs", "named"),
    [
        (None, "no brief has the key"),
        ({"brief": "b", "audience": "one\ntwo"}, "audience"),
        ({"brief": "b", "audience": "a", "word_count": "800"}, "word_count"),
        ({"brief": "b", "audience": "a", "min_sections": 5, "max_sections": 4}, "min_sections"),
        ({"brief": "b"}, "audience"),
    ],
)
def test_inputs_that_do_not_hold_are_refused_before_any_call(
    home: Path, instance: dg.DagsterInstance, key: str, inputs: Any, named: str
) -> None:
    """They enter a step as a run's config enters a job: strictly."""
    _briefs.pop(key) if inputs is None else _briefs.update({key: inputs})

    done = make(home, ScriptedChatModel([]), instance, key)

    assert named in failure_of(done, "outline").description


def test_a_call_that_fails_is_no_verdict_of_the_gate(
    home: Path, instance: dg.DagsterInstance, key: str
) -> None:
    """The run fails naming the step, and the check is left unevaluated."""
    down = [CallError(Problem.UNAVAILABLE, "the server is down")] * 2

    done = make(home, ScriptedChatModel(down), instance, key)

    assert done.get_asset_check_evaluations() == []
    assert "outline failed: " in failure_of(done, "outline").description


def test_the_retries_of_a_run_hold_for_its_outline(
    home: Path, instance: dg.DagsterInstance, key: str
) -> None:
    """`max_retries_per_step`, as in the jobs."""
    model = ScriptedChatModel(lambda prompt: outline(2))
    config = {"ops": {"outline": {"config": {"max_retries_per_step": 0}}}}

    make(home, model, instance, key, run_config=config)

    assert len(model.prompts) == 1


class Complaint(BaseModel):
    product: str
    problem: str


class Review(BaseModel):
    review: str


def warranty(complaint: Complaint) -> int:
    return {"kettle": 2}[complaint.product]


def _years(years: int, fields: object) -> str | None:
    return None if years > 0 else f"{years} years, need 1 or more"


def reviews(prompt: str = "Answer.") -> Chain:
    return Chain(
        "reviews",
        inputs=Review,
        steps=[
            PromptStep(
                name="complaint",
                prompt=PromptTemplate("<review>{{ review }}</review>", name="complaint"),
                reads={"review": str},
                output_type=Complaint,
            ),
            ToolStep(name="warranty", function=warranty, accept=AcceptSpec(Criterion("y", _years))),
            PromptStep(
                name="answer",
                prompt=PromptTemplate(
                    f"{prompt} <review>{{{{ review }}}}</review> <years>{{{{ warranty }}}}</years>",
                    name="answer",
                ),
                reads={"review": str, "warranty": int},
            ),
        ],
    )


def test_a_chain_of_ones_own_with_a_tool_is_assets_without_partitions(
    home: Path, instance: dg.DagsterInstance
) -> None:
    """Each output is an asset under the given keys, group and owners, made from what it reads."""
    assets = chain_assets(
        reviews(),
        inputs_of=lambda key: Review(review=f"The kettle leaks. {key}"),
        keys={"answer": dg.AssetKey(["mail", "reply"])},
        key_prefix=["shop", "reviews"],
        group_name="shop",
        owners=["team:support"],
        tags={"domain": "shop"},
    )
    model = ScriptedChatModel(['{"product": "kettle", "problem": "leaks"}', "Sorry."])

    done = make(home, model, instance, assets=assets)

    assert done.success
    assert (home / "reviews" / "warranty.json").read_text() == "2\n"
    assert (home / "reviews" / "answer.md").read_text() == "Sorry."
    assert "The kettle leaks. None" in model.prompts[1]
    specs = {asset.key.to_user_string(): next(iter(asset.specs)) for asset in assets}
    assert list(specs) == ["shop/reviews/complaint", "shop/reviews/warranty", "mail/reply"]
    answer = specs["mail/reply"]
    assert [dep.asset_key for dep in answer.deps] == [assets[1].key]
    assert (answer.group_name, answer.owners) == ("shop", ["team:support"])
    assert answer.tags["domain"] == "shop"
    checks = [spec.name for asset in assets for spec in asset.check_specs]
    assert checks == ["complaint_gate", "warranty_gate"]
    assert [asset.op.pool for asset in assets] == ["llm", None, "llm"]


def test_a_tool_that_breaks_ends_the_run_and_its_error_is_told(
    home: Path, instance: dg.DagsterInstance
) -> None:
    """What was made before it stays."""
    assets = chain_assets(reviews(), inputs_of=lambda key: {"review": "r"}, folder="broken/tools")
    model = ScriptedChatModel(['{"product": "lamp", "problem": "dark"}'])

    done = make(home, model, instance, assets=assets)

    assert list(made(done)) == ["complaint"]
    assert (home / "broken" / "tools" / "complaint.json").exists()
    assert "KeyError: 'lamp'" in failure_of(done, "warranty").description


def test_keys_of_what_no_step_gives_are_refused() -> None:
    """A misspelt output is found when the assets are defined."""
    with pytest.raises(ChainDefinitionError, match="'anwser'"):
        chain_assets(reviews(), inputs_of=brief_of, keys={"anwser": dg.AssetKey("a")})


def test_f18_the_brief_is_not_asked_for_when_the_assets_are_defined() -> None:
    """Inputs are read when a step runs."""

    def inputs_of(key: str | None) -> Brief:
        raise AssertionError("asked for while loading")

    chain_assets(blog_post_chain(Variant.GATED_EXIT), inputs_of=inputs_of)
