"""Documents and briefs in a bucket, under Dagster: ticks, runs, the plan, posts."""

import json
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.library.registry import Registry
from promptchain_dagster.pipelines import brief_files
from promptchain_dagster.pipelines.automation import new_documents, nightly_summaries
from promptchain_dagster.pipelines.brief_files import BriefFolder
from promptchain_dagster.pipelines.briefs import register_briefs
from promptchain_dagster.pipelines.collections import watch
from promptchain_dagster.pipelines.plan_job import plan
from promptchain_dagster.pipelines.posts import post_assets, write_posts
from promptchain_dagster.pipelines.results import read_document_result
from promptchain_dagster.pipelines.summary_assets import summary_assets
from promptchain_dagster.refine.documents import document_key
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.store import Store, open_store
from promptchain_dagster.testing import ScriptedChatModel
from tests.pipelines.document_collection import CHUNK_TOKENS, QUIET, answer, text_of
from tests.pipelines.scripted import outline, resources
from tests.support.s3 import Objects

SETTINGS = RefineSettings(chunk_tokens=CHUNK_TOKENS, max_words=50)
BRIEF = "brief: Why tests pay.\naudience: developers\n"


class Deployment:
    """A bucket of documents, a home and an instance; the ticks on them, and the runs these ask
    for."""

    def __init__(self, objects: Objects, home: Path, instance: dg.DagsterInstance) -> None:
        self.objects, self.home, self.instance = objects, home, instance
        self.model = ScriptedChatModel(answer)
        self.cursor: str | None = None

    @property
    def store(self) -> Store:
        return open_store(str(self.home))

    def put(self, *names: str) -> None:
        for name in names:
            self.objects.put(f"docs/{name}", text_of(name))

    def tick(self) -> Any:
        with dg.build_sensor_context(
            self.instance, cursor=self.cursor, resources=resources(self.home, self.model)
        ) as context:
            data = new_documents(settings=SETTINGS).evaluate_tick(context)
        self.cursor = data.cursor
        return data

    def run(self, data: Any) -> list[dg.ExecuteInProcessResult]:
        """What a tick asked for, run."""
        made = summary_assets(settings=SETTINGS)
        defs = dg.Definitions(
            assets=made.assets, jobs=[made.job], resources=resources(self.home, self.model)
        )
        return [
            defs.resolve_job_def("summarize_documents").execute_in_process(
                {**request.run_config, "loggers": QUIET},
                instance=self.instance,
                tags=request.tags,
                raise_on_error=False,
            )
            for request in data.run_requests
        ]

    def statuses(self, run: dg.ExecuteInProcessResult, *names: str) -> list[str]:
        return [
            read_document_result(self.store, run.run_id, document_key(name), name)["status"]
            for name in names
        ]


@pytest.fixture
def deployment(
    objects: Objects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Deployment]:
    monkeypatch.setenv(watch.VARIABLE, objects.url("docs/"))
    folder = tmp_path / "dagster"
    folder.mkdir()
    with dg.DagsterInstance.local_temp(str(folder)) as instance:
        yield Deployment(objects, tmp_path / "home", instance)


def keys(*names: str) -> set[str]:
    return {document_key(name) for name in names}


def test_f20_ticks_over_a_bucket_have_summarized_what_is_new_changed_or_renamed(
    deployment: Deployment,
) -> None:
    """A rename costs no call; what is gone is marked so; an empty listing changes nothing."""
    names = ("a.txt", "b.txt", "sub/报告 1.md")
    deployment.put(*names)
    (first,) = deployment.run(deployment.tick())
    assert first.success
    assert deployment.statuses(first, *names) == ["completed"] * 3
    assert set(deployment.instance.get_dynamic_partitions("documents")) == keys(*names)
    assert deployment.store.read(f"summaries/{document_key('a.txt')}.md") is not None
    assert not deployment.tick().run_requests

    deployment.objects.put("docs/a.txt", text_of("another"))
    deployment.objects.put("docs/c.txt", text_of("b.txt"))
    deployment.objects.delete("docs/b.txt")
    calls = len(deployment.model.prompts)
    (second,) = deployment.run(deployment.tick())
    assert deployment.statuses(second, "a.txt", "c.txt") == ["completed"] * 2
    assert len(deployment.model.prompts) == calls + 2  # two chunks of a.txt, none of c.txt
    gone = Registry(deployment.store).find(document_key("b.txt"))
    assert gone is not None and gone.absent

    for name in ("a.txt", "c.txt", "sub/报告 1.md"):
        deployment.objects.delete(f"docs/{name}")
    assert not deployment.tick().run_requests
    kept = Registry(deployment.store).find(document_key("a.txt"))
    assert kept is not None and not kept.absent


def test_an_object_that_is_no_text_or_gone_by_its_turn_harms_no_other(
    deployment: Deployment,
) -> None:
    """It fails alone, with its reason."""
    deployment.put("a.txt", "gone.txt")
    deployment.objects.put("docs/zip.txt", b"PK\x03\x04" + bytes(99))
    asked = deployment.tick()
    deployment.objects.delete("docs/gone.txt")
    (run,) = deployment.run(asked)
    assert not run.success
    assert deployment.statuses(run, "a.txt", "gone.txt") == ["completed", "failed"]
    failed = read_document_result(
        deployment.store, run.run_id, document_key("gone.txt"), "gone.txt"
    )
    assert "there is no such object" in str(failed["error"])


