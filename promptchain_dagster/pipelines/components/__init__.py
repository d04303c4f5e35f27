"""The pipelines as Dagster components, so that YAML in a project of `dg` makes them."""

from promptchain_dagster.pipelines.components.prompt_chain import PromptChainComponent
from promptchain_dagster.pipelines.components.summaries import DocumentSummariesComponent

__all__ = ["DocumentSummariesComponent", "PromptChainComponent"]
