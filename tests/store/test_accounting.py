"""Usage and replay read any home."""

from __future__ import annotations

import asyncio
import json
from datetime import date

from promptchain_dagster.blog_post import Brief, Variant, blog_post_chain
from promptchain_dagster.chain.replay import settings_of
from promptchain_dagster.chain.result import chain_result
from promptchain_dagster.chain.run import run_chain
from promptchain_dagster.chain.trace import read_trace, recorder
from promptchain_dagster.library.replay import replay_run
from promptchain_dagster.library.usage import usage_between
from promptchain_dagster.models import Calls, Ledger
from promptchain_dagster.store import Store
from promptchain_dagster.testing import ScriptedChatModel

DAY = date(2026, 11, 30)


def test_a_run_is_accounted_for_and_replayed_in_a_folder_and_in_a_bucket(store: Store) -> None:
    """By the objects that it left."""
    chain = blog_post_chain(Variant.GATED_EXIT)
    sections = [{"heading": f"Part {n} of it", "point": "It is so."} for n in range(4)]
    model = ScriptedChatModel([json.dumps({"sections": sections}), "# Draft", "# Post"])

    async def main() -> None:
        async with Ledger(store, "run", today=DAY.isoformat) as ledger:
            done = await run_chain(
                chain,
                Brief(brief="Why tests pay", audience="developers"),
                Calls(model, ledger=ledger),
                record=recorder(store, "run", settings=settings_of(chain, 0)),
            )
        result = chain_result("run", "post", read_trace(store, "run"), output=done.output)
        store.write("results/run.json", json.dumps(result).encode())

    asyncio.run(main())
    (day,) = usage_between(store, DAY, DAY)
    assert (day.model_calls, day.runs[0].run_id, day.runs[0].ended) == (3, "run", True)
    replay = asyncio.run(replay_run(store, "run", {"gated_exit": lambda: chain}))
    assert (replay.status, replay.calls) == ("same", 3)