def test_the_night_asks_for_what_is_in_the_bucket(deployment: Deployment) -> None:
    """With the sensor off, too."""
    deployment.put("a.txt", "b.txt")
    with dg.build_schedule_context(
        deployment.instance,
        scheduled_execution_time=datetime(2031, 5, 4, 2, tzinfo=timezone.utc),
        resources=resources(deployment.home, deployment.model),
    ) as context:
        data = nightly_summaries(settings=SETTINGS).evaluate_tick(context)
    (run,) = deployment.run(data)
    assert deployment.statuses(run, "a.txt", "b.txt") == ["completed"] * 2


def test_the_plan_takes_all_in_the_bucket(deployment: Deployment) -> None:
    """What can't be read is told, and no model is called."""
    deployment.put("a.txt", "b.txt")
    deployment.objects.put("docs/zip.txt", b"PK\x03\x04" + bytes(99))
    job = dg.Definitions(
        jobs=[plan], resources=resources(deployment.home, ScriptedChatModel([]))
    ).resolve_job_def("plan")
    ops = {"plan_documents": {"config": {"chunk_tokens": CHUNK_TOKENS}}}
    result = job.execute_in_process(
        {"ops": ops, "loggers": QUIET}, instance=deployment.instance, raise_on_error=False
    )
    documents = result.output_for_node("plan_documents")["documents"]
    assert [one["status"] for one in documents] == ["planned", "planned", "failed"]


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("s3://AKIA:hunter2@bucket/docs", "credentials don't belong in a URL"),
        ("ftp://hunter2/docs", "documents: can't be read from this kind of URL: ftp://…"),
    ],
)
def test_a_url_that_cannot_work_ends_the_tick_with_the_reason(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, url: str, told: str
) -> None:
    """Before anything is asked for, and without a secret."""
    monkeypatch.setenv(watch.VARIABLE, url)
    with pytest.raises(InvalidInput) as caught:
        deployment.tick()
    assert told in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.fixture
def briefs(objects: Objects, monkeypatch: pytest.MonkeyPatch) -> Objects:
    monkeypatch.setenv(brief_files.VARIABLE, objects.url("briefs"))
    return objects


def test_briefs_in_a_bucket_become_partitions_and_posts(
    briefs: Objects, home: Path, instance: dg.DagsterInstance
) -> None:
    """The others are told, and hidden ones are none."""
    good = f"sub/{briefs.bucket} 报告.YAML"
    briefs.put(f"briefs/{good}", BRIEF)
    briefs.put("briefs/bad.yml", "brief: b\n")
    for name in ("notes.txt", ".hidden.yaml", ".git/x.yaml"):
        briefs.put(f"briefs/{name}", BRIEF)
    briefs.put("elsewhere.yaml", BRIEF)
    registered = register_briefs(instance)
    assert registered.added == (document_key(good),)
    assert registered.refused == ("brief 'bad.yml': audience is missing",)

    model = ScriptedChatModel(lambda prompt: outline(4) if "outline with" in prompt else "Text.")
    job = dg.Definitions(
        assets=post_assets, jobs=[write_posts], resources=resources(home, model)
    ).resolve_job_def("write_posts")
    done = job.execute_in_process(instance=instance, partition_key=document_key(good))
    assert done.success
    assert (home / "posts" / document_key(good) / "post.md").read_text() == "Text."


def test_a_brief_in_a_bucket_is_refused_like_one_in_a_folder(
    briefs: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too long, gone, unlistable, or from a URL that can't work."""
    briefs.put("briefs/long.yaml", b"#" * (brief_files.MAX_BYTES + 1))
    with pytest.raises(InvalidInput, match=r"brief 'long.yaml' has over 65,536 bytes"):
        BriefFolder().read("long.yaml")
    with pytest.raises(InvalidInput, match=r"brief 'gone.yaml' can't be read: there is no such"):
        BriefFolder().read("gone.yaml")
    with pytest.raises(InvalidInput, match="has the key 'gone'"):
        BriefFolder().find("gone")
    briefs.put("briefs/a//b.yaml", BRIEF)
    with pytest.raises(InvalidInput, match=r"briefs: 'a/' in 's3://.*/briefs' can't be"):
        BriefFolder().keys()
    monkeypatch.setenv(brief_files.VARIABLE, "s3://k:hunter2@bucket")
    with pytest.raises(InvalidInput, match="briefs s3://…: credentials") as caught:
        BriefFolder()
    assert "hunter2" not in str(caught.value)


def test_a_cursor_holds_a_place_in_the_bucket_and_no_listing(deployment: Deployment) -> None:
    """So it stays small, however many objects there are."""
    deployment.put("a.txt", "b.txt")
    deployment.tick()
    assert json.loads(deployment.cursor or "") == {"scan": "b.txt", "versions": ""}
