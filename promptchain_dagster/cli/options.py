"""The options that go with each command."""

from __future__ import annotations

import codecs
import functools
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from promptchain_dagster.cli.bad_input import BadInput, expected_errors
from promptchain_dagster.errors import InvalidInput

if TYPE_CHECKING:
    from promptchain_dagster.models.settings import ModelSettings

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_HOME = ".promptchain"
MAX_TEXT_BYTES = 1024 * 1024


@dataclass(frozen=True)
class Common:
    """What `--model`, `--base-url`, `--home` and `--json` were given."""

    model: str | None
    base_url: str | None
    home_option: str | None
    as_json: bool

    @property
    def home(self) -> str:
        """The home: the option, else PROMPTCHAIN_HOME, else `.promptchain` here."""
        for given in (self.home_option, os.environ.get("PROMPTCHAIN_HOME", "").strip() or None):
            if given is not None:
                return given
        return DEFAULT_HOME

    def model_settings(self) -> ModelSettings:
        """The settings of the model that would answer; raises `InvalidInput`."""
        from promptchain_dagster.models.settings import ModelSettings

        for option, value in (("--model", self.model), ("--base-url", self.base_url)):
            if value is not None and not value.strip():
                raise BadInput(f"{option} is empty")
        try:
            return ModelSettings.from_environment(model=self.model, base_url=self.base_url)
        except InvalidInput as error:
            if self.base_url is not None:
                raise
            # The URL is the environment's.
            raise BadInput(re.sub(r"\bbase_url\b", "OPENAI_BASE_URL", str(error))) from None


def common_options(command: F) -> F:
    """Add the options to `command`, which takes them as `common`, and report its bad input."""

    @functools.wraps(command)
    def with_common(
        *args: Any,
        model: str | None,
        base_url: str | None,
        home: str | None,
        as_json: bool,
        **kwargs: Any,
    ) -> Any:
        with expected_errors():
            return command(*args, common=Common(model, base_url, home, as_json), **kwargs)

    for option in (
        click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout."),
        click.option(
            "--home",
            metavar="FOLDER|URL",
            help="Where results, checkpoints and traces go.  [default: $PROMPTCHAIN_HOME, else"
            f" {DEFAULT_HOME}]",
        ),
        click.option(
            "--base-url",
            metavar="URL",
            help="An OpenAI-compatible endpoint.  [default: $OPENAI_BASE_URL]",
        ),
        click.option(
            "--model",
            metavar="NAME",
            help="A model at the endpoint, or a .gguf file.  [default: $PROMPTCHAIN_MODEL]",
        ),
    ):
        with_common = option(with_common)
    return with_common  # type: ignore[return-value]


def text_or_file(option: str, value: str) -> str:
    """The text given, or with `@FILE` the text in that file (UTF-8, or UTF-16 with its mark)."""
    if not value.startswith("@"):
        return value
    from promptchain_dagster.refine.cleaning import clean_text

    name = value[1:]
    try:
        with Path(name).open("rb") as file:
            data = file.read(MAX_TEXT_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BadInput(f"{option}: file {name!r} can't be read: {reason}") from None
    if len(data) > MAX_TEXT_BYTES:
        raise BadInput(f"{option}: file {name!r} has over {MAX_TEXT_BYTES:,} bytes")
    marked = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = data.decode("utf-16" if marked else "utf-8-sig")
    except UnicodeError:
        raise BadInput(f"{option}: file {name!r} is not text in UTF-8") from None
    if "\0" in text:
        raise BadInput(f"{option}: file {name!r} is binary, must be text in UTF-8")
    if not text.strip():
        raise BadInput(f"{option}: file {name!r} is empty")
    return clean_text(text)[0]
