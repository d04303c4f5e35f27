"""The blog post as assets, `outline` → `draft` → `post`, and the job `write_posts`.

They stand apart from the op jobs because their code versions are taken from the environment when
this module is loaded.
"""

import dagster as dg

from promptchain_dagster.blog_post import Brief, Variant, blog_post_chain
from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.pipelines.brief_files import BriefFolder
from promptchain_dagster.pipelines.briefs import briefs
from promptchain_dagster.pipelines.chain_assets import chain_assets
from promptchain_dagster.pipelines.executor import in_process_by_default


def brief_of(key: str | None) -> Brief:
    """The brief of a partition, as its file says now."""
    if key is None:
        raise InvalidInput("a post is written for a partition of briefs")
    return BriefFolder().find(key)


post_assets = chain_assets(
    blog_post_chain(Variant.GATE_WITH_RETRY),
    inputs_of=brief_of,
    partitions_def=briefs,
    group_name="posts",
    folder="posts",
)

write_posts = dg.define_asset_job(
    "write_posts",
    selection=dg.AssetSelection.assets(*post_assets),
    description="Outline, draft and post of one brief; a backfill makes a run for each.",
    executor_def=in_process_by_default,
)
