"""One deployment of the pipelines: what `dagster dev` and the daemon load."""

import dagster as dg

from promptchain_dagster.pipelines.blog_post import gate_with_retry, gated_exit
from promptchain_dagster.pipelines.resources import chain_resources
from promptchain_dagster.pipelines.summaries import incremental_refine

defs = dg.Definitions(
    jobs=[gated_exit, gate_with_retry, incremental_refine],
    resources=chain_resources(),
)
