"""Brief files, their partitions, and the job `write_posts`."""

import os
import uuid
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest

from promptchain_dagster.blog_post import Brief
from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.pipelines.brief_files import (
    MAX_BYTES,
    VARIABLE,
    BriefFolder,
    parse_brief,
)
from promptchain_dagster.pipelines.briefs import register_briefs, register_briefs_job
from promptchain_dagster.pipelines.posts import post_assets, write_posts
from promptchain_dagster.refine.documents import document_key
from promptchain_dagster.testing import ScriptedChatModel
from tests.pipelines.scripted import failure_of, outline, resources

GOOD = "brief: Why tests pay.\naudience: developers\n"
Write = Callable[..., Path]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / f"briefs-{uuid.uuid4().hex[:8]}"
    folder.mkdir()
    monkeypatch.setenv(VARIABLE, str(folder))
    return folder


def put(folder: Path, path: str, text: str = GOOD) -> str:
    """A brief file; returns its key."""
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text, "utf-8")
    return document_key(path)


def test_a_brief_has_the_defaults_of_the_chain() -> None:
    """Bounds and length are the file's where it gives them."""
    assert parse_brief(GOOD.encode(), "b") == Brief(brief="Why tests pay.", audience="developers")
    full = parse_brief(f"\ufeff{GOOD}min_sections: 2\nword_count: 90\n".encode(), "b")
    assert (full.min_sections, full.max_sections, full.word_count) == (2, 6, 90)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "must be a mapping"),
        ("- a\n", "must be a mapping"),
        ("just text\n", "must be a mapping"),
        ("brief: b\n", "audience is missing"),
        (f"{GOOD}word_count: 900000\n", "word_count: Input should be less than or equal to 50000"),
        (f"{GOOD}word_count: 900000\n", "got 900000"),
        (f"{GOOD}word_count: '800'\n", "word_count: Input should be a valid integer, got '800'"),
        (f"{GOOD}word_count: yes\n", "word_count: Input should be a valid integer, got True"),
        (f"{GOOD}word_count: 8{'0' * 5000}\n", "is no YAML: "),
        (f"{GOOD}min_sections: 9\n", "min_sections is 9, must not be over max_sections, 6"),
        ("brief: 2024-01-01\naudience: a\n", "brief: Input should be a valid string, got datetime"),
        ("brief: 2024-13-45\naudience: a\n", "is no YAML: month must be in 1..12"),
        ("brief: b\naudience: |\n  one\n  two\n", "audience: "),
        (f"{GOOD}tone: dry\n", "tone: Extra inputs are not permitted, got 'dry'"),
        ("brief: a\nbrief: b\naudience: c\n", "brief stands there twice"),
        ("brief: [a]\naudience: c\n", "brief must be one plain value"),
        ("a: &a [1]\nbrief: &b [*a, *b]\naudience: c\n", "must be one plain value"),
        (
            "brief: !!python/object/apply:os.system ['true']\naudience: a\n",
            "brief must be one plain",
        ),
        ("brief: !!python/name:os.system\naudience: a\n", "is no YAML"),
        ("brief: !!int ''\naudience: a\n", "is no YAML"),
        ("!!int ''", "must be a mapping"),
        ("!!set {brief, audience}", "must be a mapping"),
        ("brief: !!bool maybe\naudience: a\n", "is no YAML"),
        ("brief: !!timestamp soon\naudience: a\n", "is no YAML"),
        (f"brief: {'1:' * 9000}1.5\naudience: a\n", "is no YAML"),
        (f"{GOOD}word_count: 0x{'f' * 9000}\n", "got a number of thousands of digits"),
        (f"{GOOD}word_count: {'1:' * 9000}1\n", "got a number of thousands of digits"),
        ("<<: {brief: a, audience: b}\n", "<< must be one plain value"),
        ("brief: 'open\n", "is no YAML"),
        ("{" * 5000, "is no YAML"),
        ("? [a, b]\n: c\n", "a key must be a plain name"),
        ("brief: a\n---\nbrief: b\n", "is no YAML"),
    ],
)
def test_a_brief_that_does_not_hold_names_file_field_value_and_range(text: str, told: str) -> None:
    """Nothing is coerced, run or expanded."""
    with pytest.raises(InvalidInput) as caught:
        parse_brief(text.encode(), "posts/tests.yaml")
    assert str(caught.value).startswith("brief 'posts/tests.yaml'")
    assert told in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_nested_aliases_are_not_written_out() -> None:
    """Sixteen lines that stand for two to the power of forty items."""
    levels = [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}, *a{n - 1}]" for n in range(1, 20)]
    text = "\n".join(["a0: &a0 [x, x]", *levels, GOOD])
    with pytest.raises(InvalidInput, match="a0 must be one plain value"):
        parse_brief(text.encode(), "b")


