"""`DocumentSummariesComponent`: the summary assets, their job, sensor and schedule."""

import dagster as dg
from pydantic import Field

from promptchain_dagster.errors import PromptChainError
from promptchain_dagster.pipelines.automation import new_documents, nightly_summaries
from promptchain_dagster.pipelines.summary_assets import summary_assets
from promptchain_dagster.refine.definition import Refine
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.refine.steps import summary_refine


class DocumentSummariesComponent(dg.Component, dg.Model, dg.Resolvable):
    """Every document of a folder as a summary; one such component in a deployment."""

    document_type: str = Field(default="document", description="What a prompt calls a document.")
    chunk_tokens: int = Field(default=2000, description="The most tokens of a chunk.")
    max_words: int = Field(default=500, description="The length cap of a summary.")
    refine: str | None = Field(
        default=None, description="The import path of a Refine of one's own, as minutes.refine."
    )
    cron: str = Field(default="0 2 * * *", description="When nightly_summaries looks.")
    timezone: str = Field(default="UTC", description="The time zone of cron, as Europe/Berlin.")
    max_documents_per_night: int = Field(default=500, description="The most that a night asks for.")
    group_name: str = Field(default="summaries", description="The group of the assets.")

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        try:
            refine = Refine.named(self.refine) if self.refine else summary_refine()
            settings = RefineSettings(self.document_type, self.chunk_tokens, self.max_words, refine)
            made = summary_assets(settings=settings, group_name=self.group_name)
            night = nightly_summaries(
                cron=self.cron,
                timezone=self.timezone,
                max_documents_per_night=self.max_documents_per_night,
                settings=settings,
            )
        except PromptChainError as error:
            raise type(error)(f"{context.path}: {error}") from None
        return dg.Definitions(
            assets=made.assets,
            jobs=[made.job],
            sensors=[new_documents(settings=settings)],
            schedules=[night],
        )
