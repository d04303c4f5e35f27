"""Bad input: one line that names the thing, its value and the range; status 2, nothing made."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from promptchain_dagster.cli import commands
from tests.support.chat_server import ChatServer

BRIEF = ["--brief", "Why tests pay.", "--audience", "developers"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(*args: str) -> Result:
    """Run it with a model at hand; it must be refused with no call, no run, no standard output."""
    with ChatServer(["never to be asked"]) as server:
        result = CliRunner().invoke(commands, [*args, "--base-url", server.url])
    assert result.exit_code == 2, result.output
    assert server.requests == []
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert not Path(".promptchain/dagster").exists()
    assert not Path(".promptchain/results").exists()
    return result


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--brief", "", "--audience", "devs"], "--brief is empty"),
        (["--brief", " \n\t", "--audience", "devs"], "--brief is empty"),
        (["--brief", "B.", "--audience", ""], "--audience is empty"),
        (["--brief", "B.", "--audience", "  "], "--audience is empty"),
        (["--brief", "B.", "--audience", "two\nlines"], "--audience is 'two\\nlines'"),
        (["--brief", "B."], "'--audience'"),
        (["--audience", "devs"], "'--brief'"),
        ([*BRIEF, "--variant", "maybe"], "'maybe' is not one of 'gate-with-retry', 'gated-exit'"),
        ([*BRIEF, "--min-sections", "0"], "--min-sections is 0, must be from 1 to 50"),
        ([*BRIEF, "--max-sections", "-3"], "--max-sections is -3, must be from 1 to 50"),
        ([*BRIEF, "--max-sections", "51"], "--max-sections is 51, must be from 1 to 50"),
        ([*BRIEF, "--word-count", "0"], "--word-count is 0, must be from 1 to 50000"),
        ([*BRIEF, "--word-count", "many"], "'many' is not a valid integer"),
        (
            [*BRIEF, "--min-sections", "5", "--max-sections", "2"],
            "--min-sections is 5, must not be over --max-sections, 2",
        ),
        (
            [*BRIEF, "--min-sections", "9"],
            "--min-sections is 9, must not be over --max-sections, 6",
        ),
        ([*BRIEF, "--max-attempts", "0"], "--max-attempts is 0, must be from 1 to 4"),
        ([*BRIEF, "--max-attempts", "-1"], "--max-attempts is -1, must be from 1 to 4"),
        ([*BRIEF, "--max-attempts", "5"], "--max-attempts is 5, must be from 1 to 4"),
        (
            [*BRIEF, "--variant", "gated-exit", "--max-attempts", "2"],
            "--max-attempts is 2, but goes with the variant gate-with-retry alone",
        ),
        (["--brief", "@no-such.md", "--audience", "devs"], "'no-such.md' can't be read: No such"),
        (["--brief", "@.", "--audience", "devs"], "'.' can't be read: Is a directory"),
        (["--brief", "@", "--audience", "devs"], "--brief: file '' can't be read"),
        ([*BRIEF, "--model", " "], "--model is empty"),
        ([*BRIEF, "--model", ""], "--model is empty"),
        ([*BRIEF, "--home", "ftp://host/x"], "a store without atomic writes is refused: ftp"),
        ([*BRIEF, "--home", "/dev/null/x"], "home '/dev/null/x' can't be used"),
        ([*BRIEF, "--home", ""], "home '' is empty"),
    ],
)
def test_a_post_that_cannot_be_is_refused(folder: Path, args: list[str], told: str) -> None:
    """Each fault is named with its option."""
    assert told in refused("post", *args).stderr


def test_every_fault_of_a_brief_has_a_line_of_its_own(folder: Path) -> None:
    """Two wrong options are both told at once."""
    told = refused("post", *BRIEF, "--min-sections", "0", "--word-count", "-1").stderr
    assert "--min-sections is 0, must be from 1 to 50\n" in told
    assert "--word-count is -1, must be from 1 to 50000\n" in told


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "is not text in UTF-8"),
        (b"text\x00more", "is binary"),
        ("caf\u00e9".encode("cp1252"), "is not text in UTF-8"),
    ],
)
def test_a_brief_file_that_is_no_text_is_refused(folder: Path, data: bytes, told: str) -> None:
    """Its name is told, and why."""
    Path("brief").write_bytes(data)
    error = refused("post", "--brief", "@brief", "--audience", "devs").stderr
    assert "--brief: file 'brief'" in error
    assert told in error


def summary_cases() -> list[tuple[list[str], str]]:
    return [
        (["no-such.md"], "document 'no-such.md' can't be read: No such file or directory"),
        (["no-such-folder/"], "'no-such-folder/'"),
        (["empty"], "folder 'empty' holds no document; supported kinds: .txt"),
        (["unsupported"], "folder 'unsupported' holds no document"),
        (["binary.txt"], "'binary.txt' is not text but an image"),
        (["nul.md"], "'nul.md' is"),
        (["report.rtf"], "'report.rtf': files of kind '.rtf' are not supported"),
        (["good.md", "no-such.md"], "'no-such.md' can't be read"),
        ([""], "PATH is empty"),
        (["good.md", "--chunk-tokens", "0"], "--chunk-tokens is 0, must be an integer from 1 to"),
        (["good.md", "--chunk-tokens", "-5"], "--chunk-tokens is -5"),
        (["good.md", "--max-words", "0"], "--max-words is 0, must be an integer from 1 to 50,000"),
        (["good.md", "--document-type", ""], "--document-type"),
        (["good.md", "--refine", "nowhere.refine"], "--refine: 'nowhere.refine' can't be imported"),
        (["good.md", "--refine", "json.dumps"], "--refine: 'json.dumps' is no Refine"),
        (["good.md", "--document-type", "a\nb"], "--document-type"),
        ([], "PATH..."),
    ]


@pytest.mark.parametrize(("args", "told"), summary_cases())
@pytest.mark.parametrize("name", ["summarize", "plan"])
def test_documents_and_shapes_that_cannot_be_are_refused(
    folder: Path, name: str, args: list[str], told: str
) -> None:
    """`summarize` and `plan` refuse the same things in the same words."""
    Path("empty").mkdir()
    Path("unsupported").mkdir()
    Path("unsupported/data.csv").write_text("a,b")
    Path("binary.txt").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40))
    Path("nul.md").write_bytes(b"\x00\x01" * 40)
    Path("report.rtf").write_bytes(b"{\\rtf1}")
    Path("good.md").write_text("A document with some words.")
    assert told in refused(name, *args).stderr


def test_max_in_flight_below_one_is_refused(folder: Path) -> None:
    """Nothing could ever be called."""
    Path("good.md").write_text("A document with some words.")
    told = refused("summarize", "good.md", "--max-in-flight", "0").stderr
    assert "--max-in-flight is 0, must be 1 or more" in told


def test_every_path_that_cannot_be_read_has_a_line_of_its_own(folder: Path) -> None:
    """All of them are told at once."""
    told = refused("summarize", "a.md", "b.md").stderr
    assert "'a.md'" in told
    assert "'b.md'" in told


@pytest.mark.parametrize("url", ["ftp://host", "localhost:1", "http://", "http://u:pw@host/v1"])
def test_a_base_url_that_is_none_is_refused_without_its_password(folder: Path, url: str) -> None:
    """The rule is told, a password is not."""
    result = CliRunner().invoke(commands, ["post", *BRIEF, "--base-url", url])
    assert result.exit_code == 2
    assert "--base-url" in result.stderr
    assert "pw" not in result.stderr


def test_a_model_by_name_needs_a_key_or_a_base_url(folder: Path) -> None:
    """Neither is set here: what to set is told."""
    result = CliRunner().invoke(commands, ["post", *BRIEF, "--model", "gpt-4o"])
    assert result.exit_code == 2
    assert "needs OPENAI_API_KEY or OPENAI_BASE_URL" in result.stderr
    assert not Path(".promptchain/dagster").exists()


@pytest.mark.parametrize("name", ["summarize", "plan"])
def test_chunks_that_leave_the_embedded_models_context_no_room_are_refused(
    folder: Path, name: str
) -> None:
    """The context is known of the embedded model, so it is asked without a call."""
    pytest.importorskip("xllamacpp")
    Path("good.md").write_text("A document with some words.")
    result = CliRunner().invoke(commands, [name, "good.md", "--chunk-tokens", "9000"])
    assert result.exit_code == 2
    assert "--chunk-tokens is 9000, too many for the model's context of" in result.stderr
    assert not Path(".promptchain/dagster").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads and writes everything")
def test_what_may_not_be_read_or_written_is_refused(folder: Path) -> None:
    """A document without permission, and a home without."""
    secret = Path("secret.md")
    secret.write_text("Not for everybody to read.")
    secret.chmod(0)
    assert "Permission denied" in refused("summarize", "secret.md").stderr
    Path("locked").mkdir(mode=0o500)
    assert "'locked/home' can't be used" in refused("post", *BRIEF, "--home", "locked/home").stderr


@pytest.mark.parametrize("run_id", ["no-such-run", "", "../../etc"])
def test_a_run_that_left_nothing_is_refused(folder: Path, run_id: str) -> None:
    """An unknown id is told with the place that was searched."""
    told = refused("trace", run_id).stderr
    assert f"RUN_ID {run_id!r}: no such run under" in told


def test_the_beginning_of_several_runs_is_refused_and_names_them(folder: Path) -> None:
    """One of them is meant, and it is not guessed which."""
    for name in ("abc1", "abc2"):
        kept = Path(".promptchain/results")
        kept.mkdir(parents=True, exist_ok=True)
        (kept / f"{name}.json").write_text('{"status": "completed"}')
    result = CliRunner().invoke(commands, ["trace", "abc"])
    assert result.exit_code == 2
    assert "is the beginning of 2 runs: abc1, abc2" in result.stderr
    assert CliRunner().invoke(commands, ["trace", "abc1"]).exit_code == 0


@pytest.mark.parametrize("url", ["not a url", "ftp://host", "http://", "http://u:pw@host/v1"])
@pytest.mark.parametrize("name", ["post", "summarize", "plan"])
def test_a_base_url_from_the_environment_is_refused_under_its_own_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, url: str
) -> None:
    """Nobody gave an option, so none is named."""
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    Path("good.md").write_text("A document with some words.")
    result = CliRunner().invoke(commands, [name, *(BRIEF if name == "post" else ["good.md"])])
    assert result.exit_code == 2
    assert "OPENAI_BASE_URL" in result.stderr
    assert "--base-url" not in result.stderr
    assert "pw" not in result.stderr


def test_an_empty_base_url_is_refused(folder: Path) -> None:
    """It is not taken for one that was not given."""
    result = CliRunner().invoke(commands, ["post", *BRIEF, "--base-url", " "])
    assert result.exit_code == 2
    assert "--base-url is empty" in result.stderr


@pytest.mark.parametrize(
    "age", ["", "30", "d", "0d", "-3d", "1.5d", "30 days", "9y", "999999999w", "1e3d", "\u0663d"]
)
def test_an_age_that_is_none_is_refused(folder: Path, age: str) -> None:
    """The value is told, with what is one."""
    told = refused("prune", "--older-than", age).stderr
    assert f"--older-than is {age!r}, must be a number from 1 with m, h, d or w" in told


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ([], "name the documents to release, KEY|PATH..., or give --all"),
        (["some-key", "--all"], "name the documents to release"),
        (["no-such-key", "no-such.md"], "'no-such-key' is not set aside\n'no-such.md' is not"),
    ],
)
def test_a_release_of_what_is_not_set_aside_is_refused(
    folder: Path, args: list[str], told: str
) -> None:
    """Each has a line of its own."""
    assert told in refused("quarantine", "release", *args).stderr