def test_merged_mappings_are_not_written_out() -> None:
    """Forty mappings, each ten times the one before: some parsers merge them all."""
    levels = [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, 40)]
    text = "\n".join(["a0: &a0 {k: v, l: w}", *levels, GOOD])
    with pytest.raises(InvalidInput, match="a0 must be one plain value"):
        parse_brief(text.encode(), "b")


@pytest.mark.parametrize(
    ("data", "told"),
    [(b"brief: \xff\n", "is not UTF-8"), (b"#" * (MAX_BYTES + 1), "over 65,536 bytes")],
)
def test_a_file_that_is_no_text_or_too_long_is_refused(
    folder: Path, data: bytes, told: str
) -> None:
    """It is not read to its end."""
    (folder / "b.yaml").write_bytes(data)
    with pytest.raises(InvalidInput, match=told):
        BriefFolder().read("b.yaml")


def test_f4_each_brief_file_is_found_again_by_its_key(folder: Path) -> None:
    """At any depth, none hidden, none that leads out of the folder."""
    paths = ["a.yaml", "a.yml", "b/a.yaml", "b_a.yaml", "Report, Q1.yaml", "报告.yaml", "C/D/e.YML"]
    for path in paths:
        put(folder, path, GOOD.replace("tests", path))
    for path in (".hidden.yaml", ".git/x.yaml", "notes.txt"):
        put(folder, path)
    put(folder.parent, "outside.yaml")
    os.symlink(folder.parent / "outside.yaml", folder / "link.yaml")
    os.mkfifo(folder / "pipe.yaml")

    keys = BriefFolder().keys()

    assert sorted(keys.values()) == sorted(paths)
    for key, path in keys.items():
        assert path in BriefFolder().find(key).brief
    with pytest.raises(InvalidInput, match="has the key 'gone'"):
        BriefFolder().find("gone")


@pytest.mark.parametrize("value", ["", "/nowhere/at/all"])
def test_a_folder_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """So is the variable that names it."""
    monkeypatch.setenv(VARIABLE, value)
    with pytest.raises(InvalidInput, match=VARIABLE) as caught:
        BriefFolder()
    assert value in str(caught.value)


def test_valid_briefs_become_partitions_and_the_others_are_told(
    folder: Path, instance: dg.DagsterInstance
) -> None:
    """Once each; and none is ever removed."""
    good = put(folder, f"{folder.name}.yaml")
    put(folder, "bad.yaml", "brief: b\n")

    first = register_briefs(instance)
    again = register_briefs(instance, str(folder))

    assert first.added == (good,)
    assert first.refused == ("brief 'bad.yaml': audience is missing",)
    assert again.added == ()
    (folder / f"{folder.name}.yaml").unlink()
    register_briefs(instance)
    assert good in instance.get_dynamic_partitions("briefs")


def test_the_job_registers_briefs_and_fails_naming_those_that_are_none(
    folder: Path, instance: dg.DagsterInstance
) -> None:
    """The others are registered all the same."""
    good = put(folder, f"{folder.name}.yaml")
    assert register_briefs_job.execute_in_process(instance=instance).success
    put(folder, "bad.yaml", "brief: b\n")
    more = put(folder, f"{folder.name}/more.yaml")

    done = register_briefs_job.execute_in_process(instance=instance, raise_on_error=False)

    assert (
        "1 brief is not valid: brief 'bad.yaml'"
        in failure_of(done, "register_brief_files").description
    )
    assert {good, more} <= set(instance.get_dynamic_partitions("briefs"))


def test_write_posts_writes_the_post_of_a_brief_and_f9_ends_at_a_rejected_outline(
    folder: Path, home: Path, instance: dg.DagsterInstance
) -> None:
    """One run for each brief; the rejected one harms no other."""
    keys = {name: put(folder, f"{folder.name}/{name}.yaml", GOOD + f"# {name}\n")
            for name in ("one", "two")}  # fmt: skip
    put(folder, f"{folder.name}/two.yaml", GOOD + "min_sections: 5\n")
    register_briefs(instance)
    model = ScriptedChatModel(lambda prompt: outline(4) if "outline with" in prompt else "Text.")
    job = dg.Definitions(
        assets=post_assets, jobs=[write_posts], resources=resources(home, model)
    ).resolve_job_def("write_posts")

    runs = {
        name: job.execute_in_process(instance=instance, partition_key=key, raise_on_error=False)
        for name, key in keys.items()
    }

    assert {name: run.success for name, run in runs.items()} == {"one": True, "two": False}
    assert (home / "posts" / keys["one"] / "post.md").read_text() == "Text."
    assert not (home / "posts" / keys["two"]).exists()
    assert "4 sections, need 5 to 6" in failure_of(runs["two"], "outline").description
