"""The blog post's jobs: `gated_exit` and `gate_with_retry`, an op for each step and its gate.

As every job here they get their resources from the `Definitions` that they are part of;
`resources.with_resources` runs one outside of any.
"""

from promptchain_dagster.blog_post import Variant, blog_post_chain
from promptchain_dagster.pipelines.chain_job import chain_job

gated_exit = chain_job(
    blog_post_chain(Variant.GATED_EXIT),
    description="Brief, outline, code gate, draft, polish; the first failed gate ends it.",
)

gate_with_retry = chain_job(
    blog_post_chain(Variant.GATE_WITH_RETRY),
    description="The same; a rejected outline goes back with its errors, a capped number of times.",
)
