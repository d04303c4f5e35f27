"""The resources of every job here: which model answers, and the home where results are kept."""

import os
from contextlib import AbstractAsyncContextManager
from typing import Any

import dagster as dg
from pydantic import Field, PrivateAttr

from promptchain_dagster.models import (
    ChatModel,
    ModelSettings,
    connect,
    is_embedded,
    timeout_seconds,
)
from promptchain_dagster.models.calls import Calls
from promptchain_dagster.pipelines.io import store_io_manager
from promptchain_dagster.store import Store, open_store
from promptchain_dagster.tokens import Encoder, encoding_for

DEFAULT_HOME = ".promptchain"


class ModelResource(dg.ConfigurableResource):
    """The model that answers; settings only, so that it passes into any process (case e8).

    What is not set is read from the environment when a step runs: `PROMPTCHAIN_MODEL`,
    `OPENAI_BASE_URL`. The key is read from `OPENAI_API_KEY` alone and is no field (case f26).
    With neither a key nor a base URL the embedded model answers.
    """

    model: str | None = Field(default=None, description="A name, or the path of a .gguf file.")
    base_url: str | None = Field(default=None, description="An OpenAI-compatible endpoint.")
    timeout_seconds: float | None = Field(
        default=None, description="For each request: 120, or 600 for the embedded model."
    )
    retries: int = Field(default=1, description="How often a call that errored is made again.")
    temperature: float | None = Field(default=None, description="Sent only where it is set.")
    max_output_tokens: int | None = Field(default=None, description="A cap on a reply, in tokens.")
    output_limit_parameter: str | None = Field(
        default=None, description="The name that the endpoint gives to that cap."
    )
    seed: int | None = Field(default=None, description="Sent only where it is set.")
    use_schema: bool | None = Field(
        default=None,
        description="Send a step's JSON schema; by default to the embedded one.",
    )
    context_tokens: int | None = Field(
        default=None, description="How many tokens prompt and reply may have together."
    )

    def settings(self) -> ModelSettings:
        """What is set here, over the environment. Raises `InvalidInput`."""
        return ModelSettings.from_environment(
            model=self.model,
            base_url=self.base_url,
            timeout_seconds=self.timeout_seconds,
            temperature=self.temperature,
            max_output_tokens=self.max_output_tokens,
            output_limit_parameter=self.output_limit_parameter,
            seed=self.seed,
            use_schema=self.use_schema,
            context_tokens=self.context_tokens,
        )

    def connect(self) -> AbstractAsyncContextManager[ChatModel]:
        """The model, for one event loop: made when entered, closed when left (case e7)."""
        return connect(self.settings())

    def calls(self, model: ChatModel, **limits: Any) -> Calls:
        """The calls of one op to that model, retried as is set here; `limits` are `Calls`' own."""
        timeout = timeout_seconds(self.settings())
        return Calls(model, retries=self.retries, timeout_seconds=timeout, **limits)

    def encoder(self, encoding: str | None = None) -> tuple[Encoder, str | None]:
        """What counts the model's tokens: `encoding` where it is given; and a warning where the
        model is unknown and another encoding stands in (case b6). Raises `InvalidInput`."""
        settings = self.settings()
        name = None if encoding is None and is_embedded(settings) else settings.model
        return encoding_for(name, encoding)


class HomeResource(dg.ConfigurableResource):
    """Where summaries, posts, checkpoints and traces go: a folder, or an object store's URL."""

    home: str | None = Field(
        default=None,
        description=f"By default PROMPTCHAIN_HOME, or {DEFAULT_HOME} in this folder.",
    )

    _store: Store | None = PrivateAttr(default=None)

    def store(self) -> Store:
        """The store at the home. Raises `InvalidInput` where it can't be written."""
        if self._store is None:
            home = self.home or os.environ.get("PROMPTCHAIN_HOME") or DEFAULT_HOME
            self._store = open_store(home)
        return self._store


def chain_resources() -> dict[str, Any]:
    """The resources of `chain_job` and of the jobs here; a run's config may set their fields."""
    return {"model": ModelResource(), "home": HomeResource(), "io_manager": store_io_manager}


def with_resources(job: dg.JobDefinition) -> dg.JobDefinition:
    """`job` with these resources, to be run where there are no `Definitions` that give it any."""
    return dg.Definitions(jobs=[job], resources=chain_resources()).resolve_job_def(job.name)
