"""What a run of the summary assets may set."""

from typing import Any

import dagster as dg
from pydantic import Field

from promptchain_dagster.models import Budget
from promptchain_dagster.refine.settings import RefineSettings

MAX_IN_FLIGHT = 32
SHARED = "where the pool llm has a limit, over all runs, each with an equal share"


class LimitsConfig(dg.Config):
    """How fast a run may go, and what it may spend. A limit that is not set is none."""

    max_in_flight: int | None = Field(
        default=None,
        description=f"Model calls at once, over the whole run: {MAX_IN_FLIGHT} unless set,"
        " and never more than the model serves (the embedded one: 1).",
    )
    requests_per_minute: int | None = Field(
        default=None, description=f"Over the whole run; {SHARED}."
    )
    tokens_per_minute: int | None = Field(
        default=None, description=f"Over the whole run; {SHARED}."
    )
    max_cost_usd: float | None = Field(default=None, description="Of this run, in US dollars.")
    max_tokens: int | None = Field(default=None, description="Of this run, in and out together.")
    max_cost_usd_per_day: float | None = Field(
        default=None, description="Of all runs of this UTC day, in US dollars."
    )
    max_tokens_per_day: int | None = Field(
        default=None, description="Of all runs of this UTC day, in and out together."
    )
    fresh: bool = Field(
        default=False, description="Pay again although nothing changed; what was made before stays."
    )

    def limits(self, sharers: int | None) -> dict[str, Any]:
        """For `paid_calls`, where so many runs share what is for a minute; raises `InvalidInput`
        for a budget that is not more than 0."""
        return {
            "sharers": sharers,
            "requests_per_minute": self.requests_per_minute,
            "tokens_per_minute": self.tokens_per_minute,
            "budget": Budget(self.max_cost_usd, self.max_tokens),
            "day_budget": Budget(self.max_cost_usd_per_day, self.max_tokens_per_day),
        }


class SummarizeConfig(LimitsConfig):
    """Which documents are summarized, and how."""

    only: list[str] = Field(
        default_factory=list,
        description="Keys of the documents to do in place of the run's partitions; they need not"
        " be among these.",
    )
    document_type: str | None = Field(
        default=None, description="What a prompt calls a document, one line."
    )
    chunk_tokens: int | None = Field(default=None, description="The most tokens of a chunk.")
    max_words: int | None = Field(default=None, description="The length cap of a summary.")
    retry_set_aside: bool = Field(
        default=False, description="Try the documents too that had failed for good."
    )
    running_summary_events: bool = Field(
        default=True,
        description="Materialize running_summary once per chunk; some 10 ms of CPU each.",
    )
    checks: bool = Field(
        default=True, description="Report the checks of each summary; some 60 ms of CPU each."
    )

    def settings(self, defaults: RefineSettings) -> RefineSettings:
        """`defaults` but for what is set here. Raises `InvalidInput`."""
        return RefineSettings(
            document_type=defaults.document_type
            if self.document_type is None
            else self.document_type,
            chunk_tokens=defaults.chunk_tokens if self.chunk_tokens is None else self.chunk_tokens,
            max_words=defaults.max_words if self.max_words is None else self.max_words,
            refine=defaults.refine,
        )
