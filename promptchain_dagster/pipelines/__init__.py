"""The core under Dagster: the only package that imports `dagster`."""

from promptchain_dagster.pipelines.automation import new_documents, nightly_summaries
from promptchain_dagster.pipelines.chain_assets import chain_assets
from promptchain_dagster.pipelines.chain_job import chain_job
from promptchain_dagster.pipelines.executor import in_process_by_default
from promptchain_dagster.pipelines.resources import HomeResource, ModelResource, chain_resources
from promptchain_dagster.pipelines.summary_assets import SummaryAssets, summary_assets

__all__ = [
    "HomeResource",
    "ModelResource",
    "SummaryAssets",
    "chain_assets",
    "chain_job",
    "chain_resources",
    "in_process_by_default",
    "new_documents",
    "nightly_summaries",
    "summary_assets",
]
