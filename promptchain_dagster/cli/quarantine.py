"""`promptchain quarantine`: the documents that failed for good; `release` has them tried again."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from promptchain_dagster.cli.bad_input import BadInput
from promptchain_dagster.cli.options import Common, common_options

if TYPE_CHECKING:
    from promptchain_dagster.library.quarantine import Quarantined


@click.group(invoke_without_command=True)
@common_options
def quarantine(common: Common) -> None:
    """List the documents set aside: refused, filtered, unreadable, or tried too often.

    Runs over a folder skip them, until their text or the prompts change, or they are released.
    """
    from promptchain_dagster.cli.streams import only_results_on_stdout, print_json, say
    from promptchain_dagster.library import quarantine as library
    from promptchain_dagster.store import open_store

    context = click.get_current_context()
    context.obj = common
    if context.invoked_subcommand is not None:
        return
    with only_results_on_stdout():
        found = library.quarantine(open_store(common.home, read_only=True))
    if common.as_json:
        print_json({"documents": [_entry(one) for one in found]})
        return
    for one in found:
        say(_told(one))
    say(f"{len(found):,} document{'' if len(found) == 1 else 's'} set aside")


@quarantine.command()
@click.argument("documents", nargs=-1, metavar="KEY|PATH...")
@click.option("--all", "everything", is_flag=True, help="Release all that can be.")
@common_options
@click.pass_obj
def release(outer: Common, common: Common, documents: tuple[str, ...], everything: bool) -> None:
    """Forget that documents failed, so that they are tried again."""
    from promptchain_dagster.cli.streams import only_results_on_stdout, print_json, say
    from promptchain_dagster.library import quarantine as library
    from promptchain_dagster.library.state import State
    from promptchain_dagster.store import open_store

    if everything == bool(documents):
        raise BadInput("name the documents to release, KEY|PATH..., or give --all")
    home = common.home if common.home_option is not None else outer.home
    with only_results_on_stdout():
        store = open_store(home, read_only=True)
        found = library.quarantine(store)
        keys = [one.key for one in found if one.tries] if everything else _keys(documents, found)
        state = State.read(open_store(home) if keys else store)
        released = [key for key in dict.fromkeys(keys) if state.release(key)]
    if common.as_json or outer.as_json:
        print_json({"released": released})
        return
    for key in released:
        say(f"released {key}")
    say(f"{len(released):,} document{'' if len(released) == 1 else 's'} released")


def _keys(given: Sequence[str], found: Sequence[Quarantined]) -> list[str]:
    """The keys of the documents given by key or path; raises `BadInput`, a line for each fault."""
    keys: list[str] = []
    problems: list[str] = []
    for name in given:
        names = {name, *_paths(name)}
        matching = [one for one in found if one.key in names or one.path in names]
        if not matching:
            problems.append(f"{name!r} is not set aside")
        elif not any(one.tries for one in matching):
            problems.append(
                f"{name!r} can't be read: {matching[0].reason}; there is no try to forget"
            )
        keys += [one.key for one in matching]
    if problems:
        raise BadInput("\n".join(problems))
    return keys


def _paths(name: str) -> list[str]:
    """What a path or a URL given here may be registered as: absolute, or as it lies within the
    documents' folder or bucket."""
    from promptchain_dagster.store.places import place_of

    full = os.path.abspath(name)
    documents = os.environ.get("PROMPTCHAIN_DOCUMENTS", "").strip()
    if not documents:
        return [full]
    place = place_of(documents, "documents")
    given, top = name if place.in_bucket else full, os.path.join(place.where, "")
    return [full, *([given.removeprefix(top)] if given.startswith(top) else [])]


def _entry(one: Quarantined) -> dict[str, object]:
    told = dataclasses.asdict(one)
    return {
        "path": told.pop("path"),
        "document_key": told.pop("key"),
        **told,
        "kind": one.kind.value,
    }


def _told(one: Quarantined) -> str:
    times = "" if not one.tries else ", once" if one.tries == 1 else f", {one.tries} times"
    when = f", last at {one.when}" if one.when else ""
    where = one.path or "a document that is no longer known"
    return f"{where}: {one.kind.value}{times}{when}\n  {one.reason}\n  key {one.key}"
