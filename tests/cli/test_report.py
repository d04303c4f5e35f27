"""`promptchain report`: what is on the page, and what can never be."""

from __future__ import annotations

import html
import json
import re

from tests.cli.conftest import Command
from tests.support.chat_server import Answer, ChatServer, Request, error, reply

MARKUP = "<script>alert(1)</script><img src=http://127.0.0.1/x>"
OUTLINE = {"sections": [{"heading": f"Part {n}", "point": f"It shows {n}."} for n in range(1, 5)]}


def answer(request: Request) -> Answer:
    prompt = request.prompt
    if "Write an outline" in prompt:
        if "hopeless" in prompt or "<errors>" not in prompt:
            return reply(json.dumps({"sections": OUTLINE["sections"][:2]}))
        return reply(json.dumps(OUTLINE))
    if "poison" in prompt:
        return error(400, "content_filter", code="content_filter")
    return reply(f"A text of the model's own, with {MARKUP} in it.")


def page_of(command: Command, *args: str) -> str:
    done = command.run("report", *args)
    assert done.status == 0, done.err
    return (command.cwd / "report.html").read_text(encoding="utf-8")


def used(command: Command) -> dict[str, str]:
    """One post that a second attempt saved, one without hope, and three documents."""
    folder = command.cwd / "documents"
    folder.mkdir()
    (folder / f"a & {'b' * 3} <i>.txt").write_text("The town has a well. It is deep and old.")
    (folder / "poison.txt").write_text("Some poison for the model to refuse, in words.")
    (folder / "empty.txt").write_text("")
    runs: dict[str, str] = {}
    with ChatServer(answer) as server:
        command.env["OPENAI_BASE_URL"] = server.url
        for brief in ("saved", "hopeless"):
            done = command.run("post", "--brief", brief, "--audience", "all", "--json")
            runs[brief] = done.json["run_id"]
        runs["documents"] = command.run("summarize", "documents", "--json").json["documents"][0][
            "run_id"
        ]
    return runs


def test_the_page_of_all_runs_tells_what_failed_why_and_what_it_took(command: Command):
    """Documents, chains, gates and money, each checked against what the runs said."""
    used(command)
    page = page_of(command)
    text = html.unescape(
        re.sub(r"<[^>]+>", " ", re.sub(r"<style>.*?</style>", "", page, flags=re.S))
    )
    assert page.index("poison.txt") < page.index("empty.txt")
    assert "content filter" in text or "content_filter" in text
    assert "outline: section_count" in text
    assert "2 sections, need 4 to 6" in text
    assert re.search(r"hopeless\s+× 3", text), "the brief that keeps failing is named"
    usage = command.run("usage", "--json").json
    assert f"{usage['model_calls']:,}" in text
    tokens = usage["usage"]["input_tokens"] + usage["usage"]["output_tokens"]
    assert f"{tokens:,}" in text
    assert "what changed" in text
    assert "Set aside" in text


def test_the_page_of_one_run_holds_that_run_alone(command: Command):
    """By the beginning of its id."""
    runs = used(command)
    page = page_of(command, runs["saved"][:13])
    assert runs["saved"] in page
    assert runs["hopeless"] not in page
    assert "poison.txt" not in page


def test_what_others_wrote_is_text_and_nothing_is_loaded(command: Command):
    """No script, no picture, nothing from elsewhere, whatever a model or a file name says."""
    used(command)
    page = page_of(command)
    assert html.escape(MARKUP, quote=False) in page
    assert "<i>" not in page
    assert not re.search(r"<(script|img|link|iframe|object|embed|form|base)\b", page)
    assert not re.search(
        r"(src|href|action|srcset)\s*=|url\(|@import", re.sub(r"&lt;.*?&gt;", "", page)
    )
    assert "default-src 'none'" in page


def test_a_home_without_runs_gives_a_page_that_says_so_and_a_wrong_run_none(command: Command):
    """Bad input leaves no file."""
    assert "No run has left anything here yet" in page_of(
        command, "--home", str(command.cwd / "new")
    )
    (command.cwd / "report.html").unlink()
    done = command.run("report", "beef")
    assert (done.status, (command.cwd / "report.html").exists()) == (2, False)
    done = command.run("report", "--output", "no/such/folder/page.html")
    assert done.status == 2
    assert "no/such/folder/page.html" in done.err


def test_json_names_the_page_and_counts_what_is_on_it(command: Command):
    """One object on standard output."""
    used(command)
    told = command.run("report", "--json", "--output", "page.html").json
    assert told["path"] == str(command.cwd / "page.html")
    assert (told["runs"], told["documents"], told["chains"]) == (3, 3, 2)
