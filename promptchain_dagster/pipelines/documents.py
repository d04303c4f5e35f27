"""The assets over `PROMPTCHAIN_DOCUMENTS` as this deployment has them, and the job
`summarize_documents`.

They stand apart because their code versions are taken from the environment when this module is
loaded.
"""

from promptchain_dagster.pipelines.summary_assets import summary_assets

_summaries = summary_assets()
document_assets = _summaries.assets
summarize_documents = _summaries.job
