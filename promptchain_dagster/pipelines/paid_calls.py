"""`paid_calls`: the one way in which a run comes to its calls, so that all are in the ledger."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from promptchain_dagster.models import Budget, Calls, Ledger
from promptchain_dagster.pipelines.resources import ModelResource
from promptchain_dagster.store import Store


@asynccontextmanager
async def paid_calls(
    model: ModelResource,
    store: Store,
    run_id: str,
    *,
    day_budget: Budget | None = None,
    most_in_flight: int | None = None,
    **limits: Any,
) -> AsyncGenerator[Calls]:
    """The calls of one run, for the event loop that asks; what they take goes to the ledger.

    `most_in_flight` bounds calls at once where the model has no smaller limit; `limits` are those
    of `Calls`. Raises `InvalidInput` for a limit that cannot work.
    """
    async with (
        model.connect() as chat,
        Ledger(store, run_id, day_budget=day_budget) as ledger,
    ):
        places = [one for one in (most_in_flight, chat.max_in_flight) if one is not None]
        yield model.calls(chat, max_in_flight=min(places, default=None), ledger=ledger, **limits)
