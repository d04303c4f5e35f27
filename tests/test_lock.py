"""`requirements.lock` is what `pyproject.toml` asks for, whole and with hashes; told offline."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)([^\n]*)\n((?: {4}[^\n]*\n)*)", re.MULTILINE)
ENVIRONMENT = {key: str(value) for key, value in default_environment().items()}


def asked_for() -> dict[str, list[str]]:
    """The project's own requirements, by where they stand."""
    project = PROJECT["project"]
    return {
        "dependencies": project["dependencies"],
        **project["optional-dependencies"],
        **PROJECT["dependency-groups"],
    }


def pins() -> Iterator[tuple[str, str, str, str]]:
    """Name, version, marker and what follows (hashes, who asks for it) of every pin."""
    for name, version, marker, more in PIN.findall(LOCK):
        yield canonicalize_name(name), version, marker.strip(" ;\\"), more


def pinned_here() -> dict[str, str]:
    """The versions pinned for the Python and the system that this runs on."""
    return {
        name: version
        for name, version, marker, _ in pins()
        if not marker or Requirement(f"x; {marker}").marker.evaluate(ENVIRONMENT)  # type: ignore[union-attr]
    }


def test_every_requirement_is_pinned_to_a_version_that_it_allows() -> None:
    """After a change of pyproject.toml: `make lock`."""
    versions: dict[str, list[str]] = {}
    for name, version, _, _ in pins():
        versions.setdefault(name, []).append(version)
    for group, lines in asked_for().items():
        for line in lines:
            wanted = Requirement(line)
            found = versions.get(canonicalize_name(wanted.name), [])
            assert found, f"{group}: {line} is not locked"
            for version in found:
                assert wanted.specifier.contains(version), f"{group}: {line}, locked {version}"


def test_nothing_is_locked_for_the_project_that_it_no_longer_asks_for() -> None:
    """What the lock says it holds for the project is what the project asks for."""
    asked = {
        canonicalize_name(Requirement(line).name)
        for lines in asked_for().values()
        for line in lines
    }
    locked = {name for name, _, _, more in pins() if "promptchain-dagster (pyproject.toml" in more}
    assert locked == asked


def test_every_pin_has_hashes() -> None:
    """So that what is installed is what was locked."""
    without = [name for name, _, _, more in pins() if "--hash=sha256:" not in more]
    assert without == []
    assert len(list(pins())) == len(re.findall(r"^\S+==", LOCK, re.MULTILINE))


def test_what_the_locked_packages_ask_for_is_locked_too() -> None:
    """All the way down, as far as the installed packages tell."""
    locked, elsewhere = pinned_here(), dict[str, str | None]()
    versions = {canonicalize_name(one.name): one.version for one in metadata.distributions()}
    overridden = {one["name"] for one in PROJECT["tool"]["uv"]["dependency-metadata"]}
    pending = [Requirement(line) for lines in asked_for().values() for line in lines]
    seen: set[tuple[str, frozenset[str]]] = set()
    while pending:
        wanted = pending.pop()
        name = canonicalize_name(wanted.name)
        if (name, frozenset(wanted.extras)) in seen:
            continue
        seen.add((name, frozenset(wanted.extras)))
        assert name in locked, f"{wanted} is asked for and not locked"
        assert wanted.specifier.contains(locked[name], prereleases=True), (wanted, locked[name])
        if locked[name] != versions.get(name):
            elsewhere[name] = versions.get(name)
        if name in overridden or name in elsewhere:
            continue
        installed = metadata.distribution(name)
        for line in installed.requires or []:
            inner = Requirement(line)
            extras = ["", *wanted.extras]
            if inner.marker is None or any(
                inner.marker.evaluate({**ENVIRONMENT, "extra": extra}) for extra in extras
            ):
                pending.append(inner)
    assert len(seen) > 50
    assert not elsewhere, "not installed as locked: make setup"
