"""One deployment of the pipelines: what `dagster dev` and the daemon load.

Where the package alone is installed: `dagster dev -m promptchain_dagster.pipelines.definitions`.
"""

import dagster as dg

from promptchain_dagster.pipelines.automation import new_documents, nightly_summaries
from promptchain_dagster.pipelines.blog_post import gate_with_retry, gated_exit
from promptchain_dagster.pipelines.briefs import register_briefs_job
from promptchain_dagster.pipelines.documents import document_assets, summarize_documents
from promptchain_dagster.pipelines.executor import in_process_by_default
from promptchain_dagster.pipelines.plan_job import plan
from promptchain_dagster.pipelines.posts import post_assets, write_posts
from promptchain_dagster.pipelines.resources import chain_resources
from promptchain_dagster.pipelines.summaries import incremental_refine

defs = dg.Definitions(
    assets=[*post_assets, *document_assets],
    jobs=[
        gated_exit,
        gate_with_retry,
        incremental_refine,
        write_posts,
        register_briefs_job,
        summarize_documents,
        plan,
    ],
    sensors=[new_documents()],
    schedules=[nightly_summaries()],
    resources=chain_resources(),
    executor=in_process_by_default,
)
